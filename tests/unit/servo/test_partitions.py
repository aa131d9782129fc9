"""Axes, documents and mappings: which partitions there are, how they are written, and which need which."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.partition_key import PartitionKey
from arco.servo.partitions.mappings import All, Custom, Ends, Last, Window
from arco.servo.partitions.partitioning import UNPARTITIONED, Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.sdk.dimensions import daily, dynamic, hourly, monthly, partitioned, static, weekly

NOW_MS = int(datetime(2025, 3, 5, 12, 30, tzinfo=UTC).timestamp() * 1000)


def keys(partitioning: Partitioning, partitions: PartitionSet) -> list[str]:
    return [str(partitioning.key(point)) for point in partitions.points()]


@pytest.mark.parametrize(
    ("axis", "first", "last", "count"),
    [
        (hourly("h", start="2025-03-05T00:00"), "h=t:2025-03-05T00%3A00%3A00.000000Z", None, 12),
        (daily("d", start="2025-03-01"), "d=d:2025-03-01", "d=d:2025-03-04", 4),
        (weekly("w", start="2025-02-03"), "w=d:2025-02-03", "w=d:2025-02-24", 4),
        (monthly("m", start="2024-12"), "m=d:2024-12-01", "m=d:2025-02-01", 3),
        (daily("d", start="2025-03-01", end="2025-03-03"), "d=d:2025-03-01", "d=d:2025-03-02", 2),
        (static("r", ["de", "fr"]), "r=s:de", "r=s:fr", 2),
    ],
)
def test_what_partitions_there_are(axis: object, first: str, last: str | None, count: int) -> None:
    partitioning = partitioned(axis)  # type: ignore[arg-type]
    everything = partitioning.everything(NOW_MS)
    found = keys(partitioning, everything)
    assert everything.count() == count
    assert found[0] == first or axis.kind == "hourly"  # type: ignore[attr-defined]
    assert last is None or found[-1] == last


def test_a_period_that_is_under_way_is_not_there_yet() -> None:
    days = partitioned(daily("d", start="2025-03-01"))
    assert days.everything(int(datetime(2025, 3, 2, 0, 0, tzinfo=UTC).timestamp() * 1000)).count() == 1
    assert days.everything(int(datetime(2025, 3, 1, 23, 59, tzinfo=UTC).timestamp() * 1000)).count() == 0


def test_values_and_ordinals_are_inverse() -> None:
    for axis in (
        hourly("h", start="2025-01-01T00:00"),
        daily(start="1960-01-01"),
        weekly(start="2024-12-30"),
        monthly(start="1999-01"),
    ):
        for ordinal in (-500, -1, 0, 1, 20_000):
            assert axis.ordinal(axis.value(ordinal)) == ordinal


def test_what_does_not_begin_a_period_is_refused() -> None:
    with pytest.raises(InvalidInput, match="does not begin a period"):
        weekly("w", start="2025-03-05")
    with pytest.raises(InvalidInput, match="ends before it begins"):
        daily("d", start="2025-03-05", end="2025-03-01")


def test_documents_name_values_and_come_back_equal() -> None:
    partitioning = partitioned([daily("date", start="2025-01-01"), static("region", ["de", "fr", "us"])])
    some = partitioning.select({"date": "2025-01-03..2025-01-05,2025-02-01", "region": "de,us"}, NOW_MS)
    document = partitioning.document(some)
    assert partitioning.read(document) == some
    assert some.count() == 8
    assert document[0]["date"] == ["2025-01-03", "2025-01-06"]
    grown = partitioned([daily("date", start="2025-01-01"), static("region", ["at", "de", "fr", "us"])])
    assert keys(grown, grown.read(document)) == keys(partitioning, some)


def test_a_list_knows_true_from_one() -> None:
    partitioning = partitioned(static("flag", [True, 1, "1", None]))
    assert partitioning.everything(0).count() == 4
    assert partitioning.point(PartitionKey({"flag": 1})) == PartitionSet.point([1])
    assert partitioning.read(partitioning.document(partitioning.everything(0))) == partitioning.everything(0)


def test_dynamic_dimensions_hold_what_is_known() -> None:
    defined = partitioned([daily("date", start="2025-03-01"), dynamic("customer")])
    assert defined.everything(NOW_MS).count() == 0
    assert defined.with_values({"customer": ["a", "b"]}).everything(NOW_MS).count() == 8


def test_selection_says_what_is_wrong() -> None:
    partitioning = partitioned(daily("date", start="2025-01-01"))
    with pytest.raises(InvalidInput, match="no dimension"):
        partitioning.select({"day": "2025-01-01"}, NOW_MS)
    with pytest.raises(InvalidInput, match="is not a date"):
        partitioning.select({"date": "yesterday"}, NOW_MS)
    with pytest.raises(InvalidInput, match="ends before it begins"):
        partitioning.select({"date": "2025-02-02..2025-02-01"}, NOW_MS)
    assert partitioning.select({"date": "2025-03-03.."}, NOW_MS).count() == 2


def test_a_value_of_a_list_is_asked_for_whatever_is_in_it() -> None:
    odd = partitioned(static("shop", ["a,b", "x..y", "x", "it's"]))
    asked = {text: keys(odd, odd.select({"shop": text}, NOW_MS)) for text in ("a,b", "x..y", "x..", "x,it's")}
    assert asked == {
        text: [str(PartitionKey({"shop": value})) for value in values]
        for text, values in {"a,b": ["a,b"], "x..y": ["x..y"], "x..": ["x", "it's"], "x,it's": ["x", "it's"]}.items()
    }


def test_a_day_of_hours_is_all_of_its_hours() -> None:
    hours = partitioned(hourly("date", start="2025-03-01"))
    assert hours.select({"date": "2025-03-02"}, NOW_MS).count() == 24
    assert hours.select({"date": "2025-03-02..2025-03-03"}, NOW_MS).count() == 48
    assert hours.select({"date": "2025-03-02T05..2025-03-03"}, NOW_MS).count() == 43
    assert hours.select({"date": "2025-03-02..2025-03-03T05"}, NOW_MS).count() == 30


def ends(upstream: Partitioning, downstream: Partitioning) -> Ends:
    return Ends(upstream, downstream, upstream.everything(NOW_MS), downstream.everything(NOW_MS))


DAYS = partitioned(daily("date", start="2025-01-01"))
MONTHS = partitioned(monthly("date", start="2025-01"))
WEEKS = partitioned(weekly("date", start="2024-12-30"))
REGIONS = partitioned([daily("date", start="2025-01-01"), static("region", ["de", "fr"])])
REGIONS_FIRST = partitioned([static("region", ["de", "fr"]), daily("date", start="2025-01-01")])


def two_weeks_before(made):
    return [{"date": made["date"] - timedelta(days=14)}]


def pick(partitioning: Partitioning, **wanted: str) -> PartitionSet:
    return partitioning.select(wanted, NOW_MS)


@pytest.mark.parametrize(
    ("mapping", "upstream", "downstream", "made", "needed"),
    [
        (Window(), DAYS, DAYS, {"date": "2025-02-01"}, {"date": "2025-02-01"}),
        (Window(-6, 0), DAYS, DAYS, {"date": "2025-02-10"}, {"date": "2025-02-04..2025-02-10"}),
        (Window(-1, -1), DAYS, DAYS, {"date": "2025-02-10"}, {"date": "2025-02-09"}),
        (Window(), DAYS, MONTHS, {"date": "2025-02"}, {"date": "2025-02-01..2025-02-28"}),
        (Window(), MONTHS, DAYS, {"date": "2025-02-10"}, {"date": "2025-02"}),
        (Window(), REGIONS, DAYS, {"date": "2025-02-10"}, {"date": "2025-02-10"}),
        (Window(), DAYS, REGIONS, {"date": "2025-02-10", "region": "fr"}, {"date": "2025-02-10"}),
        (Window(), REGIONS, REGIONS, {"date": "2025-02-10", "region": "fr"}, {"date": "2025-02-10", "region": "fr"}),
        (All(), DAYS, REGIONS, {"date": "2025-02-10"}, {}),
        (All(), DAYS, UNPARTITIONED, {}, {}),
        (Last(), DAYS, UNPARTITIONED, {}, {"date": "2025-03-04"}),
        (Last(), REGIONS_FIRST, UNPARTITIONED, {}, {"date": "2025-03-04"}),
        (Window(), UNPARTITIONED, DAYS, {"date": "2025-02-10"}, {}),
        (Window(-2, 0), MONTHS, DAYS, {"date": "2025-03-02"}, {"date": "2025-01..2025-03"}),
        (Window(-1, 0), DAYS, MONTHS, {"date": "2025-02"}, {"date": "2025-01-31..2025-02-28"}),
        (Custom(two_weeks_before), DAYS, DAYS, {"date": "2025-02-10..2025-02-11"}, {"date": "2025-01-27..2025-01-28"}),
        (Custom(two_weeks_before), DAYS, DAYS, {"date": "2025-01-03"}, None),
        (Custom(two_weeks_before), MONTHS, DAYS, {"date": "2025-02-10"}, {"date": "2025-01"}),
        (Custom(two_weeks_before), REGIONS, DAYS, {"date": "2025-02-10"}, {"date": "2025-01-27"}),
        (Custom(lambda _: [{"region": "fr"}, {"region": "nl"}]), REGIONS, UNPARTITIONED, {}, {"region": "fr"}),
        (Custom(lambda _: []), DAYS, DAYS, {"date": "2025-02-10"}, None),
        (Custom(lambda _: [{}]), UNPARTITIONED, DAYS, {"date": "2025-02-10"}, {}),
    ],
)
def test_what_a_partition_needs(
    mapping: object, upstream: Partitioning, downstream: Partitioning, made: dict, needed: dict
) -> None:
    mapping.check(upstream, downstream)  # type: ignore[attr-defined]
    both = ends(upstream, downstream)
    found = mapping.needed(pick(downstream, **made), both)  # type: ignore[attr-defined]
    assert found == (PartitionSet.nothing(len(upstream.axes)) if needed is None else pick(upstream, **needed))


@pytest.mark.parametrize(
    "mapping",
    [Window(), Window(-6, 0), Window(-1, -1), Window(1, 2), All(), Last(), Custom(two_weeks_before)],
    ids=lambda one: one.describe(),
)
@pytest.mark.parametrize(
    ("upstream", "downstream"),
    [(DAYS, DAYS), (DAYS, MONTHS), (MONTHS, DAYS), (WEEKS, MONTHS), (MONTHS, WEEKS), (REGIONS, DAYS), (DAYS, REGIONS)],
)
def test_touched_is_the_inverse_of_needed(mapping: object, upstream: Partitioning, downstream: Partitioning) -> None:
    """A downstream partition is touched by an upstream one exactly if it needs it."""
    both = ends(upstream, downstream)
    for point in list(both.all_upstream.points())[::7]:
        changed = PartitionSet.point(point)
        touched = mapping.touched(changed, both)  # type: ignore[attr-defined]
        for other in list(both.all_downstream.points())[::5]:
            needs = bool(mapping.needed(PartitionSet.point(other), both) & changed)  # type: ignore[attr-defined]
            assert needs == bool(PartitionSet.point(other) & touched), (point, other)


def test_a_mapping_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs one time dimension"):
        Window(-1, 0).check(partitioned(static("r", ["a"])), partitioned(static("r", ["a"])))
    with pytest.raises(InvalidInput, match="daily upstream and static downstream"):
        Window().check(DAYS, partitioned(static("date", [date(2025, 1, 1)])))
    with pytest.raises(InvalidInput, match="needs an input with partitions"):
        Last().check(UNPARTITIONED, DAYS)


def broken(made: dict[str, Any]) -> Any:
    return [{"date": made["week"]}]


def in_vain(made: dict[str, Any]) -> Any:
    yield {"date": made["date"]}
    raise RuntimeError("two\nlines")


@pytest.mark.parametrize(
    ("mapping", "line", "said"),
    [
        (lambda made: [{"day": made["date"]}], 0, "<lambda>: it names the dimension 'day'"),
        (lambda _: [{"date": "soon"}], 0, "<lambda>: date='soon' is not a date"),
        (lambda made: {"date": made["date"]}, 0, "<lambda>: it answers 'date', which is no partition"),
        (broken, 1, "broken raised KeyError: 'week' for"),
        (in_vain, 2, "in_vain raised RuntimeError: two lines for"),
    ],
)
def test_what_is_wrong_with_a_mapping_of_ones_own_is_said_with_its_line(mapping: Any, line: int, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Custom(mapping).needed(pick(DAYS, date="2025-02-10"), ends(DAYS, DAYS))
    assert raised.value.message.startswith(f"{__file__}:{mapping.__code__.co_firstlineno + line}: {said}")
    assert "\n" not in raised.value.one_line()
