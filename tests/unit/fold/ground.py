"""A workspace in memory with folders that work in plain Python, and somebody who writes segments and receipts into it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from arco.fold.archiving import copy_aside, movable
from arco.fold.folding import Folding, Settings, Tell
from arco.fold.heads import Heads
from arco.fold.joins import joined
from arco.fold.manifests import Manifest
from arco.fold.receipt_events import ReceiptEvents
from arco.kernel.clock import utc_date
from arco.kernel.entropy import Entropy, SeededEntropy
from arco.kernel.ids import EventId, SegmentId, TableUuid, UlidSource, WriterId
from arco.kernel.position import HybridClock
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import encode
from arco.ledger.receipts import Published, Receipt, Source, commit_key, receipt_name
from arco.ledger.segment import encode_segment
from arco.storage.keys import Day, Domain, Head, MetadataHash, Phase, SegmentKey, Slug, TableMetadataKey
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Object, Page
from arco_sim.scenarios.fold_work import HAPPENED, SCOPE, TABLES, PlainWork
from stand_ins.hand_clock import HandClock

TABLE = TableUuid("0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40")
HEAD = Head.ICEBERG


class Store(MemoryStore):
    """A store that counts requests and does something else just before one of them."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__(clock)
        self.requests: list[tuple[str, str]] = []
        self.before: Callable[[str, str], Awaitable[None]] | None = None

    async def _asked(self, what: str, key: str) -> None:
        self.requests.append((what, key))
        if self.before is not None:
            hook, self.before = self.before, None
            try:
                await hook(what, key)
            finally:
                self.before = hook

    async def get(self, key: str) -> Object | None:
        await self._asked("get", key)
        return await super().get(key)

    async def head(self, key: str) -> Any:
        await self._asked("head", key)
        return await super().head(key)

    async def put(self, key: str, data: bytes, condition: Any) -> Any:
        await self._asked("put", key)
        return await super().put(key, data, condition)

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        await self._asked("list", prefix)
        return await super().list_page(prefix, after, limit)

    def named(self, part: str) -> list[str]:
        return sorted(key for key in self._objects if part in key)

    def bytes_of(self, key: str) -> bytes:
        return self._objects[key].data

    async def damage(self, key: str) -> None:
        data = self.bytes_of(key)
        await self.delete(key)
        await MemoryStore.put(self, key, data[:-2] + b" " + data[-1:], Absent())


@dataclass(slots=True)
class Place:
    """What a process has."""

    store: Store
    clock: HandClock
    entropy: Entropy


class Ground:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = Store(self.clock)
        self.entropy = SeededEntropy(1)
        self.ulids = UlidSource(self.clock, self.entropy)
        self.positions = HybridClock(self.clock, self.entropy)
        self.writer = WriterId(self.ulids.next())
        self.numbers = 0

    def folding(self, seed: int = 1, tell: Tell | None = None, **settings: Any) -> Folding:
        """A folder of its own process."""
        place = Place(self.store, self.clock, SeededEntropy(f"folder {seed}"))
        heads = Heads(self.store, SCOPE, self.clock, place.entropy)
        receipts = ReceiptEvents(self.store, SCOPE, self.metadata, self.clock, place.entropy)
        work = PlainWork(place)  # type: ignore[arg-type]
        return Folding(heads, work, replace(Settings(), **settings), receipts=receipts, tell=tell)

    async def metadata(self, location: str) -> bytes | None:
        found = await self.store.get(location)
        return None if found is None else found.data

    async def append(
        self,
        *values: str,
        number: int | None = None,
        writer: WriterId | None = None,
        domain: Domain = Domain.ICEBERG,
        **data: Any,
    ) -> str:
        """A segment with one event for each value."""
        self.clock.at_ms += 1
        self.numbers += number is None
        segment = SegmentId(self.ulids.next())
        key = SegmentKey(SCOPE, domain, Day(utc_date(segment.time_ms)), segment)
        lines = []
        for value in values:
            draft = Draft(type=HAPPENED, source="test", data={"thing": value[0], "value": value} | data)
            fresh, position = EventId(self.ulids.next()), self.positions.next()
            lines.append(encode(seal(draft, SCOPE, fresh_id=fresh, position=position, now_ms=self.clock.now_ms())))
        encoded = encode_segment(key, writer or self.writer, number or self.numbers, lines)
        await MemoryStore.put(self.store, str(key), encoded, Absent())
        return str(key)

    async def commit(self, number: int, document: dict[str, Any] | None, **facts: Any) -> str:
        """A commit as the catalog leaves it: a metadata file and a receipt."""
        location = metadata_location(number)
        if document is not None:
            await MemoryStore.put(self.store, location, msgspec.json.encode(document), Absent())
        previous = metadata_location(number - 1) if number else None
        commit = Published(
            "e", number, location, previous, facts.get("snapshot"), self.clock.now_ms(), Source("servo", "me")
        )
        key = commit_key(location, number)
        receipt = Receipt("arco.receipt", 1, Phase.COMMITTED, str(TABLE), str(key), commit)
        name = receipt_name(SCOPE, Phase.COMMITTED, key, commit.at_ms)
        await MemoryStore.put(self.store, name, msgspec.json.encode(receipt), Absent())
        return name

    async def move_consumed(self, folding: Folding) -> int:
        """What the root, brought up to date, says that everybody has consumed."""
        await folding.heads.publish_cut()
        moved = 0
        async for key in movable(folding.heads, folding.lists, Domain.ICEBERG):
            if await copy_aside(folding.heads, key):
                await self.store.delete(str(key))
                moved += 1
        return moved

    async def things(self, manifest: Manifest | None) -> dict[str, tuple[str, str]]:
        """The first and the last value of every thing, as a manifest's files say."""
        assert manifest is not None
        state: Any = {}
        for file in manifest.table("things").files:
            rows = msgspec.json.decode(self.store.bytes_of(file.key))
            joined(TABLES[Head(manifest.head)]["things"], rows, state)
        return {key[0]: (row["first_value"], row["last_value"]) for key, row in state.items()}


def metadata_location(number: int) -> str:
    return str(TableMetadataKey(SCOPE, Slug("t"), TABLE, number, MetadataHash(f"{number:032x}")))


def story(play: Callable[[Ground], Awaitable[None]]) -> None:
    asyncio.run(play(Ground()))
