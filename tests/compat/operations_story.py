"""Schedules, and decisions about what was held back, as version 1 leaves them: stored in `operations/`, opened by today's code.

python -m tests.compat.operations_story    write it; only for a new version, beside the old one
"""

import asyncio
from pathlib import Path

from arco.kernel.entropy import SeededEntropy
from arco.servo.deploy.manifest import DeployedSchedule
from arco.servo.execute.desk_decisions import DeskDecision, Stage, Verdict, decision_object
from arco.servo.schedule.ticking import Schedules
from stand_ins.lake import SCOPE, Lake

STORED = Path(__file__).resolve().parent / "operations" / "v1"
HELD = "01JGQ00000000000000000000M"
HOUR_MS = 3_600_000
NIGHTLY = DeployedSchedule(
    name="nightly",
    version="5f0c8d3a91b2e470",
    since_ms=1_735_700_400_000,
    definition={
        "when": {"kind": "cron", "cron": "0 * * * *", "timezone": "Europe/Berlin", "catch_up": "all"},
        "make": ["orders+"],
        "partitions": {},
        "mode": "stale",
        "parameters": {},
    },
)


async def tell() -> dict[str, bytes]:
    """A schedule with two ticks that wait, paused; and a release that was decided and not finished."""
    lake = Lake("operations")
    lake.clock.at_ms = NIGHTLY.since_ms + 2 * HOUR_MS
    schedules = Schedules(lake.store, SCOPE, "shop", lake.clock, SeededEntropy("schedules"))
    await schedules.decide(NIGHTLY)
    await schedules.pause(NIGHTLY, "ann", "the source is being moved")
    decision = DeskDecision(
        verdict=Verdict.RELEASE, who="ann", why="a holiday", at_ms=NIGHTLY.since_ms, stage=Stage.OPEN, message=""
    )
    await decision_object(lake.catalog.parts, HELD, "output").create(decision)
    return {key: await lake.bytes_of(key) for key in await lake.keys()}


def write() -> None:
    for key, data in asyncio.run(tell()).items():
        path = STORED / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    write()
