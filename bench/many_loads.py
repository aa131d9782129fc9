"""Loads from a catalog with many names: a local root whose base file was generated, with a hundred tables that are really there.

What a load costs must not grow with the number of tables. One server process for each size, in turn.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.integration.catalog_costs import PREFIX, SCHEMA, Ground
from tests.integration.plain_http import Connection

import rest_servers
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.local import LocalStore
from ddl_scale import many_names, write_base
from light_client import read

LOADED = 100
LOADS_S = 2
CLIENTS = 8


class _OnDisk(Ground):
    """The same ground on a folder, by the real clock."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.clock = SystemClock()  # type: ignore[assignment]
        self.entropy = SystemEntropy()  # type: ignore[assignment]
        self.store = LocalStore(str(folder / "lake"), self.clock, self.entropy)  # type: ignore[assignment]


def loads_lines(sizes: Sequence[int]) -> Iterator[str]:
    """The lines of a table, each when it is measured."""
    if not sizes:
        return
    yield from (
        "## Loads by the number of tables",
        "",
        f"Ours, one process, {CLIENTS} clients, loads of {LOADED} tables; and as many creates before, one after the other.",
        "",
        "| tables | loads/s | p50 ms | p95 ms | p99 ms | processor of a load | creates/s | memory |",
        "|---|---|---|---|---|---|---|---|",
    )
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
            asyncio.run(_made(Path(folder), size))
            with rest_servers.arco(Path(folder)) as running:
                yield asyncio.run(_measured(running, size))


async def _made(folder: Path, size: int) -> None:
    ground = _OnDisk(folder)
    await write_base(many_names(size, ground), ground)
    await ground.store.close()


async def _measured(running: rest_servers.Running, size: int) -> str:
    address = "http://" + running.base.removeprefix("http://").partition("/")[0]
    first = await Connection.open(address)
    await first.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["real"]})
    tables = f"{PREFIX}/namespaces/real/tables"
    started = time.perf_counter()
    for number in range(LOADED):
        reply = await first.ask("POST", tables, {"name": f"t{number}", "schema": SCHEMA})
        assert reply.status == 200, reply
    creates = LOADED / (time.perf_counter() - started)
    first.close()
    paths = [f"{tables}/t{number * 13 % LOADED}" for number in range(LOADED)]
    await asyncio.to_thread(read, address, "GET", paths, CLIENTS, 1)
    before_s = running.processor_s()
    found = await asyncio.to_thread(read, address, "GET", paths, CLIENTS, LOADS_S)
    spent_ms = (running.processor_s() - before_s) * 1000 / found.requests
    points = " | ".join(f"{found.latencies_ms[round(len(found.latencies_ms) * part)]:.1f}" for part in (0.5, 0.95, 0.99))
    memory = f"{running.resident_mib():,.0f} MiB"
    return f"| {size:,} | {found.per_s:,.0f} | {points} | {spent_ms:.3f} ms | {creates:.0f} | {memory} |"
