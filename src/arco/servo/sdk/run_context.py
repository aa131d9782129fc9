"""What an asset's code sees of its run: the parameter named `run`.

Values only, made once for a task and never changed. Times are UTC; a period is named by its first moment, and every range is
half open. What must never enter: the store, the catalog, and ways to start or to read Spark. The session is handed in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.partition_key import Scalar
from arco.servo.partitions.axes import Period, TimeAxis
from arco.servo.partitions.partitioning import Document, Partitioning
from arco.servo.partitions.sets import PartitionSet


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """One task, as the code that it runs sees it. `spark` is the session; `params` are the run's parameters."""

    run_id: str
    asset: str
    partitioning: Partitioning
    selected: PartitionSet
    params: Mapping[str, Any]
    spark: Any
    logical_time_ms: int
    attempt: int

    @property
    def logical_time(self) -> datetime:
        """The time that the run is about. The same when the run is repeated, unlike the clock."""
        return datetime.fromtimestamp(self.logical_time_ms / 1000, UTC)

    @property
    def partitions(self) -> Document:
        """What is to be made, as boxes: `[{"date": ["2025-01-01", "2025-02-01"], "region": [["de", "fr"]]}]`."""
        return self.partitioning.document(self.selected)

    @property
    def partition(self) -> dict[str, Scalar]:
        """The one partition that is to be made, by dimension; nothing in it for an asset without partitions."""
        count = self.selected.count()
        if count != 1:
            raise InvalidInput(
                f"{self.asset}: run.partition is one partition, and this task makes {count}",
                hint="use run.start and run.end, or run.values(…); or set partitions_per_task=1",
            )
        return dict(self.partitioning.key(next(self.selected.points())))

    @property
    def start(self) -> date | datetime:
        """The first moment that is to be made: a date, or a timestamp where partitions are hours."""
        axis, first, _ = self._time()
        return _named_by(axis, first)

    @property
    def end(self) -> date | datetime:
        """The first moment after what is to be made: `start <= time < end`."""
        axis, _, end = self._time()
        return _named_by(axis, end)

    def values(self, dimension: str) -> list[Scalar]:
        """The values of one dimension that are to be made, in their order."""
        if dimension not in self.partitioning.names:
            known = ", ".join(self.partitioning.names) or "none"
            raise InvalidInput(f"{self.asset} has no dimension {clip(dimension)!r}", hint=f"it has {known}")
        place = self.partitioning.names.index(dimension)
        ordinals = {one for box in self.selected.boxes() for one in range(*box[place])}
        return [self.partitioning.axes[place].value(one) for one in sorted(ordinals)]

    def _time(self) -> tuple[TimeAxis, int, int]:
        """The first dimension of time, and the bounds of what is selected of it."""
        for place, axis in enumerate(self.partitioning.axes):
            if isinstance(axis, TimeAxis):
                spans = [box[place] for box in self.selected.boxes()]
                if not spans:
                    raise InvalidInput(f"{self.asset}: no partitions are selected, so they begin nowhere")
                return axis, min(first for first, _ in spans), max(end for _, end in spans)
        raise InvalidInput(
            f"{self.asset} is not partitioned by time, so it has no run.start and no run.end",
            hint='say partitions=daily("date", start="2025-01-01"), or use run.logical_time',
        )


def _named_by(axis: TimeAxis, ordinal: int) -> date | datetime:
    moment = axis.first_moment(ordinal)
    return moment if axis.period is Period.HOURLY else moment.date()
