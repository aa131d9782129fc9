"""Sets of partitions of one asset, as ranges: never one entry per partition where a range would do.

A set over axes a, b, c is a list of ranges of a, each with the set over b, c that stands beside it; neighbouring ranges with
equal sets are one. There is exactly one such list for every set, so equal sets have equal documents and equal fingerprints,
and union, intersection and difference are one sweep over the ends of ranges. An asset without partitions has no axes; its
sets are "nothing" and "the whole of it".

What must never enter: what the ordinals stand for. That is the axes' business.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

Layer = tuple["Range", ...]


@dataclass(frozen=True, slots=True)
class Range:
    """From `first` to one before `end`, and what of the other axes stands beside it."""

    first: int
    end: int
    beside: Layer


_EVERYTHING: Layer = (Range(0, 1, ()),)
"""What stands beside the last axis: a point that is there."""


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
        result = cls.nothing(axes)
        for bounds in boxes:
            result |= cls.box(bounds)
        return result

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __or__(self, other: Self) -> Self:
        return self._swept(other, lambda here, there: here or there)

    def __and__(self, other: Self) -> Self:
        return self._swept(other, lambda here, there: here and there)

    def __sub__(self, other: Self) -> Self:
        return self._swept(other, lambda here, there: here and not there)

    def __le__(self, other: Self) -> bool:
        return not self - other

    def _swept(self, other: Self, keep: Callable[[bool, bool], bool]) -> Self:
        if self.axes != other.axes:
            raise ValueError(f"sets over {self.axes} and {other.axes} dimensions")
        return type(self)(self.axes, _swept(self.ranges, other.ranges, self.axes, keep))

    def count(self) -> int:
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
