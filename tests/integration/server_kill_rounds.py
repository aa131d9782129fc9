"""Servers on one root, killed with SIGKILL one after the other while clients commit, create, rename and drop, and move money
between tables in transactions; while PyIceberg and Spark write; and while collectors run, and are killed too.

    python -m tests.integration.server_kill_rounds --rounds 50 --store local --spark

Two servers share the root, each killed at a random moment and started again; clients ask again with the same key whichever
server they find. Afterwards a server that takes over silent attempts at once settles what is in doubt. Then everything that
clients were told must be true, once: see `server_kill_proof.py`. A run must end within the lifetime of a key, an hour.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from .front_door import front_door
from .server_fleet import Acknowledgements, Fleet, Lake, ServerProcess, complaints, lake
from .server_kill_engines import Engines, rows_of
from .server_kill_keepers import Keepers
from .server_kill_load import Client, Load, Memory, State
from .server_kill_proof import Proof, reading
from .spark_session import Spark, spark_session

AWS_BUNDLE = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"


@dataclass(frozen=True, slots=True)
class Outcome:
    kills: int
    asked: int
    acknowledged: int
    refused: int
    lost_replies: int
    cuts: int
    in_doubt: int
    unsettled: int
    written: dict[str, tuple[int, int]]
    bank_changes: int
    keepers_killed: int
    collected: int
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        said = (
            f"kills {self.kills}, requests {self.asked}: acknowledged {self.acknowledged}, refused {self.refused}; "
            f"replies lost {self.lost_replies}; cuts of the bank {self.cuts}; "
            f"in doubt after the load {self.in_doubt}, unsettled at the end {self.unsettled}; "
            f"rows of engines, acknowledged and in doubt: {self.written}, their changes of accounts {self.bank_changes}; "
            f"collectors killed {self.keepers_killed}, objects collected {self.collected}; wrong {len(self.wrong)}"
        )
        return "\n".join((said, *self.wrong[:20]))


@dataclass(frozen=True, slots=True)
class Works:
    """Everybody who was at work while servers died."""

    load: Load
    engines: Engines
    keepers: Keepers


@dataclass(frozen=True, slots=True)
class Plan:
    """How servers are killed: whole ones; or one of the workers that each of them has."""

    rounds: int
    seed: int = 1
    takeover_s: float | None = None
    workers: int = 1


async def _load(where: Lake, plan: Plan, spark: Spark | None) -> Works:
    """The rounds: kills under load, and at the end a stop as one should."""
    chance = random.Random(plan.seed)
    acknowledgements = Acknowledgements()
    fleet = Fleet(where, chance, plan.takeover_s, plan.workers)
    keepers = Keepers(where, random.Random(plan.seed), acknowledgements)
    async with reading(where) as read, front_door(fleet) as address, asyncio.TaskGroup() as group:
        load = Load(fleet, acknowledgements, chance, read)
        engines = Engines(address)
        group.create_task(load.run(committers=9, owners=5, tables=4, bankers=6))
        writing = group.create_task(engines.run(spark, load.begun))
        keeping = group.create_task(keepers.run(load.begun))
        alive = await fleet.run(2, plan.rounds, acknowledgements)
        engines.stop()
        await writing
        load.stop()
        keeping.cancel()
    for server in alive:
        if not await server.stop():
            load.memory.findings.append("a server that was told to stop did not end well")
    return Works(load, engines, keepers)


async def _settle(address: str, where: Lake, memory: Memory) -> None:
    """Ask again for everything in doubt. Nobody else is alive, so silent attempts may be taken over at once."""
    client = Client(Fleet.of(where, address), memory, Acknowledgements(), random.Random(0))
    for ask in memory.of(State.OPEN):
        await client.settle(ask, patience=3)
    client.close()


async def _prove(address: str, where: Lake, memory: Memory) -> list[str]:
    proof = Proof(memory)
    await proof.of_store(where)
    await proof.of_server(address)
    return proof.wrong


async def _run(where: Lake, plan: Plan, spark: Spark | None) -> Outcome:
    works = await _load(where, plan, spark)
    memory = works.load.memory
    in_doubt = len(memory.of(State.OPEN))
    impatient, fresh = ServerProcess(where, takeover_s=0), ServerProcess(where)
    addresses = await asyncio.gather(impatient.start(), fresh.start())
    await _settle(addresses[0], where, memory)
    wrong = await _prove(addresses[1], where, memory)
    for engine, written in works.engines.written.items():
        wrong += written.complaints(engine, await asyncio.to_thread(rows_of, addresses[1], engine))
    await asyncio.gather(impatient.stop(), fresh.stop())
    counts = {state: len(memory.of(state)) for state in State}
    reports = works.keepers.reports()
    troubles = [f"upkeep: {text}" for report in reports for text in report["trouble"]]
    return Outcome(
        plan.rounds,
        len(memory.asks),
        counts[State.ACKNOWLEDGED],
        counts[State.REFUSED],
        works.load.lost_replies,
        works.load.cuts,
        in_doubt,
        counts[State.OPEN],
        {engine: (len(one.acknowledged), len(one.in_doubt)) for engine, one in works.engines.written.items()},
        works.engines.bank_changes,
        works.keepers.kills,
        sum(report["deleted"] for report in reports),
        (*wrong, *troubles, *complaints(where.logs)),
    )


async def _run_and_clean_up(where: Lake, plan: Plan, spark: Spark | None) -> Outcome:
    try:
        return await _run(where, plan, spark)
    finally:
        for server in list(where.running):
            await server.kill()


def run(plan: Plan, store: str, spark: Spark | None = None) -> Outcome:
    """So many kills on a new root of this kind. Spark writes too, if there is one."""
    with lake(store) as where:
        return asyncio.run(_run_and_clean_up(where, plan, spark))


@contextmanager
def _spark(store: str) -> Iterator[Spark]:
    """Spark for tables on this kind of store."""
    bundle = () if store == "local" else (AWS_BUNDLE,)
    with tempfile.TemporaryDirectory(prefix="arco-kill-spark-") as work, spark_session(Path(work), *bundle) as session:
        yield Spark(session)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--takeover-s", type=float, default=None, help="take over silent attempts after so long, not ten minutes"
    )
    parser.add_argument("--workers", type=int, default=1, help="each server has so many, and those are killed")
    parser.add_argument("--spark", action="store_true", help="Spark writes too")
    asked = parser.parse_args()
    with _spark(asked.store) if asked.spark else nullcontext() as spark:
        outcome = run(Plan(asked.rounds, asked.seed, asked.takeover_s, asked.workers), asked.store, spark)
    print(f"{asked.store}: {outcome}")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
