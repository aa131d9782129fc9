"""Servers append events, die, stall, lose replies, and send again what was not acknowledged.

Some events have a key, and are sent until somebody acknowledges them, by several servers at once. Some have none, and are
sent once. Some share a key though they say different things. Two of the servers came out of one memory image: they draw the
same random numbers, and only creating names if absent keeps them apart.

Somebody follows the ledger meanwhile, remembers where it is, dies and goes on from there: it sees everything, also what a
writer that stalled stores long after others stored greater names.
"""

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.entropy import Entropy, SeededEntropy
from arco.kernel.errors import ArcoError, AskHistory, CorruptObject, RetryLater
from arco.kernel.ids import EventId
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import Event, EventType
from arco.ledger.segment import Segment, decode_segment
from arco.ledger.tailing import Cursor, Tail, Unreadable
from arco.storage.keys import Domain, SegmentKey, parse
from arco.storage.paging import walk
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.outage import FailingStore
from arco_sim.scenario import violate
from arco_sim.world import Env, World

SCOPE = Scope.of("t", "w")
HAPPENED = EventType("execution.happened.v1")
_TRIES_MAX = 6


@dataclass(slots=True)
class Sent:
    """What the senders, who outlive their servers, know: by the label that each event carries."""

    acknowledged: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Followed:
    """What the follower has written down: which events it has seen, and from where it goes on."""

    labels: set[str] = field(default_factory=set)
    cursor: Cursor = field(default_factory=Cursor)


def _draft(label: str, key: str | None) -> Draft:
    return Draft(type=HAPPENED, source="sim", data={"label": label}, idempotencykey=key)


class LedgerAppend:
    name = "ledger_append"
    promise = "an acknowledged event is in the ledger under one id, and no writer's numbers have a gap"
    profile = FaultProfile.of(fault_share=0.18, crash_share=0.02, stall_s=400.0)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        """Nothing is there at first."""

    def start(self, world: World, *, small: bool) -> None:
        world.notes["sent"] = Sent()
        world.notes["followed"] = Followed()
        if not small:
            world.spawn("follower", self._follow)
        for number in range(1 if small else 2):
            world.spawn(f"server{number}", lambda env: self._serve(env, env.entropy, small=small))
        for number in range(2):
            image = SeededEntropy(f"{world.seed}/image")
            world.spawn(f"twin{number}", lambda env, drawn=image: self._serve(env, drawn, small=small), lives=1)  # type: ignore[misc]

    async def _serve(self, env: Env, entropy: Entropy, *, small: bool) -> None:
        """Several calls at once in each round: they share segments."""
        store = env.store if small else FailingStore(env)
        appender = Appender(store, SCOPE, env.clock, entropy)
        for number in range(1 if small else 3):
            own = f"{env.name}/{number}"
            await asyncio.gather(
                self._send(env, appender, f"{own}/keyed", own),
                self._send(env, appender, f"everybody/{number}", f"everybody/{number}"),
                self._send(env, appender, f"{own}/disputed", f"disputed/{number}"),
            )
            if env.name.startswith("server"):
                await self._send_once(env, appender, f"{env.incarnation}/{number}/once")
        await appender.close()

    async def _send(self, env: Env, appender: Appender, label: str, key: str) -> None:
        """Send an event until it is acknowledged, always with the same key."""
        sent: Sent = env.world.notes["sent"]
        for _ in range(_TRIES_MAX):
            if label in sent.acknowledged and not label.startswith("everybody"):
                return
            try:
                await appender.append(Domain.EXECUTION, [_draft(label, key)])
            except (AskHistory, RetryLater):
                await env.clock.sleep(5.0)
                continue
            except ArcoError as error:
                violate(env.world, invariants.UNEXPECTED, f"{label}: {error.one_line()}")
                return
            sent.acknowledged.add(label)
            return

    async def _send_once(self, env: Env, appender: Appender, label: str) -> None:
        """Send an event that has no key: it is never sent again, and a refusal must be true."""
        sent: Sent = env.world.notes["sent"]
        try:
            await appender.append(Domain.EXECUTION, [_draft(label, None), _draft(f"{label}/too", None)])
        except AskHistory:
            return
        except RetryLater:
            sent.refused |= {label, f"{label}/too"}
            return
        sent.acknowledged |= {label, f"{label}/too"}

    async def _follow(self, env: Env) -> None:
        """Look now and then, and sweep in the end: more often than a writer may stall."""
        for number in range(8):
            with suppress(RetryLater):
                await _look(env, sweeps=number == 7)
            await env.clock.sleep(60.0)

    async def verify(self, world: World, env: Env) -> None:
        await _look(env, sweeps=False)
        segments = []
        async for entry in walk(env.store, "t/w/_catalog/ledger/"):
            key, found = parse(entry.key), await env.store.get(entry.key)
            if not isinstance(key, SegmentKey) or found is None:
                violate(world, invariants.UNEXPECTED, f"{entry.key} is no segment")
                continue
            try:
                segments.append(decode_segment(key, found.data))
            except CorruptObject as error:
                violate(world, invariants.NOT_TORN, error.message)
        _check_events(world, [event for segment in segments for event in segment.events])
        _check_writers(world, segments)


