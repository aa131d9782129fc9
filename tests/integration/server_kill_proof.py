"""What must be true after servers were killed, read from the store itself and through a server that was not there before.

From the store: the chain of tier-1 commits is whole and adds up to the state that a starting process loads; every request is
in it as often as its client was told; every name has a table behind it, and no table is half gone; the receipts of each table
have no gap and form one line, and every file in it is there. Over HTTP: the names that clients were told of, the tables they
made, and the data they added.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from arco.catalog.bases import Bases
from arco.catalog.manifest import Commit, decode_commit
from arco.catalog.names import Draft, Names
from arco.catalog.operations import Void
from arco.catalog.pointer import Pointer
from arco.catalog.state_files import everything
from arco.catalog.subject import Tables
from arco.catalog.workspace import Workspace
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import CommitId
from arco.kernel.scope import Scope
from arco.ledger.receipts import Published, Receipt
from arco.storage.keys import CatalogCommitKey, prefix_of
from arco.storage.paging import walk
from arco.storage.port import ObjectStore
from arco.storage.roots import open_root, parse_root
from arco.surface.http.client_config import base_uri

from .plain_http import Connection
from .server_fleet import Lake
from .server_kill_load import BANK, PREFIX, SHARED, Ask, Kind, Memory, State, balance_of

T = TypeVar("T")
TOGETHER = 16
SCOPE = Scope.of()
_FILE = re.compile(
    r"/metadata/([0-9]{5,})-([0-9a-f]{20})[0-9a-f]{12}\.metadata\.json$"
)  # which request, behind which commit


class Proof:
    """Everything that is wrong, in sentences."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._in_doubt = {(ask.namespace, name) for ask in memory.of(State.OPEN) for name in ("", ask.name, ask.to)}
        self._namespaces_in_doubt = {ask.namespace for ask in memory.of(State.OPEN) if not ask.name}
        self.wrong: list[str] = list(memory.findings)

    def _demand(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.wrong.append(otherwise)

    # From the store

    async def of_store(self, where: Lake) -> None:
        async with _workspace(where) as ws:
            chain = await self._chain(ws)
            self._requests_in(chain)
            self._names_of(ws.tier1.names)
            await self._tables_of(ws)

    async def of_commits(self, where: Lake) -> None:
        """Only that commits are in history as often as clients were told."""
        async with _workspace(where) as ws:
            await self._tables_of(ws)

    async def _chain(self, ws: Workspace) -> list[Commit]:
        """All commits of tier 1, first to last; each must carry the hash of the one before it."""
        manifest = ws.tier1.manifest
        place, wanted = manifest.last_commit_id, manifest.last_commit_hash
        chain: list[Commit] = []
        while place is not None:
            key = str(CatalogCommitKey(SCOPE, CommitId(place)))
            found = await ws.tier1.store.get(key)
            if found is None:
                self.wrong.append(f"the chain breaks: {key} is missing")
                break
            commit = decode_commit(found.data, key)
            self._demand(commit.hash() == wanted, f"the chain breaks: {key} has another hash than its successor says")
            chain.append(commit)
            place, wanted = commit.previous_id, commit.previous_hash
        chain.reverse()
        self._demand([one.sequence for one in chain] == list(range(1, manifest.sequence + 1)), "the chain has a gap")
        replayed = Names()
        for commit in chain:
            draft = Draft(replayed)
            for operation in commit.operations:
                draft.apply(operation, commit.at_ms)
            draft.merge()
        self._demand(_same(replayed, ws.tier1.names), "the chain does not add up to the state that is loaded")
        return chain

    def _requests_in(self, chain: list[Commit]) -> None:
        """Each request about names is in the chain as often as its client was told."""
        operations = [one for commit in chain for one in commit.operations]
        # A refused request may be void in the chain, so that no earlier attempt does it later: that is not doing it.
        counted = Counter(one.key_hash for one in operations if not isinstance(one, Void))
        for ask in self._memory.asks:
            if ask.kind not in {Kind.COMMIT, Kind.TRANSACTION}:
                self._demand_count(ask, counted[content_hash(ask.key.encode())])

    def _demand_count(self, ask: Ask, count: int) -> None:
        match ask.state:
            case State.ACKNOWLEDGED:
                self._demand(count == 1, f"acknowledged, and done {count} times: {ask}")
            case State.REFUSED:
                self._demand(count == 0, f"refused, and done {count} times: {ask}")
            case State.OPEN:
                self._demand(count <= 1, f"done {count} times: {ask}")

    def _names_of(self, names: Names) -> None:
        found = {".".join(levels) for levels in names.namespaces}
        self._same_namespaces(found, "the store")
        tables = {(".".join(levels), name): entry.uuid for (levels, name), entry in names.entries.items()}
        self._same_tables(tables, "the store")

    def _same_namespaces(self, found: set[str], where: str) -> None:
        differing = (found ^ self._memory.namespaces) - self._namespaces_in_doubt
        self._demand(not differing, f"{where} and the clients differ about the namespaces {sorted(differing)}")

    def _same_tables(self, found: dict[tuple[str, str], str], where: str) -> None:
        for place in sorted({*found, *self._memory.tables} - self._in_doubt):
            told, there = self._memory.tables.get(place), found.get(place)
            self._demand(told == there, f"{where} has table {there} at {place}, clients were told {told}")

    async def _tables_of(self, ws: Workspace) -> None:
        names = ws.tier1.names
        alive = {entry.uuid for entry in names.entries.values()}
        receipts = await _receipts(ws.tier1.store)
        wanted = sorted(alive | set(names.dropped))
        pointers = dict(zip(wanted, await _several(ws.pointers.read(uuid) for uuid in wanted), strict=True))
        landed: Counter[str] = Counter()
        files = {entry.key async for entry in walk(ws.tier1.store, prefix_of(SCOPE, "data")) if "/metadata/" in entry.key}
        for uuid, held in pointers.items():
            if held is None:
                self.wrong.append(f"table {uuid} has no pointer")
                continue
            dead = held.value.tombstone is not None
            self._demand(dead is (uuid not in alive), f"table {uuid} is half gone: tombstone {dead}, name {uuid in alive}")
            landed.update(self._history(held.value, receipts[uuid]))
            for one in (*(one for several in receipts[uuid].values() for one in several), *held.value.published):
                there = ws.locations.key(one.metadata_location) in files
                self._demand(there, f"{one.metadata_location} is in the history of its table and is gone")
        for ask in self._memory.asks:
            if ask.kind is Kind.COMMIT:
                self._demand_count(ask, landed[ask.file_hash])
            elif ask.kind is Kind.TRANSACTION:
                count = landed[ask.file_hash]
                self._demand(count in {0, ask.tables}, f"visible in {count} of {ask.tables} tables: {ask}")
                self._demand_count(ask, count // ask.tables)
        bases = Bases(ws, Tables())
        for uuid, base in zip(wanted, await _several(bases.read(uuid) for uuid in wanted), strict=True):
            self._demand(
                base is not None and base.metadata.table_uuid == uuid, f"the metadata of table {uuid} is another's"
            )

    def _history(self, pointer: Pointer, receipts: dict[int, list[Published]]) -> Iterable[str]:
        """The hashes in the names of a table's commits: one per number, from the receipts and, for the last, the head."""
        line = {number: one for number, published in receipts.items() for one in published}
        for number, published in receipts.items():
            self._demand(len(published) == 1, f"table {pointer.table_uuid} has {len(published)} commits number {number}")
        line |= {one.commit_number: one for one in pointer.published}
        numbers = list(range(pointer.commit_number + 1))
        if sorted(line) != numbers:
            self.wrong.append(f"table {pointer.table_uuid} has commits {sorted(line)}, not 0 to {pointer.commit_number}")
            return
        for number in numbers[1:]:
            joined = line[number].previous_metadata_location == line[number - 1].metadata_location
            self._demand(joined, f"commit {number} of table {pointer.table_uuid} does not follow the one before it")
        for number in numbers:
            name = _FILE.search(line[number].metadata_location)
            self._demand(name is not None and int(name[1]) == number, f"commit {number} has file {line[number]}")
            if name is not None:
                yield name[2]

    # Over HTTP

    async def of_server(self, address: str) -> None:
        connection = await Connection.open(address)
        listed = (await connection.ask("GET", f"{PREFIX}/namespaces")).json()["namespaces"]
        namespaces = {".".join(levels) for levels in listed}
        self._same_namespaces(namespaces, "a fresh server")
        tables: dict[tuple[str, str], str] = {}
        money = 0
        for namespace in sorted(namespaces):
            path = f"{PREFIX}/namespaces/{namespace}/tables"
            for one in (await connection.ask("GET", path)).json()["identifiers"]:
                reply = await connection.ask("GET", f"{path}/{one['name']}")
                if reply.status != 200:
                    self.wrong.append(f"a fresh server cannot load {namespace}.{one['name']}: {reply}")
                    continue
                metadata = reply.json()["metadata"]
                tables[namespace, one["name"]] = metadata["table-uuid"]
                if namespace == SHARED:
                    self._appends(one["name"], metadata)
                money += balance_of(metadata) if namespace == BANK else 0
        self._demand(money == 0, f"the accounts of the bank add up to {money}")
        self._same_tables(tables, "a fresh server")
        connection.close()

    def _appends(self, name: str, metadata: dict[str, object]) -> None:
        """Everything that clients were told they had added is there, in one line, and what was refused is not."""
        snapshots = metadata.get("snapshots", [])
        assert isinstance(snapshots, list)
        ids = [one["snapshot-id"] for one in snapshots]
        parents = [one.get("parent-snapshot-id") for one in snapshots]
        self._demand(parents == [None, *ids[:-1]][: len(ids)], f"the snapshots of {name} are not one line: {snapshots}")
        for ask in self._memory.asks:
            if ask.snapshot_id is not None and ask.name == name:
                self._demand_count(ask, ids.count(ask.snapshot_id))


@asynccontextmanager
async def reading(where: Lake) -> AsyncIterator[Callable[[str], Awaitable[dict[str, Any]]]]:
    """Metadata files straight from the store, as clients read them."""
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(where.root, where.options, clock, entropy)
    locations = Workspace.on(store, base_uri(parse_root(where.root), where.options), SCOPE, clock, entropy).locations

    async def read(location: str) -> dict[str, Any]:
        key = locations.key(location)
        found = None if key is None else await store.get(key)
        assert found is not None, f"{location} was answered and is not there"
        document: dict[str, Any] = msgspec.json.decode(found.data)
        return document

    try:
        yield read
    finally:
        await store.close()


@asynccontextmanager
async def _workspace(where: Lake) -> AsyncIterator[Workspace]:
    """The state as a process that starts now finds it."""
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(where.root, where.options, clock, entropy)
    try:
        ws = Workspace.on(store, base_uri(parse_root(where.root), where.options), SCOPE, clock, entropy)
        await ws.tier1.current()
        yield ws
    finally:
        await store.close()


async def _receipts(store: ObjectStore) -> dict[str, dict[int, list[Published]]]:
    """The committed receipts of every table, by commit number."""
    keys = [entry.key async for entry in walk(store, f"{SCOPE.tenant}/{SCOPE.workspace}/_catalog/events/")]
    found: dict[str, dict[int, list[Published]]] = defaultdict(lambda: defaultdict(list))
    for stored in await _several(store.get(key) for key in keys if "/committed/" in key):
        assert stored is not None, "nobody deletes receipts"
        receipt = msgspec.json.decode(stored.data, type=Receipt)
        found[receipt.table_uuid][receipt.commit.commit_number].append(receipt.commit)
    return found


async def _several(work: Iterable[Awaitable[T]]) -> list[T]:
    """All results in order, a few at a time."""
    turns = asyncio.Semaphore(TOGETHER)

    async def one(item: Awaitable[T]) -> T:
        async with turns:
            return await item

    return await asyncio.gather(*(one(item) for item in work))


def _same(one: Names, other: Names) -> bool:
    return sorted(map(str, everything(one))) == sorted(map(str, everything(other)))
