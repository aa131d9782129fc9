"""Workers killed and stopped under a backfill on real Spark: `-m tests.integration.worker_rounds --tasks 200`.

A scheduler and some workers, all of them real processes, share a backfill of one task a day. Meanwhile workers and the scheduler
are killed and others started in their place, and some are stopped for longer than their leases and then go on, as zombies. At the
end every day's rows are there once: as if nothing had happened.
"""

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import arco
from arco.kernel.ids import RunId
from arco.ledger.run_state import RunState
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.pools import pool_object
from arco.servo.schedule.starting import open_run
from arco.surface.cli.opening import opened
from arco.surface.cli.projects import read_project

from .servo_fleet import Fleet, Process

LEASE_S = 6.0
SIGNS_UNTIL_STOPPED_MAX = 5
DISTURBANCES = ("scheduler killed", "worker killed", "worker stopped")
"""In this order, again and again; the one that takes longest comes last, so that a short round has had them all."""
_AS_WORKER = ("-c", "import sys; sys.argv[0] = 'arco'; from tests.integration.worker_rounds import run; run()")
PROJECT = """
root = "./lake"

[project]
name = "db"

[pools]
source = 3

[spark]
master = "local[2]"
conf = { "spark.sql.shuffle.partitions" = "1", "spark.ui.enabled" = "false", "spark.driver.memory" = "512m" }
"""
ASSETS = """
import time
from pathlib import Path

from pyspark.sql import functions as f

from arco import asset, daily

HERE = Path({folder!r})

@asset(
    partitions=daily("date", start="2025-01-01", end="{end}"),
    partitions_per_task=1,
    mode="append",
    resources={{"source": 1}},
)
def days(run):
    (day,) = run.values("date")
    return run.spark.range(5).selectExpr("id", f"date '{{day}}' date")

def beat(value):
    while True:
        (HERE / "beat").write_text(str(time.time()))
        time.sleep(0.1)

@asset
def endless(run):
    return run.spark.range(1).select(f.udf(beat, "long")("id").alias("id"))
"""


@dataclass(slots=True)
class Rounds(Fleet):
    """One backfill and the processes that work on it."""

    tasks: int = 1
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    workers: list[Process] = field(default_factory=list)
    schedulers: list[Process] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)

    def prepare(self) -> None:
        end = time.strftime("%Y-%m-%d", time.gmtime(1_735_689_600 + self.tasks * 86_400))
        self.write(PROJECT, ASSETS.format(end=end, folder=str(self.folder)))

    def start_worker(self) -> None:
        self.workers.append(self.start("worker", "--slots", "2", by=_AS_WORKER))

    def start_scheduler(self) -> None:
        self.schedulers.append(self.start("scheduler"))

    def disturb(self) -> None:
        """What happened least so far: one is killed and another comes in its place, or one sleeps for longer than its lease.

        Nobody but a scheduler signs tasks: what follows the death of the only one is signed by its successor.
        """
        what = min(DISTURBANCES, key=self.did.__getitem__)
        self.did[what] += 1
        worker = self.chance.choice(self.workers)
        match what:
            case "worker killed":
                self.kill(worker)
                self.workers.remove(worker)
                self.start_worker()
            case "worker stopped":
                self.send(worker, signal.SIGSTOP)
                time.sleep(LEASE_S * 2.5)
                self.send(worker, signal.SIGCONT)
            case "scheduler killed":
                self.kill(self.schedulers.pop())
                self.start_scheduler()

    async def slots_held(self) -> int:
        async with opened(read_project(str(self.folder)).where(None, [])) as home:
            parts = home.catalog.parts
            pool = await pool_object(parts.tier1.store, parts.scope, "pool source", parts.clock, parts.entropy).read()
            return 0 if pool is None else len(pool.value.holdings)

    @contextmanager
    def at_work(self, workers: int) -> Iterator[None]:
        """A project, a scheduler and so many workers."""
        self.prepare()
        self.start_scheduler()
        try:
            for _ in range(workers):
                self.start_worker()
            yield
        finally:
            self.stop()

    def backfill(self, disturbances: int) -> RunState:
        """Until it has ended. A disturbance follows when something was published since the one before."""
        run, published = self.begin("days", "--backfill", "--parallel", "8"), 0
        while not (state := asyncio.run(self.state(run))).is_finished:
            done = sum(its.ended_ms is not None for its in state.tasks.values())
            if done > published and sum(self.did.values()) < disturbances:
                published = done
                self.disturb()
            time.sleep(0.5)
        return state

    async def signs_of_life(self, run: RunId) -> int:
        """How many the only task of a run has given: its claim is written anew with each."""
        async with opened(read_project(str(self.folder)).where(None, [])) as home:
            parts = home.catalog.parts
            started = await open_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)
            (task,) = started.log.state.tasks
            held = await Claims(parts.tier1.store, parts.scope, run, "", parts.clock, parts.entropy)._object(task).read()
            return 0 if held is None else held.generation

    def stop_what_never_ends(self) -> RunState:
        """Cancel a run from another process while Spark is at it; returns when its rows are computed no more.

        Within a few signs of life of its worker: one that Spark would not stop is given up after a dozen.
        """
        run, beat = self.begin("endless"), self.folder / "beat"
        while not beat.exists():
            time.sleep(0.2)
        self.do("cancel", str(run))
        before = asyncio.run(self.signs_of_life(run))
        state = self.ended(run)
        assert asyncio.run(self.signs_of_life(run)) - before <= SIGNS_UNTIL_STOPPED_MAX
        last = ""
        while last != (last := beat.read_text()):
            time.sleep(2.0)
        return state

    def check(self, state: RunState) -> None:
        assert Counter(its.status.value for its in state.tasks.values()) == {"succeeded": self.tasks}, self.did
        assert not state.ignored
        table = arco.connect(str(self.folder / "lake")).table("db.days").to_arrow()
        rows = Counter((one["id"], one["date"]) for one in table.to_pylist())
        assert len(rows) == self.tasks * 5
        assert set(rows.values()) == {1}, "rows are there twice"


def run() -> None:
    """A worker as `arco worker` is one, with a lease that a test can wait for."""
    from arco.surface.cli import working  # noqa: PLC0415 - the process that plays the rounds needs none of it
    from arco.surface.cli.projects import At  # noqa: PLC0415

    folder = sys.argv[sys.argv.index("--project") + 1]
    sys.exit(working.served(working.work(At(folder, None, []), slots=2, once=False, poll_s=2.0, lease_s=LEASE_S)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--disturbances", type=int, default=20)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rounds = Rounds(Path(folder) / "p", tasks=asked.tasks, chance=random.Random(asked.seed))
        with rounds.at_work(asked.workers):
            state = rounds.backfill(asked.disturbances)
        rounds.check(state)
        attempts = sum(its.attempt for its in state.tasks.values())
        print(f"{asked.tasks} tasks in {attempts} attempts: {dict(rounds.did)}; every row is there once")


if __name__ == "__main__":
    main()
