"""Real workers and a real scheduler on one root: killed, stopped and cancelled, and what is published is published once."""

import asyncio
import random
from pathlib import Path

from fixtures.servo.frames import MARKS
from tests.integration.worker_rounds import DISTURBANCES, Rounds

pytestmark = MARKS


def test_workers_and_scheduler_killed_under_a_backfill_publish_every_task_once_and_what_is_cancelled_stops(
    tmp_path: Path,
) -> None:
    """A small round; `make kill` plays one of 200 tasks."""
    rounds = Rounds(tmp_path / "p", tasks=36, chance=random.Random(2))
    with rounds.at_work(workers=2):
        state = rounds.backfill(disturbances=3)
        cancelled = rounds.stop_what_never_ends()
    rounds.check(state)
    assert cancelled.run.status.value == "cancelled"
    assert set(rounds.did) == set(DISTURBANCES)
    assert asyncio.run(rounds.slots_held()) <= 2, "only what the killed worker held may still be written down"
