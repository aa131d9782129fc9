"""Spark SQL on tables: rows in and out, evolution, time travel, branches, versions of the format."""

import datetime as dt
from decimal import Decimal

import pytest

from .spark_session import Spark

DAY = dt.date(2026, 1, 1)


@pytest.fixture
def t(spark: Spark, db: str) -> str:
    """A partitioned table with three rows."""
    spark(f"CREATE TABLE {db}.t (id BIGINT NOT NULL, d DATE, s STRING, v DOUBLE) PARTITIONED BY (days(d), bucket(4, id))")
    spark(f"INSERT INTO {db}.t VALUES (1, DATE '2026-01-01', 'a', 1.0), (2, DATE '2026-01-02', 'b', 2.0)")
    spark(f"INSERT INTO {db}.t VALUES (3, DATE '2026-01-03', 'c', 3.0)")
    return f"{db}.t"


def snapshots(spark: Spark, t: str) -> list[int]:
    """The ids on the way to the current state, oldest first."""
    return [row[0] for row in spark(f"SELECT snapshot_id FROM {t}.history ORDER BY made_current_at")]


# Rows


def test_rows_come_back_with_their_types(spark: Spark, db: str) -> None:
    spark(
        f"""CREATE TABLE {db}.types (b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3), s STRING, x BINARY,
            day DATE, at TIMESTAMP, plain TIMESTAMP_NTZ, many ARRAY<INT>, m MAP<STRING, BIGINT>,
            p STRUCT<a: INT, q: STRUCT<z: STRING>>)"""
    )
    spark(
        f"""INSERT INTO {db}.types VALUES (true, 1, 2, 3.5, 4.5, 123456789012345.678, 'größe', X'00FF', DATE '2026-01-01',
            TIMESTAMP '2026-01-01 10:00:00', TIMESTAMP_NTZ '2026-01-01 10:00:00', array(1, 2), map('k', 9),
            named_struct('a', 1, 'q', named_struct('z', 'deep')))"""
    )
    (row,) = spark(f"SELECT *, p.q.z FROM {db}.types")
    assert row[:9] == (True, 1, 2, 3.5, 4.5, Decimal("123456789012345.678"), "größe", b"\x00\xff", DAY)
    assert row[10] == dt.datetime(2026, 1, 1, 10)  # noqa: DTZ001  the column has no zone
    assert row[11:13] == ([1, 2], {"k": 9})
    assert row[-1] == "deep"


