"""Running a project: `arco run`, `arco resume`, `arco runs`, `arco cancel`.

The first interruption ends a run in order: it is written down, Spark's jobs are stopped, and what was published stays. A
second one leaves at once; `arco resume` goes on from there.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from arco.catalog.catalog import Catalog
from arco.fold.passes import fold_pass
from arco.fold.spark_session import SparkSettings
from arco.fold.spark_threads import any_left
from arco.kernel.errors import ArcoError, InvalidInput, NotFound
from arco.kernel.ids import RunId, clip
from arco.ledger.outstanding import run_ids
from arco.ledger.run_entries import OnFailure, RunStatus, Trigger
from arco.ledger.run_state import RunState, TaskStatus
from arco.quality.gates import EXIT_HELD_BACK, exit_code
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.partitions.axes import ListAxis
from arco.servo.plan.document import PlannedTask
from arco.servo.plan.planner import PlanRequest
from arco.servo.schedule.executor import NoObserver
from arco.servo.schedule.interventions import request_cancel
from arco.servo.schedule.starting import Started, open_run
from arco.surface.cli.flags import DEFAULT_WAREHOUSE, Where
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import print_grid, print_json, say, when
from arco.surface.cli.projects import At, read_project
from arco.surface.cli.run_display import RunDisplay, ended_text, started_line, warnings_of
from arco.surface.cli.settings import PROJECT_FILE, load_settings
from arco.surface.folds import Lake, folding_of

EXIT_INTERRUPTED = 130
_COLOURS = {"succeeded": "green", "failed": "bold red", "blocked": "yellow", "quarantined": "yellow", "running": "cyan"}


@asynccontextmanager
async def at_work(at: At) -> AsyncIterator[tuple[Pipeline, Lake]]:
    """A project, ready to run, and the lake that it publishes to."""
    file = read_project(at.folder)
    project = file.load()
    where = file.where(at.root, at.options)
    settings = load_settings(where.root, list(where.options), where.folder)
    log = file.folder / ".arco" / "spark.log"
    spark = SparkSettings(file.spark.master, f"arco {file.name}", file.spark.conf, file.spark.jars, log_file=log)
    async with opened(where) as workspace:
        pipeline = Pipeline(
            catalog=workspace.catalog,
            project=project,
            root=workspace.root,
            options=settings.known,
            spark=spark,
            by=workspace.author.principal,
        )
        home = pipeline.new_home(workspace.place)
        try:
            yield replace(pipeline, home=home), Lake(workspace.place, settings.known, settings.retention)
        finally:
            await home.stop()


async def run(at: At, request: PlanRequest, how: HowToRun, *, fold: bool, json: bool) -> int:
    """Plan, run what is planned, and fold what it said. The exit code says what came of the run."""
    async with at_work(at) as (pipeline, lake):
        prepared = await pipeline.prepare(request)
        if not prepared.plan.spec.tasks:
            if json:
                print_json({"run": None, "status": "nothing to do", "tasks": []})
            else:
                say("nothing to do: everything that was asked for is as its inputs and its code are")
            return 0
        started = await pipeline.start(prepared, how)
        if not started.is_new and not json:
            say(f"run {started.log.run} was started with this key before")
        return await _driven(pipeline, started, lake if fold else None, json=json)


async def resume(at: At, run_id: str | None, *, now: bool, fold: bool, json: bool) -> int:
    """Go on with a run from what it has published."""
    async with at_work(at) as (pipeline, lake):
        found = await _last_unfinished(pipeline) if run_id is None else _run_id(run_id)
        started = await pipeline.open(found)
        if started.log.state.is_finished and not started.log.state.owed:
            if not json:
                say(f"run {found} has finished: {started.log.state.run.status.value}")
        elif started.log.state.active and not now and not json:
            say("claims of the worker that stopped are settled when they have been silent for 30 s; --now does it at once")
        return await _driven(pipeline, started, lake if fold else None, seize=now, json=json)


async def _driven(pipeline: Pipeline, started: Started, folded: Lake | None, *, json: bool, seize: bool = False) -> int:
    """Drive a run to its end; then fold, if a lake to fold is given."""
    console = Console(highlight=False, stderr=json)
    tasks = started.plan.spec.tasks
    if not json:
        partitions = sum(task.partition_count for task in tasks)
        say(started_line(str(started.log.run), started.log.state.run.created, len(tasks), partitions))
    with RunDisplay(console, started.plan, _said(pipeline), live=console.is_terminal and not json) as display:
        watched = replace(pipeline, observer=NoObserver() if json else display)
        try:
            state = await watched.drive(started, seize=seize)
        except asyncio.CancelledError:
            sys.stderr.write(f"arco: left at once; {_how_to_go_on(started)}\n")
            return EXIT_INTERRUPTED
    code = _summed_up(started, state, json=json)
    if folded is not None and state.run.status is not RunStatus.CANCELLED:
        await _fold(pipeline, folded, json=json)
    return code


async def _fold(pipeline: Pipeline, lake: Lake, *, json: bool) -> None:
    """What the run told the ledger, as rows, in the session that it ran in. Trouble here is not the run's."""
    home = pipeline.home
    if home is None or not home.is_open:
        return
    try:
        async with folding_of(pipeline.catalog.parts, lake, home) as folding:
            done = await fold_pass(folding)
        failed = next(iter(done.failed.values()), None)
    except ArcoError as error:
        failed = error
    except asyncio.CancelledError:
        sys.stderr.write("arco: the run is written down; arco fold brings arco query up to date\n")
        return
    if failed is not None:
        sys.stderr.write(f"arco: what the run said is kept, and not folded yet: {failed.one_line()}; try arco fold\n")
    elif not json:
        say('  arco query "SELECT asset, count(*) FROM partitions GROUP BY 1"      everything Arco knows, in SQL')


