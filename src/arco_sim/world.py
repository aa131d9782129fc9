"""The simulated world: one shared set of objects, actors that die and come back, and a driver that decides what happens next.

Everything is decided by `Choices`: which pending operation takes effect next, which fault it meets, whether a clock jumps.
An actor that dies keeps nothing; a new incarnation starts with what the store holds. Object versions are content hashes, as
S3's are, because that is the unkindest rule a store may follow.
"""

import asyncio
import hashlib
import traceback
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any, NamedTuple

from arco.kernel import crash_points
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError, Throttled, Unavailable
from arco.storage.port import (
    Absent,
    Always,
    Condition,
    Landed,
    Listed,
    Lost,
    Matches,
    Object,
    ObjectInfo,
    Outcome,
    Page,
    SignedMethod,
    Unknown,
    Version,
)
from arco_sim.choices import Choices, Weights
from arco_sim.faults import FAULT_NAMES, FAULTS, Fault, FaultProfile
from arco_sim.invariants import PROGRESS, UNEXPECTED
from arco_sim.linearizability import Operation
from arco_sim.loop import OWNER, SimLoop

_STEP_S = 0.005
_REPLY_TIMEOUT_S = 30.0
_START_MS = 1_750_000_000_000
_RATES = (1.0, 1.02, 0.98)
_DRIFT = Weights(0.6, 0.2, 0.2)
_JUMP = Weights(0.98, 0.01, 0.01)
_GIVE_UP = Weights(0.5, 0.5)
_LINGER = Weights(0.2, 0.8)
_LINGER_S_MAX = 1500.0
_NOTHING_DONE = frozenset({Fault.ERROR_BEFORE, Fault.CONFLICT, Fault.THROTTLED})


class ActorGoneError(BaseException):
    """Raised into code of a dead actor that is still on the stack. Nothing in protocol code may catch it."""


@dataclass(slots=True)
class Incarnation:
    """One life of an actor."""

    actor: str
    number: int
    alive: bool = True
    clock_offset_s: float = 0.0
    clock_rate: float = 1.0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"{self.actor}.{self.number}"

    def __str__(self) -> str:
        return self.name


class Step(NamedTuple):
    """One line of the trace."""

    at_s: float
    who: str
    what: str
    key: str
    fault: Fault
    result: str

    def __str__(self) -> str:
        fault = "" if self.fault is Fault.OK else f"  [{FAULT_NAMES[self.fault]}]"
        return f"{self.at_s:10.3f}s  {self.who:<14} {self.what:<7} {self.key}{fault}  -> {self.result}"


