"""Sets of partitions of one asset, as ranges: never one entry per partition where a range would do.

A set over axes a, b, c is a list of ranges of a, each with the set over b, c that stands beside it; neighbouring ranges with
equal sets are one. There is exactly one such list for every set, so equal sets have equal documents and equal fingerprints,
and union, intersection and difference are one sweep over the ends of ranges. An asset without partitions has no axes; its
sets are "nothing" and "the whole of it".

What must never enter: what the ordinals stand for. That is the axes' business.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple, Self

Layer = tuple["Range", ...]


class Range(NamedTuple):
    """From `first` to one before `end`, and what of the other axes stands beside it."""

    first: int
    end: int
    beside: Layer


_EVERYTHING: Layer = (Range(0, 1, ()),)
"""What stands beside the last axis: a point that is there."""

_FIRST, _END = itemgetter(0), itemgetter(1)


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """Some partitions of an asset with `axes` dimensions."""

    axes: int
    ranges: Layer

    @classmethod
    def nothing(cls, axes: int) -> Self:
        return cls(axes, ())

    @classmethod
    def box(cls, bounds: Sequence[tuple[int, int]]) -> Self:
        """Every combination of one range an axis; without axes, the whole of an unpartitioned asset."""
        layer = _EVERYTHING
        for first, end in reversed(bounds):
            if end <= first:
                return cls.nothing(len(bounds))
            layer = (Range(first, end, layer),)
        return cls(len(bounds), layer)

    @classmethod
    def point(cls, ordinals: Sequence[int]) -> Self:
        return cls.box([(one, one + 1) for one in ordinals])

    @classmethod
    def of(cls, axes: int, boxes: Sequence[Sequence[tuple[int, int]]]) -> Self:
        return cls.union(axes, (cls.box(bounds) for bounds in boxes))

    @classmethod
    def union(cls, axes: int, sets: Iterable[Self]) -> Self:
        """All of these together. Many sets along one axis are sorted once, not merged one by one."""
        if axes == 1:
            return cls(1, _joined(sorted(one for some in sets for one in some.ranges)))
        result = cls.nothing(axes)
        for one in sets:
            result |= one
        return result

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __or__(self, other: Self) -> Self:
        self._check(other)
        if not other.ranges or self.ranges is other.ranges:
            return self
        if not self.ranges:
            return other
        if self.axes == 1:
            return type(self)(1, _joined(sorted((*self.ranges, *other.ranges))))
        return type(self)(self.axes, _swept(self.ranges, other.ranges, self.axes, lambda here, there: here or there))

    def __and__(self, other: Self) -> Self:
        self._check(other)
        if not self.ranges or self.ranges is other.ranges:
            return self
        if not other.ranges:
            return other
        if self.axes == 1:
            if len(self.ranges) == 1 == len(other.ranges):
                return self._clipped(other)
            return type(self)(1, _shared(self.ranges, other.ranges))
        return type(self)(self.axes, _swept(self.ranges, other.ranges, self.axes, lambda here, there: here and there))

    def __sub__(self, other: Self) -> Self:
        self._check(other)
        if not self.ranges or not other.ranges:
            return self
        if self.axes == 1:
            return type(self)(1, _left(self.ranges, other.ranges))
        return type(self)(self.axes, _swept(self.ranges, other.ranges, self.axes, lambda here, there: here and not there))

    def __le__(self, other: Self) -> bool:
        return not self - other

    def _clipped(self, other: Self) -> Self:
        """What two single ranges share: one of them as it is, where the other holds it."""
        (low, high, _), (first, end, _) = self.ranges[0], other.ranges[0]
        if first <= low and high <= end:
            return self
        if low <= first and end <= high:
            return other
        low, high = max(low, first), min(high, end)
        return type(self)(1, (Range(low, high, _EVERYTHING),) if low < high else ())

    def _check(self, other: Self) -> None:
        if self.axes != other.axes:
            raise ValueError(f"sets over {self.axes} and {other.axes} dimensions")

    def overlapping(self, first: int, end: int) -> Layer:
        """The ranges of the first axis that reach into these bounds."""
        return _overlapping(self.ranges, first, end)

    def count(self) -> int:
        if self.axes == 1 and len(self.ranges) == 1:
            return self.ranges[0].end - self.ranges[0].first
        return _count(self.ranges, self.axes)

    def boxes(self) -> Iterator[tuple[tuple[int, int], ...]]:
        """The set as boxes that do not overlap, in order."""
        return _boxes(self.ranges, self.axes)

    def points(self) -> Iterator[tuple[int, ...]]:
        """Every partition by its ordinals, in order. Only for what is really done one by one."""
        return _points(self.ranges, self.axes)

    def along(self, axis: int, change: Callable[[int, int], tuple[int, int]]) -> Self:
        """The set with the ranges of one axis moved or widened."""
        moved = [
            tuple(change(*bounds) if place == axis else bounds for place, bounds in enumerate(box)) for box in self.boxes()
        ]
        return self.of(self.axes, moved)


# Along one axis, which is what most sets are, there is nothing beside a range: its ends are all there is to compare.


def _joined(ranges: Sequence[Range]) -> Layer:
    """Sorted ranges, with those that touch made one."""
    joined: list[Range] = []
    for one in ranges:
        if joined and one.first <= joined[-1].end:
            if one.end > joined[-1].end:
                joined[-1] = Range(joined[-1].first, one.end, _EVERYTHING)
        else:
            joined.append(one)
    return tuple(joined)


def _shared(here: Layer, there: Layer) -> Layer:
    if len(here) > len(there):
        here, there = there, here
    return tuple(
        Range(max(one.first, other.first), min(one.end, other.end), _EVERYTHING)
        for one in here
        for other in _overlapping(there, one.first, one.end)
    )


def _left(here: Layer, there: Layer) -> Layer:
    left: list[Range] = []
    for one in here:
        first = one.first
        for other in _overlapping(there, one.first, one.end):
            if other.first > first:
                left.append(Range(first, other.first, _EVERYTHING))
            first = other.end
        if first < one.end:
            left.append(one if first == one.first else Range(first, one.end, _EVERYTHING))
    return tuple(left)


def _overlapping(ranges: Layer, first: int, end: int) -> Layer:
    if len(ranges) == 1:
        return ranges if ranges[0].first < end and first < ranges[0].end else ()
    return ranges[bisect_right(ranges, first, key=_END) : bisect_left(ranges, end, key=_FIRST)]


# Any number of axes


def _swept(here: Layer, there: Layer, axes: int, keep: Callable[[bool, bool], bool]) -> Layer:
    if axes == 0:
        return _EVERYTHING if keep(bool(here), bool(there)) else ()
    cuts = sorted({cut for one in (*here, *there) for cut in (one.first, one.end)})
    pieces: list[Range] = []
    left = _Cursor(here)
    right = _Cursor(there)
    for first, end in pairwise(cuts):
        beside = _swept(left.at(first), right.at(first), axes - 1, keep)
        if not beside:
            continue
        if pieces and pieces[-1].end == first and pieces[-1].beside == beside:
            pieces[-1] = Range(pieces[-1].first, end, beside)
        else:
            pieces.append(Range(first, end, beside))
    return tuple(pieces)


class _Cursor:
    """Walks one list of ranges as the sweep moves on."""

    def __init__(self, ranges: Layer) -> None:
        self._ranges = ranges
        self._place = 0

    def at(self, ordinal: int) -> Layer:
        while self._place < len(self._ranges) and self._ranges[self._place].end <= ordinal:
            self._place += 1
        if self._place == len(self._ranges) or self._ranges[self._place].first > ordinal:
            return ()
        return self._ranges[self._place].beside


def _count(layer: Layer, axes: int) -> int:
    if axes == 0:
        return 1 if layer else 0
    return sum((one.end - one.first) * _count(one.beside, axes - 1) for one in layer)


def _boxes(layer: Layer, axes: int) -> Iterator[tuple[tuple[int, int], ...]]:
    if axes == 0:
        if layer:
            yield ()
        return
    for one in layer:
        for rest in _boxes(one.beside, axes - 1):
            yield ((one.first, one.end), *rest)


def _points(layer: Layer, axes: int) -> Iterator[tuple[int, ...]]:
    if axes == 0:
        if layer:
            yield ()
        return
    for one in layer:
        for ordinal in range(one.first, one.end):
            for rest in _points(one.beside, axes - 1):
                yield (ordinal, *rest)
