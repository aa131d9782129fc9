"""What version each partition has, as ranges: the content of an asset at one moment.

A version is a text that changes when, and only when, the content may have changed: the materialization that published a
partition, or for a table that others write a fingerprint of its files. Two maps are compared range by range.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet


@dataclass(frozen=True, slots=True)
class Versions:
    """Disjoint sets of partitions, each with its version. Kept in the order of their first partition."""

    axes: int
    pieces: tuple[tuple[PartitionSet, str], ...] = ()

    @classmethod
    def of(cls, axes: int, pieces: Iterable[tuple[PartitionSet, str]]) -> Self:
        """Later pieces lie over earlier ones; sets of one version are one piece."""
        laid: dict[str, PartitionSet] = {}
        for partitions, version in pieces:
            laid = {name: left for name, kept in laid.items() if (left := kept - partitions)}
            laid[version] = laid.get(version, PartitionSet.nothing(axes)) | partitions
        present = [(kept, version) for version, kept in laid.items() if kept]
        return cls(axes, tuple(sorted(present, key=lambda piece: (piece[0].ranges[0].first if axes else 0, piece[1]))))

    def covered(self) -> PartitionSet:
        covered = PartitionSet.nothing(self.axes)
        for partitions, _ in self.pieces:
            covered |= partitions
        return covered

    def within(self, partitions: PartitionSet) -> Self:
        kept = ((piece & partitions, version) for piece, version in self.pieces)
        return type(self)(self.axes, tuple((piece, version) for piece, version in kept if piece))

    def differing(self, other: Self) -> PartitionSet:
        """The partitions that the two disagree about: another version, or there in only one."""
        same = PartitionSet.nothing(self.axes)
        theirs = dict((version, piece) for piece, version in other.pieces)  # noqa: C402 - the order of the pair is turned
        for piece, version in self.pieces:
            if version in theirs:
                same |= piece & theirs[version]
        return (self.covered() | other.covered()) - same

    def document(self, partitioning: Partitioning) -> list[dict[str, Any]]:
        return [{"partitions": partitioning.document(piece), "version": version} for piece, version in self.pieces]

    @classmethod
    def read(cls, partitioning: Partitioning, document: list[dict[str, Any]]) -> Self:
        pieces = ((partitioning.read(one["partitions"]), str(one["version"])) for one in document)
        return cls.of(len(partitioning.axes), ((piece, version) for piece, version in pieces if piece))
