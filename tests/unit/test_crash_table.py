"""The table of crashes in ARCHITECTURE.md, row by row: a process dies there, and the next one finds what the table says.

Death is a store that no longer answers: whatever the process still sends has no effect. Schedules, lost replies and deaths at
every request are the simulator's; these are the named places, one at a time, in the words of the document.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from arco.catalog.catalog import Catalog
from arco.catalog.checkpoint import checkpoint
from arco.catalog.feed import Feed
from arco.catalog.idempotency import RequestKey, State
from arco.catalog.manifest import Author
from arco.catalog.model import Levels
from arco.catalog.namespaces import create_namespace
from arco.catalog.settling import NeverLands, settle
from arco.catalog.telling import Teller
from arco.catalog.transaction_records import Status
from arco.iceberg import requests
from arco.kernel import crash_points
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError, Conflict, Fenced, NoSuchTable, Unavailable
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import IDEMPOTENCY_TAKEOVER_S
from arco.kernel.scope import Scope
from arco.ledger.receipts import Source, commit_key
from arco.storage.memory import MemoryStore
from arco.storage.port import Condition, Object, ObjectInfo, Outcome
from arco.txn.transactions import Transactions
from stand_ins.hand_clock import HandClock

ROOT = Path(__file__).resolve().parents[2]
SHOP: Levels = ("shop",)
SECOND = [{"action": "set-properties", "updates": {"c": "d"}}]
PROPERTY = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}


class Store(MemoryStore):
    """A store that a dead process cannot reach."""

    dead = False

    def _alive(self) -> None:
        if self.dead:
            raise Unavailable("this process is dead")

    async def get(self, key: str) -> Object | None:
        self._alive()
        return await super().get(key)

    async def head(self, key: str) -> ObjectInfo | None:
        self._alive()
        return await super().head(key)

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        self._alive()
        return await super().put(key, data, condition)

    def text(self, name: str) -> str:
        return self._objects[name].data.decode()

    def names(self, part: str) -> list[str]:
        return sorted(key for key in self._objects if part in key)

    def lines(self, key: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._objects[key].data.splitlines()]


class Ground:
    """One root, and one process after the other. What a client asks, it asks under one key."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.entropy = SeededEntropy(1)
        self.store = Store(self.clock)
        self.catalog = self._process()
        self.key = RequestKey(new_uuid7(self.clock, self.entropy), "op", "hash")

    def _process(self) -> Catalog:
        return Catalog.open(self.store, "s3://lake", Scope.of(), self.clock, self.entropy)

    def other_key(self) -> RequestKey:
        return self.catalog.parts.markers.request_key(None, "op", "hash")

    async def prepare(self) -> None:
        await create_namespace(self.catalog.parts, SHOP, {}, self.other_key(), Author())
        for name in ("orders", "lines", "old"):
            await self.catalog.tables.create(SHOP, _table(name), self.other_key(), Source())
        await self.catalog.tables.drop(SHOP, "old", purge=False, key=self.other_key(), author=Author())
        await self.catalog.parts.afterwards.settle()

    async def die_at(self, point: str, work: Callable[["Ground"], Awaitable[Any]]) -> None:
        """Do something until a place is reached, and go on as a process that knows nothing of it."""
        reached = []

        def hook(name: str) -> None:
            if name == point:
                reached.append(name)
                self.store.dead = True

        crash_points.install(hook)
        try:
            with suppress(ArcoError):
                await work(self)
            await self.catalog.parts.afterwards.settle()
        finally:
            crash_points.install(None)
            self.store.dead = False
        assert reached, f"{point} was not on the way"
        self.catalog = self._process()

    async def again(self, work: Callable[["Ground"], Awaitable[Any]]) -> Any:
        """The client sends the same request again, after the time in which its first server might have been alive."""
        self.clock.at_ms += IDEMPOTENCY_TAKEOVER_S * 1000 + 1
        result = await work(self)
        await self.catalog.parts.afterwards.settle()
        return result

    def receipts(self) -> list[str]:
        return [self.store.text(name) for name in self.store.names("/committed/")]

    async def load(self, name: str) -> Any:
        return (await self.catalog.tables.load(SHOP, name))[1]

    async def exists(self, name: str) -> bool:
        try:
            await self.load(name)
        except NoSuchTable:
            return False
        return True

    async def times_in_chain(self) -> int:
        """How many operations of tier 1 came of the request."""
        await self.catalog.parts.tier1.current()
        manifest = self.catalog.parts.tier1.manifest
        assert not manifest.checkpointed_sequence
        return sum(one.key_hash == self.key.hash for commit in manifest.tail for one in commit.operations)


