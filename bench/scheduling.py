"""What scheduling costs: a run of many tasks that do nothing, on a store in memory.

Everything is real but the work: the log, claims, staging, the outbox and the ledger. Wall time and processor time per task, the
median and the spread of several rounds; the objects of the log say how well decisions share them.
Usage: python bench/scheduling.py
"""

import asyncio
import statistics
import time

from arco.catalog.settling import NeverLands, Settled
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import RunId
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.run_entries import OutputStaged, RunStatus
from arco.quality.gates import Action
from arco.servo.plan.document import Estimate, Plan, PlannedTask, PlanSpec
from arco.servo.schedule.driver import Driver, Ground
from arco.servo.schedule.executor import Attempt, Commit, Done, Outcome, Output
from arco.servo.schedule.starting import RunRequest, open_run, start_run
from arco.storage.memory import MemoryStore

TASKS = 1000
ROUNDS = 5
GOAL_MS = 20.0
SCOPE = Scope.of("bench", "scheduling")
MADE = EventType("execution.materialization_completed.v1")


class NoWork:
    """Stages an output with one event, and says that it is done."""

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        event = Draft(type=MADE, source="bench", data={"task": task.id})
        await attempt.stage(Output(action=Action.CONTINUE, commit=Commit("publish"), events=(event,)))
        return Done()


class NoSettler:
    async def settle(self, run: RunId, staged: OutputStaged, reason: str) -> Settled:
        return NeverLands()


def plan_of(tasks: int, width: int) -> Plan:
    """Columns of tasks, each reading the one above it."""
    made = tuple(
        PlannedTask(
            id=f"task_{number:016x}",
            asset=f"bench.a{number}",
            partitions=[],
            partition_count=1,
            stage=number // width,
            priority=0,
            depends_on=(f"task_{number - width:016x}",) if number >= width else (),
            inputs=(),
            because=(),
            estimate=Estimate(partitions=1),
        )
        for number in range(tasks)
    )
    spec = PlanSpec(
        format=1,
        deployment="d",
        code_version="c",
        snapshot="s",
        mode="standard",
        selection=(),
        partitions={},
        tasks=made,
    )
    return Plan.of(spec)


async def one_round(plan: Plan, parallelism: int) -> tuple[float, float, int, float]:
    """Wall and processor milliseconds per task, objects of the log, milliseconds to open the finished run."""
    clock, entropy = SystemClock(), SystemEntropy()
    store = MemoryStore(clock)
    wall, processor = time.perf_counter(), time.process_time()
    started = await start_run(store, SCOPE, plan, RunRequest(max_parallelism=parallelism), clock, entropy)
    ground = Ground(store, NoSettler(), Appender(store, SCOPE, clock, entropy), clock, entropy)
    state = await Driver(ground, started.log, started.plan, NoWork()).drive()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    assert state.run.status is RunStatus.SUCCEEDED
    assert not state.owed
    begun = time.perf_counter()
    await open_run(store, SCOPE, started.log.run, clock, entropy)
    opening = time.perf_counter() - begun
    tasks = len(plan.spec.tasks)
    return wall * 1000 / tasks, processor * 1000 / tasks, state.sequence, opening * 1000


def main() -> None:
    print(f"{TASKS} tasks, {ROUNDS} rounds; goal: at most {GOAL_MS:g} ms of scheduling per task")
    print(f"{'shape':<34} {'wall ms/task':>20} {'processor ms/task':>20} {'log objects':>12} {'open ms':>8}")
    shapes = [("all at once", TASKS, 4), ("ten columns", 10, 4), ("one after the other", 1, 1), ("all at once", TASKS, 64)]
    for name, width, parallelism in shapes:
        rounds = [asyncio.run(one_round(plan_of(TASKS, width), parallelism)) for _ in range(ROUNDS)]
        wall, processor, objects, opening = zip(*rounds, strict=True)
        label = f"{name}, {parallelism} in parallel"
        print(
            f"{label:<34} {_spread(wall):>20} {_spread(processor):>20} {objects[0]:>12} {statistics.median(opening):>8.0f}"
        )


def _spread(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


if __name__ == "__main__":
    main()
