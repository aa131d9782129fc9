"""One hot table: many committers at once, through a real server and without HTTP, beside one committer alone.

Every commit has its own idempotency key and must be in the table's history exactly once; a client that is told 503 or 504 asks
again with the same key. Any other 5xx, and any refusal, is an error that a client cannot act on, and ends the benchmark.
"""

import asyncio
import random
import time
from dataclasses import dataclass

from tests.integration.catalog_costs import Server
from tests.integration.server_fleet import Acknowledgements, Fleet, Lake, ServerProcess, lake
from tests.integration.server_kill_load import Ask, Client, Memory, State, create_namespace, create_table, set_property
from tests.integration.server_kill_proof import Proof

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.local import LocalStore
from arco.storage.profile import INSTANT, ProfiledStore

NAMESPACE, TABLE = "hot", "t"


@dataclass(frozen=True)
class Rate:
    """So many commits by so many committers, and how it went."""

    where: str
    committers: int
    commits: int
    took_s: float
    asked_again: int
    requests: int | None = None  # of the store, where they can be counted

    @property
    def per_s(self) -> float:
        return self.commits / self.took_s


def _commits(committer: int, count: int, table: str) -> list[Ask]:
    return [set_property(NAMESPACE, table, f"{committer}-{number}") for number in range(count)]


async def _through_a_server(where: Lake, address: str, committers: int, each: int, table: str) -> Rate:
    memory = Memory()
    clients = [
        Client(Fleet.of(where, address), memory, Acknowledgements(), random.Random(number)) for number in range(committers)
    ]  # fmt: skip
    if table == TABLE:
        await clients[0].settle(create_namespace(NAMESPACE))
    await clients[0].settle(create_table(NAMESPACE, table))
    started = time.perf_counter()

    async def commit(client: Client, number: int) -> None:
        for ask in _commits(number, each, table):
            while ask.state is State.OPEN:
                await client.settle(ask)

    await asyncio.gather(*(commit(client, number) for number, client in enumerate(clients)))
    took_s = time.perf_counter() - started
    for client in clients:
        client.close()
    return Rate("server process", committers, committers * each, took_s, await _checked(where, memory))


async def _checked(where: Lake, memory: Memory) -> int:
    """How often was asked again, after everything was found exactly once."""
    proof = Proof(memory)
    await proof.of_commits(where)
    assert not proof.wrong, proof.wrong[:5]
    return sum(ask.sent - 1 for ask in memory.asks)


async def _in_process(where: Lake, committers: int, each: int, table: str) -> Rate:
    """The same application without a socket: what is left is the catalog and the disk."""
    clock, entropy = SystemClock(), SystemEntropy()
    store = ProfiledStore(LocalStore(where.root, clock, entropy), INSTANT, clock)
    server = Server(store, clock, entropy, f"file://{where.root}")
    memory = Memory()
    create = create_table(NAMESPACE, table)
    assert (await server.ask(create.method, create.path, create.body)).status == 200
    started = time.perf_counter()

    async def commit(number: int) -> None:
        for ask in _commits(number, each, table):
            memory.asks.append(ask)
            while ask.state is State.OPEN:
                ask.sent += 1
                reply = await server.ask(ask.method, ask.path, ask.body, idempotency_key=ask.key, key=False)
                assert reply.status in {200, 503, 504}, reply
                ask.state = State.ACKNOWLEDGED if reply.status == 200 else State.OPEN

    await asyncio.gather(*(commit(number) for number in range(committers)))
    took_s = time.perf_counter() - started
    await server.stop()
    await store.close()
    again = await _checked(where, memory)
    return Rate("in process", committers, committers * each, took_s, again, store.total.total_requests)


async def _measure(where: Lake, committers: int, each: int) -> list[Rate]:
    server = ServerProcess(where)
    address = await server.start()
    try:
        rates = [
            await _through_a_server(where, address, 1, each, TABLE),
            await _through_a_server(where, address, committers, each, "many"),
        ]
    finally:
        await server.stop()
    rates.append(await _in_process(where, 1, each, "alone"))
    rates.append(await _in_process(where, committers, each, "together"))
    return rates


def report(committers: int, each: int) -> list[str]:
    with lake("local") as where:
        rates = asyncio.run(_measure(where, committers, each))
    alone = {rate.where: rate for rate in rates if rate.committers == 1}
    lines = [
        "| where | committers | commits | each exactly once | asked again | store requests a commit | commits/s | beside one |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in rates:
        requests = "" if one.requests is None else f"{one.requests / one.commits:.1f}"
        lines.append(
            f"| {one.where} | {one.committers} | {one.commits:,} | yes | {one.asked_again} | {requests} "
            f"| {one.per_s:.0f} | {one.per_s / alone[one.where].per_s:.2f} |"
        )
    return lines