def _table(name: str) -> requests.CreateTable:
    return requests.parse_create_table({"name": name, "schema": {"type": "struct", "fields": []}})


# What is asked


async def create(ground: Ground) -> str:
    return (await ground.catalog.tables.create(SHOP, _table("new"), ground.key, Source()))[1]


async def commit(ground: Ground) -> str:
    request = requests.parse_commit_table(PROPERTY)
    return (await ground.catalog.table_commits.commit(SHOP, "orders", request, ground.key, Source())).location


async def drop(ground: Ground) -> None:
    await ground.catalog.tables.drop(SHOP, "orders", purge=False, key=ground.key, author=Author())


async def undrop(ground: Ground) -> None:
    dropped = (await ground.catalog.parts.tier1.current()).names.last_dropped(SHOP, "old")
    assert dropped is not None
    await ground.catalog.tables.undrop(dropped, SHOP, "old", ground.key, Author())


async def register(ground: Ground) -> str:
    (name,) = (key for key in ground.store.names("/old-") if key.endswith(".metadata.json"))
    metadata = f"s3://lake/{name}"
    done = await ground.catalog.registering.register(
        SHOP, "found", metadata, overwrite=False, key=ground.key, author=Author()
    )
    return done[1]


async def fold(ground: Ground) -> None:
    await ground.catalog.parts.tier1.current()
    await checkpoint(ground.catalog.parts.tier1, ground.clock, ground.entropy)


# What the next process finds


async def after_catalog_commit_written(ground: Ground) -> None:
    written = len(ground.store.names("/core/commits/"))
    assert not await ground.exists("new")
    assert ground.catalog.parts.tier1.manifest.sequence == written - 1
    await ground.again(create)
    assert await ground.exists("new")
    assert await ground.times_in_chain() == 1


async def after_catalog_manifest_swung(ground: Ground) -> None:
    assert await ground.exists("new")
    assert await ground.again(create) == (await ground.load("new")).location
    assert await ground.times_in_chain() == 1


async def after_catalog_checkpoint_written(ground: Ground) -> None:
    assert len(ground.store.names("/core/state/")) == 1
    await fold(ground)
    manifest = ground.catalog.parts.tier1.manifest
    assert [one.key for one in manifest.deltas] == ground.store.names("/core/state/")[1:]
    assert await ground.exists("orders")


async def after_create_staged(ground: Ground) -> None:
    (staged,) = ground.store.names("/data/new-")
    assert not await ground.exists("new")
    assert await ground.again(create) == f"s3://lake/{staged}", "what the first attempt staged gets the name"
    assert await ground.exists("new")


async def after_commit_staged(ground: Ground) -> None:
    assert (await ground.load("orders")).pointer.value.commit_number == 0
    files = ground.store.names("/data/orders-")
    location = await ground.again(commit)
    assert location.removeprefix("s3://lake/") in files, "the file that was there is adopted"
    assert (await ground.load("orders")).pointer.value.commit_number == 1


async def after_commit_swung(ground: Ground) -> None:
    base = await ground.load("orders")
    assert base.metadata.properties == {"a": "b"}
    receipt = f"/committed/{commit_key(base.location, 1)}"
    assert not ground.store.names(receipt)
    assert await ground.again(commit) == base.location
    assert ground.store.names(receipt)
    assert (await ground.load("orders")).pointer.value.commit_number == 1


async def after_commit_receipt_written(ground: Ground) -> None:
    base = await ground.load("orders")
    assert ground.store.names(f"/committed/{commit_key(base.location, 1)}")
    assert await ground.again(commit) == base.location
    assert (await ground.load("orders")).pointer.value.commit_number == 1


async def after_drop_tombstone_written(ground: Ground) -> None:
    assert (SHOP, "orders") in (await ground.catalog.parts.tier1.current()).names.entries
    assert not await ground.exists("orders")
    assert (SHOP, "orders") not in ground.catalog.parts.tier1.names.entries
    await ground.again(drop)
    assert await ground.times_in_chain() == 1


async def after_undrop_named(ground: Ground) -> None:
    assert (SHOP, "old") in (await ground.catalog.parts.tier1.current()).names.entries
    pointer = (await ground.load("old")).pointer.value
    assert (pointer.tombstone, pointer.binding) == (None, 2)
    assert await ground.times_in_chain() == 1


