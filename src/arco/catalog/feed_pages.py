"""The feed as it is stored: pages of events, each written once under the next number, and checkpoints.

Page n is decided on what the pages 1 to n-1 hold, and on nothing else; losing its number voids the decision. So any number of
processes write one feed, and what a reader was shown once stays where it was. Pages are kept. A checkpoint says what the pages up
to its number hold, so that a process that starts need not read them all.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from arco.catalog.untold import Mark
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.limits import FEED_READS_MAX
from arco.kernel.scope import Scope
from arco.storage.keys import FeedCheckpointKey, FeedPageKey, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import Absent, ObjectStore, Outcome
from arco.storage.readback import put_settled

T = TypeVar("T", "FeedTaken", "FeedPage", "FeedCheckpoint")


class FeedTaken(msgspec.Struct, frozen=True, kw_only=True):
    """What a page settles, without its events. `receipts` are those that were taken up with it, also by no event; `tables` their
    last numbers.

    `gaps` are the numbers below these that nobody was told of, whole, of each table for which this page changes them.
    """

    format: str = "arco.feed_page"
    format_version: int = 1
    number: int
    at_ms: int
    names: Mark
    receipts: tuple[str, ...]
    tables: dict[str, int]
    gaps: dict[str, tuple[int, ...]] = {}


class FeedPage(FeedTaken, frozen=True, kw_only=True):
    """Some events, in order."""

    events: tuple[dict[str, Any], ...]


class FeedCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What the pages up to `number` hold. `receipts` leaves out those that are gone from the store."""

    format: str = "arco.feed_checkpoint"
    format_version: int = 1
    number: int
    names: Mark
    receipts: tuple[str, ...]
    tables: dict[str, int]
    gaps: dict[str, tuple[int, ...]] = {}


@dataclass(slots=True)
class Fed:
    """What the feed holds, as far as this process has read it. Receipts are spelled without their folder."""

    number: int = 0
    names: Mark = field(default_factory=Mark)
    receipts: set[str] = field(default_factory=set)
    tables: dict[str, int] = field(default_factory=dict)
    gaps: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def take(self, page: FeedTaken) -> None:
        """The next page. One that was taken before changes nothing."""
        if page.number != self.number + 1:
            return
        self.number = page.number
        self.names = page.names
        self.receipts.update(page.receipts)
        self.tell(page.tables, page.gaps)

    def tell(self, tables: dict[str, int], gaps: dict[str, tuple[int, ...]]) -> None:
        """How far the tables of a page were told by it."""
        self.tables.update(tables)
        self.gaps = {uuid: numbers for uuid, numbers in (self.gaps | gaps).items() if numbers}


class FeedPages:
    """The pages and checkpoints of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy

    async def read(self, number: int) -> FeedPage | None:
        return await self._read(number, FeedPage)

    async def _read(self, number: int, kind: type[T]) -> T | None:
        key = str(FeedPageKey(self._scope, number))
        found = await self._store.get(key)
        return None if found is None else decode_fed(found.data, key, kind)

    async def read_on(self, fed: Fed) -> None:
        """Take in every page that is there after what is known."""
        while True:
            numbers = range(fed.number + 1, fed.number + 1 + FEED_READS_MAX)
            # One alone first: mostly there is none.
            first = await self._read(numbers[0], FeedTaken)
            if first is None:
                return
            rest = await asyncio.gather(*(self._read(number, FeedTaken) for number in numbers[1:]))
            for page in (first, *rest):
                if page is None:
                    return
                fed.take(page)

    async def append(self, page: FeedPage) -> Outcome:
        """Write a page under its number, if nobody has."""
        return await self._put(str(FeedPageKey(self._scope, page.number)), page)

    async def opened(self) -> Fed:
        """What the last checkpoint says; nothing without one."""
        last: FeedCheckpointKey | None = None
        async for entry in walk(self._store, prefix_of(self._scope, "_catalog", "feed", "checkpoints")):
            key = parse(entry.key)
            if isinstance(key, FeedCheckpointKey):
                last = key if last is None or key.number > last.number else last
        found = None if last is None else await self._store.get(str(last))
        if found is None:
            return Fed()
        kept = decode_fed(found.data, str(last), FeedCheckpoint)
        return Fed(kept.number, kept.names, set(kept.receipts), dict(kept.tables), dict(kept.gaps))

    async def write_checkpoint(self, fed: Fed) -> None:
        """Whatever comes of it: without it the next process reads more pages."""
        kept = FeedCheckpoint(
            number=fed.number, names=fed.names, receipts=tuple(sorted(fed.receipts)), tables=fed.tables, gaps=fed.gaps
        )
        await self._put(str(FeedCheckpointKey(self._scope, fed.number)), kept)

    async def _put(self, key: str, document: msgspec.Struct) -> Outcome:
        data = msgspec.json.encode(document, order="deterministic")
        return await put_settled(self._store, key, data, Absent(), clock=self._clock, entropy=self._entropy)


def size_of(events: Sequence[dict[str, Any]]) -> int:
    """Their bytes, as they are stored and as they are answered."""
    return len(msgspec.json.encode(events))


def decode_fed(data: bytes, key: str, kind: type[T]) -> T:
    try:
        found = msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is no {kind.__name__}: {error}") from error
    if found.format_version != 1:
        raise UnknownFormat(f"{key} has format version {found.format_version}")
    return found
