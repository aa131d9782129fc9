"""What version each partition has, as ranges: the content of an asset at one moment.

A version is a text that changes when, and only when, the content may have changed: the materialization that published a
partition, or for a table that others write a fingerprint of its files. Two maps are compared range by range.

An asset that was published partition by partition has as many pieces as partitions, and every task looks only at a few of them:
so pieces are found by the ranges of their first axis, not one after the other.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet

Piece = tuple[PartitionSet, str]


@dataclass(frozen=True, slots=True)
class Versions:
    """Disjoint sets of partitions, each with its version. Kept in the order of their first partition."""

    axes: int
    pieces: tuple[Piece, ...] = ()
    _places: list["_Places"] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, axes: int, pieces: Iterable[Piece]) -> Self:
        """Later pieces lie over earlier ones; sets of one version are one piece."""
        laid: dict[str, list[PartitionSet]] = defaultdict(list)
        covered = PartitionSet.nothing(axes)
        for partitions, version in reversed(list(pieces)):
            seen = partitions - covered
            if seen:
                laid[version].append(seen)
                covered |= seen
        present = [
            (sets[0] if len(sets) == 1 else PartitionSet.union(axes, sets), version) for version, sets in laid.items()
        ]
        return cls(axes, tuple(sorted(present, key=lambda piece: (piece[0].ranges[0].first if axes else 0, piece[1]))))

    def covered(self) -> PartitionSet:
        return PartitionSet.union(self.axes, (partitions for partitions, _ in self.pieces))

    def within(self, partitions: PartitionSet) -> Self:
        kept = ((piece & partitions, version) for piece, version in self._near(partitions))
        return type(self)(self.axes, tuple((piece, version) for piece, version in kept if piece))

    def _near(self, partitions: PartitionSet) -> Sequence[Piece]:
        """The pieces that may share something with a set, in their order."""
        if not self.axes or len(self.pieces) <= 2:
            return self.pieces
        if not self._places:
            self._places.append(_Places.of(self.pieces))
        return [self.pieces[one] for one in self._places[0].near(partitions)]

    def differing(self, other: Self) -> PartitionSet:
        """The partitions that the two disagree about: another version, or there in only one."""
        if self.pieces == other.pieces:
            return PartitionSet.nothing(self.axes)
        theirs = dict((version, piece) for piece, version in other.pieces)  # noqa: C402 - the order of the pair is turned
        same = PartitionSet.union(
            self.axes, (piece & theirs[version] for piece, version in self.pieces if version in theirs)
        )
        return (self.covered() | other.covered()) - same

    def document(self, partitioning: Partitioning) -> list[dict[str, Any]]:
        return [{"partitions": partitioning.document(piece), "version": version} for piece, version in self.pieces]

    @classmethod
    def read(cls, partitioning: Partitioning, document: list[dict[str, Any]]) -> Self:
        pieces = ((partitioning.read(one["partitions"]), str(one["version"])) for one in document)
        return cls.of(len(partitioning.axes), ((piece, version) for piece, version in pieces if piece))


@dataclass(frozen=True, slots=True)
class _Places:
    """Where pieces lie along the first axis. Ranges of pieces that differ only in other axes overlap: `reach` is the farthest
    end up to a place, so nothing that begins early and ends late is missed."""

    firsts: list[int]
    reach: list[int]
    owners: list[int]

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Self:
        found = sorted((one.first, one.end, owner) for owner, (piece, _) in enumerate(pieces) for one in piece.ranges)
        reach: list[int] = []
        for _, end, _ in found:
            reach.append(max(end, reach[-1]) if reach else end)
        return cls([first for first, _, _ in found], reach, [owner for _, _, owner in found])

    def near(self, partitions: PartitionSet) -> list[int]:
        owners: set[int] = set()
        for one in partitions.ranges:
            owners.update(self.owners[bisect_right(self.reach, one.first) : bisect_left(self.firsts, one.end)])
        return sorted(owners)
