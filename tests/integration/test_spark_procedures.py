"""Iceberg's stored procedures, called from Spark."""

import os
from pathlib import Path

import pytest

from .spark_session import Spark


@pytest.fixture
def t(spark: Spark, db: str) -> str:
    """A table of four commits; its name without the catalog, as procedures take it."""
    spark(f"CREATE TABLE {db}.t (id BIGINT, s STRING)")
    for number in range(4):
        spark(f"INSERT INTO {db}.t VALUES ({number}, 'x')")
    return f"{db}.t".removeprefix("arco.")


def snapshots(spark: Spark, t: str) -> list[int]:
    return [row[0] for row in spark(f"SELECT snapshot_id FROM arco.{t}.snapshots ORDER BY committed_at")]


def ids(spark: Spark, t: str) -> list[int]:
    return spark.column(f"SELECT id FROM arco.{t}")


def local(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def test_rollback_and_set_current_snapshot(spark: Spark, t: str) -> None:
    first, second, _, last = snapshots(spark, t)
    assert spark(f"CALL arco.system.rollback_to_snapshot('{t}', {first})") == [(last, first)]
    assert ids(spark, t) == [0]
    spark(f"CALL arco.system.set_current_snapshot('{t}', {last})")
    assert ids(spark, t) == [0, 1, 2, 3]
    at = spark.one(f"SELECT committed_at FROM arco.{t}.snapshots WHERE snapshot_id = {second}")
    spark(f"CALL arco.system.rollback_to_timestamp('{t}', TIMESTAMP '{at}' + INTERVAL 1 MILLISECOND)")
    assert ids(spark, t) == [0, 1]


def test_a_branch_is_fast_forwarded(spark: Spark, t: str) -> None:
    spark(f"ALTER TABLE arco.{t} CREATE BRANCH audit")
    spark(f"INSERT INTO arco.{t}.branch_audit VALUES (9, 'y')")
    spark(f"CALL arco.system.fast_forward('{t}', 'main', 'audit')")
    assert ids(spark, t) == [0, 1, 2, 3, 9]


def test_a_snapshot_is_cherry_picked(spark: Spark, t: str) -> None:
    spark(f"ALTER TABLE arco.{t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.session.conf.set("spark.wap.id", "staged")
    try:
        spark(f"INSERT INTO arco.{t} VALUES (8, 'wap')")
    finally:
        spark.session.conf.unset("spark.wap.id")
    assert ids(spark, t) == [0, 1, 2, 3]
    staged = spark.one(f"SELECT snapshot_id FROM arco.{t}.snapshots WHERE summary['wap.id'] = 'staged'")
    spark(f"CALL arco.system.cherrypick_snapshot('{t}', {staged})")
    assert ids(spark, t) == [0, 1, 2, 3, 8]


def test_snapshots_expire_and_their_files_go(spark: Spark, t: str) -> None:
    spark(f"INSERT OVERWRITE arco.{t} VALUES (5, 'only')")
    lists = [row[0] for row in spark(f"SELECT manifest_list FROM arco.{t}.snapshots")]
    spark(
        f"CALL arco.system.expire_snapshots(table => '{t}', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )
    assert len(snapshots(spark, t)) == 1
    assert ids(spark, t) == [5]
    assert sum(local(one).exists() for one in lists) == 1


def test_files_and_manifests_are_rewritten(spark: Spark, t: str) -> None:
    rewritten = spark(f"CALL arco.system.rewrite_data_files(table => '{t}', options => map('min-input-files', '2'))")
    assert rewritten[0][:2] == (4, 1)
    assert spark.one(f"SELECT count(*) FROM arco.{t}.files") == 1
    assert spark(f"CALL arco.system.rewrite_manifests('{t}', false)")[0][1] >= 1
    assert ids(spark, t) == [0, 1, 2, 3]


def test_deletes_are_rewritten(spark: Spark, t: str) -> None:
    spark(f"ALTER TABLE arco.{t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    spark(f"CALL arco.system.rewrite_data_files(table => '{t}', options => map('min-input-files', '2'))")
    for number in (0, 1):
        spark(f"DELETE FROM arco.{t} WHERE id = {number}")
    spark(f"CALL arco.system.rewrite_position_delete_files(table => '{t}', options => map('rewrite-all', 'true'))")
    assert ids(spark, t) == [2, 3]


def test_files_of_nobody_are_listed_and_those_of_the_table_are_not(spark: Spark, t: str) -> None:
    (data_file, *_) = spark.column(f"SELECT file_path FROM arco.{t}.files")
    stray = local(data_file).with_name("stray.parquet")
    stray.write_bytes(b"nobody's")
    os.utime(stray, (0, 0))
    found = spark(f"CALL arco.system.remove_orphan_files(table => '{t}', dry_run => true)")
    assert [row[0].rpartition("/")[2] for row in found] == ["stray.parquet"]


def test_statistics_become_part_of_the_table(spark: Spark, t: str) -> None:
    (statistics,) = spark(f"CALL arco.system.compute_table_stats('{t}')")[0]
    assert local(statistics).exists()
    at = snapshots(spark, t)[-1]
    spark(f"CALL arco.system.expire_snapshots(table => '{t}', older_than => TIMESTAMP '2100-01-01 00:00:00')")
    assert snapshots(spark, t) == [at]
    assert local(statistics).exists()


def test_a_table_is_registered_from_its_metadata(spark: Spark, t: str) -> None:
    (file,) = spark(f"SELECT file FROM arco.{t}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")[0]
    namespace = t.partition(".")[0]
    spark(f"DROP TABLE arco.{t}")
    spark(f"CALL arco.system.register_table('{namespace}.again', '{file}')")
    spark(f"INSERT INTO arco.{namespace}.again VALUES (4, 'y')")
    assert ids(spark, f"{namespace}.again") == [0, 1, 2, 3, 4]
