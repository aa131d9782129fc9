"""Following a domain of the ledger: every segment that was not seen before, wherever it turns up.

The failure this prevents (hazard 4), in order:
  1. a writer draws a name, and stalls before it stores the segment
  2. others store segments with greater names; a reader takes them, and remembers the greatest
  3. the writer wakes up; its segment lies below the mark, and the reader never looks there again

So nothing is remembered but what was seen. Of recent days the names are remembered, and each look lists these days. Of older
days only how many names there were, and a sum over them: a sweep lists all days, and where the sum differs the whole day is
read again. Whoever follows gets a segment at least once, and keeps one event of each id. Memory is bound by the segments of
some days and a few segments at a time, not by history. What must never enter: deciding by a clock that a segment is too old to
count; the clock only says which days are worth looking at often.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import msgspec

from arco.kernel.clock import Clock, utc_date
from arco.kernel.errors import ArcoError, CorruptObject, InvalidInput, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.limits import LEDGER_RECENT_DAYS_MAX, LEDGER_TAIL_READS_MAX
from arco.kernel.scope import Scope
from arco.ledger.reading import segments
from arco.ledger.segment import Segment, decode_segment
from arco.storage.keys import Domain, SegmentKey, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import ObjectStore

_SUM_MODULUS = 1 << 64


class OldDay(msgspec.Struct, frozen=True):
    """What is remembered of a day that is past: how many segments were seen, and a sum over their names in any order."""

    count: int = 0
    sum: str = "0"


class Cursor(msgspec.Struct, frozen=True):
    """Where a follower is: a value that can be stored, and gone on from by anybody."""

    recent: dict[str, tuple[str, ...]] = {}
    old: dict[str, OldDay] = {}

    def encode(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")

    @classmethod
    def decode(cls, data: bytes) -> "Cursor":
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(clip(f"not a cursor of the ledger: {error}"), hint="begin anew without one") from None

    @classmethod
    def of(cls, seen: Iterable[SegmentKey]) -> "Cursor":
        """Where somebody is who has seen these and no others."""
        days: dict[str, list[str]] = defaultdict(list)
        for key in seen:
            days[key.day].append(str(key.segment))
        return cls(recent={day: tuple(sorted(names)) for day, names in sorted(days.items())})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A segment that is damaged, or of a format that this version does not know. It is seen, and not understood."""

    key: SegmentKey
    error: ArcoError


Found = Segment | Unreadable


class Tail:
    """One follower of one domain. `recent_days` are listed at each look, today and tomorrow among them."""

    def __init__(
        self,
        store: ObjectStore,
        scope: Scope,
        domain: Domain,
        clock: Clock,
        cursor: Cursor | None = None,
        *,
        recent_days: int = 3,
    ) -> None:
        if not 1 <= recent_days <= LEDGER_RECENT_DAYS_MAX:
            raise InvalidInput(f"{recent_days} recent days", hint=f"1 to {LEDGER_RECENT_DAYS_MAX}")
        self._store = store
        self._scope = scope
        self._domain = domain
        self._clock = clock
        self._recent_days = recent_days
        begun = cursor or Cursor()
        self._recent: dict[str, set[str]] = {day: set(names) for day, names in begun.recent.items()}
        self._old = dict(begun.old)

    @property
    def cursor(self) -> Cursor:
        """Everything up to the last segment after which another one was asked for."""
        recent = {day: tuple(sorted(names)) for day, names in sorted(self._recent.items()) if names}
        return Cursor(recent, dict(sorted(self._old.items())))

    async def look(self) -> AsyncIterator[Found]:
        """What is new in recent days. A segment counts as seen when the next one is asked for. Who begins anew sweeps first."""
        for day in self._days():
            async for found in self._day(day, [key async for key in self._listed(day)]):
                yield found
        self._forget_names()

    async def sweep(self) -> AsyncIterator[Found]:
        """What is new anywhere, however late it came. A day that is no longer recent is read whole if it has changed."""
        by_day: dict[str, list[SegmentKey]] = defaultdict(list)
        async for key in segments(self._store, self._scope, self._domain):
            if key.day not in by_day:
                # Names come day by day, so no more than one day is held at a time.
                async for found in self._closed(by_day):
                    yield found
            by_day[key.day].append(key)
        async for found in self._closed(by_day):
            yield found

    async def _closed(self, by_day: dict[str, list[SegmentKey]]) -> AsyncIterator[Found]:
        for day in sorted(by_day):
            async for found in self._day(day, by_day.pop(day)):
                yield found
            self._forget_names()

    async def _day(self, day: str, listed: Sequence[SegmentKey]) -> AsyncIterator[Found]:
        remembered = self._old.get(day)
        if remembered is not None:
            now = _summed(str(key.segment) for key in listed)
            if now == remembered:
                return
            async for _, found in self._read(listed):
                if found is not None:
                    yield found
            self._old[day] = now
            return
        seen = self._recent.setdefault(day, set())
        async for key, found in self._read([key for key in listed if key.segment not in seen]):
            if found is not None:
                yield found
            seen.add(str(key.segment))

    async def _read(self, keys: Sequence[SegmentKey]) -> AsyncIterator[tuple[SegmentKey, Found | None]]:
        """Segments in the order of their names; None for one that was moved aside since it was listed."""
        for start in range(0, len(keys), LEDGER_TAIL_READS_MAX):
            some = keys[start : start + LEDGER_TAIL_READS_MAX]
            stored = await asyncio.gather(*(self._store.get(str(key)) for key in some))
            for key, one in zip(some, stored, strict=True):
                yield key, None if one is None else _decoded(key, one.data)

    async def _listed(self, day: str) -> AsyncIterator[SegmentKey]:
        async for entry in walk(self._store, prefix_of(self._scope, "_catalog", "ledger", self._domain.value, day)):
            key = parse(entry.key)
            if isinstance(key, SegmentKey):
                yield key

    def _days(self) -> list[str]:
        """Recent days, oldest first; tomorrow is one of them, for writers whose clock is ahead."""
        today = date.fromisoformat(utc_date(self._clock.now_ms()))
        near = {str(today + timedelta(days=1 - back)) for back in range(self._recent_days + 1)}
        return sorted(near | self._recent.keys())

    def _forget_names(self) -> None:
        """Of days that are past, a sum is enough."""
        today = date.fromisoformat(utc_date(self._clock.now_ms()))
        first = str(today - timedelta(days=self._recent_days - 1))
        for day in [day for day in self._recent if day < first]:
            names = self._recent.pop(day)
            if names:
                self._old[day] = _summed(names)


def _decoded(key: SegmentKey, data: bytes) -> Found:
    try:
        return decode_segment(key, data)
    except (CorruptObject, UnknownFormat) as error:
        return Unreadable(key, error)


def _summed(names: Iterable[str]) -> OldDay:
    count, total = 0, 0
    for name in names:
        count += 1
        total += int(fingerprint("segment seen", name)[:16], 16)
    return OldDay(count, str(total % _SUM_MODULUS))
