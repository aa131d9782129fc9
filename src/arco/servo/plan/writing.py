"""Documents of sets of partitions, each written, and each moment in them read, once for a whole plan.

The tasks and the facts of a plan speak of the same partitions over and over: of one asset, and of all that are partitioned
alike. A document that was written is handed out again, so nobody may change one.
"""

from arco.servo.partitions.partitioning import Document, Partitioning
from arco.servo.partitions.sets import PartitionSet


class Scribe:
    """Writes and reads sets of one partitioning. Only single ranges of one axis are remembered: they are few, and used often."""

    def __init__(self, partitioning: Partitioning) -> None:
        self.partitioning = partitioning
        self.axes = len(partitioning.axes)
        self._is_line = self.axes == 1
        self._name = partitioning.names[0] if self._is_line else ""
        self._sets: dict[tuple[str, str], PartitionSet] = {}
        self._documents: dict[tuple[int, int], Document] = {}
        self._spelled: dict[tuple[int, int], str] = {}

    def document(self, partitions: PartitionSet) -> Document:
        if not self._is_line or len(partitions.ranges) != 1:
            return self.partitioning.document(partitions)
        place = partitions.ranges[0][:2]
        found = self._documents.get(place)
        if found is None:
            found = self._documents[place] = self.partitioning.document(partitions)
        return found

    def spelled(self, partitions: PartitionSet) -> str:
        """The text that task ids are made of."""
        if not self._is_line or len(partitions.ranges) != 1:
            return self.partitioning.canonical(partitions)
        place = partitions.ranges[0][:2]
        found = self._spelled.get(place)
        if found is None:
            found = self._spelled[place] = self.partitioning.canonical(partitions)
        return found

    def read(self, document: Document) -> PartitionSet:
        """What a recorded document says of today's partitions."""
        bounds = document[0].get(self._name) if self._is_line and len(document) == 1 and len(document[0]) == 1 else None
        if not isinstance(bounds, list) or len(bounds) != 2:
            return self.partitioning.recorded(document)
        place = str(bounds[0]), str(bounds[1])
        found = self._sets.get(place)
        if found is None:
            found = self._sets[place] = self.partitioning.recorded(document)
        return found
