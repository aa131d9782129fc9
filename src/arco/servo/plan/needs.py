"""What partitions of a reader need of its input, each found and written once for a whole plan.

Assets that are partitioned alike and read alike ask for the same: a day of every asset needs the same week of what it reads. So
an answer belongs to the mapping and its ends, not to the assets. A mapping of the project's own is asked again by each of them.
"""

from arco.servo.partitions.mappings import Custom, Ends, Mapping
from arco.servo.partitions.partitioning import Document
from arco.servo.partitions.sets import Layer, PartitionSet
from arco.servo.plan.writing import Scribe


class Needs:
    """One mapping between two partitionings. Only single ranges are remembered: they are few, and asked for often."""

    def __init__(self, mapping: Mapping, ends: Ends, scribe: Scribe) -> None:
        self._mapping = mapping
        self._ends = ends
        self._scribe = scribe
        self._found: dict[Layer, tuple[PartitionSet, Document]] = {}

    def of(self, partitions: PartitionSet) -> tuple[PartitionSet, Document]:
        """What these partitions of the reader need, and its document."""
        found = self._found.get(partitions.ranges) if len(partitions.ranges) == 1 else None
        if found is None:
            needed = self._mapping.needed(partitions, self._ends)
            found = needed, self._scribe.document(needed)
            if len(partitions.ranges) == 1:
                self._found[partitions.ranges] = found
        return found


class AllNeeds:
    """Every mapping of a plan."""

    def __init__(self) -> None:
        self._known: dict[tuple[Mapping, Ends], Needs] = {}

    def between(self, mapping: Mapping, ends: Ends, scribe: Scribe) -> Needs:
        """`scribe` is that of the upstream end."""
        if isinstance(mapping, Custom):
            return Needs(mapping, ends, scribe)
        found = self._known.get((mapping, ends))
        if found is None:
            found = self._known[mapping, ends] = Needs(mapping, ends, scribe)
        return found
