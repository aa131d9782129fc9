"""Many committers at the latencies of S3: to one table, and each to a table of its own.

Time is virtual: a request takes what the profile says, and the processor takes none. So the figures are those of the protocol
alone, the same on every machine: what is left when the store is what one waits for.
"""

import asyncio
from dataclasses import dataclass

from tests.integration.catalog_costs import PREFIX, SCHEMA, TABLES, Ground, Server, property_commit

from arco.storage.memory import MemoryStore
from arco.storage.profile import S3, ProfiledStore

EACH = 40


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


def report() -> list[str]:
    rates = [_measured(*sizes) for sizes in ((1, 1), (1, 2), (1, 8), (8, 8), (1, 32), (32, 32))]
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
    print("\n".join(report()))
