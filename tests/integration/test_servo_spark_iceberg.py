"""Iceberg's own Spark runtime beside Servo's reading and writing: the same rows, row for row, both ways.

One session serves both: Servo attaches to the one that runs, and uses nothing of the jar that is on its class path.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo

from arco.fold.spark_session import DEFAULTS, FIXED, Session, SparkSettings, open_session
from arco.iceberg.requests import CreateTable
from arco.servo.execute.snapshots import Replace
from arco.servo.execute.spark_read import read_table
from arco.servo.execute.spark_types import iceberg_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from fixtures.servo.frames import MARKS, rows
from fixtures.servo.lake import Lake

from .spark_session import Spark

pytestmark = MARKS


@pytest.fixture
def attached(spark: Spark) -> Iterator[Session]:
    before = {word: spark.session.conf.get(word, None) for word in (*FIXED, *DEFAULTS)}
    session = open_session(SparkSettings())
    assert not session.ours
    session.stop()  # which leaves it running
    yield session
    for word, value in before.items():
        spark.session.conf.unset(word) if value is None else spark.session.conf.set(word, value)


@pytest.fixture
def own(lake: Path) -> Iterator[Lake]:
    """The lake that the shared server serves, opened by this process too."""
    found = Lake(lake)
    try:
        yield found
    finally:
        found.run(found.catalog.parts.afterwards.settle())
        found._loop.close()


def same(spark: Spark, session: Session, own: Lake, table: str, version: int | None = None) -> int:
    """Read a table both ways; how many rows it has."""
    _, namespace, name = table.split(".")
    suffix = "" if version is None else f" VERSION AS OF {version}"
    spark(f"REFRESH TABLE {table}")  # Iceberg's catalog remembers tables for a while
    theirs = rows(spark.session.sql(f"SELECT * FROM {table}{suffix}"))
    ours = rows(read_table(session.spark, own.load(name, namespace), own.io, snapshot_id=version))
    assert ours == theirs
    return len(ours)


def snapshots(spark: Spark, table: str) -> list[int]:
    return [row[0] for row in spark(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")]


MERGE_ON_READ = (
    "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read'"
)


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_table_with_a_long_life_reads_the_same(spark: Spark, attached: Session, own: Lake, db: str, version: str) -> None:
    table = f"{db}.life"
    spark(
        f"CREATE TABLE {table} (id INT, name STRING, amount DECIMAL(9,2), share FLOAT, at TIMESTAMP, wall TIMESTAMP_NTZ, "
        "s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<a: INT>>, m MAP<STRING, BIGINT>) USING iceberg "
        f"PARTITIONED BY (days(at)) TBLPROPERTIES ('format-version'='{version}', {MERGE_ON_READ})"
    )
    fill = (
        f"INSERT INTO {table} SELECT id, concat('n', id % 7), id / 4, id / 8, timestamp_seconds(id * 20000), "
        "timestamp_ntz'2025-01-01 12:00:00', named_struct('x', id, 'y', string(id)), array(named_struct('a', id)), "
        "map('k', id) FROM (SELECT cast(id AS INT) id FROM range({0}, {1}, 1, 2))"
    )
    spark(fill.format(0, 60))
    spark(f"DELETE FROM {table} WHERE id % 10 = 3")
    spark(f"UPDATE {table} SET name = NULL WHERE id BETWEEN 20 AND 25")
    spark(f"ALTER TABLE {table} RENAME COLUMN name TO title")
    spark(f"ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT")
    spark(f"ALTER TABLE {table} ALTER COLUMN amount TYPE DECIMAL(18,2)")
    spark(f"ALTER TABLE {table} ALTER COLUMN share TYPE DOUBLE")
    spark(f"ALTER TABLE {table} RENAME COLUMN s.x TO longitude")
    spark(f"ALTER TABLE {table} ADD COLUMN s.z DOUBLE")
    spark(f"ALTER TABLE {table} ADD COLUMN l.element.b STRING")
    spark(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
    spark(f"ALTER TABLE {table} DROP PARTITION FIELD days(at)")
    spark(
        f"INSERT INTO {table} SELECT id, 'late', id / 4, id / 8, timestamp_seconds(id * 20000), NULL, "
        "named_struct('longitude', 1, 'y', 'y', 'z', 0.5), array(named_struct('a', 1, 'b', 'b')), NULL FROM range(100, 140)"
    )
    spark(f"MERGE INTO {table} t USING (SELECT 105L id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    spark(f"DELETE FROM {table} WHERE title = 'late' AND id % 9 = 0")
    spark(f"ALTER TABLE {table} DROP COLUMN wall")
    counts = [same(spark, attached, own, table)]
    counts += [same(spark, attached, own, table, version) for version in snapshots(spark, table)]
    assert counts == [89, 60, 54, 54, 94, 93, 89]


def test_what_servo_wrote_reads_the_same_with_every_type_and_transform(
    spark: Spark, attached: Session, own: Lake, db: str
) -> None:
    frame = attached.spark.range(300).selectExpr(
        "id",
        "cast(id % 3 = 0 AS BOOLEAN) flag",
        "cast(id / 3 AS FLOAT) f",
        "id / 7 d",
        "date_add(date'2025-01-01', cast(id % 4 AS INT)) day",
        "timestamp_micros(id * 3600000001) at",
        "cast(timestamp_micros(id * 3600000001) AS TIMESTAMP_NTZ) wall",
        "CASE WHEN id % 5 = 0 THEN NULL WHEN id % 5 = 1 THEN '' ELSE concat('n', id % 5) END name",
        "cast(string(id) AS BINARY) bytes",
        "cast(id AS DECIMAL(20,3)) amount",
        "named_struct('x', id, 'inner', named_struct('y', string(id))) s",
        "CASE WHEN id % 2 = 0 THEN array(named_struct('a', id, 'b', array(string(id)))) END l",
        "CASE WHEN id % 2 = 1 THEN map(string(id), named_struct('v', id / 2)) END m",
    )
    schema = iceberg_schema(frame.schema)
    ids = {field["name"]: field["id"] for field in schema["fields"]}
    specs = {
        "plain": [],
        "names": [("identity", "name"), ("identity", "day")],
        "times": [("day", "at"), ("hour", "wall")],
        "longer": [("year", "at"), ("month", "day")],
        "hashed": [("bucket[3]", "id"), ("bucket[2]", "name"), ("bucket[2]", "amount"), ("bucket[2]", "wall")],
        "cut": [("truncate[100]", "id"), ("truncate[1]", "name"), ("truncate[50000]", "amount"), ("void", "id")],
    }
    namespace = db.split(".")[1]
    for wanted in (frame, frame.drop("l", "m")):
        for name, parts in specs.items():
            table_name = f"{name}_{len(wanted.columns)}"
            fields = [
                {"name": f"p{at}_{how[:4]}", "transform": how, "source-id": ids[column]}
                for at, (how, column) in enumerate(parts)
            ]
            publish(own, namespace, table_name, wanted, {"fields": fields})
            assert rows(spark.session.sql(f"SELECT * FROM {db}.{table_name}")) == rows(wanted)
            partitions = spark(f"SELECT count(*) FROM {db}.{table_name}.files")[0][0]
            assert partitions >= 1
            assert same(spark, attached, own, f"{db}.{table_name}") == 300
    filtered = "SELECT count(*) FROM {0}.{1}_11 WHERE {2}"
    assert spark.one(filtered.format(db, "hashed", "name = 'n3' AND id > 100")) == 40
    assert spark.one(filtered.format(db, "times", "at < timestamp'1970-01-02'")) == 24
    assert spark.one(filtered.format(db, "names", "name = ''")) == 60
    assert spark.one(filtered.format(db, "names", "name IS NULL")) == 60


def publish(own: Lake, namespace: str, name: str, frame: Any, spec: Any) -> None:
    request = CreateTable(name, iceberg_schema(frame.schema), partition_spec=spec)
    staged = own.run(own.catalog.staging.stage((namespace,), request, own.key("stage")))
    written = write(frame, Target.of(staged, own.materialization(), 1), own.io)
    one = own.publication(name, staged, written, creates=True)
    own.publish(replace(one, levels=(namespace,)))


def test_both_write_to_one_table_in_turns(spark: Spark, attached: Session, own: Lake, db: str) -> None:
    namespace = db.split(".")[1]
    day = "date_add(date'2025-01-01', cast(id % 3 AS INT)) day"
    frame = attached.spark.range(30).selectExpr("id", day)
    spec = {"fields": [{"name": "day", "transform": "identity", "source-id": 2}]}
    publish(own, namespace, "turns", frame, spec)
    table = f"{db}.turns"
    spark(f"DELETE FROM {table} WHERE id < 6")
    spark(f"ALTER TABLE {table} ADD COLUMN note STRING")
    spark(f"INSERT INTO {table} SELECT 100, date'2025-01-09', 'theirs'")
    metadata = own.load("turns", namespace)
    fresh = attached.spark.range(2).selectExpr("id + 1000 id", "date'2025-01-02' day", "'ours' note")
    written = write(fresh, Target.of(metadata, own.materialization(), 1), own.io)
    one = own.publication("turns", metadata, written, Replace(EqualTo("day", "2025-01-02")))
    own.publish(replace(one, levels=(namespace,)))
    assert same(spark, attached, own, table) == 8 + 2 + 8 + 1
    assert spark(f"SELECT count(*) FROM {table} WHERE day = date'2025-01-02'")[0][0] == 2
    spark(f"CALL arco.system.rewrite_data_files('{namespace}.turns')")
    spark(f"INSERT INTO {table} SELECT 101, date'2025-01-09', 'theirs again'")
    assert same(spark, attached, own, table) == 20
