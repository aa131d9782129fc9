"""Reading a domain of the ledger from its segments, oldest first, each event once.

Writers may store an event twice (a lost reply, a retry); the one with the first position counts. This reads everything there
is, so it is for small ledgers and for the tail that is not folded yet.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable

from arco.kernel.limits import LEDGER_READS_MAX
from arco.kernel.scope import Scope
from arco.ledger.envelope import Event
from arco.ledger.segment import decode_segment
from arco.storage.keys import Domain, SegmentKey, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import ObjectStore


async def segments(store: ObjectStore, scope: Scope, domain: Domain) -> AsyncIterator[SegmentKey]:
    """The names of all segments of a domain."""
    async for entry in walk(store, prefix_of(scope, "_catalog", "ledger", domain.value)):
        key = parse(entry.key)
        if isinstance(key, SegmentKey):
            yield key


async def events(store: ObjectStore, scope: Scope, domain: Domain) -> list[Event]:
    """Every event of a domain once, in the order of their positions."""
    found: dict[str, Event] = {}
    names = [key async for key in segments(store, scope, domain)]
    for start in range(0, len(names), LEDGER_READS_MAX):
        some = names[start : start + LEDGER_READS_MAX]
        for key, stored in zip(some, await asyncio.gather(*(store.get(str(key)) for key in some)), strict=True):
            if stored is None:
                continue  # moved aside between the listing and now
            _take(decode_segment(key, stored.data).events, found)
    return sorted(found.values(), key=lambda event: event.position)


def _take(events: Iterable[Event], found: dict[str, Event]) -> None:
    for event in events:
        known = found.get(event.id)
        if known is None or event.position < known.position:
            found[event.id] = event
