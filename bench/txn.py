"""Transactions: how many a second, how often they meet, and what one costs, at 2, 5 and 10 tables with 1 and 8 writers.

The application runs in this process, on a folder that is asked to keep what it is given, and on a store in memory that is as slow
as S3. Writers choose their tables at random among twenty, so that they meet all the time; the last row has 32 writers and four
hundred tables, so that they hardly do. Every transaction has its own key and must be in the history of each of its tables once.
The baseline of the same run commits the same tables one after the other, which is what a catalog without a decision does: it is
not atomic. Requests and round trips are counted by the tests (`test_round_trips.py`); peers: `txn_peers.py`.
Usage: python bench/txn.py [--seconds 10]
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from tests.integration import catalog_costs as costs
from tests.integration.catalog_costs import PREFIX, SCHEMA, TABLES, Server

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.keys import prefix_of
from arco.storage.local import LocalStore
from arco.storage.memory import MemoryStore
from arco.storage.paging import walk
from arco.storage.port import ObjectStore
from arco.storage.profile import S3, ProfiledStore

POOL = 20
SPREAD = 400
ASKED_AGAIN = {503, 504}


@dataclass(slots=True)
class Tally:
    """What a round of writers came to. `met` are transactions that needed more than one attempt."""

    done: int = 0
    met: int = 0
    asked_again: int = 0
    took_s: float = 0.0
    worst_s: float = 0.0


async def _transact(server: Server, names: list[str], label: str, tally: Tally) -> None:
    """One transaction to its end, asked again with its key as long as the answer leaves it open."""
    changes = [costs.property_commit(label) | {"identifier": {"namespace": ["db"], "name": name}} for name in names]
    key, started = server.new_key(), time.perf_counter()
    while True:
        reply = await server.ask(
            "POST", f"{PREFIX}/transactions/commit", {"table-changes": changes}, key=False, idempotency_key=key
        )
        if reply.status not in ASKED_AGAIN:
            break
        tally.asked_again += 1
    if reply.status != 204:
        raise SystemExit(f"a transaction was answered {reply.status}: {reply.body!r}")
    tally.worst_s = max(tally.worst_s, time.perf_counter() - started)
    tally.done += 1
    record = await server.catalog.parts.records.read(key)
    tally.met += record is not None and record.value.attempt > 1


async def _in_a_row(server: Server, names: list[str], label: str, tally: Tally) -> None:
    """The same tables, one commit after the other."""
    started = time.perf_counter()
    for name in names:
        reply = await server.ask("POST", f"{TABLES}/{name}", costs.property_commit(label))
        if reply.status != 200:
            raise SystemExit(f"a commit was answered {reply.status}: {reply.body!r}")
    tally.worst_s = max(tally.worst_s, time.perf_counter() - started)
    tally.done += 1


Work = Callable[[Server, list[str], str, Tally], Awaitable[None]]


async def _round(servers: list[Server], work: Work, tables: int, writers: int, seconds: float, pool: int = POOL) -> Tally:
    tally, rng = Tally(), random.Random(7)
    until = time.perf_counter() + seconds

    async def write(number: int) -> None:
        count = 0
        while time.perf_counter() < until:
            names = [f"t{one}" for one in rng.sample(range(pool), tables)]
            await work(servers[number % len(servers)], names, f"{work.__name__} {tables} {number}-{count}", tally)
            count += 1

    started = time.perf_counter()
    await asyncio.gather(*(write(number) for number in range(writers)))
    tally.took_s = time.perf_counter() - started
    return tally


async def _tables(server: Server, pool: int = POOL) -> None:
    await server.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
    for first in range(0, pool, 20):
        some = range(first, min(first + 20, pool))
        await asyncio.gather(*(server.ask("POST", TABLES, {"name": f"t{one}", "schema": SCHEMA}) for one in some))
    await server.settle()


async def _prove(store: ObjectStore, servers: list[Server], done: int) -> None:
    """Every transaction is in the history of each of its tables, once."""
    for server in servers:
        await server.settle()
    seen: dict[str, set[str]] = {}
    async for entry in walk(store, prefix_of(costs.SCOPE, "_catalog", "events")):
        if "/committed/" in entry.key:
            found = await store.get(entry.key)
            receipt: Any = msgspec.json.decode(found.data) if found else {}
            transaction = receipt["commit"].get("transaction")
            if transaction:
                tables = seen.setdefault(transaction, set())
                if receipt["table_uuid"] in tables:
                    raise SystemExit(f"{transaction} landed twice in {receipt['table_uuid']}")
                tables.add(receipt["table_uuid"])
    if len(seen) != done:
        raise SystemExit(f"{done} transactions were acknowledged, {len(seen)} are in the histories")


async def _measure(name: str, store: ObjectStore, base_uri: str, seconds: float, servers: int) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    running = [Server(store, clock, entropy, base_uri) for _ in range(servers)]
    await _tables(running[0])
    for one in running:
        await one.catalog.parts.tier1.current()
    done = 0
    for tables in (2, 5, 10):
        for writers in (1, 8):
            row = await _round(running, _in_a_row, tables, writers, seconds)
            txn = await _round(running, _transact, tables, writers, seconds)
            done += txn.done
            rates = txn.done / txn.took_s, row.done / row.took_s
            print(
                f"| {name} | {servers} | {tables} | {writers} | {rates[0]:.1f} | {rates[1]:.1f} | {rates[0] / rates[1]:.2f}× | "
                f"{txn.met / max(1, txn.done):.1%} | {txn.asked_again / max(1, txn.done):.1%} | {txn.worst_s * 1000:.0f} |",
                flush=True,
            )
    await _prove(store, running, done)
    for one in running:
        await one.stop()


async def _measure_apart(store: ObjectStore, seconds: float) -> None:
    """Writers who hardly ever want the same table."""
    server = Server(store, SystemClock(), SystemEntropy(), "memory://lake")
    await _tables(server, SPREAD)
    txn = await _round([server], _transact, 5, 32, seconds, SPREAD)
    rate, met = txn.done / txn.took_s, txn.met / max(1, txn.done)
    worst_ms = txn.worst_s * 1000
    print(f"| S3 profile, {SPREAD} tables | 1 | 5 | 32 | {rate:.1f} | | | {met:.1%} | {txn.asked_again} | {worst_ms:.0f} |")
    await _prove(store, [server], txn.done)
    await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    seconds = parser.parse_args().seconds
    print(f"Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print(
        "| store | servers | tables | writers | transactions/s | in a row/s | ratio | met another | asked again | worst ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    clock = SystemClock()
    slow = ProfiledStore(MemoryStore(clock), S3, clock)
    asyncio.run(_measure("S3 profile", slow, "memory://lake", seconds, 1))
    two = ProfiledStore(MemoryStore(clock), S3, clock)
    asyncio.run(_measure("S3 profile", two, "memory://lake", seconds, 2))
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
        local = LocalStore(folder, clock, SystemEntropy())
        asyncio.run(_measure("folder", local, f"file://{folder}", seconds, 1))
    asyncio.run(_measure_apart(ProfiledStore(MemoryStore(clock), S3, clock), seconds))


if __name__ == "__main__":
    main()
