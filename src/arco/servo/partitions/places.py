"""Finding, among many sets of partitions, the few that a set may share something with.

Sets are found by the ranges of their first axis. Sets that differ only in other axes overlap there, so what begins early may end
late: `reach` is the farthest end up to a place, and nothing is passed over.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from arco.servo.partitions.sets import PartitionSet, Range


@dataclass(frozen=True, slots=True)
class Places:
    """Where some sets lie along the first axis, by their numbers."""

    firsts: list[int]
    reach: list[int]
    owners: list[int]

    @classmethod
    def of(cls, sets: Iterable[PartitionSet]) -> Self:
        """Sets over at least one axis."""
        found = sorted((one.first, one.end, owner) for owner, some in enumerate(sets) for one in some.ranges)
        reach: list[int] = []
        for _, end, _ in found:
            reach.append(max(end, reach[-1]) if reach else end)
        return cls([first for first, _, _ in found], reach, [owner for _, _, owner in found])

    def near(self, partitions: PartitionSet) -> list[int]:
        """The numbers of the sets that may share something with this one, in order."""
        ranges = partitions.ranges
        if len(ranges) == 1:
            found = self.owners[self.span(ranges[0])]
            return found if len(found) < 2 else sorted(set(found))
        owners: set[int] = set()
        for one in ranges:
            owners.update(self.owners[self.span(one)])
        return sorted(owners)

    def span(self, one: Range) -> slice:
        """Where in the lists the sets are that may share something with a range."""
        return slice(bisect_right(self.reach, one.first), bisect_left(self.firsts, one.end))
