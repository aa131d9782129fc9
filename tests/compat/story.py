"""What happens in the stored roots: one of everything that the catalog writes, and two processes that die half way.

The clock is moved by hand and the randomness is seeded. `make.py` keeps what the story leaves as the root of a format version;
the tests tell it again, so that the root that today's code leaves must open as well.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.checkpoint import checkpoint
from arco.catalog.governance import given_fields
from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Inventory, NewTable
from arco.catalog.manifest import Author
from arco.catalog.model import ColumnNote, Format, Governance, Levels, Sensitivity
from arco.catalog.namespaces import change_namespace, create_namespace, drop_namespace
from arco.catalog.operations import Describe, Purge, Void
from arco.catalog.workspace import Choices
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import AskHistory, Conflict, RetryLater, Unavailable
from arco.kernel.ids import new_uuid7
from arco.kernel.scope import Scope
from arco.ledger.receipts import Source
from arco.storage.memory import MemoryStore
from arco.storage.port import Condition, Matches, Outcome
from tests.stand_ins.hand_clock import HandClock

BASE_URI = "s3://lake"
SCOPE = Scope.of()
SHOP: Levels = ("shop",)
EU: Levels = ("shop", "eu")
SNAPSHOT_ID = 7_134_567_890_123_456_789  # beyond 2^53, as real ones are

_AUTHOR = Author("loader", "story 1.0")
_SOURCE = Source(principal="loader", client="story 1.0")


class Mortal(MemoryStore):
    """A store whose process dies right after a pointer was swung: nothing it sends later arrives."""

    dies_at_the_next_swing = False
    dead = False

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if self.dead:
            raise Unavailable("this process is dead")
        outcome = await super().put(key, data, condition)
        if self.dies_at_the_next_swing and "/iceberg_pointers/" in key and isinstance(condition, Matches):
            self.dead = True
        return outcome

    def objects(self) -> dict[str, bytes]:
        return {key: found.data for key, found in sorted(self._objects.items())}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with its key, as its client would send it again."""

    what: str
    key: str
    operation: str
    body: Any
    metadata_location: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """Everything there is after the story."""

    objects: dict[str, bytes]
    asked: list[Asked]
    at_ms: int


