"""How a new table is laid out, and which of its rows belong to a set of partitions."""

from typing import Any

import pytest
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue

from arco import asset, daily, hourly, monthly, static, weekly
from arco.kernel.errors import InvalidInput
from arco.servo.execute.layout import partition_spec, sort_order
from arco.servo.execute.partition_filters import where
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.project import assembled

KINDS = {"id": "long", "date": "date", "at": "timestamptz", "plain": "timestamp", "name": "string", "n": "int"}
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": place, "name": name, "type": kind, "required": False} for place, (name, kind) in enumerate(KINDS.items(), 1)
    ],
}


def made(tmp_path: Any, **options: Any) -> AssetDefinition:
    @asset(name="made", **options)
    def function(run: Any) -> Any:
        return run

    return next(iter(assembled([function.written], folder=tmp_path, name="p", namespace="db").assets.values()))


def fields(spec: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(one["name"], one["transform"], one["source-id"]) for one in spec["fields"]]


@pytest.mark.parametrize(
    ("axis", "field"),
    [
        (daily("date", start="2025-01-01"), ("date", "identity", 2)),
        (weekly("date", start="2025-01-06"), ("date", "identity", 2)),
        (monthly("date", start="2025-01-01"), ("date_month", "month", 2)),
        (daily("at", start="2025-01-01"), ("at_day", "day", 3)),
        (hourly("plain", start="2025-01-01T00"), ("plain_hour", "hour", 4)),
        (static("name", ["a"]), ("name", "identity", 5)),
    ],
    ids=lambda one: getattr(one, "kind", None),
)
def test_a_table_is_partitioned_as_its_asset_is(tmp_path: Any, axis: Any, field: tuple[str, str, int]) -> None:
    assert fields(partition_spec(made(tmp_path, partitions=axis), SCHEMA)) == [field]


def test_partition_by_says_something_else(tmp_path: Any) -> None:
    asked = made(tmp_path, partition_by=["days(at)", "bucket(16, id)", "truncate(name, 4)", "n"])
    assert [transform for _, transform, _ in fields(partition_spec(asked, SCHEMA))] == [
        "day",
        "bucket[16]",
        "truncate[4]",
        "identity",
    ]


@pytest.mark.parametrize("text", ["bucket(0, id)", "bucket(id)", "century(at)", "truncate(4, 4)"])
def test_a_transform_that_nobody_knows_is_refused(tmp_path: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match="is not known"):
        partition_spec(made(tmp_path, partition_by=[text]), SCHEMA)


@pytest.mark.parametrize(
    "options", [{"partition_by": ["gone"]}, {"sort_by": "gone"}, {"partitions": static("gone", [1])}], ids=str
)
def test_a_column_that_the_output_lacks_is_named_with_the_place_in_the_code(tmp_path: Any, options: Any) -> None:
    with pytest.raises(InvalidInput, match=r"test_execute_layout\.py:\d+: db\.made: .*'gone'"):
        [make(made(tmp_path, **options), SCHEMA) for make in (partition_spec, sort_order)]


def test_rows_are_sorted_as_the_asset_says(tmp_path: Any) -> None:
    found = sort_order(made(tmp_path, sort_by=["id", "n desc", "name asc nulls last"]), SCHEMA)["fields"]
    assert [(one["source-id"], one["direction"], one["null-order"]) for one in found] == [
        (1, "asc", "nulls-first"),
        (6, "desc", "nulls-last"),
        (5, "asc", "nulls-last"),
    ]


# Rows of partitions


def rows(axis: Any, first: int, end: int) -> str:
    low, _ = axis.bounds(1_760_000_000_000)
    partitioning = Partitioning((axis,))
    return str(where(partitioning, PartitionSet.box([(low + first, low + end)]), SCHEMA, "db.t"))


@pytest.mark.parametrize(
    ("axis", "bounds"),
    [
        (daily("date", start="2025-01-01"), ("'2025-01-02'", "'2025-01-04'")),
        (monthly("date", start="2025-01-01"), ("'2025-02-01'", "'2025-04-01'")),
        (daily("at", start="2025-01-01"), ("'2025-01-02T00:00:00+00:00'", "'2025-01-04T00:00:00+00:00'")),
        (hourly("plain", start="2025-01-01T00"), ("'2025-01-01T01:00:00'", "'2025-01-01T03:00:00'")),
        (daily("name", start="2025-01-01"), ("'2025-01-02'", "'2025-01-04'")),
    ],
    ids=lambda one: getattr(one, "kind", None),
)
def test_time_is_a_half_open_range_in_the_columns_own_type(axis: Any, bounds: tuple[str, str]) -> None:
    found = rows(axis, 1, 3)
    assert "GreaterThanOrEqual" in found
    assert "LessThan(" in found
    assert all(bound in found for bound in bounds)


def test_lists_are_their_values_and_null_is_one_of_them() -> None:
    found = rows(static("name", ["a", None, "b"]), 0, 2)
    assert "IsNull" in found
    assert "'a'" in found
    assert "'b'" not in found


def test_without_dimensions_it_is_all_or_nothing() -> None:
    whole = Partitioning()
    assert where(whole, whole.everything(0), SCHEMA, "db.t") == AlwaysTrue()
    assert where(whole, PartitionSet.nothing(0), SCHEMA, "db.t") == AlwaysFalse()


def test_no_partitions_are_no_rows() -> None:
    partitioning = Partitioning((daily("date", start="2025-01-01"),))
    assert where(partitioning, PartitionSet.nothing(1), SCHEMA, "db.t") == AlwaysFalse()


@pytest.mark.parametrize(
    ("axis", "says"),
    [
        (hourly("date", start="2025-01-01T00"), "make it a timestamp"),
        (monthly("name", start="2025-01-01"), "make it a date or a timestamp"),
        (daily("id", start="2025-01-01"), "make it a date or a timestamp"),
        (daily("gone", start="2025-01-01"), "write the column gone"),
    ],
    ids=lambda one: getattr(one, "kind", None),
)
def test_a_column_that_cannot_be_that_dimension_is_refused_with_the_way_out(axis: Any, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        rows(axis, 0, 1)
    assert says in str(refused.value.hint)
