"""Handing tasks over between processes: how long it takes, what it costs, and what a thousand tasks and fifty runs cost.

Everything is real but the work: workers and schedulers are processes on a folder that is asked to keep what it is given, and
wake each other by sockets; the tasks do nothing but write down when they begin. Round trips are counted on a store in memory
that is as slow as S3. A hand-over is measured from the moment that the entry that makes a task ready is written (the run's
first, or the end of the task before it) to the task's first line in the other process.
Usage: python bench/handover.py [--runs 60]
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from arco.kernel.clock import Clock, SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import ArcoError
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.ledger.appender import Appender
from arco.ledger.run_state import RunState
from arco.quality.gates import Action
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.crew import Crew, Ways
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.envelopes import EnvelopeKeys, Signer
from arco.servo.schedule.executor import Attempt, Commit, Done, Outcome, Output
from arco.servo.schedule.hand_over import ANYTHING, HandOver, Looking
from arco.servo.schedule.local_wake_ups import LocalWakeUps
from arco.servo.schedule.open_runs import OpenRun
from arco.servo.schedule.slots import Slots
from arco.servo.schedule.starting import RunRequest, Started, open_run, start_run
from arco.storage.local import LocalStore
from arco.storage.memory import MemoryStore
from arco.storage.port import ObjectStore
from arco.storage.profile import S3, ProfiledStore
from scheduling import NoSettler, plan_of

SCOPE = Scope.of("bench", "handover")
PROJECT = "bench"
KEYS = EnvelopeKeys((Secret("k" * 32),))
GOAL_MS, GOAL_TRIPS, GOAL_TASK_MS = 100.0, 4, 20.0


@dataclass(slots=True)
class Begins:
    """An executor that only writes down when a task began, and when it ended."""

    file: Path | None = None
    pause_s: float = 0.0
    began: list[str] = field(default_factory=list)

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        first_s = time.time()
        self.began.append(task.id)
        await asyncio.sleep(self.pause_s)
        await attempt.stage(Output(action=Action.CONTINUE, commit=Commit("publish")))
        if self.file is not None:
            with self.file.open("a") as out:
                out.write(f"{attempt.run}/{task.id} {first_s!r} {time.time()!r}\n")
        return Done()


class Quiet:
    def took(self, run: str, tasks: int) -> None: ...

    def refused(self, run: str, why: str) -> None: ...

    def ended(self, run: str, state: RunState) -> None: ...

    def troubled(self, what: str, error: ArcoError) -> None: ...


def crew_of(
    store: ObjectStore, clock: Clock, hand_over: HandOver, begins: Begins, slots: Slots | int, *, signed: bool
) -> Crew:
    entropy = SystemEntropy()
    appender = Appender(store, SCOPE, clock, entropy)
    ground = Ground(store, NoSettler(), appender, clock, entropy)

    async def take(_note: OpenRun, started: Started) -> Driver:
        signer = Signer(KEYS, SCOPE, str(started.log.run), started.plan.spec.fingerprint(), "c") if signed else None
        options = Options(
            slots=slots,
            poll_s=hand_over.looks_every_s,
            tell=hand_over.tell,
            hands_out=None if slots else signer,
            asks_for=signer if slots else None,
        )
        return Driver(ground, started.log, started.plan, begins, options)

    ways = Ways(store=store, scope=SCOPE, project=PROJECT, clock=clock, entropy=entropy, hand_over=hand_over, told=Quiet())
    return Crew(ways, take)


def process(root: Path, slots: int, *, signed: bool) -> None:
    """A worker, or a scheduler if it has no slots."""
    clock, entropy = SystemClock(), SystemEntropy()

    async def main() -> None:
        store = LocalStore(str(root), clock, entropy)
        wake = LocalWakeUps(root, entropy, looks_every_s=2.0)
        begins = Begins(root.parent / f"begun-{os.getpid()}")
        await crew_of(store, clock, wake, begins, Slots(slots) if slots else 0, signed=signed).serve()

    asyncio.run(main())


class Fleet:
    """Processes on a new root, and what they wrote down."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "lake"
        self.root.mkdir()
        self.clock, self.entropy = SystemClock(), SystemEntropy()
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, slots: int, *, signed: bool = False) -> None:
        words = ["--process", str(self.root), "--slots", str(slots), *(["--signed"] if signed else [])]
        self._processes.append(subprocess.Popen([sys.executable, __file__, *words]))

    def stop(self) -> None:
        for one in self._processes:
            one.terminate()
            one.wait()

    def begun(self) -> dict[str, tuple[float, float]]:
        lines = [line.split() for file in self.root.parent.glob("begun-*") for line in file.read_text().splitlines()]
        return {task: (float(first), float(last)) for task, first, last in lines}

    async def run(
        self, store: ObjectStore, tell: HandOver, tasks: int, width: int, parallelism: int
    ) -> tuple[Started, float]:
        request = RunRequest(max_parallelism=parallelism, project=PROJECT)
        started = await start_run(store, SCOPE, plan_of(tasks, width), request, self.clock, self.entropy)
        tell.tell(ANYTHING)
        return started, time.time()

    async def ended(self, store: ObjectStore, started: Started) -> RunState:
        while not started.log.state.is_finished:
            await self.clock.sleep(0.02)
            await started.log.catch_up()
        return started.log.state