async def after_register_named(ground: Ground) -> None:
    assert (SHOP, "found") in (await ground.catalog.parts.tier1.current()).names.entries
    base = await ground.load("found")
    assert (base.pointer.value.tombstone, base.pointer.value.binding) == (None, 2)
    assert await ground.again(register) == base.location
    assert await ground.times_in_chain() == 1


async def tell(ground: Ground) -> Any:
    return await Teller(ground.store, Scope.of(), ground.clock, ground.entropy).tell()


def told(ground: Ground) -> list[tuple[str, str]]:
    """The events of names that are in the ledger, as often as they are: their ids and types."""
    lines = [line for key in ground.store.names("/ledger/catalog/") for line in ground.store.lines(key)[1:]]
    return [(event["id"], event["type"]) for event in lines]


async def after_tell_appended(ground: Ground) -> None:
    first = told(ground)
    assert [kind for _, kind in first] == ["catalog.table_created.v1"] * 3 + ["catalog.table_dropped.v1"]
    assert not ground.store.names("/core/told.json")
    await tell(ground)
    assert told(ground) == [*first, *first], "the same events again, under the same ids"
    assert await tell(ground) == ()


async def after_tell_marked(ground: Ground) -> None:
    first = told(ground)
    assert ground.store.names("/core/told.json")
    assert await tell(ground) == ()
    assert told(ground) == first


async def settle_commit(ground: Ground) -> Any:
    return await settle(ground.catalog.parts, ground.key, "given up")


async def after_settle(ground: Ground) -> None:
    """Whoever settles again comes to the same end, and the attempt that was given up hears of it."""
    assert await settle_commit(ground) == NeverLands()
    with pytest.raises(Fenced, match="given up"):
        await ground.again(commit)
    assert (await ground.load("orders")).pointer.value.commit_number == 0


async def after_settle_marker_taken(ground: Ground) -> None:
    held = await ground.catalog.parts.markers.object(ground.key).read()
    assert held is not None
    assert held.value.state is State.SETTLING
    await after_settle(ground)


async def transact(ground: Ground) -> None:
    changes = [PROPERTY | {"identifier": {"namespace": list(SHOP), "name": name}} for name in ("orders", "lines")]
    parsed = [requests.parse_commit_table(one) for one in changes]
    await Transactions(ground.catalog).commit(parsed, ground.key, Source())


NEW_UUID = "2f1f2c55-9dd7-4f0e-8a4a-0d9b7a1f3a77"


async def transact_and_create(ground: Ground) -> None:
    updates = [
        {"action": "assign-uuid", "uuid": NEW_UUID},
        {"action": "set-location", "location": f"s3://lake/default/default/data/new-{NEW_UUID}"},
        {"action": "add-schema", "schema": {"type": "struct", "fields": []}},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    made = {"requirements": [{"type": "assert-create"}], "updates": updates}
    changes = [made | {"identifier": {"namespace": list(SHOP), "name": "new"}}]
    changes += [PROPERTY | {"identifier": {"namespace": list(SHOP), "name": "orders"}}]
    parsed = [requests.parse_commit_table(one) for one in changes]
    await Transactions(ground.catalog).commit(parsed, ground.key, Source())


async def after_txn_reserved(ground: Ground) -> None:
    assert not await ground.exists("new")
    assert (await ground.load("orders")).pointer.value.commit_number == 0
    await ground.again(transact_and_create)
    assert await ground.exists("new")
    assert (await ground.load("orders")).pointer.value.commit_number == 1


async def after_txn_named(ground: Ground) -> None:
    assert await ground.exists("new")
    assert (await ground.load("orders")).pointer.value.commit_number == 1
    await ground.again(transact_and_create)
    assert (await ground.load("orders")).pointer.value.commit_number == 1


async def refuse_transaction(ground: Ground) -> None:
    never = {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 77}]}
    changes = [PROPERTY | never | {"identifier": {"namespace": list(SHOP), "name": "orders"}}]
    parsed = [requests.parse_commit_table(one) for one in changes]
    await Transactions(ground.catalog).commit(parsed, ground.key, Source())


async def wait_for_transaction(ground: Ground) -> None:
    """Behind another that is not decided: what is begun is given up."""
    ground.key = RequestKey(new_uuid7(ground.clock, ground.entropy), "op", "hash")
    await transact(ground)


