"""Which runs are open, and who holds a pool, as version 1 leaves them: stored in `crew/`, opened by today's code.

python -m tests.compat.crew_story    write it; only for a new version, beside the old one
"""

import asyncio
from pathlib import Path

from arco.kernel.entropy import SeededEntropy
from arco.servo.schedule.open_runs import OpenRun, OpenRunsNote
from arco.servo.schedule.pools import Holding, Need, Pools
from stand_ins.lake import SCOPE, Lake

STORED = Path(__file__).resolve().parent / "crew" / "v1"
AT_MS = 1_763_386_287_100
RUN, WORKER, TASK = "01KA8J3MDW00000000000000RN", "01KA8J3MDW00000000000000WK", "task_00000000000000aa"
NOTE = OpenRun(run=RUN, project="shop", code_version="code_e9f119547234ffb3", noted_ms=AT_MS)
NEED = Need("warehouse", size=3.0, units=2.0)


def pools(lake: Lake, worker: str = WORKER) -> Pools:
    return Pools(lake.store, SCOPE, RUN, worker, 30.0, lake.clock, SeededEntropy(worker), _goes_on)


async def _goes_on(_holding: Holding) -> bool:
    return False


async def tell() -> dict[str, bytes]:
    """A run that is open, and a pool of which one of its tasks holds two thirds."""
    lake = Lake("crew")
    lake.clock.at_ms = AT_MS
    await OpenRunsNote(lake.store, SCOPE, lake.clock, SeededEntropy("note")).add(NOTE)
    assert await pools(lake).take(TASK, 1, [NEED])
    return {key: await lake.bytes_of(key) for key in await lake.keys()}


def write() -> None:
    for key, data in asyncio.run(tell()).items():
        path = STORED / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    write()
