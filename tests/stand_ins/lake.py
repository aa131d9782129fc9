"""A small catalog in memory, made by the product itself, for tests that look at it or damage it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.checkpoint import checkpoint
from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Description, Inventory, NewTable, Place
from arco.catalog.manifest import Author, Commit, Manifest, decode_commit
from arco.catalog.model import Format
from arco.catalog.namespaces import create_namespace
from arco.catalog.policy import LocationPolicy
from arco.catalog.verify import verify
from arco.iceberg import requests
from arco.kernel.entropy import SeededEntropy
from arco.kernel.fingerprint import content_hash
from arco.kernel.scope import Scope
from arco.ledger.receipts import Source
from arco.storage.findings import Report
from arco.storage.memory import MemoryStore
from arco.storage.paging import walk
from arco.storage.port import Always
from stand_ins.hand_clock import HandClock

SCOPE = Scope.of()
FIELD = {"id": 1, "name": "a", "type": "long", "required": False}
SCHEMA = {"type": "struct", "fields": [FIELD]}
MANIFEST = "default/default/_catalog/manifests/catalog.manifest.json"
AUTHOR = Author("ann")


class Lake:
    """A store, and one process on it."""

    def __init__(self, seed: str = "lake", base_uri: str = "file:///lake") -> None:
        self._base_uri = base_uri
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        self._entropy = SeededEntropy(seed)
        self._keys = 0
        self.catalog = self._open()

    def _open(self, policy: LocationPolicy | None = None) -> Catalog:
        return Catalog.open(self.store, self._base_uri, SCOPE, self.clock, self._entropy, policy)

    def restart(self) -> None:
        """A new process, which knows nothing."""
        self.catalog = self._open()

    def allowing(self, place: str) -> Catalog:
        """A process that may also work on tables in a place outside the root."""
        return self._open(LocationPolicy.of([place], self.clock, self._entropy))

    @property
    def inventory(self) -> Inventory:
        return Inventory(self.catalog)

    def key(self) -> RequestKey:
        """One after the other, a second apart."""
        self._keys += 1
        self.clock.at_ms += 1000
        return RequestKey(f"key {self._keys}", "test", str(self._keys), durable=False)

    async def settle(self) -> None:
        await self.catalog.parts.afterwards.settle()

    # What people do

    async def namespace(self, *levels: str) -> None:
        await create_namespace(self.catalog.parts, levels, {}, self.key(), AUTHOR)

    async def table(self, levels: tuple[str, ...], name: str, commits: int = 0) -> str:
        """A new Iceberg table with some commits: its uuid."""
        wanted = requests.parse_create_table({"name": name, "schema": SCHEMA})
        metadata, _ = await self.catalog.tables.create(levels, wanted, self.key(), Source())
        for number in range(commits):
            await self.commit((levels, name), {"action": "set-properties", "updates": {"n": str(number)}})
        return metadata.table_uuid

    async def commit(self, place: Place, *updates: dict[str, Any]) -> None:
        wanted = requests.parse_commit_table({"requirements": [], "updates": list(updates)})
        await self.catalog.table_commits.commit(*place, wanted, self.key(), Source())
        await self.settle()

    async def view(self, levels: tuple[str, ...], name: str) -> str:
        version = {
            "version-id": 1, "schema-id": 0, "timestamp-ms": self.clock.now_ms(), "summary": {}, "default-namespace": ["shop"],
            "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
        }  # fmt: skip
        wanted = requests.parse_create_view({"name": name, "schema": SCHEMA, "view-version": version, "properties": {}})
        metadata, _ = await self.catalog.views.create(levels, wanted, self.key(), Source())
        return metadata.view_uuid

    async def other(self, levels: tuple[str, ...], name: str, **more: Any) -> str:
        table = NewTable(levels, name, Format.DELTA, f"s3://elsewhere/{'.'.join((*levels, name))}", **more)
        return await self.inventory.create(table, self.key(), AUTHOR)

    async def describe(self, place: Place, **governance: Any) -> None:
        await self.inventory.describe(place, Description(governance), self.key(), AUTHOR)

    async def drop(self, place: Place, *, purge: bool = False) -> None:
        await self.inventory.drop(place, purge=purge, key=self.key(), author=AUTHOR)

    async def rename(self, source: Place, destination: Place) -> None:
        await self.inventory.rename(source, destination, self.key(), AUTHOR)

    async def checkpoint(self) -> None:
        assert await checkpoint(self.catalog.parts.tier1, self.clock, self._entropy)

    async def verify(self, *, deep: bool = False) -> Report:
        """By a process that knows nothing."""
        return await verify(self._open(), deep=deep)

    # What lies in the store

    async def keys(self, part: str = "") -> list[str]:
        return [one.key async for one in walk(self.store, "") if part in one.key]

    async def bytes_of(self, key: str) -> bytes:
        found = await self.store.get(key)
        assert found is not None, key
        return found.data

    async def put(self, key: str, data: bytes) -> None:
        await self.store.put(key, data, Always())

    async def edit(self, key: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change a JSON object in place, as nobody should."""
        document = msgspec.json.decode(await self.bytes_of(key))
        change(document)
        await self.put(key, msgspec.json.encode(document))

    async def edit_manifest(self, change: Callable[[dict[str, Any]], None]) -> None:
        await self.edit(MANIFEST, change)

    async def manifest(self) -> Manifest:
        held = await self.catalog.parts.tier1.head.read()
        assert held is not None
        return held.value

    async def chain(self) -> list[Commit]:
        """The commits, the first one first."""
        found: list[Commit] = []
        place = (await self.manifest()).last_commit_id
        while place is not None:
            key = commit_object(place)
            found.insert(0, decode_commit(await self.bytes_of(key), key))
            place = found[0].previous_id
        return found

    async def forge(self, number: int, **changes: Any) -> None:
        """Replace a commit and chain all those after it anew, so that every hash is right."""
        commits = await self.chain()
        commits[number - 1] = msgspec.structs.replace(commits[number - 1], **changes)
        for place in range(number, len(commits)):
            previous = commits[place - 1]
            commits[place] = msgspec.structs.replace(commits[place], previous_id=previous.id, previous_hash=previous.hash())
        for commit in commits:
            await self.put(commit_object(commit.id), commit.encode())
        tail = len((await self.manifest()).tail)
        plain = msgspec.to_builtins(commits[len(commits) - tail :])
        await self.edit_manifest(lambda m: m.update(last_commit_hash=commits[-1].hash(), tail=plain))

    async def replace_state(self, place: int, data: bytes) -> None:
        """Put other bytes into a delta and note their checksum, as if they were right."""
        file = (await self.manifest()).deltas[place]
        await self.put(file.key, data)
        await self.edit_manifest(lambda m: m["deltas"][place].update(checksum=content_hash(data)))

    async def write_to(self, folder: Path) -> None:
        """The same objects as a folder: the name of an object is its path."""
        for key in await self.keys():
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(await self.bytes_of(key))

    async def copy(self) -> "Lake":
        """The same objects in another store."""
        other = Lake("copy")
        other.clock.at_ms = self.clock.at_ms
        for key in await self.keys():
            await other.put(key, await self.bytes_of(key))
        return other


def commit_object(commit_id: str) -> str:
    return f"default/default/_catalog/core/commits/{commit_id}.json"


def pointer_object(uuid: str) -> str:
    return f"default/default/_catalog/iceberg_pointers/{uuid}.json"
