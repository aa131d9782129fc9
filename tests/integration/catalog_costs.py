"""What the server's operations cost a store, in requests and sequential round trips: counted, never timed.

The application runs in this process on a store in memory, behind a wrapper that makes every request take one millisecond of
virtual time and counts it. So the counts depend on nothing but the code: requests that go out together share a trip, whatever
the machine does meanwhile. `before` is what a client waits for; what is done after its answer was sent is counted apart.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.checkpoint import checkpoint
from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy, SeededEntropy
from arco.kernel.ids import UlidSource, new_uuid7
from arco.kernel.scope import Scope
from arco.storage.memory import MemoryStore
from arco.storage.port import ObjectStore
from arco.storage.profile import LatencyProfile, Operation, ProfiledStore, operation
from arco.surface.http.app import App
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from arco_sim.loop import SimLoop

T = TypeVar("T")

SCOPE = Scope.of()
BASE_URI = "memory://lake"
PREFIX = f"/iceberg/v1/{SCOPE.prefix}"
TABLES = f"{PREFIX}/namespaces/db/tables"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
ONE_MS = LatencyProfile("one millisecond", read_ms=1, write_ms=1)
_START_MS = 1_767_225_600_000


class VirtualClock:
    """The time of a simulated loop."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return _START_MS + int(self._loop.now_s * 1000)

    def monotonic_s(self) -> float:
        return self._loop.now_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Cost:
    """`trips` and `requests` before the answer; the rest in all, what comes after the answer included."""

    what: str
    status: int
    trips: int
    requests: int
    trips_in_all: int
    requests_in_all: int
    bytes_read: int
    bytes_written: int


class Server:
    """One server's application, called as the HTTP server would call it."""

    def __init__(self, store: ObjectStore, clock: Clock, entropy: Entropy, base_uri: str = BASE_URI) -> None:
        self._state = ServerState(store, base_uri, ForClients(), LocationPolicy(), clock, entropy)
        self._app = App(self._state, UlidSource(clock, entropy))
        self.new_key = lambda: new_uuid7(clock, entropy)

    @property
    def catalog(self) -> Catalog:
        return self._state.catalog(SCOPE)

    async def ask(self, method: str, path: str, body: Any = None, *, key: bool = True, **headers: str) -> Reply:
        """One request; with an idempotency key of its own if it changes something and `key` says so."""
        if key and method not in {"GET", "HEAD"}:
            headers["idempotency-key"] = self.new_key()
        data = b"" if body is None else msgspec.json.encode(body)
        named = {"host": "127.0.0.1", "content-length": str(len(data))} | headers
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()],
        }
        await self._app(scope, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Reply(sent[0]["status"], told, sent[1]["body"])

    def knows(self, table: str) -> bool:
        """Whether it has the table in its memory."""
        entry = self.catalog.parts.tier1.names.entries.get((("db",), table))
        return entry is not None and self.catalog.table_commits.bases.known(entry.uuid) is not None

    async def settle(self) -> None:
        """Wait for what was left to do after answers."""
        await self.catalog.parts.afterwards.settle()

    async def stop(self) -> None:
        await self._state.settle()

    async def cost(self, what: str, method: str, path: str, body: Any = None, *, key: bool = True, **headers: str) -> Cost:
        with operation(what) as spent:
            reply = await self.ask(method, path, body, key=key, **headers)
            before = (spent.round_trips, spent.total_requests)
            await self.settle()
        assert reply.status < 400, reply
        return _cost(what, reply.status, before, spent)


def _cost(what: str, status: int, before: tuple[int, int], spent: Operation) -> Cost:
    in_all = (spent.round_trips, spent.total_requests)
    return Cost(what, status, *before, *in_all, spent.bytes_read, spent.bytes_written)


class Ground:
    """A store in memory, with a virtual clock and as many servers as one likes."""

    def __init__(self) -> None:
        self._loop = SimLoop(self._jump)
        self.clock = VirtualClock(self._loop)
        self.entropy = SeededEntropy(1)
        self.store = ProfiledStore(MemoryStore(self.clock), ONE_MS, self.clock)

    def _jump(self) -> bool:
        """Nothing else to do: time moves to the next timer."""
        when = self._loop.next_timer_s()
        if when is not None:
            self._loop.now_s = when
        return when is not None

    def server(self) -> Server:
        """A server that knows nothing yet."""
        return Server(self.store, self.clock, self.entropy)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        done = self._loop.run(work)
        assert done is not None, "everything waits for something that never comes"
        return done


Case = Callable[[Ground, Server, bool], Coroutine[Any, Any, Cost]]


def property_commit(value: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {"p": value}}]}


def rename(name: str, to: str) -> dict[str, Any]:
    return {end: {"namespace": ["db"], "name": called} for end, called in (("source", name), ("destination", to))}


async def prepare(server: Server) -> None:
    """A namespace with two tables, one of them committed to, and everything settled."""
    await server.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
    for name in ("t", "other"):
        await server.ask("POST", TABLES, {"name": name, "schema": SCHEMA})
    await server.ask("POST", f"{TABLES}/t", property_commit("0"))
    await server.ask("GET", f"{TABLES}/t")
    await server.settle()