class _Story:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.entropy = SeededEntropy("a root to keep")
        self.store = Mortal(self.clock)
        self.asked: list[Asked] = []
        self.catalog = self.opened()

    def opened(self) -> Catalog:
        """A new process."""
        return Catalog.open(self.store, BASE_URI, SCOPE, self.clock, self.entropy, choices=Choices(take_turns=True))

    def later(self, seconds: int = 1) -> None:
        self.clock.at_ms += seconds * 1000

    def plain(self) -> RequestKey:
        """A request without an Idempotency-Key."""
        self.later()
        return self.catalog.parts.markers.request_key(None, "story", "")

    def kept(self, operation: str, body: Any) -> RequestKey:
        """A request with an Idempotency-Key, which leaves a marker."""
        self.later()
        key = new_uuid7(self.clock, self.entropy)
        return self.catalog.parts.markers.request_key(key, operation, request_hash(body))

    def remember(self, what: str, key: RequestKey, body: Any, **answer: str) -> None:
        self.asked.append(Asked(what, key.key, key.operation, body, **answer))

    async def settle(self) -> None:
        await self.catalog.parts.afterwards.settle()

    async def checkpoint(self) -> None:
        self.later()
        assert await checkpoint(self.catalog.parts.tier1, self.clock, self.entropy)

    async def dies_during(self, work: Any) -> None:
        """Run something whose process dies right after its first swing of a pointer, and go on in a new one."""
        self.store.dies_at_the_next_swing = True
        with suppress(RetryLater, AskHistory):
            await work
        await self.settle()
        assert self.store.dead
        self.store.dead = self.store.dies_at_the_next_swing = False
        self.catalog = self.opened()

    # Chapters

    async def namespaces(self) -> None:
        parts = self.catalog.parts
        await create_namespace(parts, SHOP, {"owner": "sales"}, self.plain(), _AUTHOR)
        nested = (EU, ("shop", "us"), ("shop", "fleeting"))
        await asyncio.gather(*(create_namespace(parts, one, {}, self.plain(), _AUTHOR) for one in nested))
        await drop_namespace(parts, ("shop", "fleeting"), self.plain(), _AUTHOR)
        await change_namespace(parts, SHOP, ("owner",), {"region": "everywhere"}, self.plain(), _AUTHOR)

    async def create(self, name: str, version: int, key: RequestKey | None = None) -> str:
        request = requests.parse_create_table(table_body(name, version))
        location = (await self.catalog.tables.create(SHOP, request, key or self.plain(), _SOURCE))[1]
        await self.settle()
        return location

    async def orders(self) -> None:
        body = table_body("orders", 2)
        key = self.kept("createTable", body)
        self.remember("create", key, body, metadata_location=await self.create("orders", 2, key))
        body = append_body(self.clock.at_ms)
        key = self.kept("updateTable", body)
        done = await self.catalog.table_commits.commit(SHOP, "orders", requests.parse_commit_table(body), key, _SOURCE)
        self.remember("append", key, body, metadata_location=done.location)
        await self.settle()
        key = self.kept("updateTable", body)
        try:
            await self.catalog.table_commits.commit(SHOP, "orders", requests.parse_commit_table(body), key, _SOURCE)
        except Conflict as refusal:
            self.remember("refused", key, body, refusal=refusal.message)

    async def view(self) -> None:
        views = self.catalog.views
        await views.create(SHOP, requests.parse_create_view(view_body(self.clock.at_ms)), self.plain(), _SOURCE)
        replace = requests.parse_commit_view(replace_body(self.clock.at_ms))
        await self.catalog.view_commits.commit(SHOP, "big_orders", replace, self.plain(), _SOURCE)
        await self.settle()

    async def items(self) -> None:
        tables = self.catalog.tables
        await self.create("items", 1)
        await tables.rename((SHOP, "items"), (EU, "items"), self.plain(), _AUTHOR)
        await tables.drop(EU, "items", purge=False, key=self.plain(), author=_AUTHOR)
        dropped = self.catalog.parts.tier1.names.last_dropped(EU, "items")
        assert dropped is not None
        await tables.undrop(dropped, SHOP, "goods", self.plain(), _AUTHOR)

    async def other_formats(self) -> None:
        inventory = Inventory(self.catalog)
        columns = (ColumnNote("page", "string"), ColumnNote("at", "timestamp", False, "when it was seen"))
        clicks = NewTable(SHOP, "clicks", Format.PARQUET, "s3://elsewhere/clicks", {"compression": "zstd"}, columns)
        await inventory.create(clicks, self.plain(), _AUTHOR)
        said = {
            "owner": "loader",
            "description": "what was bought",
            "tags": ["gold"],
            "sensitivity": Sensitivity.CONFIDENTIAL,
            "pii_columns": {"buyer": "email"},
            "row_count": 3,
        }
        # As it could be said before marks were held against columns: there is no buyer.
        uuid = (await inventory.find((SHOP, "orders"))).uuid
        operation = Describe(key_hash=self.plain().hash, uuid=uuid, governance=given_fields(said, "table"))
        await self.catalog.parts.committer.submit(operation, since=0, author=_AUTHOR)
        scratch = NewTable(SHOP, "scratch", Format.CSV, "s3://elsewhere/scratch", governance=Governance(owner="cleaner"))
        await inventory.create(scratch, self.plain(), _AUTHOR)
        await inventory.drop((SHOP, "scratch"), purge=False, key=self.plain(), author=_AUTHOR)

    async def purge_scratch(self) -> None:
        dropped = self.catalog.parts.tier1.names.last_dropped(SHOP, "scratch")
        assert dropped is not None
        operation = Purge(key_hash=self.plain().hash, uuid=dropped.entry.uuid, drop_id=dropped.drop_id)
        await self.catalog.parts.committer.submit(operation, since=0, author=_AUTHOR)

    async def dropped(self) -> None:
        await self.create("old", 2)
        await self.catalog.tables.drop(SHOP, "old", purge=True, key=self.plain(), author=_AUTHOR)

    async def registered(self) -> None:
        await self.create("returns", 3)
        location = await self.catalog.tables.drop(SHOP, "returns", purge=False, key=self.plain(), author=_AUTHOR)
        await self.catalog.registering.register(
            SHOP, "returned", location, overwrite=False, key=self.plain(), author=_AUTHOR
        )

    async def staged(self) -> None:
        body = table_body("staged", 2) | {"stage-create": True}
        key = self.kept("createTable", body)
        await self.catalog.staging.stage(SHOP, requests.parse_create_table(body), key)
        self.remember("stage", key, body)
        await self.settle()

    async def refused(self) -> None:
        """A request whose first attempt went silent, and whose second was refused: its key is void in the chain."""
        parts = self.catalog.parts
        await parts.committer.submit(Void(key_hash=self.plain().hash), since=parts.tier1.seen.sequence, author=_AUTHOR)

    async def deaths(self) -> None:
        """A drop that got as far as its tombstone, and a commit that landed and told nobody."""
        await self.create("leaving", 2)
        body = {"purge": False}
        key = self.kept("dropTable", body)
        await self.dies_during(self.catalog.tables.drop(SHOP, "leaving", purge=False, key=key, author=_AUTHOR))
        self.remember("drop", key, body)
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"seen": "yes"}}]}
        key = self.kept("updateTable", body)
        commit = requests.parse_commit_table(body)
        await self.dies_during(self.catalog.table_commits.commit(SHOP, "orders", commit, key, _SOURCE))
        self.remember("unfinished", key, body)


