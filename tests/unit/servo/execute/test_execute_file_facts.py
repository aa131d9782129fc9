"""What an event says of few files, one by one: counts, nulls and bounds as people read them, and never much of it."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyiceberg.schema import Schema

from arco.kernel.limits import FILE_STATS_COLUMNS_MAX, FILE_STATS_FILES_MAX
from arco.ledger.execution_events import ColumnFacts, FileFacts
from arco.servo.execute.data_files import Written
from arco.servo.execute.file_facts import file_facts
from arco.servo.execute.table_state import pyiceberg_schema
from unit.servo.execute.test_execute_proved import SCHEMA, TYPES, file


def told(*files: Any, schema: Schema | None = None) -> tuple[FileFacts, ...]:
    written = Written(files, sum(one.record_count for one in files))
    return file_facts(written, schema or pyiceberg_schema(SCHEMA), lambda values: {"n": str(len(values))})


def column_of(kind: str) -> str:
    return next(name for name, one in TYPES.items() if one == kind)


def test_a_file_is_told_with_its_size_its_partition_and_what_its_footer_says() -> None:
    name = column_of("long")
    (one,) = told(file(5, {name: 2}, **{name: (3, 7)}))
    assert (one.path, one.rows, one.bytes, one.partition) == ("f", 5, 1, {"n": "0"})
    assert one.columns == (ColumnFacts(column=name, nulls=2, lower="3", upper="7"),)


@pytest.mark.parametrize(
    ("kind", "bounds", "spelled"),
    [
        ("string", ("a", "b"), ("a", "b")),
        ("string", ("a" * 65, "b"), (None, "b")),
        ("date", (date(2025, 1, 2), date(2025, 3, 4)), ("2025-01-02", "2025-03-04")),
        (
            "timestamptz",
            (datetime(2025, 1, 2, tzinfo=UTC), datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)),
            ("2025-01-02T00:00:00+00:00", "2025-01-02T03:04:05+00:00"),
        ),
    ],
)
def test_bounds_are_spelled_for_people_and_long_ones_are_left_out(kind: str, bounds: Any, spelled: Any) -> None:
    name = column_of(kind)
    (one,) = told(file(1, **{name: bounds}))
    assert (one.columns[0].lower, one.columns[0].upper) == spelled


def test_nested_columns_go_by_their_paths() -> None:
    (one,) = told(file(5, {"inner.deep": 1}))
    assert one.columns == (ColumnFacts(column="inner.deep", nulls=1),)


def test_ten_files_are_only_counted() -> None:
    assert len(told(*[file(1)] * FILE_STATS_FILES_MAX)) == 9
    assert told(*[file(1)] * (FILE_STATS_FILES_MAX + 1)) == ()


def test_of_many_columns_some_are_told() -> None:
    fields = [{"id": 1000 + n, "name": f"c{n}", "required": False, "type": "int"} for n in range(100)]
    wide = file(1)
    wide.null_value_counts.update({1000 + n: 0 for n in range(100)})
    (one,) = told(wide, schema=pyiceberg_schema({"type": "struct", "schema-id": 0, "fields": fields}))
    assert [each.column for each in one.columns] == [f"c{n}" for n in range(FILE_STATS_COLUMNS_MAX)]
