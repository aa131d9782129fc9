"""What a commit costs a disk: how many flushes it makes, and how long it takes beside one durable write.

A durable write of one file is two flushes, one after the other: its bytes, then its name. Writes that go out together flush
together. So the shortest commit takes as many durable writes, one after the other, as it has round trips.
"""

import asyncio
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

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
    """The real disk, with a count of its flushes."""

    def __init__(self) -> None:
        self.flushes = 0
        self._counting = threading.Lock()

    def _count(self) -> None:
        with self._counting:
            self.flushes += 1

    def write_new(self, path: str, data: bytes, mtime_ns: int, *, sync: bool) -> FileStat:
        if sync:
            self._count()
        return super().write_new(path, data, mtime_ns, sync=sync)

    def set_mtime(self, path: str, mtime_ns: int, *, sync: bool) -> None:
        if sync:
            self._count()
        super().set_mtime(path, mtime_ns, sync=sync)

    def sync_folder(self, path: str) -> None:
        self._count()
        super().sync_folder(path)


@dataclass(frozen=True)
class Flushes:
    what: str
    trips: int
    before: float
    in_all: float
    took_ms: float
    bare_ms: float
    ratio: float  # of each request to the durable write just before it


async def _measure(folder: str, rounds: int, *, key: bool) -> list[Flushes]:
    clock, entropy, disk = SystemClock(), SystemEntropy(), CountingDisk()
    store = LocalStore(f"{folder}/lake", clock, entropy, disk=disk)
    server = Server(store, clock, entropy, f"file://{folder}/lake")
    bare = Bare(f"{folder}/bare", sync_folder=True)
    await prepare(server)

    async def several(what: str, case: Case, asks: list[tuple[str, dict[str, object]]]) -> Flushes:
        before, in_all, took_s, bare_s = [], [], [], []
        for path, body in asks:
            started = time.perf_counter()
            bare()
            bare_s.append(time.perf_counter() - started)
            flushes, started = disk.flushes, time.perf_counter()
            reply = await server.ask("POST", path, body, key=key)
            took_s.append(time.perf_counter() - started)
            before.append(disk.flushes - flushes)
            assert reply.status == 200, reply
            await server.settle()
            in_all.append(disk.flushes - flushes)
        trips = counted(case, key=key).trips
        ratios = [took / bare for took, bare in zip(took_s, bare_s, strict=True)]
        medians = [statistics.median(values) for values in (before, in_all, took_s, bare_s, ratios)]
        return Flushes(what, trips, medians[0], medians[1], medians[2] * 1000, medians[3] * 1000, medians[4])

    commits = [(f"{TABLES}/t", property_commit(f"p{number}")) for number in range(rounds)]
    tables = [(TABLES, {"name": f"n{number}", "schema": SCHEMA}) for number in range(rounds)]
    namespaces = [(f"{PREFIX}/namespaces", {"namespace": [f"n{number}"]}) for number in range(rounds)]
    rows = [
        await several("commit", commit, commits),
        await several("create table", create_table, tables),
        await several("create namespace", create_namespace, namespaces),
    ]
    await server.stop()
    await store.close()
    return rows


def report(rounds: int) -> list[str]:
    lines = [
        "| operation | key | round trips before the answer | flushes before it | in all | time | durable write | ratio | goal |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for key in (True, False):
        with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
            for row in asyncio.run(_measure(str(Path(folder)), rounds, key=key)):
                met = "met" if row.ratio <= row.trips * 1.5 else "**not met**"
                lines.append(
                    f"| {row.what} | {'yes' if key else 'no'} | {row.trips} | {row.before:g} | {row.in_all:g} "
                    f"| {row.took_ms:.2f} ms | {row.bare_ms:.2f} ms | {row.ratio:.1f} | about {row.trips}: {met} |"
                )
    return lines