async def new_runs(fleet: Fleet, runs: int) -> list[float]:
    """From the run's first entry to the first line of its only task, in another process."""
    store = LocalStore(str(fleet.root), fleet.clock, fleet.entropy)
    tell = LocalWakeUps(fleet.root, fleet.entropy, looks_every_s=2.0)
    waits = []
    for _ in range(runs + 3):
        started, at_s = await fleet.run(store, tell, 1, 1, 1)
        await fleet.ended(store, started)
        waits.append((fleet.begun()[f"{started.log.run}/task_{0:016x}"][0] - at_s) * 1000)
    tell.close()
    await store.close()
    return waits[3:]  # the first ones find processes that are still starting


async def signed_chain(fleet: Fleet, tasks: int) -> list[float]:
    """From the end of a task in the worker, through the scheduler that signs the next, to its first line in the worker."""
    store = LocalStore(str(fleet.root), fleet.clock, fleet.entropy)
    tell = LocalWakeUps(fleet.root, fleet.entropy, looks_every_s=2.0)
    started, _ = await fleet.run(store, tell, tasks, 1, 1)
    await fleet.ended(store, started)
    tell.close()
    await store.close()
    begun = sorted(times for task, times in fleet.begun().items() if task.startswith(str(started.log.run)))
    return [(after[0] - before[1]) * 1000 for before, after in pairwise(begun)][2:]


async def round_trips() -> dict[str, int]:
    """What a process that has read everything so far asks of the store, from hearing of an end to beginning the next task."""
    clock, entropy = SystemClock(), SystemEntropy()
    inner = MemoryStore(clock)
    slow = ProfiledStore(inner, S3, clock)
    request = RunRequest(max_parallelism=1, project=PROJECT)
    started = await start_run(inner, SCOPE, plan_of(2, 1), request, clock, entropy)
    here = await open_run(inner, SCOPE, started.log.run, clock, entropy)
    there = await open_run(slow, SCOPE, started.log.run, clock, entropy)
    near = Ground(inner, NoSettler(), Appender(inner, SCOPE, clock, entropy), clock, entropy)
    far = Ground(slow, NoSettler(), Appender(inner, SCOPE, clock, entropy), clock, entropy)
    before: list[Counter[str]] = []
    first, second = Begins(), Begins(pause_s=1.0)

    def told(_run: str) -> None:
        if here.log.state.task(here.plan.spec.tasks[0].id).ended_ms is not None:
            before.append(Counter(slow.total.requests))
        other.hear()

    first.pause_s = 1.0  # so that the other has read the claim when the end comes
    one = Driver(near, here.log, here.plan, first, Options(slots=1, tell=told))
    other = Driver(far, there.log, there.plan, second, Options(slots=1, poll_s=60.0))
    near_going = asyncio.ensure_future(one.drive())
    while not first.began:
        await clock.sleep(0.001)
    one.leave()
    far_going = asyncio.ensure_future(other.drive())
    while not second.began:
        await clock.sleep(0.001)
    for going in (near_going, far_going):
        going.cancel()
    return dict(slow.total.requests - before[0])


