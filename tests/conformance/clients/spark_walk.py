# SPDX-License-Identifier: Apache-2.0
"""Spark with Iceberg's runtime as a user of a catalog: ADDRESS FOLDER JAR. Knows nothing of Arco and imports nothing of it."""

import os
import sys
from typing import Any

from pyspark.sql import SparkSession


def main(address: str, folder: str, jar: str) -> None:
    # Spark binds the outer address unless told.
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings = {
        "spark.jars": jar,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": address,
        "spark.sql.catalog.lake.rest-catalog-purge": "true",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/scratch",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("walk")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        walk(session)
        print(f"Spark {session.version}: all as it should be")
    finally:
        session.stop()


def walk(session: SparkSession) -> None:
    def run(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.sql(statement).collect()]

    run("CREATE NAMESPACE lake.outer")
    run("CREATE NAMESPACE lake.outer.inner WITH PROPERTIES ('purpose' = 'trade')")
    assert run("SHOW NAMESPACES IN lake.outer") == [("outer.inner",)]
    table = "lake.outer.inner.orders"

    run(f"CREATE TABLE {table} USING iceberg PARTITIONED BY (bucket(4, id)) AS SELECT id, id * 2 AS amount FROM range(5)")
    run(f"INSERT INTO {table} VALUES (5, 10), (6, 12)")
    ((before,),) = run(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1")
    run(
        f"MERGE INTO {table} o USING (SELECT * FROM VALUES (6L, 0L), (7L, 14L) AS n(id, amount)) n ON o.id = n.id "
        "WHEN MATCHED THEN UPDATE SET amount = n.amount WHEN NOT MATCHED THEN INSERT *"
    )
    run(f"UPDATE {table} SET amount = 1 WHERE id = 0")
    run(f"DELETE FROM {table} WHERE id = 1")
    assert run(f"SELECT count(*), sum(amount) FROM {table}") == [(7, 43)]

    assert run(f"SELECT count(*), sum(amount) FROM {table} VERSION AS OF {before}") == [(7, 42)]
    run(f"ALTER TABLE {table} CREATE TAG start AS OF VERSION {before}")
    run(f"ALTER TABLE {table} CREATE BRANCH audit")
    run(f"INSERT INTO {table}.branch_audit VALUES (8, 16)")
    assert run(f"SELECT count(*) FROM {table} VERSION AS OF 'start'") == [(7,)]
    assert run(f"SELECT count(*) FROM {table} VERSION AS OF 'audit'") == [(8,)]

    run(f"ALTER TABLE {table} ADD COLUMN note STRING")
    run(f"ALTER TABLE {table} RENAME COLUMN amount TO total")
    run(f"ALTER TABLE {table} RENAME TO outer.inner.sales")
    table = "lake.outer.inner.sales"
    assert run(f"SELECT id, total, note FROM {table} WHERE id = 7") == [(7, 14, None)]
    run(f"CALL lake.system.rollback_to_snapshot('outer.inner.sales', {before})")
    assert run(f"SELECT sum(total) FROM {table}") == [(42,)]
    run(f"CREATE OR REPLACE TABLE {table} USING iceberg AS SELECT id, 'x' AS word FROM range(3)")
    assert run(f"SELECT count(*) FROM {table} WHERE word = 'x'") == [(3,)]

    run(f"CREATE VIEW lake.outer.inner.large AS SELECT id FROM {table} WHERE id > 0")
    assert sorted(run("SELECT * FROM lake.outer.inner.large")) == [(1,), (2,)]
    run(f"CREATE OR REPLACE VIEW lake.outer.inner.large AS SELECT id FROM {table} WHERE id > 1")
    assert run("SELECT * FROM lake.outer.inner.large") == [(2,)]
    assert [row[1] for row in run("SHOW VIEWS IN lake.outer.inner")] == ["large"]

    run("DROP VIEW lake.outer.inner.large")
    run(f"DROP TABLE {table} PURGE")
    assert run("SHOW TABLES IN lake.outer.inner") == []
    run("DROP NAMESPACE lake.outer.inner")
    run("DROP NAMESPACE lake.outer")
    assert run("SHOW NAMESPACES IN lake") == []


if __name__ == "__main__":
    main(*sys.argv[1:4])
