"""Transactions over HTTP beside those who offer the endpoint: the same requests, each server a process of its own, on a folder.

    arco        one decision, on disk before it is answered: all of it or nothing, whoever dies
    reference   Iceberg's own server on an SQLite file: table after table; what fails half way stays half done
    seaweedfs   its catalog on its own store: table after table, undone as well as it can; by its own word not crash-atomic

A request that is refused because others were faster is sent again until it is taken, and counted. Peers that cannot be started
here are left out, and that is said. Usage: python bench/txn_peers.py [--seconds 5]
"""

import argparse
import asyncio
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.integration.plain_http import Connection, NotSent

import rest_servers

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
POOL = 20
WARM_S = 2.0


@dataclass(slots=True)
class Tally:
    done: int = 0
    refused: int = 0
    worst_s: float = 0.0


SERVERS = {"arco": rest_servers.arco, "reference": rest_servers.reference_sqlite, "seaweedfs": rest_servers.seaweedfs}


# The load


class Bench:
    """Writers at one catalog."""

    def __init__(self, base: str) -> None:
        self._address, _, path = base.removeprefix("http://").partition("/")
        self._path = f"/{path}"
        self._labels = itertools.count()
        self._chance = random.Random(7)

    async def connected(self) -> Connection:
        for _ in range(600):
            try:
                return await Connection.open(f"http://{self._address}")
            except NotSent:
                await asyncio.sleep(0.1)
        raise SystemExit(f"nobody listens at {self._address}")

    async def ready(self) -> None:
        """Tables to work on, as soon as the server takes them."""
        connection = await self.connected()
        for _ in range(100):
            reply = await connection.ask("POST", f"{self._path}/namespaces", {"namespace": ["db"]})
            if reply.status == 200:
                break
            await asyncio.sleep(0.2)
        for number in range(POOL):
            body = {"name": f"t{number}", "schema": SCHEMA}
            reply = await connection.ask("POST", f"{self._path}/namespaces/db/tables", body)
            if reply.status != 200:
                raise SystemExit(f"a table could not be made: {reply}")
        connection.close()

    async def round(self, tables: int, writers: int, seconds: float) -> Tally:
        tally, until = Tally(), time.perf_counter() + seconds
        await asyncio.gather(*(self._write(tables, until, tally) for _ in range(writers)))
        return tally

    async def _write(self, tables: int, until: float, tally: Tally) -> None:
        connection = await self.connected()
        while time.perf_counter() < until:
            names = [f"t{one}" for one in self._chance.sample(range(POOL), tables)]
            update = {"action": "set-properties", "updates": {"last": str(next(self._labels))}}
            changes = [
                {"identifier": {"namespace": ["db"], "name": name}, "requirements": [], "updates": [update]}
                for name in names
            ]
            started = time.perf_counter()
            while True:
                reply = await connection.ask("POST", f"{self._path}/transactions/commit", {"table-changes": changes})
                if reply.status in {200, 204}:
                    break
                tally.refused += 1
            tally.done += 1
            tally.worst_s = max(tally.worst_s, time.perf_counter() - started)
        connection.close()


async def _measure(name: str, base: str, seconds: float) -> None:
    bench = Bench(base)
    await bench.ready()
    await bench.round(2, 4, WARM_S)
    for tables in (2, 5, 10):
        for writers in (1, 8):
            tally = await bench.round(tables, writers, seconds)
            rate, again = tally.done / seconds, tally.refused / max(1, tally.done)
            print(f"| {name} | {tables} | {writers} | {rate:.1f} | {again:.0%} | {tally.worst_s * 1000:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    seconds = parser.parse_args().seconds
    print(f"Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print("| server | tables | writers | transactions/s | refused and sent again | worst ms |\n|---|---|---|---|---|---|")
    for name, start in SERVERS.items():
        with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
            try:
                with start(Path(folder)) as running:
                    asyncio.run(_measure(name, running.base, seconds))
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"\n{name} cannot be started here, and is not measured: {error}\n")


if __name__ == "__main__":
    main()