async def load(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("load table", "GET", f"{TABLES}/t", key=key)


async def load_unchanged(ground: Ground, server: Server, key: bool) -> Cost:
    known = (await ground.server().ask("GET", f"{TABLES}/t")).headers["etag"]
    return await server.cost("load table, not modified", "GET", f"{TABLES}/t", key=key, if_none_match=known)


async def commit(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("commit", "POST", f"{TABLES}/t", property_commit("1"), key=key)


async def commit_at_once(ground: Ground, server: Server, key: bool) -> Cost:
    """A commit on the heels of another: nobody has written the receipt of the first yet."""
    with operation("the one before"):
        await server.ask("POST", f"{TABLES}/t", property_commit("1"), key=key)
    return await server.cost("commit right after a commit", "POST", f"{TABLES}/t", property_commit("2"), key=key)


def transaction(tables: int, *, after_ms: float | None = None) -> Case:
    """One change of so many tables, all of which the server that is asked has seen if it is warm.

    `after_ms`: so long after the answer to another one of the same tables, of which nobody has finished anything at first.
    """

    async def case(ground: Ground, server: Server, key: bool) -> Cost:
        names = [f"t{number}" for number in range(tables)]
        maker = ground.server()
        for name in names:
            await maker.ask("POST", TABLES, {"name": name, "schema": SCHEMA})
        await maker.settle()
        if server.knows("t"):
            for name in names:
                await server.ask("GET", f"{TABLES}/{name}")
        else:
            await server.catalog.parts.tier1.current()
        path, what = f"{PREFIX}/transactions/commit", f"transaction of {tables} tables"
        if after_ms is not None:
            with operation("the one before"):
                await server.ask("POST", path, _changes(names, "0"), key=key)
            await ground.clock.sleep(after_ms / 1000)
        return await server.cost(what, "POST", path, _changes(names, "1"), key=key)

    return case


def creations(tables: int) -> Case:
    """A transaction of so many tables that it creates, each staged before."""

    async def case(ground: Ground, server: Server, key: bool) -> Cost:
        changes = []
        for number in range(tables):
            name = f"new{number}"
            staged = await server.ask("POST", TABLES, {"name": name, "schema": SCHEMA, "stage-create": True})
            changes.append(_creating(name, msgspec.json.decode(staged.body)["metadata"]))
        await server.settle()
        path, what = f"{PREFIX}/transactions/commit", f"transaction of {tables} creations"
        return await server.cost(what, "POST", path, {"table-changes": changes}, key=key)

    return case


def _creating(name: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """The change that makes a staged table, as Iceberg's clients send it."""
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    identifier = {"namespace": ["db"], "name": name}
    return {"identifier": identifier, "requirements": [{"type": "assert-create"}], "updates": updates}


def commit_after_transaction(after_ms: float) -> Case:
    """A commit so long after the answer to a transaction, of which nobody has finished anything at first."""

    async def case(ground: Ground, server: Server, key: bool) -> Cost:
        with operation("the one before"):
            await server.ask("POST", f"{PREFIX}/transactions/commit", _changes(["t"], "0"), key=key)
        await ground.clock.sleep(after_ms / 1000)
        return await server.cost("commit right after a transaction", "POST", f"{TABLES}/t", property_commit("1"), key=key)

    return case


def _changes(names: list[str], value: str) -> dict[str, Any]:
    changed = [property_commit(value) | {"identifier": {"namespace": ["db"], "name": name}} for name in names]
    return {"table-changes": changed}


async def create_table(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("create table", "POST", TABLES, {"name": "new", "schema": SCHEMA}, key=key)


async def rename_table(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("rename table", "POST", f"{PREFIX}/tables/rename", rename("t", "u"), key=key)


async def drop_table(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("drop table", "DELETE", f"{TABLES}/t", key=key)


async def create_namespace(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("create namespace", "POST", f"{PREFIX}/namespaces", {"namespace": ["new"]}, key=key)


async def list_tables(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("list tables", "GET", TABLES, key=key)


async def load_namespace(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("load namespace", "GET", f"{PREFIX}/namespaces/db", key=key)


async def namespace_exists(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("does a namespace exist?", "HEAD", f"{PREFIX}/namespaces/db", key=key)


async def table_exists(ground: Ground, server: Server, key: bool) -> Cost:
    return await server.cost("does a table exist?", "HEAD", f"{TABLES}/t", key=key)


class Temperature(StrEnum):
    """What the server knows when it is asked."""

    WARM = "warm"  # the table
    COLD = "just started"  # what it read before `/ready` said 200: the names, and nothing of any table
    UNREADY = "not ready yet"  # nothing at all; the names lie in Parquet, as a second after every change


def measure(case: Case, temperature: Temperature = Temperature.WARM, *, key: bool = True) -> Cost:
    """The cost of one operation on a ground of its own."""
    ground = Ground()

    async def run() -> Cost:
        first = ground.server()
        await prepare(first)
        await checkpoint(first.catalog.parts.tier1, ground.clock, ground.entropy)
        if temperature is Temperature.WARM:
            return await case(ground, first, key)
        second = ground.server()
        if temperature is Temperature.COLD:
            assert (await second.ask("GET", "/ready")).status == 200
        return await case(ground, second, key)

    return ground.run(run())
