"""What a workspace's ledger holds: segments, events and bytes by domain and day, its writers, and what is wrong with it.

Every segment is read, a few at a time, so the cost is that of the whole ledger. What must never enter: what events mean.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec

from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.ids import WriterId
from arco.kernel.limits import LEDGER_TAIL_READS_MAX
from arco.kernel.scope import Scope
from arco.ledger.event_types import SetAside, read_data
from arco.ledger.reading import everywhere, read_at
from arco.ledger.segment import Segment, decode_segment
from arco.ledger.segment_numbers import Ranges, gaps
from arco.storage.keys import Domain, SegmentKey
from arco.storage.port import ObjectStore


class Amount(msgspec.Struct):
    """How much there is. Events are counted as they are stored; one that was sent twice is stored twice."""

    segments: int = 0
    events: int = 0
    bytes: int = 0

    def add(self, events: int, size_bytes: int) -> None:
        self.segments += 1
        self.events += events
        self.bytes += size_bytes


class DayAmount(Amount, kw_only=True):
    day: str


class Gap(msgspec.Struct, frozen=True):
    """Numbers that a writer has given and no segment has, as ranges, both ends included."""

    writer: str
    missing: Ranges


class AsideCount(msgspec.Struct, frozen=True):
    """Events of one type that this version does not understand, and why."""

    type: str
    reason: str
    events: int


class Damage(msgspec.Struct, frozen=True):
    segment: str
    message: str


class DomainStats(Amount, kw_only=True):
    """One domain. `archived` are those of its segments that upkeep moved to the archive. Nothing of it is kept."""

    domain: str
    archived: int
    writers: int
    days: list[DayAmount]
    gaps: list[Gap]
    set_aside: list[AsideCount]
    damaged: list[Damage]

    @property
    def is_whole(self) -> bool:
        return not self.gaps and not self.damaged


@dataclass(slots=True)
class _Count:
    days: dict[str, DayAmount] = field(default_factory=dict)
    seen: set[tuple[WriterId, int]] = field(default_factory=set)
    aside: Counter[tuple[str, str]] = field(default_factory=Counter)
    damaged: list[Damage] = field(default_factory=list)

    def take(self, key: SegmentKey, data: bytes) -> None:
        day = self.days.setdefault(key.day, DayAmount(day=str(key.day)))
        try:
            segment = decode_segment(key, data)
        except (CorruptObject, UnknownFormat) as error:
            day.add(0, len(data))
            self.damaged.append(Damage(str(key), error.message))
            return
        day.add(len(segment.events), len(data))
        self._look_into(segment)

    def _look_into(self, segment: Segment) -> None:
        self.seen.add((segment.writer_id, segment.writer_seq))
        for event in segment.events:
            read = read_data(event)
            if isinstance(read, SetAside):
                self.aside[str(read.type), read.reason.value] += 1


async def domain_stats(store: ObjectStore, scope: Scope, domain: Domain) -> DomainStats:
    """What one domain holds now."""
    count = _Count()
    archived = 0
    async for key, place, data in _objects(store, scope, domain):
        count.take(key, data)
        archived += place != str(key)
    days = [count.days[day] for day in sorted(count.days)]
    return DomainStats(
        domain=domain.value,
        segments=sum(day.segments for day in days),
        events=sum(day.events for day in days),
        bytes=sum(day.bytes for day in days),
        archived=archived,
        writers=len({writer for writer, _ in count.seen}),
        days=days,
        gaps=[Gap(str(writer), missing) for writer, missing in gaps(count.seen).items()],
        set_aside=[AsideCount(*what, number) for what, number in sorted(count.aside.items())],
        damaged=count.damaged,
    )


async def _objects(store: ObjectStore, scope: Scope, domain: Domain) -> AsyncIterator[tuple[SegmentKey, str, bytes]]:
    places = list((await everywhere(store, scope, domain)).items())
    for start in range(0, len(places), LEDGER_TAIL_READS_MAX):
        some = places[start : start + LEDGER_TAIL_READS_MAX]
        for (key, place), data in zip(some, await asyncio.gather(*(read_at(store, *one) for one in some)), strict=True):
            yield key, place, data
