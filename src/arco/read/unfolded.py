"""Segments of the ledger that are not folded yet, beside the state that has all the others.

The failure this prevents, in order:
  1. the state is read, and names what was consumed
  2. a folder consumes one segment more, and it is moved aside
  3. the ledger is listed: the segment is neither there, nor in the state that was read
So the state is looked at again after the ledger was listed: if it stands where it stood, nothing was consumed and moved in
between; otherwise once more, on the new state. Segments that are moved after that lie in the archive, and are read there.

What must never enter: what segments say.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from arco.fold.consumed import ConsumedLists
from arco.fold.finding import Finder, key_of
from arco.fold.heads import Heads
from arco.fold.manifests import Manifest
from arco.kernel.limits import FRESH_LOOKS_MAX, LEDGER_READS_MAX
from arco.ledger.reading import read_at
from arco.storage.keys import Head, SegmentKey

S = TypeVar("S")
T = TypeVar("T")


async def on_steady_ground(
    stands: Callable[[], Awaitable[S]],
    look: Callable[[S], Awaitable[T]],
    is_same: Callable[[S, S], bool],
) -> tuple[S, T] | None:
    """What stands, and what was seen beside it while it stood. None: it moved on at every look."""
    before = await stands()
    for _ in range(FRESH_LOOKS_MAX):
        seen = await look(before)
        after = await stands()
        if is_same(before, after):
            return before, seen
        before = after
    return None


class Unfolded:
    """What the heads of one workspace have not consumed. What a manifest has consumed is remembered."""

    def __init__(self, heads: Heads, lists: ConsumedLists) -> None:
        self._store = heads.store
        self._lists = lists
        self._finder = Finder(heads.store, heads.scope, lists, heads.clock, heads.entropy, listing=True)

    async def segments(self, head: Head, manifest: Manifest | None) -> list[SegmentKey]:
        """Those that a head has not consumed which lie in the ledger now: of use while the head stands where it stood."""
        consumed = await self._lists.of(head, manifest)
        names = (await self._finder.find(head, consumed, receipts=False)).segments
        keys = (key_of(self._lists.full(name)) for name in names)
        return [key for key in keys if isinstance(key, SegmentKey)]

    async def read(self, keys: Sequence[SegmentKey]) -> AsyncIterator[tuple[SegmentKey, bytes]]:
        """The segments one by one, in this order, wherever each lies by now."""
        for start in range(0, len(keys), LEDGER_READS_MAX):
            some = keys[start : start + LEDGER_READS_MAX]
            for key, data in zip(
                some, await asyncio.gather(*(read_at(self._store, key, str(key)) for key in some)), strict=True
            ):
                yield key, data
