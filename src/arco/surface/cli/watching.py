"""`arco watch` and `arco logs`: a run and a task as they go on, wherever they are driven.

Both only read: the run's log says what happened, the claims how far each task is, the log of an attempt what it said. A store
that was there and does not answer is waited for: a run goes on without whoever looks at it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import typer
from rich.console import Console

from arco.kernel.clock import Clock
from arco.kernel.errors import AskHistory, NotFound, RetryLater
from arco.kernel.ids import TaskId, clip
from arco.kernel.limits import RUN_POLL_S
from arco.ledger.outstanding import run_ids
from arco.ledger.run_entries import (
    AnyEntry,
    AttemptEntry,
    Batch,
    OutputStaged,
    TaskCancelled,
    TaskClaimed,
    TaskEntry,
    TaskFailed,
    TaskRetried,
)
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import ENDED
from arco.servo.execute.attempt_log import read_log
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.starting import Started, listed_run, open_run
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import say, say_aside, when
from arco.surface.cli.projects import At
from arco.surface.cli.run_display import RunDisplay, started_line
from arco.surface.cli.run_pages import alive_text
from arco.surface.cli.running import run_id_of, where_of

_DOUBLED_MAX = 4


async def watch(at: At, run_id: str | None) -> int:
    """A run until it has ended. The exit code says whether it succeeded."""
    async with opened(where_of(at)) as home:
        started = await _run(home, run_id)
        state = started.log.state
        tasks = started.plan.spec.tasks
        say(started_line(str(started.log.run), state.run.created, len(tasks), sum(one.partition_count for one in tasks)))
        console = Console(highlight=False)
        claims = _claims(home, started)
        with RunDisplay(console, started.plan, _partitions, live=console.is_terminal) as display:
            display.found(state)
            started.log.on_batch = lambda batch: _seen(display, started, batch)
            clock = home.catalog.parts.clock

            async def look() -> None:
                await started.log.catch_up()
                for task, its in ((one, started.log.state.tasks[one]) for one in started.log.state.active):
                    claim = await claims.read(task)
                    said = {} if claim is None else claim.progress
                    if await claims.is_silent(task, its):
                        said = {"phase": alive_text(its, claim, clock.now_ms())}
                    display.progressed(task, said)

            looking = _Looking(clock, look)
            while not started.log.state.is_finished:
                await looking.again()
    ended = started.log.state.run.status.value
    say(f"{ended}: arco runs show {started.log.run}")
    return 0 if ended == "succeeded" else 1


async def logs(at: At, task: str, run_id: str | None, *, follow: bool, json: bool) -> None:
    """What became of tasks and what they said, in the order in which it happened."""
    async with opened(where_of(at)) as home:
        started, planned = await _tasks(home, task, run_id)
        follower = _Follower(home, started, planned)
        await follower.begin()
        looking = _Looking(home.catalog.parts.clock, follower.look)
        while True:
            for line in follower.news():
                if json:
                    typer.echo(msgspec.json.encode(line.document()))
                else:
                    whose = f"{line.task}  " if len(planned) > 1 else ""
                    say(f"{when(line.at_ms)}  {whose}{line.attempt:>2}  {line.level:<7}  {line.text}")
            if not follow or follower.was_over:
                return
            await looking.again()


@dataclass(slots=True)
class _Looking:
    """Looks now and then. A store that is silent is said once, and asked ever more rarely until it answers."""

    clock: Clock
    look: Callable[[], Awaitable[None]]
    _silences: int = 0

    async def again(self) -> None:
        """Wait, and look until something was seen."""
        while True:
            await self.clock.sleep(RUN_POLL_S * 2 ** min(self._silences, _DOUBLED_MAX))
            try:
                await self.look()
            except (RetryLater, AskHistory) as error:
                if not self._silences:
                    say_aside(f"arco: {error.message}; it is tried again until it answers")
                self._silences += 1
            else:
                self._silences = 0
                return


@dataclass(frozen=True, slots=True)
class _Line:
    at_ms: int
    task: str
    attempt: int
    level: str
    text: str

    def document(self) -> dict[str, object]:
        return {
            "at_ms": self.at_ms, "task": self.task, "attempt": self.attempt, "level": self.level, "text": self.text,
        }  # fmt: skip


class _Follower:
    """Tasks of one run: what its log says of them, and what their attempts said."""

    def __init__(self, home: Opened, started: Started, planned: Sequence[PlannedTask]) -> None:
        self._home = home
        self._started = started
        self._lines: list[_Line] = []
        self._parts = {task.id: "" for task in planned}
        self.was_over = False
        """Whether all tasks had ended before what they said was read: what was said last is written after the end."""
        self._ended: set[str] = set()
        self._heard_out: set[str] = set()

    async def begin(self) -> None:
        """Everything that the run's log says so far."""
        log, parts = self._started.log, self._home.catalog.parts
        again = RunLog(parts.tier1.store, parts.scope, log.run, log.state.outline, parts.clock, parts.entropy)
        again.on_batch = self._take
        await again.read_all()
        self._started = replace(self._started, log=again)
        await self._read()

    async def look(self) -> None:
        await self._started.log.catch_up()
        await self._read()

    def news(self) -> list[_Line]:
        """What was found since it was last asked for."""
        found, self._lines = self._lines, []
        return sorted(found, key=lambda line: line.at_ms)  # within one millisecond as the log has it

    async def _read(self) -> None:
        """What the attempts said. What was found before the store fell silent is kept."""
        parts = self._home.catalog.parts
        run, state = self._started.log.run, self._started.log.state
        was_over = all(state.task(task).status in ENDED for task in self._parts)
        for task, part in list(self._parts.items()):
            if not state.task(task).attempt or task in self._heard_out:
                continue
            is_over = state.task(task).status in ENDED
            async for key, lines in read_log(parts.tier1.store, parts.scope, run, TaskId(task), part):
                self._parts[task] = str(key)
                self._lines += [_Line(one.at_ms, task, key.attempt, one.level, one.text) for one in lines]
            if is_over:  # what was said last is written after the end
                (self._heard_out if task in self._ended else self._ended).add(task)
        self.was_over = was_over

    def _take(self, batch: Batch) -> None:
        mine = (one for one in batch.entries if isinstance(one, TaskEntry) and one.task in self._parts)
        for entry in mine:
            attempt = entry.attempt if isinstance(entry, AttemptEntry) else 0
            self._lines += [_Line(batch.at_ms, entry.task, attempt, level, text) for level, text in _said(entry)]