async def many_tasks(tasks: int) -> float:
    """One worker with eight slots, one run, on a folder: milliseconds a task."""
    clock, entropy = SystemClock(), SystemEntropy()
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(folder, clock, entropy)
        request = RunRequest(max_parallelism=8, project=PROJECT)
        await start_run(store, SCOPE, plan_of(tasks, tasks), request, clock, entropy)
        began = time.perf_counter()
        await crew_of(store, clock, Looking(2.0), Begins(), Slots(8), signed=False).serve(once=True)
        took_s = time.perf_counter() - began
        await store.close()
        return took_s * 1000 / tasks


async def many_runs(fleet: Fleet, runs: int, tasks: int) -> tuple[float, float]:
    """All at once on two workers: seconds for everything, and milliseconds a task."""
    store = LocalStore(str(fleet.root), fleet.clock, fleet.entropy)
    tell = LocalWakeUps(fleet.root, fleet.entropy, looks_every_s=2.0)
    began = time.perf_counter()
    started = await asyncio.gather(*(fleet.run(store, tell, tasks, tasks, 4) for _ in range(runs)))
    states = await asyncio.gather(*(fleet.ended(store, one) for one, _ in started))
    took_s = time.perf_counter() - began
    assert all(state.run.status.value == "succeeded" for state in states)
    assert len({task for task in fleet.begun() if task[:26] in {str(one.log.run) for one, _ in started}}) == runs * tasks
    tell.close()
    await store.close()
    return took_s, took_s * 1000 / (runs * tasks)


def spread(values: list[float]) -> str:
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, round(len(ordered) * 0.95))]
    return f"p50 {statistics.median(ordered):.0f} ms, p95 {p95:.0f} ms, most {ordered[-1]:.0f} ms of {len(ordered)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--process")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--signed", action="store_true")
    asked = parser.parse_args()
    if asked.process:
        process(Path(asked.process), asked.slots, signed=asked.signed)
        return
    for title, slots, signed in (("new run", (2, 2), False), ("signed", (2, 0), True)):
        with tempfile.TemporaryDirectory() as folder:
            fleet = Fleet(Path(folder))
            for one in slots:
                fleet.start(one, signed=signed)
            try:
                if not signed:
                    print(f"{title}: begun in another process: {spread(asyncio.run(new_runs(fleet, asked.runs)))}")
                    took_s, each_ms = asyncio.run(many_runs(fleet, 50, 20))
                    print(f"50 runs of 20 tasks at once, two workers: {took_s:.1f} s, {each_ms:.1f} ms a task")
                else:
                    waits = asyncio.run(signed_chain(fleet, asked.runs))
                    print(f"{title}: ended, signed by a scheduler, begun again: {spread(waits)}")
            finally:
                fleet.stop()
    asked_for = asyncio.run(round_trips())
    print(
        f"one after the other, from hearing of an end to beginning: {sum(asked_for.values())} {asked_for} (goal {GOAL_TRIPS})"
    )
    print(f"1,000 tasks that do nothing in one worker: {asyncio.run(many_tasks(1000)):.2f} ms each (goal {GOAL_TASK_MS:g})")
    print(f"goal of a hand-over between processes: p95 within {GOAL_MS:g} ms; load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
