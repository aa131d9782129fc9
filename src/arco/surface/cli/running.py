"""Running a project: `arco run`, `arco resume`, `arco runs`, `arco cancel`.

The first interruption ends a run in order: it is written down, Spark's jobs are stopped, and what was published stays. A
second one leaves at once; `arco resume` goes on from there.
"""

import asyncio
import os
import signal
import sys
from collections import Counter as Counts
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from arco.catalog.catalog import Catalog
from arco.catalog.workspaces import Workspaces
from arco.fold.folding import Settings
from arco.fold.passes import fold_pass
from arco.fold.spark_masters import parse_master
from arco.fold.spark_session import SparkSettings, expect_connect
from arco.fold.spark_threads import any_left
from arco.kernel.errors import ArcoError, InvalidInput, NotFound
from arco.kernel.ids import RunId, clip
from arco.kernel.limits import WORKER_POLL_S
from arco.kernel.scope import Scope
from arco.ledger.outstanding import run_ids
from arco.ledger.run_entries import OnFailure, RunStatus, Trigger
from arco.ledger.run_state import RunState, TaskState, TaskStatus
from arco.quality.gates import EXIT_HELD_BACK, exit_code
from arco.servo.execute.deferring import need_lender
from arco.servo.execute.pipeline import HowToRun, Pipeline, Prepared
from arco.servo.partitions.axes import ListAxis
from arco.servo.plan.document import PlannedTask
from arco.servo.plan.explanation import without_partitions
from arco.servo.plan.planner import PlanRequest
from arco.servo.plan.staleness import World
from arco.servo.schedule.claims import Claim, Claims
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.schedule.executor import NoObserver
from arco.servo.schedule.hand_over import HandOver, Looking
from arco.servo.schedule.interventions import request_cancel
from arco.servo.schedule.local_wake_ups import LocalWakeUps
from arco.servo.schedule.starting import Started, listed_run, open_run
from arco.storage.counted import Counter
from arco.surface.cli.flags import DEFAULT_WAREHOUSE, Where
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, say_aside, when
from arco.surface.cli.projects import At, ProjectFile, read_project, scope_named
from arco.surface.cli.run_display import RunDisplay, started_line, warnings_of
from arco.surface.cli.run_pages import print_run
from arco.surface.cli.settings import PROJECT_FILE, load_environment, load_settings, load_task_keys
from arco.surface.folds import Lake, folding_of

EXIT_INTERRUPTED = 130
_COLOURS = {"succeeded": "green", "failed": "bold red", "blocked": "yellow", "quarantined": "yellow", "running": "cyan"}


@asynccontextmanager
async def at_work(
    at: At, poll_s: float = WORKER_POLL_S, counter: Counter | None = None, *, goes_back: bool = True
) -> AsyncIterator[tuple[Pipeline, Lake]]:
    """A project, ready to run, and the lake that it publishes to. `counter`: told of every request to the store.

    `goes_back`: code that was superseded may count again because it is at work here.
    """
    file = read_project(at.folder)
    spark = spark_of(file, at.master)
    expect_connect(spark)
    project = file.load()
    where = file.where(at.root, at.options)
    settings = load_settings(where.root, list(where.options), where.folder)
    async with opened(where, counter) as workspace:
        await in_use(workspace)
        if file.lender_is_asked_for and file.defer_to is not None:
            await need_lender(workspace.catalog, file.defer_to)
        pipeline = Pipeline(
            catalog=workspace.catalog,
            project=project,
            root=workspace.root,
            options=settings.known,
            spark=spark,
            by=workspace.author.principal,
            pools=file.pools,
            hand_over=hand_over_of(workspace, poll_s),
            keys=task_keys_if_any(file),
            defer_to=file.defer_to,
            goes_back=goes_back,
        )
        home = pipeline.new_home(workspace.place, told=lambda note: say_aside(f"arco: {note}"))
        try:
            yield (
                replace(pipeline, home=home),
                Lake(workspace.place, settings.known, settings.retention, settings.fold_lists),
            )
        finally:
            pipeline.hand_over.close()
            await home.stop()


