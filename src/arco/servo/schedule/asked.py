"""Taking runs that were asked for: plan each, decide about it, and let its run begin. Any number of processes may do so at once.

    request ─► plan stored under the run that the request stands for ─► verdict ◄ it counts ─► first entry of the run's log

A request stands for one run, whose id follows from it; so whoever takes it writes the same places. The verdict is created only if
absent: of a process that finds nothing to do and one that finds work, the first counts, and the other does as it says. A run that
has a verdict and no log is begun by whoever comes next, on the plan that is stored: that cannot be refused any more.

A request that cannot be started, and that a person has to look at, keeps nobody else waiting: it is tried again after the others,
said in the log once, and written down for whoever asks what became of it. What must never enter: how a plan is made, and driving.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from arco.kernel.crash_points import reach
from arco.kernel.errors import (
    AccessDenied,
    ArcoError,
    AskHistory,
    AskOperator,
    BrokenInvariant,
    Fenced,
    FixRequest,
    NotFound,
    Refresh,
    RetryLater,
    Superseded,
)
from arco.kernel.ids import KeyHash, RunId
from arco.kernel.limits import ASKED_RUNS_TAKEN_MAX
from arco.ledger.asked_runs import AskedRun, AskedRuns, AskedVerdict, Decided
from arco.ledger.asked_troubles import AskedTroubles
from arco.ledger.run_log import read_plan, write_plan
from arco.servo.plan.document import Plan, decode_plan
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.schedule.seals import request_refusal, sealed_plan
from arco.servo.schedule.starting import RunRequest, Started, begin_run, note_run
from arco.servo.schedule.ticking import NothingToDo, Refused

_READS_MAX = 16
log = logging.getLogger("arco.asked")


class Plans(Protocol):
    """Whoever has the project: plans what is asked for, and says how its run is recorded."""

    @property
    def project(self) -> str: ...

    async def plan(self, asked: AskedRun) -> Plan | NothingToDo | Refused: ...

    def recorded_as(self, asked: AskedRun, plan: Plan) -> RunRequest: ...


@dataclass(slots=True)
class Mind:
    """What whoever takes requests again and again remembers of them.

    `settled`: those that need nothing more, and others' own. `said`: what was wrong with one, as it was logged; `written`: as it
    was written down.
    """

    settled: set[str] = field(default_factory=set)
    said: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    def forget_all_but(self, names: set[str]) -> None:
        """What upkeep took away comes back only to be settled again."""
        self.settled &= names
        self.said = {one: line for one, line in self.said.items() if one in names}
        self.written = {one: line for one, line in self.written.items() if one in names}


@dataclass(slots=True)
class Taker:
    """One process that takes the requests of one project.

    `keys`: with them only requests of a server that has the key are taken, and what is planned for them is sealed.
    """

    requests: AskedRuns
    plans: Plans
    by: str
    mind: Mind = field(default_factory=Mind)
    keys: EnvelopeKeys | None = None

    async def take(self) -> list[Started]:
        """Begin what waits, oldest first. The runs that began here, and those found that nobody drives.

        What the store is silent about, or somebody else changes meanwhile, waits for the next time.
        """
        begun: list[Started] = []
        for asked in await self._waiting():
            try:
                started = await self._taken(asked)
            except Superseded as error:
                await self._troubled(asked, error)  # it waits for a process that has the code
                continue
            except (RetryLater, AskHistory, Refresh):
                continue
            except (AskOperator, FixRequest) as error:
                await self._troubled(asked, error)
                continue
            except Exception as error:  # noqa: BLE001 - it is said, and a request that anybody can write must not end a process
                await self._troubled(asked, BrokenInvariant(f"{type(error).__name__}: {error}"), broke=error)
                continue
            if started is not None and (started.is_new or await self._waits_for_a_driver(started)):
                begun.append(started)
        return begun

    async def _waiting(self) -> list[AskedRun]:
        """The requests of this project that may need something: one listing, and a read for each that is not known."""
        names = [request async for _, request in self.requests.open()]
        self.mind.forget_all_but(set(names))
        unknown = [one for one in names if one not in self.mind.settled]
        found: list[AskedRun] = []
        for at in range(0, len(unknown), _READS_MAX):
            read = await asyncio.gather(*map(self._read, unknown[at : at + _READS_MAX]))
            found.extend(one for one in read if one is not None)
        # Those that could not be started last time come last: they may be many, and stay.
        found.sort(key=lambda one: (one.id in self.mind.said, one.asked_ms, one.id))
        return found[:ASKED_RUNS_TAKEN_MAX]

    async def _troubled(self, asked: AskedRun, error: ArcoError, broke: Exception | None = None) -> None:
        """Say once what is wrong with a request, to whoever runs this process and whoever asked. `broke`: what nobody foresaw."""
        mind, line = self.mind, f"{error.code}: {error.one_line()}"
        if mind.said.get(asked.id) != line:
            log.error("request %s: %s", asked.id, line, exc_info=broke)
            mind.said[asked.id] = line
        if mind.written.get(asked.id) != line:
            asking = self.requests
            with suppress(RetryLater, AskHistory, Refresh, AskOperator):
                troubles = AskedTroubles(asking.store, asking.scope, asking.clock, asking.entropy)
                await troubles.say(KeyHash(asked.id), line, self.by)
                mind.written[asked.id] = line

    async def _read(self, request: KeyHash) -> AskedRun | None:
        try:
            asked = await self.requests.read(request)
        except AskOperator as error:
            log.error("request %s: %s: %s", request, error.code, error.one_line())  # noqa: TRY400
            self.mind.settled.add(request)
            return None
        if asked is None or asked.project != self.plans.project:
            self.mind.settled.add(request)
            return None
        return asked

    async def _taken(self, asked: AskedRun) -> Started | None:
        """Decide about a request unless that was done, and let its run begin unless it has."""
        verdict = await self.requests.verdict(KeyHash(asked.id))
        if verdict is None:
            verdict = await self.requests.decide(await self._judged(asked))
            reach("asked.decided")
        started = None
        if verdict.run is not None:
            started = await self._begun(verdict.asked, RunId(verdict.run))
        reach("asked.begun")
        self.mind.settled.add(asked.id)
        self.mind.said.pop(asked.id, None)
        return started

    async def _judged(self, asked: AskedRun) -> AskedVerdict:
        """What we would decide. A plan is stored before anybody hears of it."""
        why = request_refusal(self.keys, self.requests.scope, asked)
        found = Refused(why) if why is not None else await self.plans.plan(asked)
        now_ms = self.requests.clock.now_ms()
        match found:
            case NothingToDo():
                return AskedVerdict(asked=asked, decided=Decided.NOTHING, by=self.by, at_ms=now_ms)
            case Refused(message):
                return AskedVerdict(asked=asked, decided=Decided.REFUSED, by=self.by, at_ms=now_ms, message=message)
            case Plan():
                asking = self.requests
                plan = sealed_plan(self.keys, asking.scope, str(asked.run), found).encode()
                await write_plan(asking.store, asking.scope, asked.run, plan, asking.clock, asking.entropy)
                reach("asked.planned")
                return AskedVerdict(asked=asked, decided=Decided.STARTED, by=self.by, at_ms=now_ms, run=str(asked.run))

    async def _begun(self, asked: AskedRun, run: RunId) -> Started | None:
        """The run of a request, begun on the plan that is stored; None if it was deleted long since."""
        asking = self.requests
        if (why := request_refusal(self.keys, asking.scope, asked)) is not None:
            raise AccessDenied(f"somebody decided to start run {run}: {why}")
        try:
            stored = await read_plan(asking.store, asking.scope, run)
            plan = decode_plan(stored)
            request = self.plans.recorded_as(asked, plan)
            await note_run(asking.store, asking.scope, run, plan, request, asking.clock, asking.entropy)
            return await begin_run(asking.store, asking.scope, run, stored, request, asking.clock, asking.entropy)
        except (Fenced, NotFound):
            return None

    async def _waits_for_a_driver(self, started: Started) -> bool:
        """Whether a run that others began is left alone: they may have died before they drove it."""
        if started.log.state.is_finished:
            return False
        asking = self.requests
        claims = Claims(asking.store, asking.scope, started.log.run, "", asking.clock, asking.entropy)
        return not await claims.is_driven(started.log.state)
