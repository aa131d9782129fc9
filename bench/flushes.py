"""What a commit costs a disk: how many flushes it makes, how many of them one after the other, and how long it all takes.

A durable write of one file is two flushes, one after the other: its bytes, then its name. Writes that go out together flush
together. So the shortest commit has two rounds of flushes for each of its round trips, and takes as long as so many durable
writes, beside what it takes without any flush.
"""

import asyncio
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.catalog_costs import (
    PREFIX,
    SCHEMA,
    TABLES,
    Case,
    Server,
    commit,
    create_namespace,
    create_table,
    prepare,
    property_commit,
)
from tests.integration.catalog_costs import measure as counted

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.disk import FileStat, RealDisk
from arco.storage.local import LocalStore
from storage import Bare


class CountingDisk(RealDisk):
    """The real disk, with a count of its flushes. One that starts after another has ended is one round later.

    To count rounds a flush is made to take `slow_s`: longer than threads of one group are apart.
    """

    def __init__(self, slow_s: float = 0.0) -> None:
        self._slow_s = slow_s
        self.flushes = 0
        self.rounds = 0
        self._counting = threading.Lock()

    @contextmanager
    def _flush(self) -> Iterator[None]:
        with self._counting:
            self.flushes += 1
            before = self.rounds
        yield
        if self._slow_s:
            time.sleep(self._slow_s)
        with self._counting:
            self.rounds = max(self.rounds, before + 1)

    def write_new(self, path: str, data: bytes, mtime_ns: int, *, sync: bool) -> FileStat:
        if not sync:
            return super().write_new(path, data, mtime_ns, sync=False)
        with self._flush():
            return super().write_new(path, data, mtime_ns, sync=True)

    def set_mtime(self, path: str, mtime_ns: int, *, sync: bool) -> None:
        if not sync:
            super().set_mtime(path, mtime_ns, sync=False)
            return
        with self._flush():
            super().set_mtime(path, mtime_ns, sync=True)

    def sync_folder(self, path: str) -> None:
        with self._flush():
            super().sync_folder(path)


@dataclass(frozen=True)
class Flushes:
    """Medians of many requests, each beside the durable write just before it."""

    what: str
    rounds: float
    before: float
    in_all: float
    took_ms: float
    bare_ms: float
    ratio: float


Asks = list[tuple[str, dict[str, object]]]


class Bench:
    """One server on one folder, with or without flushes."""

    def __init__(self, folder: str, *, key: bool, sync: bool = True, slow_s: float = 0.0) -> None:
        clock, entropy = SystemClock(), SystemEntropy()
        self._key = key
        self._disk = CountingDisk(slow_s)
        self._store = LocalStore(f"{folder}/lake", clock, entropy, disk=self._disk, sync=sync)
        self._server = Server(self._store, clock, entropy, f"file://{folder}/lake")
        self._bare = Bare(f"{folder}/bare", sync_folder=True)

    async def run(self, rounds: int) -> list[Flushes]:
        await prepare(self._server)
        commits: Asks = [(f"{TABLES}/t", property_commit(f"p{number}")) for number in range(rounds)]
        tables: Asks = [(TABLES, {"name": f"n{number}", "schema": SCHEMA}) for number in range(rounds)]
        namespaces: Asks = [(f"{PREFIX}/namespaces", {"namespace": [f"n{number}"]}) for number in range(rounds)]
        rows = [
            await self._several("commit", commits),
            await self._several("create table", tables),
            await self._several("create namespace", namespaces),
        ]
        await self._server.stop()
        await self._store.close()
        return rows

    async def _several(self, what: str, asks: Asks) -> Flushes:
        medians = [statistics.median(values) for values in zip(*[await self._one(*ask) for ask in asks], strict=True)]
        return Flushes(what, *medians)

    async def _one(self, path: str, body: dict[str, object]) -> tuple[float, ...]:
        started = time.perf_counter()
        self._bare()
        bare_ms = (time.perf_counter() - started) * 1000
        disk, flushes, rounds, started = self._disk, self._disk.flushes, self._disk.rounds, time.perf_counter()
        reply = await self._server.ask("POST", path, body, key=self._key)
        took_ms = (time.perf_counter() - started) * 1000
        before = (disk.rounds - rounds, disk.flushes - flushes)
        assert reply.status == 200, reply
        await self._server.settle()
        return *before, disk.flushes - flushes, took_ms, bare_ms, took_ms / bare_ms


CASES: dict[str, Case] = {"commit": commit, "create table": create_table, "create namespace": create_namespace}


SLOW_S = 0.02
SLOW_REQUESTS = 8


def _row(row: Flushes, free: Flushes, slow: Flushes, *, key: bool) -> str:
    trips = counted(CASES[row.what], key=key).trips
    flushing = (row.took_ms - free.took_ms) / row.bare_ms
    rounds_met = "met" if slow.rounds <= trips * 2 else "**not met**"
    time_met = "met" if flushing <= trips * 1.5 else "**not met**"
    return (
        f"| {row.what} | {'yes' if key else 'no'} | {trips} | {slow.rounds:g} | {trips * 2}: {rounds_met} | {slow.before:g} "
        f"| {slow.in_all:g} | {row.took_ms:.2f} ms | {free.took_ms:.2f} ms | {row.bare_ms:.2f} ms | {row.ratio:.1f} "
        f"| {flushing:.1f} | about {trips}: {time_met} |"
    )


HEAD = (
    "| operation | key | round trips before the answer | flushes one after the other | goal | flushes before the answer "
    "| in all | time | without flushes | one durable write | time beside it | flushing beside it | goal |"
)


def _run(rounds: int, **how: Any) -> list[Flushes]:
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
        return asyncio.run(Bench(str(Path(folder)), **how).run(rounds))


def report(rounds: int) -> list[str]:
    lines = [
        HEAD,
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key in (True, False):
        rows, free = (_run(rounds, key=key, sync=sync) for sync in (True, False))
        slow = _run(SLOW_REQUESTS, key=key, slow_s=SLOW_S)
        lines += [_row(*three, key=key) for three in zip(rows, free, slow, strict=True)]
    return lines
