"""Loads and commits per second of a real server, beside a server that answers as many bytes and does nothing.

One client process drives both, in turn, so that its own cost and the machine's noise fall on both. Each committer has a table
of its own: what many do to one table is `hot_table.py`'s question.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.integration.catalog_costs import PREFIX, SCHEMA, property_commit
from tests.integration.plain_http import Connection
from tests.integration.server_fleet import ServerProcess, lake

CLIENTS = (1, 8, 32)
TABLES = f"{PREFIX}/namespaces/db/tables"
_BARE = Path(__file__).with_name("bare_server.py")


@dataclass(frozen=True)
class Client:
    """One client's table, with the tag of what it has loaded."""

    path: str
    etag: str


Ask = Callable[[Connection, Client, int], Awaitable[int]]


@dataclass(frozen=True)
class Rate:
    what: str
    clients: int
    ours_per_s: float
    bare_per_s: float


async def _load(connection: Connection, client: Client, _number: int) -> int:
    return (await connection.ask("GET", client.path)).status


async def _load_unchanged(connection: Connection, client: Client, _number: int) -> int:
    return (await connection.ask("GET", client.path, If_None_Match=client.etag)).status


async def _commit(connection: Connection, client: Client, number: int) -> int:
    return (await connection.ask("POST", client.path, property_commit(f"{time.monotonic_ns()}-{number}"))).status


async def _per_s(address: str, ask: Ask, clients: list[Client], each: int) -> float:
    async def drive(client: Client) -> None:
        connection = await Connection.open(address)
        for number in range(each):
            status = await ask(connection, client, number)
            assert status in {200, 304}, status
        connection.close()

    started = time.perf_counter()
    await asyncio.gather(*(drive(client) for client in clients))
    return len(clients) * each / (time.perf_counter() - started)


async def _prepare(address: str) -> tuple[list[Client], int]:
    """A table for each client; the bytes of an answer."""
    connection = await Connection.open(address)
    await connection.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
    clients, size = [], 0
    for number in range(max(CLIENTS)):
        path = f"{TABLES}/t{number}"
        await connection.ask("POST", TABLES, {"name": f"t{number}", "schema": SCHEMA})
        loaded = await connection.ask("GET", path)
        unchanged = await connection.ask("GET", path, If_None_Match=loaded.headers["etag"])
        assert (loaded.status, unchanged.status) == (200, 304)
        clients, size = [*clients, Client(path, loaded.headers["etag"])], len(loaded.body)
    connection.close()
    return clients, size


async def _measure(rounds: int, loads: int, commits: int) -> list[Rate]:
    with lake("local") as where:
        server = ServerProcess(where)
        address = await server.start()
        everybody, size = await _prepare(address)
        bare = await asyncio.create_subprocess_exec(sys.executable, str(_BARE), str(size), stdout=asyncio.subprocess.PIPE)
        try:
            assert bare.stdout is not None
            bare_address = (await bare.stdout.readline()).decode().rpartition(" ")[2].strip()
            rates = []
            for what, ask, total in (
                ("load", _load, loads),
                ("load, 304", _load_unchanged, loads),
                ("commit", _commit, commits),
            ):
                for clients in CLIENTS:
                    each = max(1, total // clients)
                    ours, theirs = [], []
                    for _ in range(rounds):
                        theirs.append(await _per_s(bare_address, ask, everybody[:clients], each))
                        ours.append(await _per_s(address, ask, everybody[:clients], each))
                    rates.append(Rate(what, clients, statistics.median(ours), statistics.median(theirs)))
        finally:
            bare.terminate()
            await bare.wait()
            await server.stop()
        return rates


def report(rounds: int, loads: int, commits: int) -> list[str]:
    rates = asyncio.run(_measure(rounds, loads, commits))
    return [
        "| request | clients | ours | a server that does nothing | ours beside it |",
        "|---|---|---|---|---|",
        *(
            f"| {one.what} | {one.clients} | {one.ours_per_s:,.0f}/s | {one.bare_per_s:,.0f}/s "
            f"| {one.ours_per_s / one.bare_per_s:.2f} |"
            for one in rates
        ),
    ]
