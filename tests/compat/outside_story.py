"""Runs that were asked for and a workspace that was given up, as version 1 leaves them: stored in `outside/`, opened today.

python -m tests.compat.outside_story    write it; only for a new version, beside the old one
"""

import asyncio
from pathlib import Path

from arco.catalog.workspaces import Workspaces
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import KeyHash
from arco.ledger.asked_runs import AskedRun, AskedRuns, request_id
from arco.ledger.asked_troubles import AskedTroubles
from stand_ins.lake import SCOPE, Lake

STORED = Path(__file__).resolve().parent / "outside" / "v1"
AT_MS = 1_760_173_687_100
KEPT_BY = "access_denied: nobody with the signing key made it"
OPEN, TAKEN_BACK = (
    AskedRun(id=str(request_id(key)), project="shop", make=("orders+",), partitions={"date": "2025-10-01"}, asked_ms=AT_MS)
    for key in ("release 17", "release 18")
)


async def tell() -> dict[str, bytes]:
    """A request that waits and what keeps it, one that was taken back, and the mark of a workspace."""
    lake = Lake("outside")
    lake.clock.at_ms = AT_MS
    requests = AskedRuns(lake.store, SCOPE, lake.clock, SeededEntropy("asked"))
    for one in (OPEN, TAKEN_BACK):
        await requests.ask(one)
    await requests.withdraw(TAKEN_BACK, "ann")
    troubles = AskedTroubles(lake.store, SCOPE, lake.clock, SeededEntropy("troubles"))
    await troubles.say(KeyHash(OPEN.id), KEPT_BY, "ann")
    workspaces = Workspaces(lake.store, lake.clock, SeededEntropy("workspaces"))
    await workspaces.create(SCOPE, "ann", "the new prices")
    await workspaces.give_up(SCOPE, "ann", "merged")
    return {key: await lake.bytes_of(key) for key in await lake.keys()}


def write() -> None:
    for key, data in asyncio.run(tell()).items():
        path = STORED / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    write()
