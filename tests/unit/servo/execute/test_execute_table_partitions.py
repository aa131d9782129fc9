"""The partitions of a table and those of its asset: which lie in which, and what happens when they do not line up."""

from datetime import UTC, date, datetime

import pytest

from arco.servo.execute.sources import PartField, PartitionVersion
from arco.servo.execute.table_partitions import versions_by_partition
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.sdk.dimensions import daily, hourly, monthly, partitioned, static, weekly

NOW_MS = int(datetime(2025, 3, 1, tzinfo=UTC).timestamp() * 1000)
DAYS = partitioned(daily("ts", start="2025-01-01"))
DATE = PartField("ts", "identity", "date")
DAY = PartField("ts", "day", "date")
HOUR = PartField("ts", "hour", "int")
MONTH = PartField("ts", "month", "int")


def one(version: str, *parts: tuple[PartField, object]) -> PartitionVersion:
    return PartitionVersion(tuple(field for field, _ in parts), tuple(value for _, value in parts), version, 1, 1, 1)


def mapped(partitioning: Partitioning, *found: PartitionVersion):
    return versions_by_partition(partitioning, partitioning.everything(NOW_MS), found)


def hours(day: int, hour: int) -> int:
    return int(datetime(2025, 1, day, hour, tzinfo=UTC).timestamp() // 3600)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (DATE, date(2025, 1, 2)),
        (DAY, date(2025, 1, 2)),
        (PartField("ts", "day", "int"), (date(2025, 1, 2) - date(1970, 1, 1)).days),
        (HOUR, hours(2, 5)),
        (PartField("ts", "identity", "timestamp"), datetime(2025, 1, 2, 23, 59)),  # noqa: DTZ001 - that is its type
        (PartField("ts", "identity", "timestamptz"), datetime(2025, 1, 2, 23, 59, tzinfo=UTC)),
    ],
)
def test_whatever_tells_the_day_tells_its_partition(field, value):
    assert mapped(DAYS, one("v", (field, value))) == (
        [{"partitions": [{"ts": ["2025-01-02", "2025-01-03"]}], "version": "v"}],
        "",
    )


def test_finer_partitions_make_coarser_ones_and_each_of_them_counts():
    first = mapped(DAYS, one("a", (HOUR, hours(2, 5))), one("b", (HOUR, hours(2, 6))), one("c", (HOUR, hours(3, 0))))
    other = mapped(DAYS, one("a", (HOUR, hours(2, 5))), one("x", (HOUR, hours(2, 6))), one("c", (HOUR, hours(3, 0))))
    assert [piece["partitions"][0]["ts"][0] for piece in first[0]] == ["2025-01-02", "2025-01-03"]
    assert first[0][0]["version"] != other[0][0]["version"]
    assert first[0][1] == other[0][1]


def test_weeks_are_made_of_days_and_months_of_days():
    days = [one(f"v{day}", (DATE, date(2025, 1, day))) for day in (6, 12, 13)]
    weeks, _ = mapped(partitioned(weekly("ts", start="2024-12-30")), *days)
    assert [piece["partitions"][0]["ts"][0] for piece in weeks] == ["2025-01-06", "2025-01-13"]
    months, _ = mapped(partitioned(monthly("ts", start="2025-01")), *days)
    assert [piece["partitions"] for piece in months] == [[{"ts": ["2025-01-01", "2025-02-01"]}]]


def test_months_are_months():
    months, _ = mapped(
        partitioned(monthly("ts", start="2025-01")), one("v", (MONTH, 55 * 12)), one("w", (MONTH, 55 * 12 + 1))
    )
    assert [piece["partitions"][0]["ts"][0] for piece in months] == ["2025-01-01", "2025-02-01"]


@pytest.mark.parametrize(
    ("partitioning", "field"),
    [
        (DAYS, MONTH),
        (DAYS, PartField("ts", "bucket[4]", "int")),
        (DAYS, PartField("other", "day", "date")),
        (partitioned(hourly("ts", start="2025-01-01T00")), DAY),
        (partitioned(weekly("ts", start="2024-12-30")), MONTH),
        (partitioned(static("ts", ["x"])), DAY),
    ],
    ids=str,
)
def test_what_is_coarser_or_about_something_else_does_not_line_up(partitioning, field):
    why = mapped(partitioning, one("v", (field, 1)))
    assert isinstance(why, str)
    assert f"{field.transform}({field.column})" in why


def test_a_table_that_was_partitioned_otherwise_before_does_not_line_up():
    assert isinstance(mapped(DAYS, one("v", (DATE, date(2025, 1, 2))), one("w")), str)


def test_what_else_a_table_is_partitioned_by_does_not_matter():
    bucket = PartField("id", "bucket[2]", "int")
    first, _ = mapped(DAYS, *(one(f"v{n}", (bucket, n), (DATE, date(2025, 1, 2))) for n in (0, 1)))
    assert len(first) == 1


def test_several_dimensions_are_found_by_their_columns():
    both = partitioned([daily("ts", start="2025-01-01"), static("region", ["de", "fr"])])
    region = PartField("region", "identity", "string")
    found, note = mapped(
        both,
        one("a", (region, "fr"), (DATE, date(2025, 1, 2))),
        one("b", (region, "it"), (DATE, date(2025, 1, 2))),
        one("c", (region, "de"), (DATE, None)),
    )
    assert found == [{"partitions": [{"ts": ["2025-01-02", "2025-01-03"], "region": [["fr"]]}], "version": "a"}]
    assert note == "2 of the table's 3 partitions are none of those that are declared"


def test_values_of_another_type_are_not_taken_for_none():
    numbers = PartField("region", "identity", "int")
    assert isinstance(mapped(partitioned(static("region", ["1", "2"])), one("v", (numbers, 1))), str)


def test_periods_outside_the_declared_range_are_left_out():
    assert mapped(DAYS, one("v", (DATE, date(2024, 12, 31))), one("w", (DATE, date(2025, 3, 1)))) == ([], "")