async def _look(env: Env, *, sweeps: bool) -> None:
    """What is new, one segment after the other; the place is written down up to the one before it."""
    followed: Followed = env.world.notes["followed"]
    tail = Tail(env.store, SCOPE, Domain.EXECUTION, env.clock, Cursor.decode(followed.cursor.encode()), recent_days=7)
    async for found in tail.sweep() if sweeps else tail.look():
        if isinstance(found, Unreadable):
            violate(env.world, invariants.NOT_TORN, found.error.message)
            continue
        followed.cursor = tail.cursor
        await env.store.head(str(found.key))  # what is done with it may fail, and whoever does it may die
        followed.labels |= {event.data["label"] for event in found.events}
    followed.cursor = tail.cursor


def _check_writers(world: World, segments: list[Segment]) -> None:
    by_writer = defaultdict(list)
    for segment in segments:
        by_writer[segment.writer_id].append(segment)
    for writer, its in by_writer.items():
        its.sort(key=lambda segment: segment.writer_seq)
        numbers = [segment.writer_seq for segment in its]
        if numbers != list(range(1, len(its) + 1)):
            violate(world, invariants.LEDGER_ORDERED, f"writer {writer} has the numbers {numbers}")
        positions = [event.position for segment in its for event in segment.events]
        if positions != sorted(set(positions)):
            violate(world, invariants.LEDGER_ORDERED, f"the positions of writer {writer} do not grow")


def _check_events(world: World, events: list[Event]) -> None:
    ids: dict[str, set[EventId]] = defaultdict(set)
    contents: dict[EventId, set[bytes]] = defaultdict(set)
    for event in events:
        ids[event.data["label"]].add(event.id)
        contents[event.id].add(canonical_bytes([event.type, event.source, event.idempotencykey, event.data]))
    sent: Sent = world.notes["sent"]
    for label in sorted(sent.acknowledged - ids.keys()):
        violate(world, invariants.NOTHING_LOST, f"{label} was acknowledged and is in no segment")
    followed: Followed = world.notes["followed"]
    for label in sorted(ids.keys() - followed.labels):
        violate(world, invariants.NOTHING_LOST, f"{label} is in a segment and whoever follows has not seen it")
    for label in sorted(sent.refused & ids.keys()):
        violate(world, invariants.OUTCOMES_TRUE, f"{label} was refused and is in a segment")
    for label, several in ids.items():
        if len(several) > 1:
            violate(world, invariants.NOTHING_DOUBLED, f"{label} is there under {len(several)} ids")
    for event_id, meanings in contents.items():
        if len(meanings) > 1:
            violate(world, invariants.ONE_MEANING, f"event {event_id} says {len(meanings)} different things")
