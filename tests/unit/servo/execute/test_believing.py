"""A worker believes of what the process of a task says it wrote the names of files in its own directory, and no more."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow

from arco import asset, daily, in_range, not_null, row_count, unique
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import BrokenInvariant, InvalidInput
from arco.quality.checks import Severity
from arco.servo.execute.believing import Believing, computed_of
from arco.servo.execute.computing import Assignment, Computed
from arco.servo.execute.snapshots import Append, Replace, ReplaceAll, Rewrite
from arco.servo.execute.table_state import pyiceberg_schema
from arco.servo.execute.target import Target
from arco.servo.execute.task_messages import Files, Made
from fixtures.servo.assigned import assigned
from fixtures.servo.lake import Lake

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "date", "required": False, "type": "date"},
    ],
}
BY_DAY = {"fields": [{"name": "date", "transform": "identity", "source-id": 2}]}
DAY_1, DAY_2 = 20089, 20090
FIRST = [{"date": ["2025-01-01", "2025-01-02"]}]
DONE = Computed(SCHEMA)


@asset
def whole(run):
    return run.spark.range(3)


@asset(mode="append")
def appended(run):
    return run.spark.range(3)


@asset(partitions=daily("date", start="2025-01-01"))
def by_day(run):
    return run.spark.range(3)


@asset(mode="append", partitions=daily("date", start="2025-01-01"))
def appended_by_day(run):
    return run.spark.range(3)


@asset(checks=[not_null("id"), row_count(min=2), unique("id"), in_range("id", min=0)])
def checked(run):
    return run.spark.range(3)


@pytest.fixture
def lake(tmp_path: Path):
    with Lake(tmp_path / "lake") as found:
        yield found


@pytest.fixture
def table(lake: Lake) -> TableMetadata:
    return lake.create("t", SCHEMA)


@pytest.fixture
def daily_table(lake: Lake) -> TableMetadata:
    return lake.create("d", SCHEMA, partition_spec=BY_DAY)


def wrote(directory: str, ids: list[int | None], day: int = DAY_1, folder: str = "", name: str = "f.parquet") -> str:
    """A file as a task writes it, and its location."""
    location = f"{directory}/{folder}{name}"
    place = Path(location.removeprefix("file://"))
    place.parent.mkdir(parents=True, exist_ok=True)
    schema = schema_to_pyarrow(pyiceberg_schema(SCHEMA))
    rows = pa.table([pa.array(ids, pa.int64()), pa.array([day] * len(ids), pa.int32()).cast(pa.date32())], schema=schema)
    pq.write_table(rows, place)
    return location


def directory(table: TableMetadata, given: Assignment) -> str:
    return Target.of(table, given.materialization_id, given.attempt).directory


def said(*new: str, **more: Any) -> Files:
    plain: dict[str, Any] = {"kept": [], "aside": None, "removed": None, "results": []}
    return Files(new=list(new), **(plain | more))


def test_what_a_file_is_comes_from_the_file(lake: Lake, table: TableMetadata) -> None:
    given = assigned(whole)
    file = wrote(directory(table, given), [1, 2, 3])
    stored = Believing(given, DONE, lake.io).stored(said(file), table, None)
    (entry,) = stored.new.files
    assert (stored.new.rows, entry.record_count) == (3, 3)
    assert entry.file_size_in_bytes == Path(file.removeprefix("file://")).stat().st_size
    assert stored.change == ReplaceAll()


def test_the_partition_of_a_file_is_the_folder_it_lies_in(lake: Lake, daily_table: TableMetadata) -> None:
    given = assigned(by_day, partitions=FIRST)
    file = wrote(directory(daily_table, given), [1], folder=f"__p0={DAY_1}/")
    stored = Believing(given, DONE, lake.io).stored(said(file), daily_table, None)
    assert stored.new.partitions == {(DAY_1,): (1, 1, stored.new.size_bytes)}
    assert isinstance(stored.change, Replace)


def test_a_file_of_another_table_is_refused(lake: Lake, table: TableMetadata) -> None:
    given = assigned(whole)
    other = lake.create("other", SCHEMA)
    for theirs in (
        wrote(directory(other, given), [1]),
        wrote(directory(table, given).replace(str(given.materialization_id), "01JD7Z0Q3V8K4M2N6P9R5T1AAA"), [1]),
        wrote(f"{directory(table, given)}0", [1]),
    ):
        with pytest.raises(InvalidInput, match="not in the directory of this attempt"):
            Believing(given, DONE, lake.io).stored(said(theirs), table, None)


def test_a_path_that_climbs_out_of_its_directory_is_refused(lake: Lake, table: TableMetadata) -> None:
    given = assigned(whole)
    own = directory(table, given)
    wrote(own, [1])
    wrote(f"{own}0", [1])
    for winding in (f"{own}/../{given.attempt}0/f.parquet", f"{own}/%2e%2e/1/f.parquet", f"{own}//f.parquet"):
        with pytest.raises(InvalidInput, match="not in the directory of this attempt"):
            Believing(given, DONE, lake.io).stored(said(winding), table, None)


def test_a_file_that_is_not_there_is_refused_and_so_is_one_that_is_named_twice(lake: Lake, table: TableMetadata) -> None:
    given = assigned(whole)
    file = wrote(directory(table, given), [1])
    believing = Believing(given, DONE, lake.io)
    with pytest.raises(InvalidInput, match="which is not there"):
        believing.stored(said(file, f"{directory(table, given)}/g.parquet"), table, None)
    with pytest.raises(InvalidInput, match="twice"):
        believing.stored(said(file, file), table, None)


def test_a_file_that_is_no_file_of_the_table_is_refused(lake: Lake, table: TableMetadata) -> None:
    given = assigned(whole)
    place = Path(directory(table, given).removeprefix("file://"))
    place.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1], "date": [2]}), place / "f.parquet")
    with pytest.raises(BrokenInvariant, match="cannot be published"):
        Believing(given, DONE, lake.io).stored(said(f"{directory(table, given)}/f.parquet"), table, None)


@pytest.mark.parametrize("made_by", [by_day, appended_by_day])
def test_rows_outside_the_partitions_of_the_task_are_refused(lake: Lake, daily_table: TableMetadata, made_by: Any) -> None:
    given = assigned(made_by, partitions=FIRST)
    file = wrote(directory(daily_table, given), [1], DAY_2, folder=f"__p0={DAY_2}/")
    with pytest.raises(InvalidInput, match="outside the partitions"):
        Believing(given, DONE, lake.io).stored(said(file), daily_table, None)


def test_only_files_with_rows_of_the_task_are_replaced(lake: Lake, daily_table: TableMetadata) -> None:
    files = [
        wrote(f"{daily_table.location}/data/before", [1], day, folder=f"__p0={day}/", name=f"{day}.parquet")
        for day in (DAY_1, DAY_2)
    ]
    given = assigned(by_day, partitions=FIRST)
    both = assigned(by_day, partitions=[{"date": ["2025-01-01", "2025-01-03"]}], attempt=7)
    for file in files:
        wrote(directory(daily_table, both), [1], int(file[-13:-8]), folder=f"__p0={file[-13:-8]}/", name=f"{file[-13:]}")
    own = [f"{directory(daily_table, both)}/__p0={day}/{day}.parquet" for day in (DAY_1, DAY_2)]
    lake.publish("d", daily_table, Believing(both, DONE, lake.io).stored(said(*own), daily_table, None).new.files)
    now = lake.load("d")
    new = wrote(directory(now, given), [5], folder=f"__p0={DAY_1}/")
    stored = Believing(given, DONE, lake.io).stored(said(new, removed=[own[0]]), now, None)
    assert isinstance(stored.change, Rewrite)
    assert stored.change.files == frozenset({own[0]})
    with pytest.raises(InvalidInput, match="holds no rows of this task"):
        Believing(given, DONE, lake.io).stored(said(new, removed=own), now, None)


def test_what_an_output_does_to_its_table_is_what_its_asset_says(lake: Lake, table: TableMetadata) -> None:
    given = assigned(appended)
    file = wrote(directory(table, given), [1])
    assert Believing(given, DONE, lake.io).stored(said(file), table, None).change == Append()
    with pytest.raises(InvalidInput, match="not rewritten"):
        Believing(given, DONE, lake.io).stored(said(file, removed=["x"]), table, None)
    with pytest.raises(InvalidInput, match="aside"):
        Believing(given, DONE, lake.io).stored(said(file, aside=[file]), table, None)


def test_what_footers_prove_is_not_taken_on_anybodys_word(lake: Lake, table: TableMetadata) -> None:
    given = assigned(checked)
    file = wrote(directory(table, given), [None])
    good = [{"check": check.name, "kind": "?", "severity": Severity.INFO, "passed": True} for check in given.asset.checks]
    results = Believing(given, DONE, lake.io).stored(said(file, results=msgspec.to_builtins(good)), table, None).results
    found = {one.kind: one for one in results}
    assert not found["not_null"].passed
    assert not found["row_count"].passed
    assert found["unique"].passed, "only whoever reads the rows can count them"
    assert [one.severity for one in results] == [check.severity for check in given.asset.checks]


def test_a_check_without_a_result_has_failed(lake: Lake, table: TableMetadata) -> None:
    given = assigned(checked)
    file = wrote(directory(table, given), [1, 2])
    results = Believing(given, DONE, lake.io).stored(said(file), table, None).results
    assert [(one.kind, one.passed) for one in results if one.kind == "unique"] == [("unique", False)]


def test_columns_that_are_no_schema_are_refused() -> None:
    given = assigned(whole)
    made = Made(columns=SCHEMA, aside_columns=None, external=["x" * 10_000] * 5000, full_reads={"nobody": "because"})
    done = computed_of(made, given)
    assert (done.schema, done.full_reads) == (SCHEMA, {})
    assert len(done.external) == 1000
    for wrong in ({}, {"type": "struct"}, {"type": "struct", "fields": [{"name": 1}]}, {"type": "struct", "fields": "x"}):
        with pytest.raises(InvalidInput):
            computed_of(msgspec.structs.replace(made, columns=wrong), given)
    with pytest.raises(InvalidInput, match="set aside"):
        computed_of(msgspec.structs.replace(made, aside_columns=SCHEMA), given)