async def tell() -> Told:
    """The whole story: some of it in a base, some in a delta, the rest in the tail."""
    story = _Story()
    await story.namespaces()
    await story.orders()
    await story.view()
    await story.items()
    await story.checkpoint()
    story.later(3601)
    await story.other_formats()
    await story.dropped()
    await story.checkpoint()
    await story.purge_scratch()
    await story.registered()
    await story.checkpoint()
    await story.staged()
    await story.refused()
    await story.deaths()
    return Told(story.store.objects(), story.asked, story.clock.at_ms)


# What clients send


def table_body(name: str, version: int) -> dict[str, Any]:
    fields = [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "amount", "type": "decimal(9, 2)", "required": False},
        {"id": 3, "name": "day", "type": "date", "required": False},
    ]
    return {
        "name": name,
        "schema": {"type": "struct", "fields": fields},
        "partition-spec": {"fields": [{"source-id": 3, "transform": "month", "name": "month"}]},
        "properties": {"format-version": str(version)},
    }


def append_body(at_ms: int) -> dict[str, Any]:
    snapshot = {
        "snapshot-id": SNAPSHOT_ID,
        "sequence-number": 1,
        "timestamp-ms": at_ms,
        "manifest-list": f"{BASE_URI}/elsewhere/snap-1.avro",
        "summary": {"operation": "append", "added-records": "3"},
        "schema-id": 0,
    }
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": SNAPSHOT_ID, "type": "branch"}
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
        "updates": [{"action": "add-snapshot", "snapshot": snapshot}, ref],
    }


def view_body(at_ms: int) -> dict[str, Any]:
    return {
        "name": "big_orders",
        "schema": {"type": "struct", "fields": [{"id": 0, "name": "id", "type": "long", "required": True}]},
        "view-version": _view_version(1, at_ms, "select id from shop.orders where amount > 100"),
        "properties": {"comment": "the large ones"},
    }


def replace_body(at_ms: int) -> dict[str, Any]:
    version = _view_version(2, at_ms, "select id from shop.orders where amount > 1000")
    return {
        "updates": [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
    }


def _view_version(number: int, at_ms: int, sql: str) -> dict[str, Any]:
    return {
        "version-id": number,
        "timestamp-ms": at_ms,
        "schema-id": 0,
        "summary": {"engine-name": "story"},
        "default-namespace": ["shop"],
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
    }
