"""The versions of a source's partitions are the same whoever reads its manifests, and PyIceberg is not loaded for them."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import DataFileContent

from arco.iceberg.metadata import TableMetadata
from arco.servo.execute import source_files, source_manifests, sources
from arco.servo.execute.snapshots import Replace
from fixtures.servo.deletes import commit_deletes
from fixtures.servo.lake import Lake, data_file

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "day", "required": False, "type": "date"},
        {"id": 3, "name": "at", "required": False, "type": "timestamptz"},
        {"id": 4, "name": "price", "required": False, "type": "decimal(9, 2)"},
    ],
}
DAY = 20089


@pytest.fixture
def lake() -> Iterator[Lake]:
    with Lake() as found:
        yield found


def both(lake: Lake, table: TableMetadata) -> list[sources.PartitionVersion]:
    """The versions as they are found here, held against those that PyIceberg's reader leads to."""
    parts = lake.catalog.parts
    found = lake.run(source_manifests.versions_in(parts, table))
    theirs = sources.versions_of(table, table.current_schema, lake.run(source_files.live_files(parts, table)))
    assert found == theirs
    return found


def by(transform: str, column: int) -> dict[str, object]:
    return {"fields": [{"name": "part", "transform": transform, "source-id": column}]}


@pytest.mark.parametrize(
    ("transform", "column", "value"),
    [
        ("identity", 2, DAY),
        ("identity", 2, None),
        ("day", 3, DAY),
        ("hour", 3, DAY * 24),
        ("month", 3, 660),
        ("bucket[4]", 1, 3),
        ("truncate[10]", 1, 20),
        ("identity", 3, DAY * 86_400_000_000),
    ],
)
def test_partitions_of_every_transform(lake: Lake, transform: str, column: int, value: object) -> None:
    table = lake.create("t", SCHEMA, partition_spec=by(transform, column))
    lake.publish("t", table, (data_file(table, "a", value), data_file(table, "b", value, rows=3)))
    (one,) = both(lake, lake.load("t"))
    assert (one.files, one.rows, one.size_bytes) == (2, 13, 1300)


def test_what_is_added_replaced_and_deleted_changes_the_versions_that_it_touches(lake: Lake) -> None:
    table = lake.create("t", SCHEMA, partition_spec=by("identity", 2))
    lake.publish("t", table, (data_file(table, "a", DAY), data_file(table, "b", DAY + 1)))
    first = both(lake, lake.load("t"))
    lake.publish("t", lake.load("t"), (data_file(table, "c", DAY),))
    second = both(lake, lake.load("t"))
    assert [one.version == two.version for one, two in zip(first, second, strict=True)] == [False, True]
    lake.publish("t", lake.load("t"), (data_file(table, "d", DAY + 1),), Replace(EqualTo("day", "2025-01-02")))
    third = both(lake, lake.load("t"))
    assert [one.version == two.version for one, two in zip(second, third, strict=True)] == [True, False]


@pytest.mark.parametrize("content", [DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES])
def test_rows_deleted_from_a_partition_change_its_version(lake: Lake, content: DataFileContent) -> None:
    table = lake.create("t", SCHEMA, partition_spec=by("identity", 2))
    lake.publish("t", table, (data_file(table, "a", DAY), data_file(table, "b", DAY + 1)))
    first = both(lake, lake.load("t"))
    commit_deletes(lake, "t", (data_file(table, "deletes", DAY, rows=2, content=content),))
    second = both(lake, lake.load("t"))
    assert [one.version == two.version for one, two in zip(first, second, strict=True)] == [False, True]


def test_a_table_without_rows_has_no_partitions(lake: Lake) -> None:
    assert both(lake, lake.create("t", SCHEMA, partition_spec=by("identity", 2))) == []


def test_tables_of_the_first_format_version(lake: Lake) -> None:
    table = lake.create("t", SCHEMA, partition_spec=by("identity", 2), properties={"format-version": "1"})
    lake.append_to_v1("t", (data_file(table, "a", DAY),), 7)
    (one,) = both(lake, lake.load("t"))
    assert one.rows == 10


def test_large_tables_are_left_to_the_quicker_reader(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create("t", SCHEMA, partition_spec=by("identity", 2))
    lake.publish("t", table, (data_file(table, "a", DAY),))
    small = both(lake, lake.load("t"))
    monkeypatch.setattr(source_manifests, "_SMALL_BYTES", 0)
    monkeypatch.setattr(source_manifests, "_read", None)
    assert both(lake, lake.load("t")) == small


def test_the_facts_of_a_plan_are_gathered_without_pyiceberg() -> None:
    loaded = "[one for one in ('pyiceberg', 'pyarrow', 'pyspark') if one in sys.modules]"
    code = f"import sys, arco.servo.execute.gathering; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
