"""Appending events: many callers, few segments, and nobody is told before their events are durable.

Events that arrive while a segment is being written, or within a short pause before it, go out together in the next one. The
events of one call always share a segment: they are all stored or none is. Positions are given in the order of arrival, so
they grow along a writer's segments. Ingest reads nothing: no state, no earlier event, no list of keys.

Events of several domains that are given at once are all checked before any is stored; each domain is a segment of its own,
and one may be stored though another is not. Whoever is told so sends all of them again.

After OutcomeUnknown the same drafts may be appended again if they carry ids or keys. A call that is cancelled may still
land, as one whose reply was lost.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import (
    ArcoError,
    FixRequest,
    InvalidInput,
    InvalidItems,
    ItemProblem,
    OutcomeUnknown,
    Throttled,
    TooLarge,
    Unavailable,
)
from arco.kernel.ids import EventId, UlidSource
from arco.kernel.limits import (
    LEDGER_SEGMENT_BYTES_MAX,
    LEDGER_SEGMENT_EVENTS_MAX,
    LEDGER_WAITING_BYTES_MAX,
)
from arco.kernel.position import HybridClock, Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import Event, EventType, encode
from arco.ledger.writer import SegmentWriter
from arco.storage.keys import Domain, SegmentKey
from arco.storage.port import ObjectStore

_GATHER_S = 0.002

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Appended:
    """An event that is durable, where it stands, and in which segment. Sent again it has the same id, and the first counts."""

    id: EventId
    type: EventType
    position: Position
    segment: SegmentKey


@dataclass(frozen=True, slots=True)
class _Line:
    domain: Domain
    data: bytes
    event: Event

    def appended(self, segments: Mapping[Domain, SegmentKey]) -> Appended:
        return Appended(self.event.id, self.event.type, self.event.position, segments[self.domain])


@dataclass(eq=False, slots=True)
class _Call:
    """The events of one call, as lines, and whom to tell."""

    lines: tuple[bytes, ...]
    size_bytes: int
    durable: asyncio.Future[SegmentKey]


@dataclass(slots=True)
class _Lane:
    """One domain: what waits, and who writes it. Segments of a lane go out one after the other."""

    writer: SegmentWriter
    waiting: deque[_Call] = field(default_factory=deque)
    running: asyncio.Task[None] | None = None

    def take(self) -> list[_Call]:
        """The next calls that fit into one segment, in order."""
        group = [self.waiting.popleft()]
        events, size_bytes = len(group[0].lines), group[0].size_bytes
        while self.waiting:
            events += len(self.waiting[0].lines)
            size_bytes += self.waiting[0].size_bytes
            if events > LEDGER_SEGMENT_EVENTS_MAX or size_bytes > LEDGER_SEGMENT_BYTES_MAX:
                break
            group.append(self.waiting.popleft())
        return group


class Appender:
    """The one place of a process that appends to a workspace's ledger."""

    def __init__(
        self,
        store: ObjectStore,
        scope: Scope,
        clock: Clock,
        entropy: Entropy,
        *,
        gather_s: float = _GATHER_S,
        stored: Callable[[SegmentKey], None] = lambda _key: None,
    ) -> None:
        """`stored` hears of every segment that is durable."""
        self._store = store
        self._hears = stored
        self._scope = scope
        self._clock = clock
        self._entropy = entropy
        self._gather_s = gather_s
        self._ulids = UlidSource(clock, entropy)
        self._positions = HybridClock(clock, entropy)
        self._lanes: dict[Domain, _Lane] = {}
        self._waiting_bytes = 0
        self._closed = False

    async def append(self, domain: Domain, drafts: Sequence[Draft]) -> tuple[Appended, ...]:
        """Append events to a domain; when this returns they are durable.

        OutcomeUnknown: they may be stored, now or later. Any other error: they are not, and never will be.
        """
        self._check_open()
        for draft in drafts:
            if draft.type.domain != domain:
                raise InvalidInput(f"{draft.type} is no event of the domain {domain}")
        lines = [self._line(draft) for draft in drafts]
        segments = await self._stored(lines)
        return tuple(line.appended(segments) for line in lines)

    async def append_items(
        self, items: Sequence[T], drafts_of: Callable[[T], Sequence[Draft]]
    ) -> tuple[tuple[Appended, ...], ...]:
        """Append the events of several items, of whatever domains; when this returns all are durable.

        InvalidItems has everything that is wrong, by the place of the item. OutcomeUnknown: some may be stored, now or later.
        Any other error: none is, and never will be.
        """
        self._check_open()
        made: list[list[_Line]] = []
        problems: list[ItemProblem] = []
        # Without a pause up to where the lines wait for their segment: positions grow along it.
        for index, item in enumerate(items):
            try:
                made.append([self._line(draft) for draft in drafts_of(item)])
            except FixRequest as error:
                problems.append(ItemProblem(index, error.code, error.one_line()))
        if problems:
            raise InvalidItems(f"{len(problems)} of {len(items)} events are wrong; none was taken", problems)
        segments = await self._stored([line for lines in made for line in lines])
        return tuple(tuple(line.appended(segments) for line in lines) for lines in made)

    @property
    def is_idle(self) -> bool:
        """Whether everything that was taken is stored, or its callers know why not."""
        return all(lane.running is None or lane.running.done() for lane in self._lanes.values())

    async def close(self) -> None:
        """Take no more events, and wait until those that were taken are stored or their callers know why not."""
        self._closed = True
        running = [lane.running for lane in self._lanes.values() if lane.running is not None]
        if running:
            await asyncio.wait(running)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the ledger's appender is closed", hint="append through a server that is not stopping")

    def _line(self, draft: Draft) -> _Line:
        event = seal(
            draft,
            self._scope,
            fresh_id=draft.id or EventId(self._ulids.next()),
            position=self._positions.next(),
            now_ms=self._clock.now_ms(),
        )
        try:
            domain = Domain(event.type.domain)
        except ValueError:
            raise InvalidInput(f"{event.type} belongs to no domain of the ledger") from None
        return _Line(domain, encode(event), event)

    async def _stored(self, lines: Sequence[_Line]) -> dict[Domain, SegmentKey]:
        """Let lines wait for their segments, all or none, and wait with them: the segment of each domain."""
        by_domain: dict[Domain, list[bytes]] = defaultdict(list)
        for line in lines:
            by_domain[line.domain].append(line.data)
        loop = asyncio.get_running_loop()
        calls = {
            domain: _Call(tuple(its), sum(len(line) + 1 for line in its), loop.create_future())
            for domain, its in by_domain.items()
        }
        self._admit(calls.values())
        for domain, call in calls.items():
            lane = self._lane(domain)
            lane.waiting.append(call)
            if lane.running is None or lane.running.done():
                lane.running = loop.create_task(self._run(lane))
        outcomes = await asyncio.gather(*(call.durable for call in calls.values()), return_exceptions=True)
        errors = [one for one in outcomes if isinstance(one, BaseException)]
        if errors and len(errors) < len(outcomes):
            raise OutcomeUnknown("events of one domain are stored, and those of another are perhaps not") from errors[0]
        for error in sorted(errors, key=lambda one: not isinstance(one, OutcomeUnknown)):
            raise error
        return {domain: call.durable.result() for domain, call in calls.items()}

    def _admit(self, calls: Collection[_Call]) -> None:
        for call in calls:
            if len(call.lines) > LEDGER_SEGMENT_EVENTS_MAX:
                raise TooLarge(
                    f"{len(call.lines)} events at once", hint=f"append at most {LEDGER_SEGMENT_EVENTS_MAX} at once"
                )
            if call.size_bytes > LEDGER_SEGMENT_BYTES_MAX:
                raise TooLarge(
                    f"events of {call.size_bytes} bytes at once",
                    hint=f"append at most {LEDGER_SEGMENT_BYTES_MAX} bytes at once",
                )
        size_bytes = sum(call.size_bytes for call in calls)
        if self._waiting_bytes + size_bytes > LEDGER_WAITING_BYTES_MAX:
            raise Throttled("more events wait to be stored than this process holds")
        self._waiting_bytes += size_bytes

    def _lane(self, domain: Domain) -> _Lane:
        if domain not in self._lanes:
            writer = SegmentWriter(self._store, self._scope, domain, self._clock, self._entropy)
            self._lanes[domain] = _Lane(writer)
        return self._lanes[domain]

    async def _run(self, lane: _Lane) -> None:
        await self._clock.sleep(self._gather_s)
        while lane.waiting:
            group = lane.take()
            outcome: SegmentKey | ArcoError
            try:
                outcome = await lane.writer.write([line for call in group for line in call.lines])
                reach("ledger.segment_durable")
                self._hears(outcome)
            except ArcoError as known:
                outcome = known
            except Exception as unforeseen:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
                outcome = OutcomeUnknown(f"a segment may be stored: {unforeseen!r}")
                outcome.__cause__ = unforeseen
            self._waiting_bytes -= sum(call.size_bytes for call in group)
            for call in group:
                _tell(call, outcome)


def _tell(call: _Call, outcome: SegmentKey | ArcoError) -> None:
    """Settle a call, unless its caller has gone."""
    if call.durable.done():
        return
    if isinstance(outcome, ArcoError):
        call.durable.set_exception(outcome)
    else:
        call.durable.set_result(outcome)