def spark_of(file: ProjectFile, master: str | None) -> SparkSettings:
    """The Spark of a project: as its file says, elsewhere if a flag does."""
    log = file.folder / ".arco" / "spark.log"
    found = SparkSettings(master or file.spark.master, f"arco {file.name}", file.spark.conf, file.spark.jars, log_file=log)
    parse_master(found.master)
    return found


def task_keys(file: ProjectFile) -> EnvelopeKeys | None:
    """What schedulers sign with, and whoever starts runs for workers seals them with. Refused if it is named and not there."""
    found = load_task_keys(file.task_keys)
    return EnvelopeKeys(found) if found else None


def task_keys_if_any(file: ProjectFile) -> EnvelopeKeys | None:
    """The same for a command that runs its own tasks: it needs no key, and where it has one its runs are for workers too."""
    try:
        return task_keys(file)
    except InvalidInput:
        return None


def hand_over_of(home: Opened, looks_every_s: float = WORKER_POLL_S) -> HandOver:
    """How processes at this root wake each other: by sockets in a folder; at a bucket everybody looks."""
    if home.folder is None:
        return Looking(looks_every_s)
    return LocalWakeUps(home.folder, home.catalog.parts.entropy, looks_every_s=looks_every_s)


async def in_use(home: Opened) -> None:
    """Refuse to work in a workspace that was given up."""
    parts = home.catalog.parts
    await Workspaces(parts.tier1.store, parts.clock, parts.entropy).need_in_use(parts.scope)


def _nothing_to_do(pipeline: Pipeline, prepared: Prepared) -> Iterator[str]:
    """Why a plan has no tasks."""
    spec = prepared.plan.spec
    absent = without_partitions(World(pipeline.project.graph, prepared.snapshot), spec)
    yield from absent.values()
    if len(absent) < len(spec.selection) or not absent:
        yield f"everything {'else ' * bool(absent)}that was asked for is as its inputs and its code are"


async def run(at: At, request: PlanRequest, how: HowToRun, *, fold: bool, json: bool, detach: bool = False) -> int:
    """Plan, run what is planned, and fold what it said. The exit code says what came of the run."""
    if detach:
        task_keys(read_project(at.folder))  # without the key that is named no worker would run it
    async with at_work(at) as (pipeline, lake):
        started = await pipeline.started_before(request, how)
        if started is None:
            prepared = await pipeline.prepare(request)
            if not prepared.plan.spec.tasks:
                if json:
                    print_json({"run": None, "status": "nothing to do", "tasks": []})
                else:
                    for line in _nothing_to_do(pipeline, prepared):
                        say(f"nothing to do: {line}")
                return 0
            started = await pipeline.start(prepared, how, here=not detach)
            if started.is_new and started.plan.spec.snapshot != prepared.plan.spec.snapshot:
                say_aside("arco: what this was planned on has changed meanwhile, so it was planned anew")
        if not started.is_new and not json:
            say(f"run {started.log.run} was started with this key before")
        if detach:
            return _left_to_workers(started, json=json)
        return await _driven(pipeline, started, lake if fold else None, json=json)


def _left_to_workers(started: Started, *, json: bool) -> int:
    if json:
        print_json(_document(started, started.log.state))
    else:
        tasks = counted(len(started.plan.spec.tasks), "task")
        say(f"run {started.log.run}: {tasks} for whatever workers there are (arco worker)")
        say(f"  arco watch {started.log.run}      how it goes on")
    return 0


async def resume(at: At, run_id: str | None, *, now: bool, fold: bool, json: bool) -> int:
    """Go on with a run from what it has published."""
    async with at_work(at) as (pipeline, lake):
        found = await _last_unfinished(pipeline) if run_id is None else run_id_of(run_id)
        started = await pipeline.open(found)
        if started.log.state.is_finished and not started.log.state.owed:
            if not json:
                say(f"run {found} has finished: {started.log.state.run.status.value}")
        elif started.log.state.active and not now and not json:
            say("claims of the worker that stopped are settled when they have been silent for 30 s; --now does it at once")
        return await _driven(pipeline, started, lake if fold else None, seize=now, json=json)


