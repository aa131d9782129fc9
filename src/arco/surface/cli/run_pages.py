"""One run as a page: who and when, its tasks as bars on one line of time, what was written and checked, what went wrong."""

from collections.abc import Mapping

from arco.ledger.run_state import ACTIVE, RunState, TaskState, TaskStatus
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.claims import Claim
from arco.servo.schedule.starting import Started
from arco.surface.cli.printing import lasting, print_grid, say, when
from arco.surface.cli.run_display import ended_text, said_of_tables, warnings_of

_BAR_CHARS = 32
_STILL_S = 60.0
_COLOURS = {
    "succeeded": "green",
    "failed": "bold red",
    "blocked": "yellow",
    "quarantined": "yellow",
    "running": "cyan",
    "staged": "cyan",
}


def print_run(one: Started, now_ms: int, signs: Mapping[str, Claim] | None = None) -> None:
    """The whole page."""
    state = one.log.state
    tasks = {task.id: task for task in one.plan.spec.tasks}
    say(f"run {one.log.run}: {state.run.status.value}, {when(state.run.created_ms)}{_asked(state)}")
    known = signs or {}
    rows = [_row(tasks[task], its, state, tasks, now_ms, known.get(task)) for task, its in state.tasks.items()]
    print_grid(
        ["asset", "status", "partitions", f"0 s … {_length_s(state, now_ms):.0f} s", ""],
        rows,
        folds=(0, 4),
        paint={1: _COLOURS},
    )
    together = said_together(state)
    if together:
        say(together)
    for task, its in state.tasks.items():
        for line in _troubles(tasks[task], its):
            say(line)
    say(
        f"Next: arco logs TASK --run {one.log.run} has what a task said, arco runs {one.log.run} --outputs what was published"
    )


def _asked(state: RunState) -> str:
    """Who asked for a run, and how."""
    created = state.run.created
    if created is None:
        return ""
    limit = "" if created.timeout_s is None else f", {created.timeout_s:g} s at most"
    return f", {created.trigger.value} by {created.who}, {created.max_parallelism} at once{limit}"


def said_together(state: RunState) -> str:
    """What became of an atomic run as a whole; nothing for any other."""
    run = state.run
    if not run.is_atomic:
        return ""
    if run.published:
        return f"Published together: {said_of_tables(state)} in one transaction."
    if run.withheld is not None:
        return f"Nothing was published: {run.withheld.reason}. {run.withheld.hint[:1].upper()}{run.withheld.hint[1:]}."
    if state.is_finished or run.stopping is not None:
        return f"Nothing was published: {run.stopping or 'the run has ended'}."
    staged = sum(its.status is TaskStatus.STAGED for its in state.tasks.values())
    return f"All of it is published in one transaction, or nothing: {staged} of {len(state.tasks)} tasks are staged."


def _length_s(state: RunState, now_ms: int) -> float:
    return max((state.run.ended_ms or now_ms) - state.run.created_ms, 1) / 1000


def _row(
    task: PlannedTask,
    its: TaskState,
    state: RunState,
    tasks: Mapping[str, PlannedTask],
    now_ms: int,
    sign: Claim | None,
) -> list[str | None]:
    over = its.ended_ms is not None or its.status is TaskStatus.STAGED
    said = ended_text(its, tasks) if over else ""
    if its.status in ACTIVE:
        said = alive_text(its, sign, now_ms)
    attempts = f" (attempt {its.attempt})" if its.attempt > 1 else ""
    return [task.asset, its.status.value, str(task.partition_count), bar(its, state, now_ms), f"{said}{attempts}"]


def alive_text(its: TaskState, sign: Claim | None, now_ms: int) -> str:
    """How far a task is that runs, and whether its worker is slow or gone: a sign of life says which, not the time it takes."""
    mine = sign if sign is not None and sign.attempt == its.attempt else None
    expires_ms = its.claimed_ms + round(its.lease_s * 1000) if mine is None else mine.expires_ms
    if now_ms >= expires_ms:
        return f"silent for {lasting((now_ms - expires_ms) / 1000 + its.lease_s)}: whoever drives the run takes it over"
    if mine is None:
        return "runs"
    facts = mine.progress
    parts = [str(facts.get("phase") or "runs")]
    if facts.get("tasks"):
        parts.append(f"{facts.get('tasks_done', 0)} of {facts['tasks']} Spark tasks")
    still_s = (now_ms - mine.moved_ms) / 1000
    if mine.moved_ms and still_s >= _STILL_S:
        parts.append(f"alive, no progress for {lasting(still_s)}")
    return ", ".join(parts)


def bar(its: TaskState, state: RunState, now_ms: int, chars: int = _BAR_CHARS) -> str:
    """When a task ran, on the run's own line of time; at least one mark long."""
    begun = its.started_ms or (its.claimed_ms or None)
    if begun is None:
        return ""
    length_ms = _length_s(state, now_ms) * 1000
    first = min(int((begun - state.run.created_ms) / length_ms * chars), chars - 1)
    last = int(((its.ended_ms or state.run.ended_ms or now_ms) - state.run.created_ms) / length_ms * chars)
    marks = max(1, min(last, chars) - max(first, 0))
    return "·" * max(first, 0) + ("█" if its.ended_ms is not None else "▒") * marks


def _troubles(task: PlannedTask, its: TaskState) -> list[str]:
    """What went wrong with a task, and what to do about it."""
    lines = [f"  {task.asset}: {warning}" for warning in warnings_of(its)]
    if its.failure is not None and its.status is TaskStatus.FAILED:
        transient = ", may pass by itself" if its.failure.transient else ""
        lines.append(f"{task.asset}: {its.failure.kind} ({its.failure.severity}{transient}): {its.failure.hint}")
    return lines
