"""A document of partitions names the same partitions to the fold as to the partitioning that wrote it."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.partition_boxes import KINDS, partitions_in, period_of
from arco.kernel.partition_key import PartitionKey
from arco.servo.partitions.axes import ListAxis, Period, TimeAxis
from arco.servo.partitions.partitioning import UNPARTITIONED, Partitioning
from arco.servo.partitions.sets import PartitionSet

VALUES = (
    *("de", "fr", "ü,=:%", "1", 1, True, None, date(2025, 1, 1)),
    *(datetime(2025, 1, 1, 5, 30, tzinfo=UTC), -(2**63)),
)
moments = st.integers(-(2**31), 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
lists = st.lists(st.sampled_from(VALUES), min_size=1, max_size=6, unique_by=lambda one: (type(one), one))


@st.composite
def axes(draw: st.DrawFn, name: str) -> tuple[TimeAxis | ListAxis, int]:
    """An axis, and an ordinal that it has for certain."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    if kind in {"static", "dynamic"}:
        return ListAxis(name, tuple(draw(lists)), dynamic=kind == "dynamic"), 0
    axis = TimeAxis(name, Period(kind), date(2000, 1, 1))
    return axis, axis.containing(draw(moments))


@st.composite
def sets(draw: st.DrawFn) -> tuple[Partitioning, PartitionSet]:
    names = draw(st.lists(st.sampled_from(("date", "région", "a b", "z")), unique=True, max_size=3))
    drawn = [draw(axes(name)) for name in names]
    boxes = []
    for _ in range(draw(st.integers(1, 3))):
        box = []
        for axis, near in drawn:
            most = len(axis.values) if isinstance(axis, ListAxis) else 9
            first = draw(st.integers(0, most - 1))
            end = draw(st.integers(first + 1, most))
            box.append((near + first, near + end))
        boxes.append(box)
    return Partitioning(tuple(axis for axis, _ in drawn)), PartitionSet.of(len(drawn), boxes)


@given(sets())
def test_a_document_names_the_partitions_of_its_set(some: tuple[Partitioning, PartitionSet]) -> None:
    partitioning, partitions = some
    grain = {axis.name: axis.kind for axis in partitioning.axes}
    found = partitions_in(partitioning.document(partitions), grain)
    assert len(set(found)) == len(found) == partitions.count()
    assert set(found) == {partitioning.key(point) for point in partitions.points()}


@given(st.sampled_from(sorted(Period)), moments)
def test_a_moment_lies_in_the_same_period(period: Period, moment: datetime) -> None:
    axis = TimeAxis("at", period, date(2000, 1, 1))
    assert period_of(period.value, moment) == axis.value(axis.containing(moment))


def test_the_whole_of_an_unpartitioned_asset_is_one() -> None:
    assert partitions_in(UNPARTITIONED.document(PartitionSet.box([])), {}) == [PartitionKey({})]
    assert partitions_in([], {}) == []


def test_boxes_that_overlap_name_a_partition_once() -> None:
    boxes = [{"date": ["2025-01-01", "2025-01-03"]}, {"date": ["2025-01-02", "2025-01-04"]}]
    assert [str(one) for one in partitions_in(boxes, {"date": "daily"})] == [
        "date=d:2025-01-01",
        "date=d:2025-01-02",
        "date=d:2025-01-03",
    ]


@pytest.mark.parametrize(
    ("box", "grain"),
    [
        ({"date": ["2025-01-01", "2025-01-02"]}, {}),
        ({}, {"date": "daily"}),
        ({"date": ["2025-01-01", "2025-01-02"]}, {"date": "yearly"}),
        ({"date": ["2025-01-01", "2025-01-09"]}, {"date": "weekly"}),
        ({"date": ["2025-01-02", "2025-02-01"]}, {"date": "monthly"}),
        ({"date": ["2025-01-01"]}, {"date": "daily"}),
        ({"date": "2025-01-01"}, {"date": "daily"}),
        ({"date": [["2025-01-01"], ["2025-01-02"]]}, {"date": "daily"}),
        ({"date": ["today", "tomorrow"]}, {"date": "daily"}),
        ({"date": [1, 2]}, {"date": "daily"}),
        ({"region": ["de", "fr"]}, {"region": "static"}),
        ({"region": [[1.5]]}, {"region": "static"}),
        ({"region": [[{"d": "never"}]]}, {"region": "dynamic"}),
    ],
)
def test_what_is_no_range_of_its_kind_is_refused(box: dict, grain: dict) -> None:
    with pytest.raises(InvalidInput):
        partitions_in([box], grain)


def test_two_dates_do_not_make_millions_of_rows() -> None:
    with pytest.raises(TooLarge):
        partitions_in([{"hour": ["0001-01-01", "9999-01-01"]}], {"hour": "hourly"})
