"""Runs that one process has in hand: found in one document, opened, driven side by side, and let go of when they have ended.

A worker and a scheduler are the same here; what differs is the driver that `take` makes of a run. Nothing is remembered that
another process would need: one that dies leaves its runs to all others, and each decision in them is made once, because the log
of the run decides. What must never enter: how a task is executed, and how anything is shown.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, AskHistory, BrokenInvariant, Conflict, Fenced, NotFound, RetryLater
from arco.kernel.ids import RunId
from arco.kernel.limits import OPEN_RUN_BEGINS_S, RUN_RESTS_S, RUNS_IN_HAND_MAX, WORKER_STOP_S
from arco.kernel.scope import Scope
from arco.ledger.run_state import RunState
from arco.servo.schedule.driver import Driver
from arco.servo.schedule.hand_over import ANYTHING, HandOver
from arco.servo.schedule.open_runs import OpenRun, OpenRunsNote
from arco.servo.schedule.starting import Started, open_run
from arco.storage.port import ObjectStore
from arco.storage.readback import pause_s

log = logging.getLogger("arco.crew")


@dataclass(frozen=True, slots=True)
class Refused:
    """A run that is not for this process, and why, in one line."""

    why: str


Take = Callable[[OpenRun, Started], Awaitable[Driver | Refused]]


class Told(Protocol):
    """Told what becomes of runs here; it must return at once."""

    def took(self, run: str, tasks: int) -> None: ...

    def refused(self, run: str, why: str) -> None: ...

    def ended(self, run: str, state: RunState) -> None: ...

    def troubled(self, what: str, error: ArcoError) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How runs are looked for, and whose. `stop_s`: how long tasks may go on when the process is told to stop."""

    store: ObjectStore
    scope: Scope
    project: str
    clock: Clock
    entropy: Entropy
    hand_over: HandOver
    told: Told
    runs_max: int = RUNS_IN_HAND_MAX
    stop_s: float = WORKER_STOP_S