def _how_to_go_on(started: Started) -> str:
    """With a run that is left in the middle. One that was told to end can only be ended."""
    if started.log.state.run.cancel is None:
        return f"go on with: arco resume {started.log.run} --now"
    return f"arco resume {started.log.run} --now ends it in order, then arco run makes the rest"


def _said(pipeline: Pipeline) -> Any:
    """The partitions of a task, for people."""
    by_key = {str(key): asset.partitions for key, asset in pipeline.project.assets.items()}

    def said(task: PlannedTask) -> str:
        partitioning = by_key[task.asset]
        if not partitioning.axes:
            return ""
        if any(isinstance(axis, ListAxis) and axis.dynamic for axis in partitioning.axes):
            return f"{task.partition_count} partitions"
        return partitioning.text(partitioning.read(task.partitions))

    return said


def _summed_up(started: Started, state: RunState, *, json: bool) -> int:
    code = exit_code(its.status.value for its in state.tasks.values())
    if json:
        print_json(_document(started, state) | {"exit_code": code})
        return code
    counts = Counter(its.status.value for its in state.tasks.values())
    rows = sum(its.staged.written.get("rows", 0) for its in state.tasks.values() if its.staged is not None)
    took_s = ((state.run.ended_ms or 0) - state.run.created_ms) / 1000
    listed = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    ending = "finished, and something was held back" if code == EXIT_HELD_BACK else state.run.status.value
    say(f"{ending}: {listed}; {rows:,} rows in {took_s:.1f} s")
    for line in _what_next(started, state):
        say(line)
    return code


def _what_next(started: Started, state: RunState) -> list[str]:
    """What to type, in the order in which it makes sense."""
    tasks = {task.id: task for task in started.plan.spec.tasks}
    held = [
        tasks[one].asset for one, its in state.tasks.items() if its.status in {TaskStatus.BLOCKED, TaskStatus.QUARANTINED}
    ]
    failed = [tasks[one].asset for one, its in state.tasks.items() if its.status is TaskStatus.FAILED]
    lines = [
        f"  arco explain {one}      what it is now, and why; mend it, then: arco run {one}+"
        for one in dict.fromkeys(failed)
    ]
    lines += [
        f"  arco explain {one}      its checks held it back; readers see the version before" for one in dict.fromkeys(held)
    ]
    if state.run.status.value == "cancelled":
        lines.append("  arco run                what was not published is planned again")
    if not lines:
        lines.append(
            f"  arco show {next(iter(dict.fromkeys(task.asset for task in tasks.values())))}      a table that was published"
        )
    return lines


def _document(started: Started, state: RunState) -> dict[str, Any]:
    tasks = {task.id: task for task in started.plan.spec.tasks}
    return {
        "run": str(started.log.run),
        "status": state.run.status.value,
        "plan": started.plan.fingerprint,
        "tasks": [
            {
                "task": task,
                "asset": tasks[task].asset,
                "partitions": tasks[task].partitions,
                "status": its.status.value,
                "attempts": its.attempt,
                "snapshot_id": its.snapshot_id,
                "written": {} if its.staged is None else its.staged.written,
                "warnings": warnings_of(its),
                "failure": None if its.failure is None or its.status is TaskStatus.SUCCEEDED else its.failure.message,
            }
            for task, its in state.tasks.items()
        ],
    }


# Runs that were


async def _last_unfinished(pipeline: Pipeline) -> RunId:
    parts = pipeline.catalog.parts
    for one in sorted(await run_ids(parts.tier1.store, parts.scope), reverse=True):
        started = await _found(pipeline.catalog, one)
        if started is not None and not started.log.state.is_finished:
            return one
    raise NotFound("every run has finished", hint="arco run plans a new one; arco runs lists them")


