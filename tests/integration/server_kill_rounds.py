"""Servers on one root, killed with SIGKILL one after the other while clients commit, create, rename and drop.

    python -m tests.integration.server_kill_rounds --rounds 50 --store local

Two servers share the root, each killed at a random moment and started again; clients ask again with the same key whichever
server they find. Afterwards a server that takes over silent attempts at once settles what is in doubt. Then everything that
clients were told must be true, once: see `server_kill_proof.py`. A run must end within the lifetime of a key, an hour.
"""

import argparse
import asyncio
import random
import sys
from dataclasses import dataclass

from .server_fleet import Acknowledgements, Fleet, Lake, ServerProcess, complaints, lake
from .server_kill_load import Client, Load, Memory, State
from .server_kill_proof import Proof


@dataclass(frozen=True, slots=True)
class Outcome:
    kills: int
    asked: int
    acknowledged: int
    refused: int
    lost_replies: int
    in_doubt: int
    unsettled: int
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        said = (
            f"kills {self.kills}, requests {self.asked}: acknowledged {self.acknowledged}, refused {self.refused}; "
            f"replies lost {self.lost_replies}; in doubt after the load {self.in_doubt}, unsettled at the end {self.unsettled}; "
            f"wrong {len(self.wrong)}"
        )
        return "\n".join((said, *self.wrong[:20]))


async def _load(where: Lake, rounds: int, seed: int, takeover_s: float | None) -> Load:
    """The rounds: kills under load, and at the end a stop as one should."""
    chance = random.Random(seed)
    acknowledgements = Acknowledgements()
    fleet = Fleet(where, chance, takeover_s)
    load = Load(fleet, acknowledgements, chance)
    async with asyncio.TaskGroup() as group:
        group.create_task(load.run(committers=12, owners=6, tables=4))
        alive = await fleet.run(2, rounds, acknowledgements)
        load.stop()
    for server in alive:
        if not await server.stop():
            load.memory.findings.append("a server that was told to stop did not end well")
    return load


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


async def _run(where: Lake, rounds: int, seed: int, takeover_s: float | None) -> Outcome:
    load = await _load(where, rounds, seed, takeover_s)
    memory = load.memory
    in_doubt = len(memory.of(State.OPEN))
    impatient, fresh = ServerProcess(where, takeover_s=0), ServerProcess(where)
    addresses = await asyncio.gather(impatient.start(), fresh.start())
    await _settle(addresses[0], where, memory)
    wrong = await _prove(addresses[1], where, memory)
    await asyncio.gather(impatient.stop(), fresh.stop())
    counts = {state: len(memory.of(state)) for state in State}
    return Outcome(
        rounds,
        len(memory.asks),
        counts[State.ACKNOWLEDGED],
        counts[State.REFUSED],
        load.lost_replies,
        in_doubt,
        counts[State.OPEN],
        (*wrong, *complaints(where.logs)),
    )


async def _run_and_clean_up(where: Lake, rounds: int, seed: int, takeover_s: float | None) -> Outcome:
    try:
        return await _run(where, rounds, seed, takeover_s)
    finally:
        for server in list(where.running):
            await server.kill()


def run(rounds: int, store: str, seed: int = 1, takeover_s: float | None = None) -> Outcome:
    """So many kills on a new root of this kind."""
    with lake(store) as where:
        return asyncio.run(_run_and_clean_up(where, rounds, seed, takeover_s))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--takeover-s", type=float, default=None, help="take over silent attempts after so long, not ten minutes"
    )
    asked = parser.parse_args()
    outcome = run(asked.rounds, asked.store, asked.seed, asked.takeover_s)
    print(f"{asked.store}: {outcome}")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
