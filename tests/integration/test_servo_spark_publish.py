"""From a DataFrame to a table that others read: write, publish, and what PyIceberg and DuckDB find there."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import StaticTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from arco.fold.spark_session import Session
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import InvalidInput, PartitionsTouched
from arco.servo.execute.data_files import Written
from arco.servo.execute.output_schema import merge
from arco.servo.execute.publish import evolved
from arco.servo.execute.snapshots import Append, Replace, ReplaceAll, Rewrite
from arco.servo.execute.source_files import partition_versions
from arco.servo.execute.spark_read import read_table
from arco.servo.execute.spark_rewrite import merge_by_key, replace_matching
from arco.servo.execute.spark_types import iceberg_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from fixtures.servo.deletes import commit_deletes
from fixtures.servo.frames import MARKS, rows
from fixtures.servo.lake import Lake, data_file

from .duckdb_session import duckdb_session

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

BY_DAY = (("identity", "day"),)


def days(session: Session, first: int = 0, last: int = 30) -> DataFrame:
    """Rows of three days, ten a day."""
    return session.spark.range(first, last).selectExpr(
        "id", "date_add(date'2025-01-01', cast(id % 3 as int)) day", "concat('v', id) value"
    )


def day(number: int) -> EqualTo:
    return EqualTo("day", f"2025-01-0{number}")


def created(home: Lake, frame: DataFrame, parts: Sequence[tuple[str, str]] = BY_DAY, name: str = "t") -> TableMetadata:
    """A table with the rows of a frame."""
    schema = iceberg_schema(frame.schema)
    ids = {field["name"]: field["id"] for field in schema["fields"]}
    fields = [{"name": f"{column}_{how[:5]}", "transform": how, "source-id": ids[column]} for how, column in parts]
    staged = home.stage(name, schema, partition_spec={"fields": fields})
    home.publish(name, staged, written(home, frame, staged), creates=True)
    return home.load(name)


def written(home: Lake, frame: DataFrame, table: TableMetadata) -> Written:
    return write(frame, Target.of(table, home.materialization(), 1), home.io)


def read(session: Session, home: Lake, **which: Any) -> DataFrame:
    return read_table(session.spark, home.load("t"), home.io, **which)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("id").collect())


# Others read it


def test_a_first_output_is_a_table_that_pyiceberg_and_duckdb_read(session: Session, home: Lake, tmp_path: Path) -> None:
    frame = days(session).withColumn("tags", f.array(f.struct("id", "value"))).withColumn("m", f.create_map("value", "id"))
    created(home, frame, (("bucket[2]", "id"), ("month", "day")))
    location = home.location("t")
    expected = rows(frame.drop("tags", "m"))
    scanned = StaticTable.from_metadata(location).scan().to_arrow()
    found = sorted((tuple(row[name] for name in ("id", "day", "value")) for row in scanned.to_pylist()), key=repr)
    assert found == expected
    assert all(row["tags"] == [{"id": row["id"], "value": row["value"]}] for row in scanned.to_pylist())
    with duckdb_session(tmp_path) as duck:
        source = f"iceberg_scan('{location.removeprefix('file://')}')"
        assert sorted(duck(f"SELECT id, day, value FROM {source}"), key=repr) == expected
        assert duck.one(f"SELECT count(*) FROM {source} WHERE tags[1].id = id AND m[value] = id") == 30


def test_the_counts_of_a_snapshot_are_those_of_its_files(session: Session, home: Lake) -> None:
    table = created(home, days(session))
    output = written(home, days(session, 30, 60), table)
    home.publish("t", table, output)
    said = home.load("t").snapshots[-1]["summary"]
    assert (said["added-records"], said["total-records"]) == ("30", "60")
    assert int(said["added-data-files"]) == len(output.files)
    assert int(said["added-files-size"]) == output.size_bytes == sum(one[2] for one in output.partitions.values())


# Modes


def test_replacing_partitions_leaves_the_others_untouched(session: Session, home: Lake) -> None:
    table = created(home, days(session))
    where = And(GreaterThanOrEqual("day", "2025-01-01"), LessThan("day", "2025-01-03"))
    fresh = session.spark.createDataFrame([(100, date(2025, 1, 1), "new")], "id bigint, day date, value string")
    for _ in range(2):  # the same replacement twice changes nothing the second time
        base = home.load("t")
        home.publish("t", base, written(home, fresh, table), Replace(where))
        assert ids(read(session, home)) == [*range(2, 30, 3), 100]


@pytest.mark.parametrize("parts", [(("day", "at"),), (("month", "at"), ("bucket[2]", "id")), (("hour", "at"),)], ids=str)
def test_replacing_days_works_on_hidden_partitions_that_fit_them(session: Session, home: Lake, parts: Any) -> None:
    frame = session.spark.range(90).selectExpr("id", "timestamp'2025-01-31 00:00:00' + make_interval(0, 0, 0, 0, id) at")
    table = created(home, frame, parts)
    where = And(GreaterThanOrEqual("at", "2025-02-01T00:00:00+00:00"), LessThan("at", "2025-03-01T00:00:00+00:00"))
    fresh = session.spark.sql("select 1000L id, timestamp'2025-02-02 05:00:00' at")
    home.publish("t", table, written(home, fresh, table), Replace(where))
    assert ids(read(session, home)) == [*range(24), 1000]


def test_a_full_refresh_replaces_everything(session: Session, home: Lake) -> None:
    table = created(home, days(session))
    home.publish("t", table, written(home, days(session, 50, 52), table), ReplaceAll())
    assert ids(read(session, home)) == [50, 51]


def test_an_output_with_rows_of_other_days_is_refused(session: Session, home: Lake) -> None:
    table = created(home, days(session))
    with pytest.raises(InvalidInput, match="outside the partitions it replaces"):
        home.publish("t", table, written(home, days(session, 30, 33), table), Replace(day(1)))
    assert len(ids(read(session, home))) == 30


def merged(session: Session, home: Lake, frame: DataFrame, key: Sequence[str], **more: Any) -> Rewrite:
    table = home.load("t")
    target = Target.of(table, home.materialization(), 1)
    output = write(frame, target, home.io)
    everything, change = merge_by_key(session.spark, table, home.io, output, key, target, **more)
    home.publish("t", table, everything, change)
    return change


def updates(session: Session, *numbers: int) -> DataFrame:
    return days(session, 0, 100).where(f.col("id").isin(list(numbers))).withColumn("value", f.lit("new"))


def test_a_merge_replaces_rows_of_the_same_key_and_adds_the_rest(session: Session, home: Lake) -> None:
    before = created(home, days(session))
    change = merged(session, home, updates(session, 3, 6, 40), ["id"])
    found = {row["id"]: row["value"] for row in read(session, home).collect()}
    assert len(found) == 31
    assert {number for number, value in found.items() if value == "new"} == {3, 6, 40}
    assert len(change.files) == 1  # only the file of the first day held one of the keys
    assert len(set(home.paths(home.load("t"))) & set(home.paths(before))) == 2


def test_a_merge_of_new_keys_touches_no_file(session: Session, home: Lake) -> None:
    before = created(home, days(session))
    assert merged(session, home, updates(session, 50, 51), ["id"]).files == frozenset()
    assert set(home.paths(before)) < set(home.paths(home.load("t")))


def test_a_merge_by_several_columns_takes_null_for_a_value(session: Session, home: Lake) -> None:
    frame = session.spark.createDataFrame(
        [(1, None, "a"), (1, "x", "b"), (None, None, "c")], "id long, k string, value string"
    )
    created(home, frame, ())
    fresh = session.spark.createDataFrame([(1, None, "A"), (None, None, "C")], frame.schema)
    merged(session, home, fresh, ["id", "k"])
    assert sorted(row["value"] for row in read(session, home).collect()) == ["A", "C", "b"]


def test_a_merge_does_not_bring_deleted_rows_back(session: Session, home: Lake) -> None:
    table = created(home, days(session).coalesce(1), ())
    (file,) = home.entries(table)
    path = file.data_file.file_path
    deletes = f"{table.location}/data/deletes.parquet"
    session.spark.createDataFrame([(path, 0), (path, 1)], "file_path string, pos bigint").coalesce(1).write.parquet(deletes)
    (part,) = Path(deletes.removeprefix("file://")).glob("*.parquet")
    commit_deletes(
        home, "t", [data_file(table, f"deletes.parquet/{part.name}", rows=2, content=DataFileContent.POSITION_DELETES)]
    )
    assert ids(read(session, home)) == list(range(2, 30))
    merged(session, home, updates(session, 5), ["id"])
    assert ids(read(session, home)) == list(range(2, 30))


def test_a_merge_looks_only_where_it_is_told(session: Session, home: Lake) -> None:
    created(home, days(session))
    merged(session, home, updates(session, 3, 4), ["id"], where=day(1))
    assert ids(read(session, home)) == sorted([*range(30), 4])


def test_a_merge_by_a_column_that_is_not_there_is_refused(session: Session, home: Lake) -> None:
    created(home, days(session))
    with pytest.raises(InvalidInput, match="no key column 'zzz'"):
        merged(session, home, updates(session, 3), ["zzz"])


def test_a_merge_gives_way_to_rows_that_came_meanwhile(session: Session, home: Lake) -> None:
    table = created(home, days(session))
    target = Target.of(table, home.materialization(), 1)
    output = write(updates(session, 3), target, home.io)
    everything, change = merge_by_key(session.spark, table, home.io, output, ["id"], target)
    home.publish("t", table, written(home, updates(session, 3), table), catalog=home.another())
    with pytest.raises(PartitionsTouched):
        home.publish("t", table, everything, change)


def test_rows_are_replaced_on_a_layout_that_does_not_know_the_partitions(session: Session, home: Lake) -> None:
    table = created(home, days(session), ())
    target = Target.of(table, home.materialization(), 1)
    output = write(days(session, 30, 33).where("day = date'2025-01-01'"), target, home.io)
    everything, change = replace_matching(session.spark, table, home.io, output, day(1), target)
    home.publish("t", table, everything, change)
    assert ids(read(session, home)) == sorted([number for number in range(30) if number % 3] + [30])
    assert ids(read(session, home, where=day(1))) == [30]


# Schemas


def test_an_output_with_a_new_and_a_wider_column_evolves_the_table(session: Session, home: Lake) -> None:
    first = days(session).selectExpr("cast(id as int) id", "day", "value")
    table = created(home, first)
    output = days(session, 2**33, 2**33 + 3).withColumn("extra", f.struct(f.lit(1.5).alias("x")))
    merged_schema = merge(table.current_schema, iceberg_schema(output.schema), last_column_id=table.last_column_id)
    assert (merged_schema.added, merged_schema.widened) == (("extra",), ("id",))
    after = evolved(table, merged_schema.schema, home.clock.now_ms())
    files = write(output, Target.of(after, home.materialization(), 1), home.io)
    home.publish("t", table, files, schema=merged_schema.schema)
    found = read(session, home)
    assert found.columns == ["id", "day", "value", "extra"]
    assert sum(row["extra"] is None for row in found.collect()) == 30
    assert max(ids(found)) == 2**33 + 2
    assert StaticTable.from_metadata(home.location("t")).scan().to_arrow().num_rows == 33


# Failing, holding back


def test_an_output_that_fails_leaves_the_last_version_readable(session: Session, home: Lake) -> None:
    table = created(home, days(session))
    broken = days(session).withColumn("value", f.expr("string(assert_true(id < 20))"))
    with pytest.raises(PySparkException):
        written(home, broken, table)
    assert len(ids(read(session, home))) == 30
    assert home.load("t").document == table.document


def test_an_output_that_is_held_back_can_be_looked_at_and_main_stays(session: Session, home: Lake) -> None:
    table = created(home, days(session))
    bad = written(home, days(session).where("id % 3 = 0 and id < 4"), table)
    done = home.publish("t", table, bad, Replace(day(1)), ref="quarantine-1")
    assert len(ids(read(session, home))) == 30
    assert ids(read(session, home, snapshot_id=done.snapshot_id, where=day(1))) == [0, 3]


def test_two_runs_that_race_for_one_partition_never_mix(session: Session, home: Lake) -> None:
    table = created(home, days(session))
    first = home.publication("t", table, written(home, days(session, 30, 31), table), Replace(day(1)))
    second = home.publication("t", table, written(home, days(session, 33, 34), table), Replace(day(1)))
    home.publish(first)
    with pytest.raises(PartitionsTouched):
        home.publish(second, catalog=home.another())
    assert ids(read(session, home, where=day(1))) == [30]
    again = replace(second, base=home.load("t"), attempt=2, materialization_id=home.materialization())
    home.publish(again)
    assert ids(read(session, home, where=day(1))) == [33]


# Facts for planning


def test_only_partitions_that_changed_have_another_version(session: Session, home: Lake) -> None:
    table = created(home, days(session))

    def versions() -> dict[Any, str]:
        return {one.values[0]: one.version for one in partition_versions(home.load("t"), home.io)}

    first = versions()
    assert sorted(first) == [date(2025, 1, 1), date(2025, 1, 2), date(2025, 1, 3)]
    found = partition_versions(home.load("t"), home.io)[0]
    assert (found.rows, found.files, found.fields[0].column, found.fields[0].transform) == (10, 1, "day", "identity")
    home.publish("t", table, written(home, days(session, 30, 31), table), Append())
    second = versions()
    assert {value for value in first if first[value] != second[value]} == {date(2025, 1, 1)}
    deletes = data_file(table, "d", 20090, rows=1, content=DataFileContent.POSITION_DELETES)
    commit_deletes(home, "t", [deletes])
    third = versions()
    assert {value for value in second if second[value] != third[value]} == {date(2025, 1, 2)}
    assert {one.values[0]: one.version for one in partition_versions(table, home.io)} == first
    everywhere = data_file(table, "e", 20090, rows=1, content=DataFileContent.EQUALITY_DELETES, equality_ids=[1])
    commit_deletes(home, "t", [everywhere])
    assert {value for value, version in versions().items() if third[value] != version} == {date(2025, 1, 2)}
