"""Workers killed and stopped under a backfill on real Spark: `-m tests.integration.worker_rounds --tasks 200`.

A scheduler and some workers, all of them real processes, share a backfill of one task a day. Meanwhile workers are killed and
others started in their place, and some are stopped for longer than their leases and then go on, as zombies. At the end every
day's rows are there once: as if nothing had happened.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
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

REPOSITORY = Path(__file__).resolve().parents[2]
LEASE_S = 6.0
SIGNS_UNTIL_STOPPED_MAX = 5
KEY = "0123456789abcdef0123456789abcdef"
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
class Rounds:
    """One backfill and the processes that work on it."""

    folder: Path
    tasks: int
    chance: random.Random
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)

    def prepare(self) -> None:
        (self.folder / "assets").mkdir(parents=True)
        end = time.strftime("%Y-%m-%d", time.gmtime(1_735_689_600 + self.tasks * 86_400))
        (self.folder / "assets" / "days.py").write_text(ASSETS.format(end=end, folder=str(self.folder)))
        (self.folder / "arco.toml").write_text(PROJECT)

    def begin(self, *words: str) -> RunId:
        """A run that is left to the workers."""
        said = subprocess.run(
            [*self._shell("run", *words, "--detach", "--json")],
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
            timeout=600,
            env={**os.environ, "ARCO_TASK_KEY": KEY},
        )
        return RunId(json.loads(said.stdout)["run"])

    def cancel(self, run: RunId) -> None:
        subprocess.run(self._shell("cancel", str(run)), cwd=REPOSITORY, check=True, capture_output=True, timeout=600)

    def _shell(self, *words: str, module: str = "arco.surface.cli.main") -> list[str]:
        code = f"import sys; sys.argv[0] = 'arco'; from {module} import run; run()"
        return [sys.executable, "-c", code, *words, "--project", str(self.folder)]

    def _command(self, *words: str, module: str = "arco.surface.cli.main") -> subprocess.Popen[bytes]:
        out = (self.folder / f"{words[0]}-{sum(self.did.values())}-{len(self.workers)}.log").open("wb")
        return subprocess.Popen(
            self._shell(*words, module=module),
            cwd=REPOSITORY,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "ARCO_TASK_KEY": KEY},
            start_new_session=True,
        )

    def start_worker(self) -> None:
        self.workers.append(self._command("worker", "--slots", "2", module="tests.integration.worker_rounds"))

    def send(self, worker: subprocess.Popen[bytes], what: signal.Signals) -> None:
        """To Spark's processes as well: a machine is gone, or asleep, as a whole."""
        os.killpg(worker.pid, what)

    def disturb(self) -> None:
        """Kill one and start another in its place; or let one sleep for longer than its lease."""
        worker = self.chance.choice(self.workers)
        if self.chance.random() < 0.5:
            self.did["killed"] += 1
            self.send(worker, signal.SIGKILL)
            worker.wait()
            self.workers.remove(worker)
            self.start_worker()
        else:
            self.did["stopped"] += 1
            self.send(worker, signal.SIGSTOP)
            time.sleep(LEASE_S * 2.5)
            self.send(worker, signal.SIGCONT)

    def end(self) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            try:
                worker.wait(90)
            except subprocess.TimeoutExpired:
                self.send(worker, signal.SIGKILL)
                worker.wait()

    async def state(self, run: RunId) -> RunState:
        async with opened(read_project(str(self.folder)).where(None, [])) as home:
            parts = home.catalog.parts
            return (await open_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)).log.state

    async def slots_held(self) -> int:
        async with opened(read_project(str(self.folder)).where(None, [])) as home:
            parts = home.catalog.parts
            pool = await pool_object(parts.tier1.store, parts.scope, "pool source", parts.clock, parts.entropy).read()
            return 0 if pool is None else len(pool.value.holdings)

    @contextmanager
    def at_work(self, workers: int) -> Iterator[None]:
        """A project, a scheduler and so many workers."""
        self.prepare()
        scheduler = self._command("scheduler")
        try:
            for _ in range(workers):
                self.start_worker()
            yield
        finally:
            self.end()
            scheduler.terminate()
            scheduler.wait(60)

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
        self.cancel(run)
        before = asyncio.run(self.signs_of_life(run))
        while not (state := asyncio.run(self.state(run))).is_finished:
            time.sleep(0.2)
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
        rounds = Rounds(Path(folder) / "p", asked.tasks, random.Random(asked.seed))
        with rounds.at_work(asked.workers):
            state = rounds.backfill(asked.disturbances)
        rounds.check(state)
        attempts = sum(its.attempt for its in state.tasks.values())
        print(f"{asked.tasks} tasks in {attempts} attempts: {dict(rounds.did)}; every row is there once")


if __name__ == "__main__":
    main()
