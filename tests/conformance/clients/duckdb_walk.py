# SPDX-License-Identifier: Apache-2.0
"""DuckDB with its iceberg extension as a user of a catalog: ADDRESS FOLDER. Knows nothing of Arco and imports nothing of it."""

import importlib.util
import sys
from pathlib import Path

import duckdb

EXTENSIONS = ("httpfs", "avro", "iceberg")


def main(address: str, folder: str) -> None:
    with duckdb.connect(config={"extension_directory": folder}) as connection:
        for name in EXTENSIONS:
            connection.execute(f"INSTALL '{extension(name)}'")
            connection.execute(f"LOAD {name}")
        walk(connection, address)
    print(f"DuckDB {duckdb.__version__}: all as it should be")


def walk(connection: duckdb.DuckDBPyConnection, address: str) -> None:
    def run(statement: str) -> list[tuple[object, ...]]:
        return connection.execute(statement).fetchall()

    options = f"TYPE iceberg, ENDPOINT '{address}', AUTHORIZATION_TYPE 'none', SUPPORT_NESTED_NAMESPACES true"
    run(f"ATTACH 'default/default' AS lake ({options})")
    run("CREATE SCHEMA lake.garden")
    run("CREATE TABLE lake.garden.plants (id BIGINT, name VARCHAR, planted DATE) PARTITIONED BY (planted)")
    run("INSERT INTO lake.garden.plants VALUES (1, 'fern', DATE '2026-03-01'), (2, 'moss', DATE '2026-03-02')")
    ((before,),) = run("SELECT max(snapshot_id) FROM iceberg_snapshots(lake.garden.plants)")
    run("UPDATE lake.garden.plants SET name = 'ivy' WHERE id = 2")
    run("DELETE FROM lake.garden.plants WHERE id = 1")
    run("ALTER TABLE lake.garden.plants ADD COLUMN height DOUBLE")
    assert run("SELECT id, name, height FROM lake.garden.plants") == [(2, "ivy", None)]
    assert run(f"SELECT count(*) FROM lake.garden.plants AT (VERSION => {before})") == [(2,)]
    run("CREATE TABLE lake.garden.names AS SELECT name, count(*) AS many FROM lake.garden.plants GROUP BY name")
    assert run("SELECT * FROM lake.garden.names") == [("ivy", 1)]
    run("BEGIN")
    run("INSERT INTO lake.garden.names VALUES ('gone', 0)")
    run("ROLLBACK")
    assert run("SELECT count(*) FROM lake.garden.names") == [(1,)]
    run("DROP TABLE lake.garden.names")
    run("DROP TABLE lake.garden.plants")
    run("DROP SCHEMA lake.garden")
    assert run("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake'") == [(0,)]


def extension(name: str) -> Path:
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert package is not None
    assert package.origin is not None
    return next(Path(package.origin).parent.glob(f"extensions/v*/{name}.duckdb_extension"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