async def _driven(pipeline: Pipeline, started: Started, folded: Lake | None, *, json: bool, seize: bool = False) -> int:
    """Drive a run to its end; then fold, if a lake to fold is given."""
    try:
        state = await drive_shown(pipeline, started, json=json, seize=seize)
    except asyncio.CancelledError:
        # Whether the log says already that the run is to end is not known here; what to type is the same.
        sys.stderr.write(f"arco: left at once; arco resume {started.log.run} --now settles what was under way\n")
        return EXIT_INTERRUPTED
    code = _summed_up(started, state, json=json)
    if folded is not None and state.run.status is not RunStatus.CANCELLED:
        await fold_after(pipeline, folded, json=json)
    return code


async def drive_shown(pipeline: Pipeline, started: Started, *, json: bool, seize: bool = False) -> RunState:
    """Drive a run to its end, and show how it goes."""
    console = Console(highlight=False, stderr=json)
    tasks = started.plan.spec.tasks
    if not json:
        partitions = sum(task.partition_count for task in tasks)
        say(started_line(str(started.log.run), started.log.state.run.created, len(tasks), partitions))
    with RunDisplay(console, started.plan, _said(pipeline), live=console.is_terminal and not json) as display:
        watched = replace(pipeline, observer=NoObserver() if json else display)
        return await watched.drive(started, seize=seize)


async def fold_after(pipeline: Pipeline, lake: Lake, *, json: bool) -> None:
    """What the run told the ledger, as rows, in the session that it ran in. Trouble here is not the run's."""
    home = pipeline.home
    if home is None or not home.is_open:
        return
    try:
        await pipeline.catalog.parts.afterwards.settle()  # a fold that does not list was told of everything by then
        async with folding_of(pipeline.catalog.parts, lake, home, Settings(listing=lake.lists)) as folding:
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
    counts = Counts(its.status.value for its in state.tasks.values())
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
    if state.run.is_atomic and not state.run.published:
        words = " ".join(dict.fromkeys(task.asset for task in tasks.values()))
        return [f"  arco run --atomic       nothing was published: {words} stand as they were, and are planned again"]
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
        **_request(state),
        "published_together": state.run.published if state.run.is_atomic else None,
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
                "failure": _failure(its),
            }
            for task, its in state.tasks.items()
        ],
    }


def _request(state: RunState) -> dict[str, Any]:
    """How a run was asked for, as its log says it."""
    words = ("trigger", "who", "max_parallelism", "timeout_s", "on_failure", "idempotency_key", "atomic")
    return {word: msgspec.to_builtins(getattr(state.run.created, word, None)) for word in words}


def _failure(its: TaskState) -> dict[str, Any] | None:
    """Why a task was not published, if that is how it ended; what an attempt before it met is in the log alone."""
    if its.failure is None or its.status is TaskStatus.SUCCEEDED:
        return None
    said: dict[str, Any] = msgspec.to_builtins(its.failure)
    return {"class": said.pop("kind"), **said}


# Runs that were


async def _last_unfinished(pipeline: Pipeline) -> RunId:
    parts = pipeline.catalog.parts
    for one in sorted(await run_ids(parts.tier1.store, parts.scope), reverse=True):
        started = await _found(pipeline.catalog, one)
        if started is not None and not started.log.state.is_finished:
            return one
    raise NotFound("every run has finished", hint="arco run plans a new one; arco runs lists them")


async def _found(catalog: Catalog, run: RunId) -> Started | None:
    parts = catalog.parts
    return await listed_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)


async def opened_run(home: Opened, run_id: str) -> Started:
    parts = home.catalog.parts
    return await open_run(parts.tier1.store, parts.scope, run_id_of(run_id), parts.clock, parts.entropy)


def run_id_of(text: str) -> RunId:
    """A run as it is named on a command line."""
    try:
        return RunId(text)
    except ArcoError as error:
        raise InvalidInput(f"{clip(text)!r} is not the id of a run", hint="arco runs lists them") from error


