"""Reading a domain of the ledger from its segments, oldest first, each event once.

Writers may store an event twice (a lost reply, a retry); the one with the first position counts. This reads everything there
is, so it is for small ledgers and for the tail that is not folded yet.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable

from arco.kernel.errors import CorruptObject
from arco.kernel.limits import LEDGER_READS_MAX
from arco.kernel.scope import Scope
from arco.ledger.envelope import Event
from arco.ledger.segment import decode_segment
from arco.storage.keys import ArchivedSegmentKey, Domain, SegmentKey, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import ObjectStore


async def segments(store: ObjectStore, scope: Scope, domain: Domain) -> AsyncIterator[SegmentKey]:
    """The names of all segments of a domain."""
    async for entry in walk(store, prefix_of(scope, "_catalog", "ledger", domain.value)):
        key = parse(entry.key)
        if isinstance(key, SegmentKey):
            yield key


async def everywhere(store: ObjectStore, scope: Scope, domain: Domain) -> dict[SegmentKey, str]:
    """All segments of a domain, also those that were moved to the archive, and where each lies.

    The ledger is listed before the archive: a segment that is moved meanwhile is copied first, so one of the two shows it.
    """
    found = {key: str(key) async for key in segments(store, scope, domain)}
    async for entry in walk(store, prefix_of(scope, "_catalog", "archive", domain.value)):
        key = parse(entry.key)
        if isinstance(key, ArchivedSegmentKey):
            found[SegmentKey(key.scope, key.domain, key.day, key.segment)] = entry.key
    return found


async def events(store: ObjectStore, scope: Scope, domain: Domain) -> list[Event]:
    """Every event of a domain once, in the order of their positions, archived ones too."""
    found: dict[str, Event] = {}
    places = list((await everywhere(store, scope, domain)).items())
    for start in range(0, len(places), LEDGER_READS_MAX):
        some = places[start : start + LEDGER_READS_MAX]
        for key, data in zip(some, await asyncio.gather(*(read_at(store, *one) for one in some)), strict=True):
            _take(decode_segment(key[0], data).events, found)
    return sorted(found.values(), key=lambda event: event.position)


async def read_at(store: ObjectStore, key: SegmentKey, place: str) -> bytes:
    """A segment that was moved aside between the listing and now lies in the archive."""
    stored = await store.get(place)
    if stored is None:
        stored = await store.get(str(ArchivedSegmentKey(key.scope, key.domain, key.day, key.segment)))
    if stored is None:
        raise CorruptObject(f"{place} was listed and is gone", hint="nobody deletes segments: restore it from a copy")
    return stored.data


def _take(events: Iterable[Event], found: dict[str, Event]) -> None:
    for event in events:
        known = found.get(event.id)
        if known is None or event.position < known.position:
            found[event.id] = event
