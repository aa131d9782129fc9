"""Servers on one store, for tests that say which request meets what."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import Dropped, Entry
from arco.catalog.namespaces import create_namespace, drop_namespace
from arco.catalog.policy import LocationPolicy
from arco.catalog.workspace import Choices
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.limits import IDEMPOTENCY_TAKEOVER_S
from arco.kernel.scope import Scope
from arco.ledger.receipts import Source
from arco.storage.memory import MemoryStore
from arco_sim.audit import Audit, audit
from stand_ins.hand_clock import HandClock
from stand_ins.shared_store import Line

SCOPE = Scope.of("t", "w")
NAMESPACE = ("db",)
POINTER, MARKER, MANIFEST = "/iceberg_pointers/", "/iceberg_idempotency/", "/manifests/catalog.manifest.json"
RECEIPT, METADATA, COMMIT = "/committed/", ".metadata.json", "/core/commits/"
FIELD = {"id": 1, "name": "a", "type": "long", "required": False}


def story(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that tells its story in one event loop."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Ground:
    """A store, and the servers on it."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        self._servers = 0

    def server(
        self,
        policy: LocationPolicy | None = None,
        *,
        take_turns: bool = False,
        any_key: bool = False,
        scope: Scope = SCOPE,
    ) -> "Server":
        self._servers += 1
        choices = Choices(take_turns=take_turns, require_uuid7=not any_key)
        return Server(self, f"server {self._servers}", policy, choices, scope)

    def long_after(self) -> None:
        """So long that an attempt that went silent may be taken over."""
        self.clock.at_ms += (IDEMPOTENCY_TAKEOVER_S + 1) * 1000

    async def audit(self) -> Audit:
        return await audit(self.store, SCOPE)


class Server:
    """One process: its own memory, its own line to the store."""

    def __init__(
        self, ground: Ground, name: str, policy: LocationPolicy | None, choices: Choices, scope: Scope = SCOPE
    ) -> None:
        self.line = Line(ground.store)
        self.catalog = Catalog.open(self.line, "file:///lake", scope, ground.clock, SeededEntropy(name), policy, choices)
        self.ws = self.catalog.parts

    async def found(self, *tables: str) -> None:
        """A namespace with some tables in it."""
        await create_namespace(self.ws, NAMESPACE, {}, RequestKey("founding", "create", "0", durable=False), Author())
        for table in tables:
            await self.create(table, f"founding {table}")
        await self.settle()

    async def settle(self) -> None:
        await self.ws.afterwards.settle()

    async def create(self, name: str, key: str, **more: Any) -> str:
        body = {"name": name, "schema": {"type": "struct", "fields": [FIELD]}, **more}
        wanted = RequestKey(key, "createTable", request_hash(body))
        metadata, _ = await self.catalog.tables.create(NAMESPACE, requests.parse_create_table(body), wanted, Source())
        return metadata.table_uuid

    async def commit(self, name: str, key: str, body: dict[str, Any] | None = None) -> str:
        """The location that the commit answers."""
        body = setting(key) if body is None else body
        done = await self.catalog.table_commits.commit(
            NAMESPACE, name, requests.parse_commit_table(body), commit_key(key, body), Source()
        )
        return done.location

    async def load(self, name: str) -> Entry:
        return (await self.catalog.tables.load(NAMESPACE, name))[0]

    async def properties(self, name: str) -> dict[str, str]:
        return (await self.catalog.tables.load(NAMESPACE, name))[1].metadata.properties

    async def drop(self, name: str, key: str) -> None:
        await self.catalog.tables.drop(NAMESPACE, name, purge=False, key=RequestKey(key, "drop", name), author=Author())

    async def dropped(self, name: str) -> Dropped:
        found = (await self.ws.tier1.current()).names.last_dropped(NAMESPACE, name)
        assert found is not None
        return found

    async def undrop(self, dropped: Dropped, name: str, key: str) -> None:
        await self.catalog.tables.undrop(dropped, NAMESPACE, name, RequestKey(key, "undrop", name), Author())

    async def rename(self, source: str, destination: str, key: str) -> None:
        asked = RequestKey(key, "rename", f"{source} {destination}")
        await self.catalog.tables.rename((NAMESPACE, source), (NAMESPACE, destination), asked, Author())

    async def register(self, name: str, location: str, key: str, *, overwrite: bool = False) -> None:
        asked = RequestKey(key, "register", f"{name} {location} {overwrite}")
        await self.catalog.registering.register(NAMESPACE, name, location, overwrite=overwrite, key=asked, author=Author())

    async def make_namespace(self, name: str, key: str) -> None:
        await create_namespace(self.ws, (name,), {}, RequestKey(key, "createNamespace", name), Author())

    async def unmake_namespace(self, name: str, key: str) -> None:
        await drop_namespace(self.ws, (name,), RequestKey(key, "dropNamespace", name), Author())

    def file_of(self, key: str, body: dict[str, Any] | None = None) -> str:
        """The name of a metadata file that a commit under this key would write, to whatever table."""
        return self.ws.files.name(commit_key(key, setting(key) if body is None else body), 0, "")

    def digits_of(self, key: str, body: dict[str, Any] | None = None) -> str:
        """What the names of all metadata files have in common that are written under this key."""
        return self.file_of(key, body).partition("-")[2][:20]


def commit_key(key: str, body: dict[str, Any]) -> RequestKey:
    return RequestKey(key, "updateTable", request_hash(body))


def setting(label: str, *requirements: dict[str, Any]) -> dict[str, Any]:
    """A commit that sets a property, and holds on any base unless something is required."""
    return {"requirements": list(requirements), "updates": [{"action": "set-properties", "updates": {"last": label}}]}


def new_column(last_column_id: int, name: str) -> dict[str, Any]:
    """A commit that adds a column, if nobody added one since."""
    fields = [FIELD] + [{**FIELD, "id": number, "name": f"c{number}"} for number in range(2, last_column_id + 1)]
    fields.append({**FIELD, "id": last_column_id + 1, "name": name})
    return {
        "requirements": [{"type": "assert-last-assigned-field-id", "last-assigned-field-id": last_column_id}],
        "updates": [
            {"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    }
