"""What version each partition has, as ranges: the content of an asset at one moment.

A version is a text that changes when, and only when, the content may have changed: the materialization that published a
partition, or for a table that others write a fingerprint of its files. Two maps are compared range by range.

An asset that was published partition by partition has as many pieces as partitions, and every task looks only at a few of them:
so pieces are found by the ranges of their first axis, not one after the other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.places import Places
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.writing import Scribe

Piece = tuple[PartitionSet, str]


@dataclass(frozen=True, slots=True)
class Versions:
    """Disjoint sets of partitions, each with its version. Kept in the order of their first partition."""

    axes: int
    pieces: tuple[Piece, ...] = ()
    _places: list[Places] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, axes: int, pieces: Iterable[Piece]) -> Self:
        """Later pieces lie over earlier ones; sets of one version are one piece."""
        given = [piece for piece in pieces if piece[0]]
        laid: dict[str, list[PartitionSet]] = defaultdict(list)
        for partitions, version in given if _are_apart(axes, given) else _laid(axes, given):
            laid[version].append(partitions)
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
            self._places.append(Places.of(piece for piece, _ in self.pieces))
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

    def document(self, scribe: Partitioning | Scribe) -> list[dict[str, Any]]:
        return [{"partitions": scribe.document(piece), "version": version} for piece, version in self.pieces]

    @classmethod
    def read(cls, given: Partitioning | Scribe, document: list[dict[str, Any]]) -> Self:
        scribe = given if isinstance(given, Scribe) else Scribe(given)
        return cls.of(scribe.axes, ((scribe.read(one["partitions"]), str(one["version"])) for one in document))


def _are_apart(axes: int, pieces: Sequence[Piece]) -> bool:
    """Whether no two pieces share a partition: nothing lies over anything, as after one publish a partition."""
    if axes != 1:
        return False
    ranges = sorted((one.first, one.end) for partitions, _ in pieces for one in partitions.ranges)
    return all(before[1] <= after[0] for before, after in pairwise(ranges))


def _laid(axes: int, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """What is seen of each piece, from the last, which lies on top, to the first."""
    covered = PartitionSet.nothing(axes)
    for partitions, version in reversed(pieces):
        seen = partitions - covered
        if seen:
            yield seen, version
            covered |= seen
