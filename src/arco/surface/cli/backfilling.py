"""`arco backfill`: runs that fill ranges of partitions, how far each is, and letting one rest for a while.

All of it is read from the run's own log and its plan; so it is right wherever the run is driven, and needs no project where
`--root` says where to look.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from arco.kernel.errors import Conflict
from arco.ledger.run_entries import Trigger
from arco.ledger.run_state import ENDED, TaskState, TaskStatus
from arco.servo.plan.document import PlannedTask
from arco.servo.plan.planner import Mode, PlanRequest
from arco.servo.schedule.interventions import request_pause, request_resume
from arco.servo.schedule.starting import Started
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import print_grid, print_json, say, when
from arco.surface.cli.projects import At
from arco.surface.cli.run_display import ended_text
from arco.surface.cli.running import newest_runs, opened_run, where_of

_COLOURS = {"succeeded": "green", "failed": "bold red", "paused": "yellow", "running": "cyan"}


def request_of(
    words: Iterable[str] | None,
    partitions: Mapping[str, str],
    parameters: Mapping[str, str],
    *,
    per_task: int,
    again: bool,
) -> PlanRequest:
    return PlanRequest(
        words=tuple(words or ()),
        partitions=partitions,
        mode=Mode.FORCE if again else Mode.BACKFILL,
        parameters=parameters,
        partitions_per_task=per_task,
    )


async def list_backfills(at: At, *, limit: int, json: bool) -> None:
    async with opened(where_of(at)) as home:
        found = [one async for one in newest_runs(home, limit, None, Trigger.BACKFILL)]
    if json:
        print_json([_progress(one) for one in found])
    elif not found:
        say("nothing was backfilled yet: arco backfill start")
    else:
        rows = [_row(_progress(one), one) for one in found]
        print_grid(["run", "state", "started", "ranges", "partitions", "by"], rows, paint={1: _COLOURS})


async def show(at: At, run: str, *, json: bool) -> None:
    async with opened(where_of(at)) as home:
        one = await opened_run(home, run)
    told = _progress(one)
    tasks = {task.id: task for task in one.plan.spec.tasks}
    ranges = [_range(tasks[task], its, tasks) for task, its in one.log.state.tasks.items()]
    if json:
        print_json(told | {"of_each": ranges})
        return
    share = 100 * told["partitions_done"] // max(1, told["partitions"])
    paused = one.log.state.run.paused
    say(
        f"run {run}: {told['state']}, {share} %: {told['partitions_done']:,} of {told['partitions']:,} partitions,"
        f" {told['ranges_done']} of {told['ranges']} ranges"
    )
    if paused is not None:
        say(f"paused by {paused.who}: {paused.why}; arco backfill resume {run} lets it go on")
    rows = [[one["asset"], one["range"], f"{one['partitions']:,}", one["state"], one["said"]] for one in ranges]
    print_grid(["asset", "range", "partitions", "state", ""], rows, folds=(1, 4), paint={3: _COLOURS})


async def pause(at: At, run: str, why: str) -> None:
    async with opened(where_of(at)) as home:
        one, parts = await opened_run(home, run), home.catalog.parts
        if not await request_pause(one.log, home.author.principal, why, parts.clock, parts.entropy):
            raise Conflict(f"run {run} does not go on: {_state(one)}", hint="there is nothing to pause")
        left = len(one.log.state.active)
    say(f"run {run} is paused: no further range begins; {left} that are under way finish first")


async def resume(at: At, run: str) -> None:
    async with opened(where_of(at)) as home:
        one, parts = await opened_run(home, run), home.catalog.parts
        if not await request_resume(one.log, home.author.principal, parts.clock, parts.entropy):
            raise Conflict(f"run {run} is not paused: {_state(one)}", hint="arco backfill list shows all")
    say(f"run {run} goes on wherever it is driven; if nobody drives it: arco resume {run}")


def _state(one: Started) -> str:
    state = one.log.state
    return "paused" if state.run.paused is not None and not state.is_finished else state.run.status.value


def _progress(one: Started) -> dict[str, Any]:
    """How far a run is, counted in what was published."""
    state = one.log.state
    counts = {task.id: task.partition_count for task in one.plan.spec.tasks}
    done = [task for task, its in state.tasks.items() if its.status is TaskStatus.SUCCEEDED]
    created, paused = state.run.created, state.run.paused
    return {
        "run": str(one.log.run),
        "state": _state(one),
        "paused": None if paused is None else {"who": paused.who, "why": paused.why},
        "who": "" if created is None else created.who,
        "ranges": len(counts),
        "ranges_done": len(done),
        "ranges_open": sum(its.status not in ENDED for its in state.tasks.values()),
        "partitions": sum(counts.values()),
        "partitions_done": sum(counts[task] for task in done),
    }


def _row(told: Mapping[str, Any], one: Started) -> list[str]:
    return [
        told["run"],
        told["state"],
        when(one.log.state.run.created_ms),
        f"{told['ranges_done']} of {told['ranges']}",
        f"{told['partitions_done']:,} of {told['partitions']:,}",
        told["who"],
    ]


def _range(task: PlannedTask, its: TaskState, tasks: Mapping[str, PlannedTask]) -> dict[str, Any]:
    written = {} if its.staged is None else its.staged.written
    return {
        "task": task.id,
        "asset": task.asset,
        "range": _spelled(task.partitions),
        "partitions": task.partition_count,
        "state": its.status.value,
        "rows": written.get("rows"),
        "said": ended_text(its, tasks) if its.ended_ms is not None else "",
    }


def _spelled(partitions: list[dict[str, Any]]) -> str:
    """The ranges of a task as its plan has them, dimension by dimension."""
    boxes = [", ".join(f"{name} {_bounds(bounds)}" for name, bounds in box.items()) for box in partitions]
    return "; ".join(boxes)


def _bounds(bounds: list[Any]) -> str:
    """Periods have a first one and the one after the last; other dimensions list their values."""
    match bounds:
        case [list() as values]:
            return ",".join(map(str, values))
        case [first, end]:
            return f"{first} … before {end}"
        case _:
            return str(bounds)