async def _found(catalog: Catalog, run: RunId) -> Started | None:
    """A run; None if whoever planned it stopped before it began."""
    parts = catalog.parts
    try:
        return await open_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)
    except NotFound:
        return None


async def _opened_run(home: Opened, run_id: str) -> Started:
    parts = home.catalog.parts
    return await open_run(parts.tier1.store, parts.scope, _run_id(run_id), parts.clock, parts.entropy)


def _run_id(text: str) -> RunId:
    try:
        return RunId(text)
    except ArcoError as error:
        raise InvalidInput(f"{clip(text)!r} is not the id of a run", hint="arco runs lists them") from error


async def runs(at: At, run_id: str | None, *, limit: int, status: str | None, json: bool) -> None:
    """What ran, newest first; or the tasks of one run."""
    async with opened(where_of(at)) as home:
        if run_id is not None:
            _print_run(await _opened_run(home, run_id), json=json)
            return
        found = [one async for one in _newest(home, limit, status)]
        if json:
            print_json([_document(one, one.log.state) for one in found])
        elif not found:
            say("nothing has run yet: arco run" if status is None else f"no run is {status}: arco runs lists all")
        else:
            rows = [_row(one) for one in found]
            print_grid(["run", "status", "started", "took", "tasks", "by"], rows, paint={1: _COLOURS})


def where_of(at: At) -> Where:
    """The workspace of a project; without one, the root that is named."""
    if (Path(at.folder) / PROJECT_FILE).is_file():
        return read_project(at.folder).where(at.root, at.options)
    return Where.of(at.root, at.options, DEFAULT_WAREHOUSE)


async def _newest(home: Opened, limit: int, status: str | None) -> AsyncIterator[Started]:
    """The newest runs, all or those of one status."""
    parts = home.catalog.parts
    left = limit
    for one in sorted(await run_ids(parts.tier1.store, parts.scope), reverse=True):
        if left <= 0:
            return
        found = await _found(home.catalog, one)
        if found is not None and status in {None, found.log.state.run.status.value}:
            left -= 1
            yield found


def _row(one: Started) -> list[str]:
    state = one.log.state
    created = state.run.created
    ended = state.run.ended_ms
    counts = Counter(its.status.value for its in state.tasks.values())
    return [
        str(one.log.run),
        state.run.status.value,
        when(state.run.created_ms),
        "" if ended is None else f"{(ended - state.run.created_ms) / 1000:.1f} s",
        ", ".join(f"{count} {status}" for status, count in sorted(counts.items())),
        "" if created is None else created.who,
    ]


def _print_run(one: Started, *, json: bool) -> None:
    state = one.log.state
    if json:
        print_json(_document(one, state))
        return
    say(f"run {one.log.run}: {state.run.status.value}, {when(state.run.created_ms)}")
    tasks = {task.id: task for task in one.plan.spec.tasks}
    rows = [
        [tasks[task].asset, its.status.value, str(tasks[task].partition_count), ended_text(its, tasks)]
        for task, its in state.tasks.items()
    ]
    print_grid(["asset", "status", "partitions", ""], rows, folds=(0, 3), paint={1: _COLOURS})
    say(f"Next: arco runs {one.log.run} --outputs lists what it published")


async def cancel(at: At, run_id: str, reason: str) -> None:
    """Ask for the end of a run, wherever it is driven."""
    file = read_project(at.folder)
    async with opened(file.where(at.root, at.options)) as home:
        started = await _opened_run(home, run_id)
        parts = home.catalog.parts
        if await request_cancel(started.log, home.author.principal, reason, parts.clock, parts.entropy):
            say(f"run {run_id} is asked to end; whoever drives it stops its tasks within seconds")
        else:
            say(f"run {run_id} has finished: {started.log.state.run.status.value}")


def how_to_run(parallel: int, timeout: float | None, key: str | None, *, fail_fast: bool, backfill: bool) -> HowToRun:
    return HowToRun(
        trigger=Trigger.BACKFILL if backfill else Trigger.MANUAL,
        parallelism=parallel,
        timeout_s=timeout,
        on_failure=OnFailure.FAIL_FAST if fail_fast else OnFailure.KEEP_GOING,
        key=key,
    )


def interruptible(work: Coroutine[Any, Any, int]) -> int:
    """Run to the end; an interruption is heard by the work itself, not in the middle of a line of it."""

    async def main() -> int:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def interrupted() -> None:
            if not task.cancelling():
                sys.stderr.write("arco: stopping what runs, and writing it down; once more leaves at once\n")
            task.cancel()

        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, interrupted)
        try:
            return await task
        except asyncio.CancelledError:
            sys.stderr.write("arco: interrupted before anything ran; arco runs shows whether a run was begun\n")
            return EXIT_INTERRUPTED

    code = asyncio.run(main())
    if any_left():
        # Code of an asset that could not be stopped: its attempt is settled, and Python would wait for it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
