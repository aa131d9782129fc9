"""Runs, their tasks, and what exactly a run published.

The outputs of a run are strict: what it published, whatever is current now. They lie with their assets, and the tasks of a run
say which those are; only while the fold does not know all tasks of a run yet is everything that was ever published looked at.
"""

from datetime import datetime
from typing import Any

import msgspec

from arco.fold.tables import HELD_OUTPUTS, MATERIALIZATIONS, RUNS, TASKS
from arco.kernel.ids import clip
from arco.ledger.payloads import SERVO
from arco.ledger.posted_values import RUN_STATES, TASK_STATES, need_state
from arco.read.answers import Answer, document, shaped
from arco.read.naming import not_found
from arco.read.pages import FIRST_PAGE, Listing, Page, Window, paged
from arco.read.publishers import BY_SERVO
from arco.read.reader import Reader


class Run(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    project: str | None
    deployment: str | None
    code_version: str | None
    trigger: str | None
    triggered_by: str | None
    state: str
    tasks_planned: int | None
    task_states: dict[str, int]
    assets: tuple[str, ...]
    plan_fingerprint: str | None
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    job: str | None = None
    message: str | None = None
    told_by: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    task_id: str
    asset: str | None
    asset_id: str | None
    partitions: list[dict[str, Any]]
    state: str
    attempt: int | None
    worker: str | None
    started_at: datetime | None
    ended_at: datetime | None
    failure_class: str | None
    message: str | None


class RunPage(Answer, frozen=True, kw_only=True):
    """One run. `live`: as its own log has it now, of which the snapshot may know less, or nothing. `paused`: why it rests."""

    run: Run
    tasks: tuple[Task, ...]
    live: bool = False
    paused: str | None = None


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """One partition that a run published."""

    asset_id: str
    asset: str | None
    partition_id: str
    partition_key: str | None
    materialization_id: str
    task_id: str | None
    table_uuid: str | None
    snapshot_id: int | None
    sequence_number: int | None
    rows: int | None
    bytes: int | None
    files: int | None
    published_at: datetime | None


class HeldOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output that a gate held back, and where it is kept."""

    asset_id: str
    materialization_id: str
    asset: str | None
    run_id: str | None
    task_id: str | None
    partitions: list[dict[str, Any]]
    action: str | None
    reasons: tuple[str, ...]
    branch: str | None
    snapshot_id: int | None
    held_at: datetime | None


class RunOutputs(Answer, frozen=True, kw_only=True):
    """Exactly what one run published, and what of it was held back."""

    run_id: str
    outputs: tuple[Output, ...]
    held: tuple[HeldOutput, ...]


async def runs(
    reader: Reader,
    *,
    project: str | None = None,
    state: str | None = None,
    window: Window = FIRST_PAGE,
) -> Page[Run]:
    """Runs, newest first."""
    if state is not None:
        need_state("runs", state, RUN_STATES)
    relation = await reader.relation(RUNS)
    select = f"""SELECT *, coalesce(epoch_ms(coalesce(created_at, started_at)), 0) AS at_ms FROM {relation}
        WHERE ($1 IS NULL OR project = $1) AND ($2 IS NULL OR coalesce(state, 'running') = $2)"""
    question = {"runs": project, "state": state}
    listing = Listing(select.replace("$1", "?").replace("$2", "?"), ("at_ms", "run_id"), newest_first=True)
    rows, cursor = await paged(reader, question, listing, [project, project, state, state], window)
    return Page(snapshot_id=reader.cut.snapshot_id, items=tuple(map(_run, rows)), next_cursor=cursor)


async def run(reader: Reader, run_id: str) -> RunPage:
    """One run with its tasks, in the order they began."""
    found = await _found_run(reader, run_id)
    return RunPage(snapshot_id=reader.cut.snapshot_id, run=found, tasks=await _tasks(reader, run_id))


async def run_tasks(reader: Reader, run_id: str, *, state: str | None = None, window: Window = FIRST_PAGE) -> Page[Task]:
    """The tasks of a run, by the names of their assets."""
    if state is not None:
        need_state("tasks", state, TASK_STATES)
    await _found_run(reader, run_id)
    select = f"""SELECT *, coalesce(asset, '') AS named FROM {await reader.relation(TASKS, run_id)}
        WHERE ? IS NULL OR coalesce(state, 'pending') = ?"""
    question = {"run_tasks": run_id, "state": state}
    rows, cursor = await paged(reader, question, Listing(select, ("named", "task_id")), [state, state], window)
    return Page(snapshot_id=reader.cut.snapshot_id, items=tuple(map(task, rows)), next_cursor=cursor)


async def run_outputs(reader: Reader, run_id: str) -> RunOutputs:
    """Exactly what a run published."""
    found = await _found_run(reader, run_id)
    tasks = await _tasks(reader, run_id)
    assets = {task.asset_id for task in tasks if task.asset_id is not None}
    complete = found.ended_at is not None and len(tasks) == found.tasks_planned and all(task.asset_id for task in tasks)
    spread = assets if complete else None
    published = await reader.relation(MATERIALIZATIONS, spread)
    held = await reader.relation(HELD_OUTPUTS, spread)
    # Of a run of its own Servo alone knows what it made.
    told = f"run_id = ? AND {BY_SERVO if found.told_by in {None, SERVO} else 'true'}"
    rows = await reader.rows(
        f"SELECT * FROM {published} WHERE {told} ORDER BY asset, partition_key, materialization_id", [run_id]
    )
    kept = await reader.rows(f"SELECT * FROM {held} WHERE {told} ORDER BY asset, held_at", [run_id])
    return RunOutputs(
        snapshot_id=reader.cut.snapshot_id,
        run_id=run_id,
        outputs=tuple(shaped(Output, row) for row in rows),
        held=tuple(map(held_output, kept)),
    )


def held_output(row: dict[str, Any]) -> HeldOutput:
    return shaped(HeldOutput, row, partitions=document(row["partitions"]) or [], reasons=tuple(row["reasons"] or ()))


def task(row: dict[str, Any]) -> Task:
    return shaped(Task, row, partitions=document(row["partitions"]) or [], state=row["state"] or "pending")


async def _tasks(reader: Reader, run_id: str) -> tuple[Task, ...]:
    relation = await reader.relation(TASKS, run_id)
    rows = await reader.rows(f"SELECT * FROM {relation} ORDER BY started_at NULLS LAST, asset, task_id")
    return tuple(map(task, rows))


async def _found_run(reader: Reader, run_id: str) -> Run:
    relation = await reader.relation(RUNS, run_id)
    rows = await reader.rows(f"SELECT * FROM {relation}")
    if rows:
        return _run(rows[0])
    everything = await reader.relation(RUNS)
    near = await reader.rows(
        f"""SELECT run_id FROM {everything} WHERE starts_with(run_id, $1) OR damerau_levenshtein(run_id, $1) <= 3
            ORDER BY starts_with(run_id, $1) DESC, damerau_levenshtein(run_id, $1), run_id DESC LIMIT 3""",
        [run_id.upper()],
    )
    raise not_found(f"there is no run {clip(run_id)!r}", [row["run_id"] for row in near], "`arco runs` lists all")


def _run(row: dict[str, Any]) -> Run:
    return shaped(
        Run,
        row,
        state=row["state"] or "running",
        task_states=document(row["task_states"]) or {},
        assets=tuple(row["assets"] or ()),
    )