def _said(entry: AnyEntry) -> Iterator[tuple[str, str]]:
    """An entry of the run's log, in words."""
    match entry:
        case TaskClaimed():
            yield "info", f"claimed by {entry.worker}"
        case OutputStaged():
            rows = entry.written.get("rows")
            yield "info", f"written and checked: {entry.action}" + (f", {rows:,} rows" if isinstance(rows, int) else "")
            yield from (("warning", str(one["message"])) for one in entry.decision.get("reasons", ()) if "message" in one)
        case TaskRetried():
            yield "warning", f"{entry.failure.kind}: {entry.failure.message}; it is tried again"
        case TaskFailed():
            yield "error", f"{entry.failure.kind}: {entry.failure.message}"
            if entry.failure.hint:
                yield "info", entry.failure.hint
        case TaskCancelled():
            yield "warning", f"cancelled: {entry.reason}"
        case _:
            yield "info", str(entry.__struct_config__.tag).removeprefix("task_")


def _seen(display: RunDisplay, started: Started, batch: Batch) -> None:
    for entry in batch.entries:
        display.saw(entry, started.log.state)


def _partitions(task: PlannedTask) -> str:
    return "" if task.partition_count == 1 else f"{task.partition_count} partitions"


async def _run(home: Opened, run_id: str | None) -> Started:
    """A run; without an id the newest that has begun."""
    async for started in _runs(home, run_id):
        return started
    raise NotFound("nothing has run yet", hint="arco run")


async def _runs(home: Opened, run_id: str | None) -> AsyncIterator[Started]:
    """The run that is named, which must be there; without an id all that have begun, the newest first."""
    parts = home.catalog.parts
    if run_id is not None:
        yield await open_run(parts.tier1.store, parts.scope, run_id_of(run_id), parts.clock, parts.entropy)
        return
    for run in sorted(await run_ids(parts.tier1.store, parts.scope), reverse=True):
        found = await listed_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)
        if found is not None:
            yield found


async def _tasks(home: Opened, task: str, run_id: str | None) -> tuple[Started, Sequence[PlannedTask]]:
    """A task by its id, or all that make an asset: in the run that is named, or in the newest that has one."""
    async for started in _runs(home, run_id):
        mine = [one for one in started.plan.spec.tasks if task in {one.id, one.asset, one.asset.rpartition(".")[2]}]
        if mine:
            return started, mine
    where = "" if run_id is None else f" of run {run_id}"
    raise NotFound(
        f"no task{where} is called {clip(task)!r}", hint="name a task or an asset: arco runs show RUN lists them"
    )


def _claims(home: Opened, started: Started) -> Claims:
    parts = home.catalog.parts
    return Claims(parts.tier1.store, parts.scope, started.log.run, "", parts.clock, parts.entropy)
