"""Sets of partitions as ranges behave as sets of partitions, and equal sets are equal documents."""

from hypothesis import given
from hypothesis import strategies as st

from arco.servo.partitions.sets import PartitionSet

AXES = 3
bounds = st.tuples(st.integers(0, 5), st.integers(0, 6)).map(lambda pair: (min(pair), max(pair)))
boxes = st.lists(st.tuples(bounds, bounds, bounds), max_size=5)


def made(some: list) -> PartitionSet:
    return PartitionSet.of(AXES, some)


def points(some: list) -> set:
    return {
        (a, b, c)
        for (a0, a1), (b0, b1), (c0, c1) in some
        for a in range(a0, a1)
        for b in range(b0, b1)
        for c in range(c0, c1)
    }


@given(boxes, boxes)
def test_union_intersection_and_difference_are_those_of_sets(left: list, right: list) -> None:
    one, other = made(left), made(right)
    assert set((one | other).points()) == points(left) | points(right)
    assert set((one & other).points()) == points(left) & points(right)
    assert set((one - other).points()) == points(left) - points(right)
    assert (one <= other) == (points(left) <= points(right))


@given(boxes)
def test_counting_and_walking_agree(some: list) -> None:
    found = made(some)
    assert found.count() == len(points(some)) == len(list(found.points()))
    assert bool(found) == bool(points(some))
    assert list(found.points()) == sorted(points(some))


@given(boxes, st.randoms())
def test_equal_sets_are_equal_however_they_were_made(some: list, random: object) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    singles = PartitionSet.nothing(AXES)
    for point in points(some):
        singles |= PartitionSet.point(point)
    assert made(some) == made(shuffled) == singles


def test_the_whole_of_an_unpartitioned_asset_is_one() -> None:
    whole, nothing = PartitionSet.box([]), PartitionSet.nothing(0)
    assert whole.count() == 1
    assert not nothing
    assert whole | nothing == whole
    assert whole & nothing == nothing
    assert whole - whole == nothing
    assert list(whole.points()) == [()]


def test_a_year_of_days_is_one_range() -> None:
    year = PartitionSet.box([(0, 365)])
    parts = PartitionSet.nothing(1)
    for day in (*range(0, 365, 2), *range(1, 365, 2)):
        parts |= PartitionSet.point([day])
    assert parts == year
    assert len(parts.ranges) == 1