@dataclass(slots=True, eq=False)
class _Pending:
    owner: Incarnation
    what: str
    key: str
    effect: Callable[[], object]
    reply: asyncio.Future[Any]
    not_before_s: float = 0.0
    fault: Fault = Fault.OK
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that did not hold, by the name the documents use."""

    invariant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


ActorMain = Callable[["Env"], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class _Actor:
    name: str
    main: ActorMain
    lives: int
    incarnation: Incarnation
    finished: bool = False


class World:
    """One run of one seed."""

    def __init__(
        self,
        seed: int,
        profile: FaultProfile,
        *,
        replay: list[int] | None = None,
        plan: dict[int, Fault] | None = None,
    ) -> None:
        self.seed = seed
        self.choices = Choices(seed, replay)
        self.loop = SimLoop(self._make_something_happen)
        self.trace: list[Step] = []
        self.history: list[Operation] = []
        self.violations: list[Violation] = []
        self.notes: dict[str, Any] = {}
        self.operations = 0
        self.actor_operations = 0
        self.labels: list[str] = []
        self._profile = profile
        self._plan = plan
        self._calm = False
        self._objects: dict[str, tuple[bytes, Version, int]] = {}
        self._in_order: list[str] | None = None
        """The keys as listings have them, until one comes or goes."""
        self._pending: list[_Pending] = []
        self._actors: list[_Actor] = []
        self._moments = 0
        self._everyone_done = self.loop.create_future()

    # Actors

    def spawn(self, name: str, main: ActorMain, *, lives: int = 3) -> None:
        """An actor that is started again after a crash, until its lives are used up."""
        actor = _Actor(name, main, lives, Incarnation(name, 0))
        self._actors.append(actor)
        self._start(actor)

    def _start(self, actor: _Actor) -> None:
        if self._everyone_done.done():
            # It died of what it had left to do after its work. Who begins again now would work beside those who judge.
            return
        actor.incarnation = Incarnation(actor.name, actor.incarnation.number + 1)
        if self._plan is None:
            actor.incarnation.clock_rate = _RATES[self.choices.weighted(_DRIFT)]
        actor.lives -= 1
        context = copy_context()
        context.run(OWNER.set, actor.incarnation)
        self.loop.create_task(self._live(actor, Env(self, actor.incarnation)), context=context)

    async def _live(self, actor: _Actor, env: "Env") -> None:
        try:
            await actor.main(env)
        except ActorGoneError:
            return
        except ArcoError as error:
            self.say(str(env.incarnation), "ends", "", f"{error.code}: {error.message}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding of this seed
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.violations.append(Violation(UNEXPECTED, f"{error!r} at {where.filename}:{where.lineno}"))
        self._finish(actor)

    def _finish(self, actor: _Actor) -> None:
        actor.finished = True
        if self.all_finished() and not self._everyone_done.done():
            self._everyone_done.set_result(None)

    def kill(self, incarnation: Incarnation) -> None:
        """The process is gone: its code never runs again, what it asked for but was not sent never happens."""
        if not incarnation.alive:
            return  # several of its requests were to be its end
        incarnation.alive = False
        self.say(str(incarnation), "dies", "", "")
        for actor in self._actors:
            if actor.incarnation is incarnation:
                if actor.lives > 0:
                    actor.finished = False
                    # An empty context: a callback in the dead one's own would be dropped with it.
                    self.loop.call_later(1.0, self._start, actor, context=Context())
                else:
                    self._finish(actor)

    def all_finished(self) -> bool:
        return all(actor.finished for actor in self._actors)

    def calm(self) -> None:
        """No faults: before the actors start, and at the end, when what is broken must heal by itself or not at all."""
        self._calm = True

    def unleash(self) -> None:
        """From now on steps are counted, and meet their faults."""
        self._calm = False
        self.operations = 0
        self.labels.clear()

    # The driver

    async def until_finished(self) -> None:
        """Let everything happen until every actor is done."""
        try:
            await asyncio.wait_for(self._everyone_done, self._profile.limit_s)
        except TimeoutError:
            waiting = [actor.name for actor in self._actors if not actor.finished]
            self.violations.append(Violation(PROGRESS, f"{', '.join(waiting)} never finished"))

    def _make_something_happen(self) -> bool:
        now = self.loop.now_s
        runnable = [one for one in self._pending if one.not_before_s <= now]
        if not runnable:
            return self._skip_ahead([one.not_before_s for one in self._pending])
        if self._may_linger(runnable):
            return self._skip_ahead([one.not_before_s + _LINGER_S_MAX for one in runnable])
        chosen = runnable[self.choices.below(len(runnable))]
        self._pending.remove(chosen)
        self.loop.now_s = now + _STEP_S
        self._happen(chosen)
        return True

    def _may_linger(self, runnable: list[_Pending]) -> bool:
        """Nothing is left but late requests, and they may as well come later still, when more is going on."""
        if not self._profile.lingers or self._calm or runnable[0].fault is not Fault.STALL:
            return False
        now = self.loop.now_s
        late = all(one.fault is Fault.STALL and now < one.not_before_s + _LINGER_S_MAX for one in runnable)
        return late and bool(self.choices.weighted(_LINGER))

    def _skip_ahead(self, moments: list[float]) -> bool:
        """On to the next of these moments, or the next timer; False if there is neither."""
        timer = self.loop.next_timer_s()
        if timer is not None:
            moments.append(timer)
        if not moments:
            return False
        self.loop.now_s = max(self.loop.now_s, min(moments))
        return True

    async def ask(self, owner: Incarnation, what: str, key: str, effect: Callable[[], object]) -> Any:
        """One storage operation: wait for its turn, meet its fault, get its answer or none."""
        if not owner.alive:
            raise ActorGoneError
        pending = _Pending(owner, what, key, effect, self.loop.create_future())
        pending.fault = self._next_fault(owner, what, key)
        match pending.fault:
            case Fault.OK:
                self._pending.append(pending)
            case Fault.CRASH_BEFORE:
                self.kill(owner)
            case Fault.STALL:
                stalls_s = self._profile.stalls_s
                pending.not_before_s = self.loop.now_s + stalls_s[self.choices.below(len(stalls_s))]
                if self.choices.weighted(_GIVE_UP):
                    pending.abandoned = True
                    self.loop.call_later(_REPLY_TIMEOUT_S, self._time_out, pending)
                self._pending.append(pending)
            case _:
                self._pending.append(pending)
        return await pending.reply

    def _next_fault(self, owner: Incarnation, what: str, key: str) -> Fault:
        number = self.operations
        self.operations += 1
        self.labels.append(f"{owner.actor} {what} {key}")
        if self._calm:
            return Fault.OK
        if self._plan is not None:
            return self._plan.get(number, Fault.OK)
        return FAULTS[self.choices.weighted(self._profile.weights)]

    def decide(self, owner: Incarnation, what: str, key: str) -> Fault:
        """The fault of a step that is not a storage operation, such as one call to a disk."""
        fault = self._next_fault(owner, what, key)
        self.trace.append(Step(self.loop.now_s, str(owner), what, key, fault, ""))
        return fault

    def _happen(self, pending: _Pending) -> None:
        """Give a pending operation its effect and its answer."""
        result: object = None
        if pending.fault not in _NOTHING_DONE:
            result = pending.effect()
        self.trace.append(
            Step(self.loop.now_s, pending.owner.name, pending.what, pending.key, pending.fault, _short(result))
        )
        match pending.fault:
            case Fault.OK | Fault.STALL | Fault.CRASH_BEFORE:
                if not pending.reply.done() and not pending.abandoned:
                    pending.reply.set_result(result)
            case Fault.CRASH_AFTER:
                self.kill(pending.owner)
            case Fault.LOST_REPLY:
                self.loop.call_later(_REPLY_TIMEOUT_S, self._time_out, pending)
            case Fault.THROTTLED:
                _fail(pending, Throttled("the store asks for a pause"))
            case Fault.ERROR_BEFORE | Fault.ERROR_AFTER | Fault.CONFLICT:
                self._leave_in_doubt(pending, FAULT_NAMES[pending.fault])

    def _time_out(self, pending: _Pending) -> None:
        self._leave_in_doubt(pending, "no reply")

    def _leave_in_doubt(self, pending: _Pending, reason: str) -> None:
        if pending.what == "put" and not pending.reply.done():
            pending.reply.set_result(Unknown(reason))
        else:
            _fail(pending, Unavailable(f"the store did not answer: {reason}"))

    # Objects

    def stored(self, key: str) -> Object | None:
        found = self._objects.get(key)
        if found is None:
            return None
        data, version, at_ms = found
        return Object(ObjectInfo(key, len(data), version, at_ms), data)

    def everything(self) -> dict[str, bytes]:
        """All objects, for who judges them at the end: looking is no step of the story."""
        return {key: data for key, (data, _, _) in self._objects.items()}

    def apply_put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        current = self._objects.get(key)
        match condition:
            case Absent() if current is not None:
                return Lost("the object exists")
            case Matches(version) if current is None or current[1] != version:
                return Lost("the object has another version, or does not exist")
            case Always() | Absent() | Matches():
                version = Version(hashlib.md5(data, usedforsecurity=False).hexdigest())
                self._objects[key] = (data, version, self.store_time_ms())
                if current is None:
                    self._in_order = None
                return Landed(version)

    def apply_delete(self, key: str) -> None:
        if self._objects.pop(key, None) is not None:
            self._in_order = None

    def page(self, prefix: str, after: str, limit: int) -> Page:
        if self._in_order is None:
            self._in_order = sorted(self._objects)
        start = max(bisect_left(self._in_order, prefix), bisect_right(self._in_order, after))
        keys = list(takewhile(lambda key: key.startswith(prefix), islice(self._in_order, start, start + limit + 1)))
        entries = tuple(Listed(key, len(self._objects[key][0]), self._objects[key][2]) for key in keys[:limit])
        return Page(entries, entries[-1].key if len(keys) > limit else None)

    def store_time_ms(self) -> int:
        return _START_MS + int(self.loop.now_s * 1000)

    def moment(self) -> int:
        """A number that grows with everything that is recorded: the time axis of histories."""
        self._moments += 1
        return self._moments

    # Telling

    def say(self, who: str, what: str, key: str, result: str) -> None:
        self.trace.append(Step(self.loop.now_s, who, what, key, Fault.OK, result))

    def maybe_jump(self, incarnation: Incarnation) -> None:
        """A clock that is now and then set forward or back."""
        if self._plan is None and not self._calm:
            jump_s, most_s = self._profile.jump_s, self._profile.wrong_s_max
            wrong_s = incarnation.clock_offset_s + (0.0, jump_s, -jump_s)[self.choices.weighted(_JUMP)]
            incarnation.clock_offset_s = max(-most_s, min(most_s, wrong_s))

    def fingerprint(self) -> str:
        """Everything that happened, as one hash: two runs of one seed must agree on it."""
        digest = hashlib.sha256()
        for step in self.trace:
            digest.update(str(step).encode())
        return digest.hexdigest()

    def end(self) -> None:
        for actor in self._actors:
            actor.incarnation.alive = False
        self.loop.abandon()
        crash_points.install(None)


class Env:
    """What one incarnation of an actor may touch: a store, a clock, randomness, and a place to report."""

    def __init__(self, world: World, incarnation: Incarnation) -> None:
        self.world = world
        self.incarnation = incarnation
        self.store = SimStore(world, incarnation)
        self.clock = SimClock(world, incarnation)
        self.entropy = SeededEntropy(f"{world.seed}/{incarnation}")

    @property
    def name(self) -> str:
        return self.incarnation.actor

    def call(self, key: str, name: str, argument: Any = None) -> "Call":
        """Begin one operation of the history that the linearizability checker reads."""
        return Call(self.world, str(self.incarnation), key, name, argument)


class Call:
    """One operation of the history. Until it returns its outcome is unknown, also if its caller dies."""

    def __init__(self, world: World, client: str, key: str, name: str, argument: Any) -> None:
        self._world = world
        self._begun = Operation(client, key, name, argument, None, world.moment(), None)
        world.history.append(self._begun)

    def returns(self, result: Any) -> None:
        place = self._world.history.index(self._begun)
        self._world.history[place] = replace(self._begun, result=result, returned_at=self._world.moment())

    def never_happened(self) -> None:
        self._world.history.remove(self._begun)


class SimClock:
    """An incarnation's clock. It drifts, and may be wrong by minutes; waiting is always true."""

    def __init__(self, world: World, incarnation: Incarnation) -> None:
        self._world = world
        self._incarnation = incarnation

    def now_ms(self) -> int:
        drifted_s = self._world.loop.now_s * self._incarnation.clock_rate + self._incarnation.clock_offset_s
        return _START_MS + int(drifted_s * 1000)

    def monotonic_s(self) -> float:
        return self._world.loop.now_s

    async def sleep(self, seconds: float) -> None:
        self._world.maybe_jump(self._incarnation)
        await asyncio.sleep(seconds)


