"""Ticking: decide what is due, have each tick's run made, and strike it off. Any number of processes may do so at once.

The failures this prevents, in order:
  1. two processes find the same tick due, and both start its run
  2. a process takes a tick, dies before its run exists, and nobody knows that it was due
  3. a process stalls, others take the ticks of an hour, and it wakes up and writes what was due an hour ago

A tick is decided by one swing of its schedule's document, which moves the mark and keeps the tick in the same moment. Its run is
created under a key made of project, schedule, version and tick, which is an object created only if absent: whoever carries the
tick out finds the one run. A tick is struck off after its run has ended, so whoever finds it may go on with it. Clocks decide
when, never whether. What a schedule decides on beside the time is looked at after its document was read: whoever looked, slept
and wakes up does not decide on content that others have acted upon since. What must never enter: how a run is planned and driven.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import NotFound
from arco.kernel.scope import Scope
from arco.servo.deploy.manifest import DeployedSchedule
from arco.servo.schedule.schedule_state import EndedTick, Paused, ScheduleState, Tick, schedule_object
from arco.servo.schedule.tick_decisions import Known, decided, ended, is_news, resumed
from arco.storage.cas import CasObject, Held
from arco.storage.port import ObjectStore


@dataclass(frozen=True, slots=True)
class Ran:
    """The run of a tick has ended, however."""

    run: str
    status: str


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """Everything that the tick asks for is as its inputs and its code are."""


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no such plan, or nobody here can go on with its run: trying again would say the same."""

    message: str
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Somebody else drives the run of this tick."""

    run: str


Carried = Ran | NothingToDo | Refused | Elsewhere


class Runs(Protocol):
    """Whoever plans, starts and drives the run of a tick; or finds the one that there is under its key."""

    async def carry_out(self, schedule: str, tick: Tick, key: str) -> Carried: ...


Look = Callable[[], Awaitable[Known]]
"""Finds out what a schedule decides on, as it is now."""


async def nothing() -> Known:
    """For what decides on the time alone."""
    return Known()


class Schedules:
    """The schedules of one project."""

    def __init__(self, store: ObjectStore, scope: Scope, project: str, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._project = project
        self._clock = clock
        self._entropy = entropy

    async def state(self, name: str) -> ScheduleState | None:
        held = await self._object(name).read()
        return None if held is None else held.value

    async def decide(self, deployed: DeployedSchedule, look: Look = nothing) -> ScheduleState | None:
        """Write down what is due. The state after it; None if nothing was ever due."""
        found = self._object(deployed.name)
        held = await found.read()
        state = None if held is None else held.value
        if not is_news(state, decided(state, deployed, await look(), self._clock.now_ms())):
            return state

        async def change(now: Held[ScheduleState] | None) -> ScheduleState:
            # Looked at after the document was read, which is as it was when this lands: no decision in it knew more.
            known = await look()
            return decided(None if now is None else now.value, deployed, known, self._clock.now_ms())

        after = await found.update(change)
        reach("tick.decided")
        return after.value

    async def tick(self, deployed: DeployedSchedule, look: Look, runs: Runs) -> list[tuple[Tick, Carried]]:
        """Decide what is due, and carry out what waits, in order, up to what somebody else is at."""
        state = await self.decide(deployed, look)
        done: list[tuple[Tick, Carried]] = []
        if state is None or state.paused is not None:
            return done
        for tick in state.open:
            carried = await runs.carry_out(deployed.name, tick, tick.key(self._project, deployed.name))
            done.append((tick, carried))
            if isinstance(carried, Elsewhere):
                break
            reach("tick.carried_out")
            await self._end(deployed.name, tick, carried)
        return done

    async def pause(self, deployed: DeployedSchedule, who: str, why: str) -> bool:
        """Let nothing begin any more. What was due before is decided, and waits. False if it was paused before."""
        now_ms = self._clock.now_ms()
        was_paused = False

        def change(now: Held[ScheduleState] | None) -> ScheduleState:
            nonlocal was_paused
            state = decided(None if now is None else now.value, deployed, Known(), now_ms)
            was_paused = state.paused is not None
            return state if was_paused else msgspec.structs.replace(state, paused=Paused(who=who, why=why, at_ms=now_ms))

        await self._object(deployed.name).update(change)
        return not was_paused

    async def resume(self, name: str) -> bool:
        """Go on from now: what would have been due in the pause is not. False if it was not paused."""
        if (state := await self.state(name)) is None or state.paused is None:
            return False

        def change(now: Held[ScheduleState] | None) -> ScheduleState:
            if now is None:
                raise NotFound(f"the state of schedule {name} is gone", hint="arco verify says what is damaged")
            return now.value if now.value.paused is None else resumed(now.value, self._clock.now_ms())

        await self._object(name).update(change)
        return True

    async def _end(self, name: str, tick: Tick, carried: Ran | NothingToDo | Refused) -> None:
        result = _result(tick, carried, self._clock.now_ms())

        def change(now: Held[ScheduleState] | None) -> ScheduleState:
            if now is None:
                raise NotFound(f"the state of schedule {name} is gone", hint="arco verify says what is damaged")
            return ended(now.value, tick, result)

        await self._object(name).update(change)

    def _object(self, name: str) -> CasObject[ScheduleState]:
        return schedule_object(self._store, self._scope, self._project, name, self._clock, self._entropy)


def _result(tick: Tick, carried: Ran | NothingToDo | Refused, now_ms: int) -> EndedTick:
    match carried:
        case Ran(run, status):
            return EndedTick(id=tick.id, version=tick.version, outcome="ran", ended_ms=now_ms, run=run, message=status)
        case NothingToDo():
            return EndedTick(id=tick.id, version=tick.version, outcome="nothing", ended_ms=now_ms)
        case Refused(message, run):
            return EndedTick(id=tick.id, version=tick.version, outcome="refused", ended_ms=now_ms, run=run, message=message)
