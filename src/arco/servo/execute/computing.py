"""What an attempt asks of whoever computes its output: rows made of pinned inputs, and files in the place that it is told.

The executor pins, finds the table, decides and publishes; only whoever computes runs an asset's own code. There are two: in the
Spark session of this process (`in_session.py`), and in a process of its own that has keys for this task and nothing else
(`isolated.py`). What must never enter: Spark, the store, and any way to commit.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.ids import MaterializationId, RunId
from arco.ledger.run_entries import Failure
from arco.quality.results import CheckResult
from arco.servo.execute.data_files import Written
from arco.servo.execute.pinned import TableInput
from arco.servo.execute.snapshots import Change
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.document import PlannedInput, PlannedTask
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One attempt of one task, with everything that it reads fixed. `at_ms` is the time that the run is about."""

    run: RunId
    task: PlannedTask
    attempt: int
    materialization_id: MaterializationId
    asset: AssetDefinition
    partitioning: Partitioning
    tables: tuple[TableInput, ...]
    files: tuple[tuple[InputDefinition, PlannedInput], ...]
    at_ms: int

    @property
    def selected(self) -> PartitionSet:
        return self.partitioning.read(self.task.partitions)

    @property
    def sets_rows_aside(self) -> bool:
        return any(check.quarantine_rows for check in self.asset.checks)


@dataclass(frozen=True, slots=True)
class Computed:
    """What the code made, before anything is written: its columns, those of the rows that are set aside if any are, what it
    reads beside its inputs, and why changes were read in full, if they were."""

    schema: JsonObject
    aside_schema: JsonObject | None = None
    external: tuple[str, ...] = ()
    full_reads: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """What was written and checked. `everything` is `new` and the rows that stay of files that are replaced."""

    new: Written
    everything: Written
    change: Change
    aside: Written | None
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """Where an output will lie, known before it is computed: the table that is there, or the identity that a new one will get."""

    uuid: str
    location: str
    properties: Mapping[str, str]
    table: TableMetadata | None


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms of one attempt: of its output, and of the rows that it may set aside."""

    output: Room
    aside: Room | None


class TaskRefused(Exception):
    """How an attempt failed, from whoever computes it, in the words of a run's log."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Listener(Protocol):
    """Whoever hears how an attempt goes on. Progress is told on the loop's own thread, everything else on any."""

    def progress(self, facts: Mapping[str, Any]) -> None: ...

    def say(self, text: str, level: str = "info") -> None: ...

    def listening(self) -> AbstractContextManager[None]:
        """What is logged or printed inside, on this thread, is the attempt's."""
        ...


class Computation(Protocol):
    """One attempt's computing, in two steps: between them its table is found."""

    async def computed(self) -> Computed: ...

    async def stored(self, table: TableMetadata, aside: TableMetadata | None) -> Stored:
        """Write and check. Tables are as their new files are written; `aside` is that of rows that are set aside, if any are."""
        ...


class Compute(Protocol):
    """Begins computations. Leaving the context ends one, whatever it is doing."""

    @property
    def wants_rooms(self) -> bool:
        """Whether it must be told where the output will lie before it begins."""
        ...

    def begun(self, given: Assignment, rooms: Rooms | None, told: Listener) -> AbstractAsyncContextManager[Computation]: ...
