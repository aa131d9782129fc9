"""What came of an asset in the last run that was to make it. Facts of planning are of what was published: they do not say it."""

from collections.abc import AsyncIterator

import msgspec

from arco.ledger.outstanding import run_ids
from arco.ledger.run_state import TaskStatus
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.schedule.starting import Started, listed_run
from arco.surface.cli.opening import Opened
from arco.surface.cli.run_display import ended_text

_RUNS_MAX = 20
_IN_VAIN = {TaskStatus.FAILED, TaskStatus.SKIPPED, TaskStatus.CANCELLED}


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A task that ended without an output, in the last run that had the asset."""

    run_id: str
    task_id: str
    status: str
    text: str
    said: str
    ended_ms: int | None


async def tried_in_vain(home: Opened, asset: str, partitioning: Partitioning, wanted: PartitionSet) -> tuple[Tried, ...]:
    """Of the last run that had an asset, the tasks that made nothing of what is wanted. Only the newest runs are looked at."""
    async for started in _newest(home):
        tasks = {task.id: task for task in started.plan.spec.tasks}
        mine = [task for task in tasks.values() if task.asset == asset]
        if mine:
            parts = ((task, partitioning.recorded(task.partitions) & wanted) for task in mine)
            found = ((task, part, started.log.state.tasks[task.id]) for task, part in parts if part)
            return tuple(
                Tried(
                    run_id=str(started.log.run),
                    task_id=task.id,
                    status=its.status.value,
                    text=partitioning.text(part),
                    said=ended_text(its, tasks),
                    ended_ms=its.ended_ms,
                )
                for task, part, its in found
                if its.status in _IN_VAIN
            )
    return ()


async def _newest(home: Opened) -> AsyncIterator[Started]:
    parts = home.catalog.parts
    for run in sorted(await run_ids(parts.tier1.store, parts.scope), reverse=True)[:_RUNS_MAX]:
        found = await listed_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)
        if found is not None:
            yield found