class Crew:
    """The runs of one process."""

    def __init__(self, ways: Ways, take: Take) -> None:
        self._ways = ways
        self._take = take
        self._note = OpenRunsNote(ways.store, ways.scope, ways.clock, ways.entropy)
        self._drivers: dict[str, Driver] = {}
        self._driving: dict[str, asyncio.Task[RunState]] = {}
        self._not_ours: set[str] = set()
        self._ended: set[str] = set()
        self._failures: dict[str, int] = {}
        self._retry_at_ms: dict[str, int] = {}
        self._since_ms: dict[str, int] = {}
        self._rested: dict[str, int] = {}  # runs that made room for others, the longest ago first
        self._turn = 0
        self._woken = asyncio.Event()
        self._is_stopping = False
        self._waiting_for_ours = False

    @property
    def busy(self) -> int:
        """How many tasks are under way here."""
        return sum(one.busy for one in self._drivers.values())

    def stop(self) -> None:
        """Claim nothing more. What runs may end in its time; after that it is handed back. May be called at any time."""
        self._is_stopping = True
        for driver in self._drivers.values():
            driver.leave()
        self._woken.set()

    async def serve(self, *, once: bool = False) -> None:
        """Until told to stop; once: until no open run is left that this process could take."""
        self._ways.hand_over.listen(self._heard)
        failures = 0
        try:
            while not self._is_stopping:
                self._woken.clear()
                self._collect()
                try:
                    await self._look()
                    failures = 0
                except (RetryLater, AskHistory) as error:
                    failures += 1
                    self._ways.told.troubled("the store does not answer", error)
                    await self._ways.clock.sleep(pause_s(min(failures, 8), self._ways.entropy))
                    continue
                if once and not self._driving and not self._waiting_for_ours:
                    return
                await self._wait()
            await self._drain()
        finally:
            self._ways.hand_over.close()
            for driving in self._driving.values():
                driving.cancel()

    # Looking

    async def _look(self) -> None:
        """One request, if nothing is open that is not in hand already."""
        notes = await self._note.read()
        if gone := self._ended & {note.run for note in notes}:
            await self._strike(gone)
        self._forget_all_but({note.run for note in notes})
        self._waiting_for_ours = False
        waiting = [note for note in notes if self._is_for_us(note)]
        waiting.sort(key=lambda note: self._rested.get(note.run, 0))
        while waiting and len(self._driving) < self._ways.runs_max and not self._is_stopping:
            await self._open(waiting.pop(0))
        self._make_room(waiting)

    def _forget_all_but(self, noted: set[str]) -> None:
        self._ended &= noted
        self._not_ours &= noted
        self._rested = {run: turn for run, turn in self._rested.items() if run in noted}

    def _make_room(self, waiting: list[OpenRun]) -> None:
        """Let go of runs that rest for those that wait: at once for ones that are new here, for others in turn."""
        new = [note for note in waiting if note.run not in self._rested]
        long_ago_ms = self._ways.clock.now_ms() - round(RUN_RESTS_S * 1000)
        resting = [run for run, driver in self._drivers.items() if driver.rests]
        in_turn = [run for run in resting if self._since_ms[run] <= long_ago_ms]
        for run in resting[: len(new)] or in_turn[: len(waiting)]:
            self._drivers[run].leave()

    def _is_for_us(self, note: OpenRun) -> bool:
        if note.project != self._ways.project or note.run in self._driving:
            return False
        if note.run in self._not_ours or note.run in self._ended:
            return False
        waits = self._retry_at_ms.get(note.run, 0) > self._ways.clock.now_ms()
        self._waiting_for_ours |= waits
        return not waits

    async def _open(self, note: OpenRun) -> None:
        ways = self._ways
        try:
            started = await open_run(ways.store, ways.scope, RunId(note.run), ways.clock, ways.entropy)
        except NotFound:
            # Noted, and not begun: whoever starts it is about to, or died. A day later nobody is.
            if ways.clock.now_ms() - note.noted_ms > OPEN_RUN_BEGINS_S * 1000:
                await self._strike({note.run})
            return
        except Fenced:
            await self._strike({note.run})  # it was deleted
            return
        except (RetryLater, AskHistory):
            raise
        except ArcoError as error:
            self._refuse(note.run, error.one_line())
            return
        if started.log.state.is_finished and not started.log.state.owed:
            await self._strike({note.run})
            return
        driver = await self._taken(note, started)
        if isinstance(driver, Refused):
            self._refuse(note.run, driver.why)
            return
        self._drivers[note.run] = driver
        driving = asyncio.get_running_loop().create_task(driver.drive())
        driving.add_done_callback(lambda _: self._woken.set())
        self._driving[note.run] = driving
        self._since_ms[note.run] = ways.clock.now_ms()
        if note.run not in self._rested:
            ways.told.took(note.run, len(started.plan.spec.tasks))

    async def _taken(self, note: OpenRun, started: Started) -> Driver | Refused:
        """What is wrong with one run, or breaks on it, is said of that run: the others go on."""
        try:
            return await self._take(note, started)
        except (RetryLater, AskHistory):
            raise
        except ArcoError as error:
            return Refused(error.one_line())
        except Exception as error:  # noqa: BLE001 - it is said, and a run that anybody can write must not end every process
            return Refused(unforeseen(f"run {note.run}", error).one_line())

    def _refuse(self, run: str, why: str) -> None:
        self._not_ours.add(run)
        self._ways.told.refused(run, why)

    async def _strike(self, runs: Iterable[str]) -> None:
        """A courtesy: whoever looks next strikes off what is left."""
        with suppress(RetryLater, AskHistory, Conflict):
            await self._note.strike(set(runs))

    # Letting go

    def _collect(self) -> None:
        """Runs that have ended here, and those that could not be driven on: they are opened again, a little later each time."""
        for run, driving in list(self._driving.items()):
            if not driving.done():
                continue
            del self._driving[run]
            del self._drivers[run]
            del self._since_ms[run]
            error = driving.exception()
            if error is None:
                state = driving.result()
                self._failures.pop(run, None)
                if state.is_finished:
                    self._ended.add(run)
                    self._ways.told.ended(run, state)
                else:
                    self._turn += 1
                    self._rested[run] = self._turn
            elif isinstance(error, Fenced):
                self._ended.add(run)
            elif isinstance(error, ArcoError):
                tries = self._failures[run] = self._failures.get(run, 0) + 1
                pause_ms = round(pause_s(min(tries, 10), self._ways.entropy) * 1000)
                self._retry_at_ms[run] = self._ways.clock.now_ms() + pause_ms
                self._ways.told.troubled(f"run {run}", error)
            elif isinstance(error, Exception):
                self._refuse(run, unforeseen(f"run {run}", error).one_line())
            else:
                raise error

    async def _drain(self) -> None:
        """Give what runs here some time to end, then hand it back."""
        if not self._driving:
            return
        _, left = await asyncio.wait(self._driving.values(), timeout=self._ways.stop_s)
        for driver in self._drivers.values():
            driver.hand_back()
        if left:
            await asyncio.wait(left)
        self._collect()
        await self._strike(self._ended)

    # Waiting

    def _heard(self, run: str) -> None:
        driver = self._drivers.get(run)
        if driver is not None:
            driver.hear()
            return
        self._rested.pop(run, None)
        if run == ANYTHING:
            for one in self._drivers.values():
                one.hear()
        self._woken.set()

    async def _wait(self) -> None:
        if self._woken.is_set():
            return
        loop = asyncio.get_running_loop()
        woken = loop.create_task(self._woken.wait())
        timer = loop.create_task(self._ways.clock.sleep(self._ways.hand_over.looks_every_s))
        try:
            await asyncio.wait({woken, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
            timer.cancel()


def unforeseen(what: str, error: Exception) -> ArcoError:
    """A bug in Arco, met on one thing of many. Where it broke is for the log of the process."""
    log.error("%s breaks what is done with it", what, exc_info=error)
    return BrokenInvariant(f"{type(error).__name__}: {error}")
