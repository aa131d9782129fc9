"""What is asked of every server beside ours, and what it did: requests, rounds and the times that they took."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.integration.plain_http import Connection, NotSent, ReplyLost

from light_client import read
from rest_servers import Running

NAMESPACE = "db"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": n, "name": f"column_{n}", "type": "long", "required": False} for n in range(1, 11)],
}
# Optional in the specification; one of the servers refuses a body without them.
REQUIRED_BY_SOME = {
    "partition-spec": {"spec-id": 0, "fields": []},
    "write-order": {"order-id": 0, "fields": []},
    "stage-create": False,
}
READY_S = 240
PATHS_MAX = 1000


@dataclass(slots=True)
class Taken:
    """What a server did in one round of a figure."""

    per_s: float
    processor_ms: float
    latencies_ms: list[float]
    refused: int


@dataclass(slots=True)
class Peer:
    """A server under load, and all that was measured of it."""

    name: str
    running: Running
    connections: list[Connection] = field(default_factory=list)
    made: int = 0
    taken: dict[str, list[Taken]] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)
    memory_mib: list[float] = field(default_factory=list)

    @property
    def address(self) -> str:
        return "http://" + self.running.base.removeprefix("http://").partition("/")[0]

    @property
    def path(self) -> str:
        return "/" + self.running.base.removeprefix("http://").partition("/")[2]

    @property
    def tables(self) -> str:
        return f"{self.path}/namespaces/{NAMESPACE}/tables"

    def rate(self, figure: "Figure") -> float:
        return statistics.median(one.per_s for one in self.taken[figure.name])

    async def connect(self, clients: int) -> None:
        # While the others were measured, a server may have closed what was at rest.
        self.connections = [one for one in self.connections if one.is_open]
        while len(self.connections) < clients:
            self.connections.append(await Connection.open(self.address))

    def disconnect(self) -> None:
        for connection in self.connections:
            connection.close()
        self.connections = []

    async def ready(self) -> None:
        """Until it takes a namespace."""
        last: Any = None
        until = time.perf_counter() + READY_S
        while time.perf_counter() < until:
            try:
                await self.connect(1)
                last = await self.connections[0].ask("POST", f"{self.path}/namespaces", {"namespace": [NAMESPACE]}, **_JSON)
                if last.status == 200:
                    return
            except (NotSent, ReplyLost) as error:
                last = error
                self.disconnect()
            await asyncio.sleep(0.2)
        raise OSError(f"it never took a namespace: {last}")


_JSON = {"Content_Type": "application/json"}
Act = Callable[[Peer, Connection, int, int], Awaitable[bool]]
"""One request of one client, by its number and the client's; whether it was taken."""


async def _ask(connection: Connection, method: str, path: str, body: Any = None) -> bool:
    reply = await connection.ask(method, path, body, **_JSON)
    if reply.status >= 500 or reply.status == 404:
        raise ReplyLost(f"{reply.status} {reply.body[:200]!r}")
    return reply.status < 300


async def create(peer: Peer, connection: Connection, number: int, _client: int) -> bool:
    body = {"name": f"t{number:06}", "schema": SCHEMA, **REQUIRED_BY_SOME}
    return await _ask(connection, "POST", peer.tables, body)


async def list_pages(peer: Peer, connection: Connection, _number: int, _client: int) -> bool:
    token = ""
    while token is not None:
        reply = await connection.ask("GET", f"{peer.tables}?pageSize=100&pageToken={token}")
        if reply.status != 200:
            raise ReplyLost(f"{reply.status} {reply.body[:200]!r}")
        token = reply.json().get("next-page-token")
    return True


def _change(number: int, client: int) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {f"p{client}": str(number)}}]}


async def commit_one(peer: Peer, connection: Connection, number: int, client: int) -> bool:
    return await _ask(connection, "POST", f"{peer.tables}/t000000", _change(number, client))


async def commit_own(peer: Peer, connection: Connection, number: int, client: int) -> bool:
    return await _ask(connection, "POST", f"{peer.tables}/t{1 + client:06}", _change(number, client))


@dataclass(frozen=True, slots=True)
class Figure:
    """What clients do. `act` is one request of one of them; reads of `method` are made by a client that costs nothing instead."""

    name: str
    act: Act | None
    clients: int
    flushes: bool = False
    """Whether a durable server waits for its disk here."""
    grouped: bool = False
    """Whether writers can share one wait."""
    method: str = ""
    of_all: bool = False
    """Whether it is the list of all that is read, and not one table after the other."""

    def paths(self, peer: Peer) -> list[str]:
        if self.of_all:
            return [peer.tables]
        return [f"{peer.tables}/t{number * 7919 % peer.made:06}" for number in range(min(peer.made, PATHS_MAX))]


CREATE = Figure("create tables, 8 clients", create, 8, flushes=True, grouped=True)
SERIAL = Figure("commit, 1 writer", commit_one, 1, flushes=True)
ONE_TABLE = Figure("commit, 8 writers on one table", commit_one, 8, flushes=True, grouped=True)
OWN_TABLES = Figure("commit, 8 writers on 8 tables", commit_own, 8, flushes=True)
FIGURES = (
    Figure("load, 1 client", None, 1, method="GET"),
    Figure("load, 8 clients", None, 8, method="GET"),
    Figure("load, 32 clients", None, 32, method="GET"),
    Figure("HEAD, 1 client", None, 1, method="HEAD"),
    Figure("HEAD, 8 clients", None, 8, method="HEAD"),
    Figure("HEAD, 32 clients", None, 32, method="HEAD"),
    Figure("list of all names", None, 1, method="GET", of_all=True),
    Figure("list in pages of 100", list_pages, 1),
    SERIAL,
    ONE_TABLE,
    OWN_TABLES,
)


async def take(peer: Peer, figure: Figure, seconds: float, most: int | None = None) -> Taken:
    """As much as clients get done in a time; no more than so many requests."""
    return await (_read(peer, figure, seconds) if figure.act is None else _done(peer, figure, figure.act, seconds, most))


async def _read(peer: Peer, figure: Figure, seconds: float) -> Taken:
    # Its own connections would only be in the way.
    peer.disconnect()
    before_s = peer.running.processor_s()
    try:
        found = await asyncio.to_thread(read, peer.address, figure.method, figure.paths(peer), figure.clients, seconds)
    except OSError as error:
        raise ReplyLost(str(error)) from error
    spent_s = peer.running.processor_s() - before_s
    return Taken(found.per_s, spent_s * 1000 / found.requests, found.latencies_ms, 0)


async def _done(peer: Peer, figure: Figure, act: Act, seconds: float, most: int | None) -> Taken:
    await peer.connect(figure.clients)
    latencies: list[float] = []
    refused, next_number = 0, peer.made if figure is CREATE else 0
    until, last = time.perf_counter() + seconds, None if most is None else next_number + most

    async def client(number: int) -> None:
        nonlocal refused, next_number
        connection = peer.connections[number]
        while time.perf_counter() < until and (last is None or next_number < last):
            mine, next_number = next_number, next_number + 1
            started = time.perf_counter()
            while not await act(peer, connection, mine, number):
                refused += 1
            latencies.append((time.perf_counter() - started) * 1000)

    before_s, started = peer.running.processor_s(), time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(figure.clients)))
    took_s = time.perf_counter() - started
    spent_s = peer.running.processor_s() - before_s
    if figure is CREATE:
        peer.made = next_number
    return Taken(len(latencies) / took_s, spent_s * 1000 / len(latencies), latencies, refused)