async def runs(at: At, run_id: str | None, *, limit: int, status: str | None, json: bool) -> None:
    """What ran, newest first; or the tasks of one run."""
    async with opened(where_of(at)) as home:
        if run_id is not None:
            one = await opened_run(home, run_id)
            if json:
                print_json(_document(one, one.log.state))
            else:
                print_run(one, home.catalog.parts.clock.now_ms(), await _signs_of_life(home, one))
            return
        found = [one async for one in newest_runs(home, limit, status)]
        if json:
            print_json([_document(one, one.log.state) for one in found])
        elif not found:
            say("nothing has run yet: arco run" if status is None else f"no run is {status}: arco runs lists all")
        else:
            rows = [_row(one) for one in found]
            print_grid(["run", "status", "started", "took", "tasks", "by"], rows, paint={1: _COLOURS})


async def _signs_of_life(home: Opened, one: Started) -> dict[str, Claim]:
    """The last of every task that is under way. A task that has just begun has none yet."""
    parts = home.catalog.parts
    claims = Claims(parts.tier1.store, parts.scope, one.log.run, "", parts.clock, parts.entropy)
    found = {task: await claims.read(task) for task in one.log.state.active}
    return {task: claim for task, claim in found.items() if claim is not None}


def where_of(at: At) -> Where:
    """The workspace of a project; without one, the root that is named."""
    if (Path(at.folder) / PROJECT_FILE).is_file():
        return read_project(at.folder).where(at.root, at.options)
    scope = scope_named(load_environment().workspace, Scope.parse_warehouse(DEFAULT_WAREHOUSE))
    return Where.of(at.root, at.options, scope.warehouse)


async def newest_runs(
    home: Opened, limit: int, status: str | None, trigger: Trigger | None = None
) -> AsyncIterator[Started]:
    """The newest runs, all or those of one status, or those that were started for one reason."""
    parts = home.catalog.parts
    left = limit
    for one in sorted(await run_ids(parts.tier1.store, parts.scope), reverse=True):
        if left <= 0:
            return
        found = await _found(home.catalog, one)
        if found is None or status not in {None, found.log.state.run.status.value}:
            continue
        created = found.log.state.run.created
        if trigger is None or (created is not None and created.trigger is trigger):
            left -= 1
            yield found


def _row(one: Started) -> list[str]:
    state = one.log.state
    created = state.run.created
    ended = state.run.ended_ms
    counts = Counts(its.status.value for its in state.tasks.values())
    return [
        str(one.log.run),
        state.run.status.value if ended is not None or state.run.paused is None else "paused",
        when(state.run.created_ms),
        "" if ended is None else f"{(ended - state.run.created_ms) / 1000:.1f} s",
        ", ".join(f"{count} {status}" for status, count in sorted(counts.items())),
        "" if created is None else created.who,
    ]


async def cancel(at: At, run_id: str, reason: str) -> None:
    """Ask for the end of a run, wherever it is driven."""
    file = read_project(at.folder)
    async with opened(file.where(at.root, at.options)) as home:
        started = await opened_run(home, run_id)
        parts = home.catalog.parts
        if await request_cancel(started.log, home.author.principal, reason, parts.clock, parts.entropy):
            wake = hand_over_of(home)
            wake.tell(str(started.log.run))
            wake.close()
            say(f"run {run_id} is asked to end; whoever drives it stops its tasks within seconds")
        else:
            say(f"run {run_id} has finished: {started.log.state.run.status.value}")


def how_to_run(
    trigger: str, parallel: int, timeout: float | None, key: str | None, *, fail_fast: bool, backfill: bool
) -> HowToRun:
    return HowToRun(
        trigger=Trigger.BACKFILL if backfill else Trigger(trigger),
        parallelism=parallel,
        timeout_s=timeout,
        on_failure=OnFailure.FAIL_FAST if fail_fast else OnFailure.KEEP_GOING,
        key=key,
    )


def atomically(how: HowToRun, tables: int) -> HowToRun:
    """The same, with all outputs published at once over so many tables at most."""
    return replace(how, atomic=True, transaction_tables=tables)


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
