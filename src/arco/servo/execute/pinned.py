"""What a task reads, to the snapshot: as the plan says, and where this run made it, as this run made it.

An input that no task of the run makes is read at the snapshot of the planning snapshot, whatever was committed since. One that
the run makes is read at the newest snapshot of the tasks that made it; where such a task was held back, its partitions are what
they were. The versions that are recorded say exactly what was read, range by range.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import NotFound
from arco.ledger.run_state import MADE, RunState
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.document import PlannedInput, PlannedTask
from arco.servo.plan.versions import Versions
from arco.servo.sdk.definitions import InputDefinition


@dataclass(frozen=True, slots=True)
class Pinned:
    """One table that a task reads. Without a snapshot there is nothing to read yet."""

    planned: PlannedInput
    needed: PartitionSet
    snapshot_id: int | None
    versions: Versions


@dataclass(frozen=True, slots=True)
class TableInput:
    """A table that is read: its definition as an input, what was pinned, and its metadata now."""

    given: InputDefinition
    pinned: Pinned
    partitioning: Partitioning
    table: TableMetadata | None
    since: int | None = None


def pin(
    planned: PlannedInput,
    partitioning: Partitioning,
    tasks: Mapping[str, PlannedTask],
    state: RunState,
    table: TableMetadata | None,
) -> Pinned:
    """Fix an input for good. `table` is as it is now; None if there is none."""
    axes, needed = len(partitioning.axes), partitioning.read(planned.partitions)
    before = Versions.read(partitioning, planned.versions)
    made = [task for task in planned.made_by if state.tasks[task].status in MADE]
    if not made:
        return Pinned(planned, needed, planned.snapshot_id, before)
    pieces: list[tuple[PartitionSet, str]] = list(before.pieces)
    for task in made:
        share = partitioning.read(tasks[task].partitions) & needed
        pieces.append((share, state.tasks[task].materialization_id or task))
    snapshots = {found for task in made if (found := state.tasks[task].snapshot_id) is not None}
    found = None if table is None else newest(table, snapshots)
    if found is None:
        raise NotFound(
            f"what this run published of {planned.asset} is gone from the table's history", hint="plan again: arco run"
        )
    return Pinned(planned, needed, found, Versions.of(axes, pieces))


def newest(table: TableMetadata, snapshots: Iterable[int]) -> int | None:
    """Of some snapshots the one that stands last in the history of main."""
    wanted = set(snapshots)
    by_id: dict[int, Any] = {snapshot["snapshot-id"]: snapshot for snapshot in table.snapshots}
    current = table.current_snapshot_id
    while current is not None and current in by_id:
        if current in wanted:
            return int(current)
        current = by_id[current].get("parent-snapshot-id")
    return None