async def numbers(ground: Ground) -> list[int]:
    return [(await ground.load(name)).pointer.value.commit_number for name in ("orders", "lines")]


async def after_txn_undecided(ground: Ground) -> None:
    assert await numbers(ground) == [0, 0]
    await ground.again(transact)
    assert await numbers(ground) == [1, 1]


async def after_txn_decided(ground: Ground) -> None:
    assert await numbers(ground) == [1, 1]
    await ground.again(transact)
    await ground.catalog.table_commits.commit(
        SHOP, "orders", requests.parse_commit_table({"requirements": [], "updates": SECOND}), ground.other_key(), Source()
    )
    await ground.catalog.parts.afterwards.settle()
    assert await numbers(ground) == [2, 1]
    for number in (1, 2):
        assert any(f'"commit_number":{number}' in text for text in ground.receipts())


async def after_txn_aborted(ground: Ground) -> None:
    with pytest.raises(Conflict, match="Requirement failed"):
        await ground.again(refuse_transaction)
    assert await numbers(ground) == [0, 0]


async def after_txn_sent_back(ground: Ground) -> None:
    record = await ground.catalog.parts.records.read(ground.key.key)
    assert record is not None
    assert record.value.status is Status.WAITING
    await after_txn_undecided(ground)


async def follow(ground: Ground) -> None:
    await Feed(ground.catalog.parts).refresh()


async def after_feed_page_written(ground: Ground) -> None:
    (page,) = ground.store.names("/feed/pages/")
    feed = Feed(ground.catalog.parts)
    await feed.refresh()
    assert ground.store.names("/feed/pages/") == [page]
    shown = await feed.page(1)
    assert shown is not None
    assert [one["operation"]["operation-type"] for one in shown.events].count("create-table") == 3


Step = Callable[[Ground], Awaitable[Any]]

CRASHES: dict[str, tuple[Step, Step]] = {
    "catalog.commit_written": (create, after_catalog_commit_written),
    "catalog.manifest_swung": (create, after_catalog_manifest_swung),
    "catalog.checkpoint_written": (fold, after_catalog_checkpoint_written),
    "create.staged": (create, after_create_staged),
    "commit.staged": (commit, after_commit_staged),
    "commit.swung": (commit, after_commit_swung),
    "commit.receipt_written": (commit, after_commit_receipt_written),
    "drop.tombstone_written": (drop, after_drop_tombstone_written),
    "undrop.named": (undrop, after_undrop_named),
    "register.named": (register, after_register_named),
    "tell.appended": (tell, after_tell_appended),
    "tell.marked": (tell, after_tell_marked),
    "feed.page_written": (follow, after_feed_page_written),
    "settle.key_in_use": (settle_commit, after_settle),
    "settle.marker_taken": (settle_commit, after_settle_marker_taken),
    "settle.swing_dead": (settle_commit, after_settle_marker_taken),
    "txn.claimed": (transact, after_txn_undecided),
    "txn.prepared": (transact, after_txn_undecided),
    "txn.reserved": (transact_and_create, after_txn_reserved),
    "txn.named": (transact_and_create, after_txn_named),
    "txn.decided": (transact, after_txn_decided),
    "txn.aborted": (refuse_transaction, after_txn_aborted),
    "txn.sent_back": (wait_for_transaction, after_txn_sent_back),
    "txn.receipts_written": (transact, after_txn_decided),
    "txn.finalized": (transact, after_txn_decided),
}


def points_in_code() -> Iterator[str]:
    for path in (path for room in ("catalog", "txn") for path in (ROOT / "src" / "arco" / room).glob("*.py")):
        yield from re.findall(r'\breach\("([^"]+)"\)', path.read_text())


def test_the_table_has_every_place_where_the_catalog_may_die() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    listed = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \|", page.partition("\n## The fold\n")[0], re.MULTILINE)
    assert sorted(listed) == sorted(set(points_in_code()))


@pytest.mark.parametrize("point", sorted(set(points_in_code())))
def test_what_the_table_says_of_a_crash_is_true(point: str) -> None:
    async def run() -> None:
        ground = Ground()
        await ground.prepare()
        work, then = CRASHES[point]
        if work is settle_commit:  # there is something to settle: a commit whose process died before its swing
            await ground.die_at("commit.staged", commit)
        if work is wait_for_transaction:  # there is one to wait for, whose process died before its decision
            await ground.die_at("txn.prepared", transact)
        await ground.die_at(point, work)
        await then(ground)

    asyncio.run(run())