class SimStore:
    """The object-store port of one incarnation."""

    def __init__(self, world: World, incarnation: Incarnation) -> None:
        self._world = world
        self._owner = incarnation

    async def get(self, key: str) -> Object | None:
        found: Object | None = await self._world.ask(self._owner, "get", key, lambda: self._world.stored(key))
        return found

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        found = await self.get(key)
        return None if found is None else found.data[start : start + length]

    async def head(self, key: str) -> ObjectInfo | None:
        found = await self._world.ask(self._owner, "head", key, lambda: self._world.stored(key))
        return None if found is None else found.info

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        outcome: Outcome = await self._world.ask(
            self._owner, "put", key, lambda: self._world.apply_put(key, data, condition)
        )
        return outcome

    async def delete(self, key: str) -> None:
        await self._world.ask(self._owner, "delete", key, lambda: self._world.apply_delete(key))

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        page: Page = await self._world.ask(self._owner, "list", prefix, lambda: self._world.page(prefix, after, limit))
        return page

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        raise Unavailable("a simulated store signs nothing")

    async def close(self) -> None:
        return


def _fail(pending: _Pending, error: Exception) -> None:
    if not pending.reply.done():
        pending.reply.set_exception(error)


def _short(result: object) -> str:
    told = _TOLD.get(type(result))
    return told(result) if told is not None else "done"


_TOLD: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "nothing",
    Object: lambda found: f"{found.info.size_bytes} bytes, version {found.info.version[:6]}",
    Landed: lambda landed: f"landed {landed.version[:6] if landed.version else ''}",
    Lost: lambda lost: f"lost: {lost.reason}",
    Unknown: lambda unknown: f"unknown: {unknown.reason}",
    Page: lambda page: f"{len(page.entries)} keys",
}
