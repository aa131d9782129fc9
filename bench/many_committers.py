"""Many committers at the latencies of S3: to one table, and each to a table of its own.

First in virtual time: a request takes what the profile says, and the processor takes none. So the figures are those of the
protocol alone, the same on every machine: what is left when the store is what one waits for. Then over HTTP, through a server
whose store takes as long by the clock (`slow_server.py`): what the server itself takes is in these.
"""

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.catalog_costs import PREFIX, SCHEMA, TABLES, Ground, Server, property_commit
from tests.integration.plain_http import Connection

import rest_servers
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7
from arco.storage.memory import MemoryStore
from arco.storage.profile import S3, ProfiledStore

EACH = 40
SIZES = ((1, 1), (1, 2), (1, 8), (8, 8), (1, 32), (32, 32))
OVER_HTTP = ((1, 1), (1, 8), (8, 8), (1, 32), (32, 32), (1, 64))
HOT = (1, 32)
GOAL_PER_S = 100


@dataclass(frozen=True)
class Rate:
    """So many commits by so many committers to so many tables."""

    tables: int
    committers: int
    per_s: float
    requests: float


def _measured(tables: int, committers: int) -> Rate:
    ground = Ground()
    ground.store = ProfiledStore(MemoryStore(ground.clock), S3, ground.clock)
    return ground.run(_commits(ground, ground.server(), tables, committers))


async def _commits(ground: Ground, server: Server, tables: int, committers: int) -> Rate:
    await server.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
    for number in range(tables):
        await server.ask("POST", TABLES, {"name": f"t{number}", "schema": SCHEMA})
        await server.ask("POST", f"{TABLES}/t{number}", property_commit("first"))
    await server.settle()
    before, began_s = ground.store.total.total_requests, ground.clock.monotonic_s()

    async def commit(committer: int) -> None:
        for number in range(EACH):
            path = f"{TABLES}/t{committer % tables}"
            reply = await server.ask("POST", path, property_commit(f"{committer}-{number}"))
            assert reply.status == 200, reply

    await asyncio.gather(*(commit(number) for number in range(committers)))
    took_s = ground.clock.monotonic_s() - began_s
    await server.settle()
    spent = ground.store.total.total_requests - before
    return Rate(tables, committers, committers * EACH / took_s, spent / (committers * EACH))


def over_http() -> list[str]:
    """The lines of a table: acknowledged commits through a real server, keyed."""
    with (
        tempfile.TemporaryDirectory(prefix="arco-bench-") as folder,
        rest_servers.arco(Path(folder), script="slow_server.py") as running,
    ):
        lines = asyncio.run(_through(running))
    head = ["| tables | committers | commits/s | p50 ms | p99 ms | processor of a commit |", "|---|---|---|---|---|---|"]
    return [*head, *lines]


async def _through(running: rest_servers.Running) -> list[str]:
    address = "http://" + running.base.removeprefix("http://").partition("/")[0]
    first = await Connection.open(address)
    await first.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
    for number in range(max(tables for tables, _ in OVER_HTTP)):
        await _asked(first, TABLES, {"name": f"t{number}", "schema": SCHEMA})
        await _asked(first, f"{TABLES}/t{number}", property_commit("first"))
    first.close()
    lines = []
    for tables, committers in OVER_HTTP:
        before_s, began = running.processor_s(), time.perf_counter()
        told = await asyncio.gather(*(_committed(address, number, tables) for number in range(committers)))
        took_s = time.perf_counter() - began
        latencies = sorted(one for each in told for one in each)
        spent_ms = (running.processor_s() - before_s) * 1000 / len(latencies)
        rate = len(latencies) / took_s
        goal = f"goal {GOAL_PER_S}: {'met' if rate >= GOAL_PER_S else '**not met**'}" if (tables, committers) == HOT else ""
        points = " | ".join(f"{latencies[int(len(latencies) * part)]:.0f}" for part in (0.5, 0.99))
        lines.append(f"| {tables} | {committers} | {rate:.1f} {goal} | {points} | {spent_ms:.2f} ms |")
    return lines


async def _committed(address: str, committer: int, tables: int) -> list[float]:
    """How long each commit of one committer took, in milliseconds."""
    connection = await Connection.open(address)
    path = f"{TABLES}/t{committer % tables}"
    told = [await _asked(connection, path, property_commit(f"{committer}-{number}")) for number in range(EACH)]
    connection.close()
    return told


async def _asked(connection: Connection, path: str, body: dict[str, Any]) -> float:
    began, key = time.perf_counter(), new_uuid7(SystemClock(), SystemEntropy())
    reply = await connection.ask("POST", path, body, Idempotency_Key=key)
    if reply.status != 200:
        raise SystemExit(f"a commit was answered {reply.status}: {reply.body[:200]!r}")
    return (time.perf_counter() - began) * 1000


def report() -> list[str]:
    rates = [_measured(*sizes) for sizes in SIZES]
    lines = [
        "| tables | committers | commits/s | beside one committer | store requests a commit |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.tables} | {one.committers} | {one.per_s:.1f} | {one.per_s / rates[0].per_s:.1f} | {one.requests:.1f} |"
        for one in rates
    ]
    return lines


if __name__ == "__main__":
    print("\n".join([*report(), "", *over_http()]))
