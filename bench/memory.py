"""What a server takes of memory: at rest, with 10,000 tables loaded and committed to, with 1,000 connections open, and after all.

The tables are made by a generator (names) and by creates (those that are loaded), so that every memory of the server is filled
past its limit or as far as so many tables do. Printed as a table with the goal, and written to bench/results/memory.md unless
--tables or --connections say otherwise than usual. Exits with 1 if the goal is not met.
Usage: python bench/memory.py [--tables 10000] [--connections 1000] [--workers 1]
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.integration.catalog_costs import PREFIX  # noqa: E402
from tests.integration.plain_http import Connection  # noqa: E402

import rest_servers  # noqa: E402

SCHEMA = {
    "type": "struct",
    "fields": [{"id": n, "name": f"column_{n}", "type": "long", "required": False} for n in range(1, 21)],
}
TABLES = f"{PREFIX}/namespaces/db/tables"
GOAL_MIB = 600
COME_AGAIN_MAX = 600
TABLES_USUAL, CONNECTIONS_USUAL = 10_000, 1_000
RESULTS = Path(__file__).with_name("results") / "memory.md"
TITLE = """# What a server takes of memory

`python bench/memory.py`: a server on a folder, without waiting for the disk; tables of 20 columns. What it remembers is bounded
by limits of `kernel/limits.py` (`POINTER_CACHE_*`, `METADATA_CACHE_*`, `ANSWERS_KEPT_BYTES_MAX`), and
`tests/unit/catalog/test_memory_bounds.py` counts it."""


async def _each(connections: list[Connection], count: int, method: str, path: str, body: str = "") -> None:
    """So many requests, shared out among connections; `{}` in path and body is a number."""

    async def client(at: int) -> None:
        for number in range(at, count, len(connections)):
            data = body.replace("{}", str(number)).encode() or None
            # More may be asked at once than it takes on: then nothing was done, and the client comes again.
            for _ in range(COME_AGAIN_MAX):
                reply = await connections[at].ask(method, path.replace("{}", str(number)), data)
                if reply.status != 503:
                    break
                await asyncio.sleep(0.1)
            assert reply.status in {200, 204}, reply

    await asyncio.gather(*(client(at) for at in range(len(connections))))


async def _measured(running: rest_servers.Running, tables: int, many: int) -> list[tuple[str, float]]:
    address = "http://" + running.base.removeprefix("http://").partition("/")[0]
    few = [await Connection.open(address) for _ in range(16)]
    found = [("at rest", running.resident_mib())]
    await few[0].ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
    await _each(few, tables, "POST", TABLES, json.dumps({"name": "t{}", "schema": SCHEMA}))
    found.append((f"{tables:,} tables made", running.resident_mib()))
    await _each(few, tables, "GET", f"{TABLES}/t{{}}")
    found.append(("each loaded", running.resident_mib()))
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "{}"}}]}
    await _each(few, tables, "POST", f"{TABLES}/t{{}}", json.dumps(change))
    found.append(("each committed to", running.resident_mib()))
    connections = [await Connection.open(address) for _ in range(many - len(few))]
    await _each(connections, 2 * len(connections), "GET", f"{TABLES}/t1")
    found.append((f"{many:,} connections, each asked", running.resident_mib()))
    await _each(few, 5, "GET", TABLES)
    found.append(("all names listed", running.resident_mib()))
    for one in (*connections, *few):
        one.close()
    return found


def _report(found: list[tuple[str, float]], workers: int) -> tuple[str, bool]:
    """What to show, and whether the goal is met."""
    most, limit_mib = max(mib for _, mib in found), GOAL_MIB * workers
    met = most <= limit_mib
    rows = "\n".join(f"| {what} | {mib:,.0f} MiB |" for what, mib in found)
    verdict = f"The most: {most:,.0f} MiB, goal ≤ {limit_mib:,} MiB: {'met' if met else '**not met**'}"
    return f"| {workers} worker{'s' * (workers > 1)} | resident |\n|---|---|\n{rows}\n\n{verdict}\n", met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=TABLES_USUAL)
    parser.add_argument("--connections", type=int, default=CONNECTIONS_USUAL)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="arco-bench-") as folder,
        rest_servers.arco(Path(folder), workers=given.workers, script="unflushed_server.py") as running,
    ):
        found = asyncio.run(_measured(running, given.tables, given.connections))
    shown, met = _report(found, given.workers)
    print(shown)
    if (given.tables, given.connections, given.workers) == (TABLES_USUAL, CONNECTIONS_USUAL, 1):
        RESULTS.write_text(f"{TITLE}\n\n{shown}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