def test_rows_are_merged_updated_and_deleted(spark: Spark, t: str) -> None:
    spark(
        f"""MERGE INTO {t} USING (SELECT * FROM VALUES (3L, DATE '2026-01-03', 'C', 30.0D), (4L, DATE '2026-01-04', 'd', 4.0D)
            AS s(id, d, s, v)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    )
    spark(f"UPDATE {t} SET v = v + 1 WHERE id = 1")
    spark(f"DELETE FROM {t} WHERE id = 2")
    assert spark(f"SELECT id, s, v FROM {t} ORDER BY id") == [(1, "a", 2.0), (3, "C", 30.0), (4, "d", 4.0)]


def test_rows_are_merged_and_deleted_on_read(spark: Spark, t: str) -> None:
    modes = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("merge", "update", "delete"))
    spark(f"ALTER TABLE {t} SET TBLPROPERTIES ({modes})")
    spark(f"MERGE INTO {t} USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = 'merged'")
    spark(f"DELETE FROM {t} WHERE v = 3.0")
    assert spark(f"SELECT id, s FROM {t} ORDER BY id") == [(1, "merged"), (2, "b")]
    assert spark.one(f"SELECT sum(record_count) FROM {t}.delete_files") > 0


def test_an_overwrite_replaces_whole_partitions_or_the_table(spark: Spark, t: str) -> None:
    mode = "spark.sql.sources.partitionOverwriteMode"
    spark.session.conf.set(mode, "dynamic")
    try:
        spark(f"INSERT OVERWRITE {t} VALUES (1, DATE '2026-01-01', 'new', 9.0)")
        assert spark(f"SELECT id, s FROM {t} ORDER BY id") == [(1, "new"), (2, "b"), (3, "c")]
    finally:
        spark.session.conf.unset(mode)
    spark(f"INSERT OVERWRITE {t} VALUES (7, DATE '2026-01-07', 'only', 7.0)")
    assert spark.column(f"SELECT id FROM {t}") == [7]


def test_data_frames_are_written(spark: Spark, db: str) -> None:
    frame = spark.session.range(10).selectExpr("id", "id % 3 AS k")
    frame.writeTo(f"{db}.df").partitionedBy("k").createOrReplace()
    frame.writeTo(f"{db}.df").append()
    spark.session.sql("SELECT 100L AS id, 0L AS k").writeTo(f"{db}.df").overwritePartitions()
    assert spark(f"SELECT k, count(*) FROM {db}.df GROUP BY k ORDER BY k") == [(0, 1), (1, 6), (2, 6)]


# Create, replace


def test_a_table_is_created_from_a_query(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.ctas USING iceberg PARTITIONED BY (k) AS SELECT id, id % 3 AS k FROM range(10)")
    assert spark.one(f"SELECT count(*) FROM {db}.ctas") == 10
    assert spark.one(f"SELECT count(*) FROM {db}.ctas.partitions") == 3
    spark(f"CREATE TABLE IF NOT EXISTS {db}.ctas USING iceberg AS SELECT 1 AS other")
    assert spark.one(f"SELECT count(*) FROM {db}.ctas") == 10


def test_a_table_is_replaced_and_keeps_its_past(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.r USING iceberg AS SELECT id FROM range(10)")
    (before,) = snapshots(spark, f"{db}.r")
    spark(
        f"CREATE OR REPLACE TABLE {db}.r USING iceberg PARTITIONED BY (truncate(4, id)) AS SELECT id, 2 * id AS n FROM range(3)"
    )
    assert spark(f"SELECT * FROM {db}.r ORDER BY id") == [(0, 0), (1, 2), (2, 4)]
    assert spark.one(f"SELECT count(*) FROM {db}.r VERSION AS OF {before}") == 10
    spark(f"CREATE OR REPLACE TABLE {db}.r (a INT) USING iceberg")
    assert spark(f"SELECT * FROM {db}.r") == []


def test_replacing_what_is_missing_creates_it(spark: Spark, db: str) -> None:
    spark(f"CREATE OR REPLACE TABLE {db}.fresh USING iceberg AS SELECT id FROM range(3)")
    assert spark.column(f"SELECT id FROM {db}.fresh") == [0, 1, 2]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark(f"REPLACE TABLE {db}.missing USING iceberg AS SELECT 1 AS a")


def test_a_query_that_fails_leaves_no_table(spark: Spark, db: str) -> None:
    with pytest.raises(Exception, match="no such luck"):
        spark(f"CREATE TABLE {db}.never USING iceberg AS SELECT id + raise_error('no such luck') AS a FROM range(2)")
    assert spark(f"SHOW TABLES IN {db}") == []
    spark(f"CREATE TABLE {db}.never (a INT)")


# Evolution


def test_columns_are_added_renamed_widened_moved_and_dropped(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.e (a INT, b DECIMAL(9, 2), p STRUCT<x: INT>)")
    spark(f"INSERT INTO {db}.e VALUES (1, 2.5, named_struct('x', 3))")
    for change in (
        "ADD COLUMN c STRING COMMENT 'new' AFTER a",
        "ADD COLUMN p.y STRING",
        "RENAME COLUMN b TO amount",
        "ALTER COLUMN a TYPE BIGINT",
        "ALTER COLUMN amount TYPE DECIMAL(18, 2)",
        "ALTER COLUMN c FIRST",
        "ADD COLUMN gone INT",
        "DROP COLUMN gone",
    ):
        spark(f"ALTER TABLE {db}.e {change}")
    spark(f"INSERT INTO {db}.e VALUES ('x', 5000000000, 9999999999.25, named_struct('x', 4, 'y', 'n'))")
    assert spark(f"SELECT c, a, amount, p.x, p.y FROM {db}.e ORDER BY a") == [
        (None, 1, Decimal("2.50"), 3, None),
        ("x", 5000000000, Decimal("9999999999.25"), 4, "n"),
    ]


def test_a_column_that_is_dropped_and_added_again_is_empty(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.again (a INT, b STRING)")
    spark(f"INSERT INTO {db}.again VALUES (1, 'old')")
    spark(f"ALTER TABLE {db}.again DROP COLUMN b")
    spark(f"ALTER TABLE {db}.again ADD COLUMN b STRING")
    assert spark(f"SELECT * FROM {db}.again") == [(1, None)]


def test_partitions_and_order_evolve(spark: Spark, t: str) -> None:
    for change in (
        "REPLACE PARTITION FIELD d_day WITH months(d)",
        "DROP PARTITION FIELD bucket(4, id)",
        "ADD PARTITION FIELD truncate(1, s) AS first",
        "WRITE ORDERED BY s, id DESC NULLS LAST",
    ):
        spark(f"ALTER TABLE {t} {change}")
    spark(f"INSERT INTO {t} VALUES (4, DATE '2026-02-01', 'dd', 4.0)")
    assert spark.column(f"SELECT id FROM {t} WHERE d >= DATE '2026-01-02'") == [2, 3, 4]
    assert spark(f"SELECT spec_id, sort_order_id FROM {t}.files WHERE record_count = 1 AND spec_id > 0") == [(3, 1)]
    spark(f"ALTER TABLE {t} WRITE UNORDERED")


def test_properties_comments_and_identifier_fields(spark: Spark, t: str) -> None:
    spark(f"ALTER TABLE {t} SET TBLPROPERTIES ('owner-team' = 'a', 'x' = 'y')")
    spark(f"ALTER TABLE {t} UNSET TBLPROPERTIES ('x')")
    spark(f"COMMENT ON TABLE {t} IS 'what it is'")
    spark(f"ALTER TABLE {t} SET IDENTIFIER FIELDS id")
    properties = dict(spark(f"SHOW TBLPROPERTIES {t}"))
    assert properties["owner-team"] == "a"
    assert "x" not in properties
    assert ("Comment", "what it is", "") in spark(f"DESCRIBE TABLE EXTENDED {t}")
    assert properties["identifier-fields"] == "[id]"


# The past


def test_the_past_is_read_by_version_and_by_time(spark: Spark, t: str) -> None:
    first, second = snapshots(spark, t)
    assert spark.column(f"SELECT id FROM {t} VERSION AS OF {first}") == [1, 2]
    assert spark.column(f"SELECT id FROM {t} VERSION AS OF {second}") == [1, 2, 3]
    at = spark.one(f"SELECT committed_at FROM {t}.snapshots WHERE snapshot_id = {first}")
    assert spark.column(f"SELECT id FROM {t} TIMESTAMP AS OF '{at}'") == [1, 2]
    with pytest.raises(Exception, match="Cannot find snapshot"):
        spark(f"SELECT * FROM {t} VERSION AS OF 5")


def test_the_past_has_the_schema_it_had(spark: Spark, t: str) -> None:
    first, _ = snapshots(spark, t)
    spark(f"ALTER TABLE {t} RENAME COLUMN s TO text")
    assert [row[0] for row in spark(f"SELECT s FROM {t} VERSION AS OF {first} ORDER BY id")] == ["a", "b"]


@pytest.mark.parametrize(
    ("metadata", "rows"),
    [
        ("history", 2),
        ("snapshots", 2),
        ("files", 3),
        ("manifests", 2),
        ("partitions", 3),
        ("refs", 1),
        ("entries", 3),
        ("all_data_files", 3),
        ("metadata_log_entries", 3),
    ],
)
def test_metadata_is_a_table(spark: Spark, t: str, metadata: str, rows: int) -> None:
    assert spark.one(f"SELECT count(*) FROM {t}.{metadata}") == rows


def test_a_branch_is_written_without_touching_main(spark: Spark, t: str) -> None:
    spark(f"ALTER TABLE {t} CREATE BRANCH audit")
    spark(f"INSERT INTO {t}.branch_audit VALUES (9, DATE '2026-01-09', 'z', 9.0)")
    assert spark.column(f"SELECT id FROM {t}") == [1, 2, 3]
    assert spark.column(f"SELECT id FROM {t} VERSION AS OF 'audit'") == [1, 2, 3, 9]
    assert spark.column(f"SELECT id FROM {t}.branch_audit") == [1, 2, 3, 9]
    spark(f"ALTER TABLE {t} DROP BRANCH audit")
    assert spark.column(f"SELECT name FROM {t}.refs") == ["main"]


def test_a_tag_stays_where_it_was_put(spark: Spark, t: str) -> None:
    spark(f"ALTER TABLE {t} CREATE TAG closed RETAIN 30 DAYS")
    spark(f"DELETE FROM {t}")
    assert spark.column(f"SELECT id FROM {t}") == []
    assert spark.column(f"SELECT id FROM {t} VERSION AS OF 'closed'") == [1, 2, 3]
    with pytest.raises(Exception, match="is a tag, not a branch"):
        spark(f"INSERT INTO {t}.branch_closed VALUES (9, DATE '2026-01-09', 'z', 9.0)")
    spark(f"ALTER TABLE {t} REPLACE TAG closed")
    assert spark.column(f"SELECT id FROM {t} VERSION AS OF 'closed'") == []
    spark(f"ALTER TABLE {t} DROP TAG closed")


# Versions of the format


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_of_the_format_is_written_and_read(spark: Spark, db: str, version: int) -> None:
    spark(f"CREATE TABLE {db}.f (id BIGINT, s STRING) TBLPROPERTIES ('format-version' = '{version}')")
    spark(f"INSERT INTO {db}.f VALUES (1, 'a'), (2, 'b')")
    spark(f"UPDATE {db}.f SET s = 'c' WHERE id = 2")
    assert spark(f"SELECT * FROM {db}.f ORDER BY id") == [(1, "a"), (2, "c")]


def test_a_table_is_upgraded(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.u (id BIGINT) TBLPROPERTIES ('format-version' = '1')")
    spark(f"INSERT INTO {db}.u VALUES (1)")
    spark(f"ALTER TABLE {db}.u SET TBLPROPERTIES ('format-version' = '3')")
    spark(f"INSERT INTO {db}.u VALUES (2)")
    assert spark.column(f"SELECT id FROM {db}.u") == [1, 2]


def test_rows_of_version_3_keep_their_identity(spark: Spark, db: str) -> None:
    modes = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("update", "delete"))
    spark(f"CREATE TABLE {db}.v3 (id BIGINT, s STRING) TBLPROPERTIES ('format-version' = '3', {modes})")
    spark(f"INSERT INTO {db}.v3 VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    before = dict(spark(f"SELECT id, _row_id FROM {db}.v3"))
    spark(f"UPDATE {db}.v3 SET s = 'B' WHERE id = 2")
    spark(f"DELETE FROM {db}.v3 WHERE id = 3")
    after = spark(f"SELECT id, _row_id, _last_updated_sequence_number FROM {db}.v3 ORDER BY id")
    assert after == [(1, before[1], 1), (2, before[2], 2)]
    assert spark.column(f"SELECT DISTINCT file_format FROM {db}.v3.delete_files") == ["PUFFIN"]


def test_a_variant_is_kept(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.var (id INT, x VARIANT) TBLPROPERTIES ('format-version' = '3')")
    spark(f"INSERT INTO {db}.var SELECT 1, parse_json('{{\"a\": [1, 2]}}')")
    assert spark.one(f"SELECT variant_get(x, '$.a[1]', 'int') FROM {db}.var") == 2
