"""Moving consumed segments aside: which may be moved, and the copy. Taking the old object away is upkeep's, and `moving.py`'s.

A move is a copy, then a delete, and may stop anywhere (hazard 15): what is there twice is folded once, because the consumed set
decides, and a rebuild reads both places by the id. A segment may be moved when every head that reads its domain has consumed it,
as the root names the heads: readers begin there, and what a cut does not have they look for in the ledger.
"""

from collections.abc import AsyncIterator

from arco.fold.consumed import ConsumedLists
from arco.fold.heads import Heads
from arco.fold.tables import FOLDED_FROM
from arco.kernel.errors import CorruptObject, InvalidInput, OutcomeUnknown
from arco.kernel.ids import clip
from arco.storage.keys import ArchivedSegmentKey, Domain, SegmentKey, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import Absent, Lost, Unknown
from arco.storage.readback import put_settled


async def movable(
    heads: Heads, lists: ConsumedLists, domain: Domain, before_ms: int | None = None
) -> AsyncIterator[SegmentKey]:
    """The segments of a domain that every head has consumed; of those written before a moment, if one is given."""
    root = (await heads.read_root()).manifest
    named = {} if root is None else {one.head: one.manifest for one in root.heads}
    readers = [head for head, domains in FOLDED_FROM.items() if domain in domains]
    consumed = [await lists.of(head, await heads.manifest(head, named[head])) for head in readers if head in named]
    if not readers or len(consumed) < len(readers):
        return
    async for entry in walk(heads.store, prefix_of(heads.scope, "_catalog", "ledger", domain.value)):
        if before_ms is not None and entry.modified_ms >= before_ms:
            continue
        if not all(lists.short(entry.key) in one for one in consumed):
            continue
        key = parse(entry.key)
        if isinstance(key, SegmentKey):
            yield key


async def copy_aside(heads: Heads, key: SegmentKey) -> bool:
    """Copy a segment to the archive. True: the copy is there byte for byte, and the segment may be deleted."""
    found = await heads.store.get(str(key))
    if found is None:
        return False
    aside = str(archived(key))
    outcome = await put_settled(heads.store, aside, found.data, Absent(), clock=heads.clock, entropy=heads.entropy)
    if isinstance(outcome, Unknown):
        raise OutcomeUnknown(f"{aside} may be stored: {outcome.reason}", hint="move it again")
    if isinstance(outcome, Lost):
        copy = await heads.store.get(aside)
        if copy is None or copy.data != found.data:
            raise CorruptObject(f"{aside} is no copy of {key}")
    return True


def archived(key: SegmentKey) -> ArchivedSegmentKey:
    return ArchivedSegmentKey(key.scope, key.domain, key.day, key.segment)


def original(name: str) -> SegmentKey:
    """The key that a segment was written under, wherever it lies now: what its header is checked against."""
    key = parse(name)
    if isinstance(key, ArchivedSegmentKey):
        return SegmentKey(key.scope, key.domain, key.day, key.segment)
    if not isinstance(key, SegmentKey):
        raise InvalidInput(f"{clip(name)!r} is no segment")
    return key
