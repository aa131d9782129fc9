"""Appending events: many callers, few segments, and nobody is told before their events are durable.

Events that arrive while a segment is being written, or within a short pause before it, go out together in the next one. The
events of one call always share a segment: they are all stored or none is. Positions are given in the order of arrival, so
they grow along a writer's segments. Ingest reads nothing: no state, no earlier event, no list of keys.

After OutcomeUnknown the same drafts may be appended again if they carry ids or keys. A call that is cancelled may still
land, as one whose reply was lost.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, InvalidInput, OutcomeUnknown, Throttled, TooLarge, Unavailable
from arco.kernel.ids import EventId, UlidSource
from arco.kernel.limits import (
    LEDGER_SEGMENT_BYTES_MAX,
    LEDGER_SEGMENT_EVENTS_MAX,
    LEDGER_WAITING_BYTES_MAX,
)
from arco.kernel.position import HybridClock
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import encode
from arco.ledger.writer import SegmentWriter
from arco.storage.keys import Domain
from arco.storage.port import ObjectStore

_GATHER_S = 0.002


@dataclass(eq=False, slots=True)
class _Call:
    """The events of one call, as lines, and whom to tell."""

    lines: tuple[bytes, ...]
    size_bytes: int
    durable: asyncio.Future[None]


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
        self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy, *, gather_s: float = _GATHER_S
    ) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy
        self._gather_s = gather_s
        self._ulids = UlidSource(clock, entropy)
        self._positions = HybridClock(clock, entropy)
        self._lanes: dict[Domain, _Lane] = {}
        self._waiting_bytes = 0
        self._closed = False

    async def append(self, domain: Domain, drafts: Sequence[Draft]) -> None:
        """Append events to a domain; when this returns they are durable.

        OutcomeUnknown: they may be stored, now or later. Any other error: they are not, and never will be.
        """
        if self._closed:
            raise Unavailable("the ledger's appender is closed", hint="append through a server that is not stopping")
        if not drafts:
            return
        if len(drafts) > LEDGER_SEGMENT_EVENTS_MAX:
            raise TooLarge(f"{len(drafts)} events at once", hint=f"append at most {LEDGER_SEGMENT_EVENTS_MAX} at once")
        lines = tuple(self._line(domain, draft) for draft in drafts)
        size_bytes = sum(len(line) + 1 for line in lines)
        call = _Call(lines, size_bytes, asyncio.get_running_loop().create_future())
        self._admit(call)
        lane = self._lane(domain)
        lane.waiting.append(call)
        if lane.running is None or lane.running.done():
            lane.running = asyncio.get_running_loop().create_task(self._run(lane))
        await call.durable

    async def close(self) -> None:
        """Take no more events, and wait until those that were taken are stored or their callers know why not."""
        self._closed = True
        running = [lane.running for lane in self._lanes.values() if lane.running is not None]
        if running:
            await asyncio.wait(running)

    def _line(self, domain: Domain, draft: Draft) -> bytes:
        if draft.type.domain != domain:
            raise InvalidInput(f"{draft.type} is no event of the domain {domain}")
        event = seal(
            draft,
            self._scope,
            fresh_id=EventId(self._ulids.next()),
            position=self._positions.next(),
            now_ms=self._clock.now_ms(),
        )
        return encode(event)

    def _admit(self, call: _Call) -> None:
        if call.size_bytes > LEDGER_SEGMENT_BYTES_MAX:
            raise TooLarge(
                f"events of {call.size_bytes} bytes at once",
                hint=f"append at most {LEDGER_SEGMENT_BYTES_MAX} bytes at once",
            )
        if self._waiting_bytes + call.size_bytes > LEDGER_WAITING_BYTES_MAX:
            raise Throttled("more events wait to be stored than this process holds")
        self._waiting_bytes += call.size_bytes

    def _lane(self, domain: Domain) -> _Lane:
        if domain not in self._lanes:
            writer = SegmentWriter(self._store, self._scope, domain, self._clock, self._entropy)
            self._lanes[domain] = _Lane(writer)
        return self._lanes[domain]

    async def _run(self, lane: _Lane) -> None:
        await self._clock.sleep(self._gather_s)
        while lane.waiting:
            group = lane.take()
            error: ArcoError | None = None
            try:
                await lane.writer.write([line for call in group for line in call.lines])
                reach("ledger.segment_durable")
            except ArcoError as known:
                error = known
            except Exception as unforeseen:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
                error = OutcomeUnknown(f"a segment may be stored: {unforeseen!r}")
                error.__cause__ = unforeseen
            self._waiting_bytes -= sum(call.size_bytes for call in group)
            for call in group:
                _tell(call, error)


def _tell(call: _Call, error: ArcoError | None) -> None:
    """Settle a call, unless its caller has gone."""
    if call.durable.done():
        return
    if error is None:
        call.durable.set_result(None)
    else:
        call.durable.set_exception(error)
