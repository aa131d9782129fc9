"""A calm world with its own time for the tests of runs: nothing fails here unless a test makes it fail.

Time is the simulator's: it jumps to whatever happens next, so a test of an hour's pause takes no time and depends on no machine.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from arco.catalog.settling import DidLand, NeverLands, Settled
from arco.kernel.errors import Fenced
from arco.kernel.ids import RunId
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import Event, EventType
from arco.ledger.run_entries import AnyEntry, OutputStaged
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import RunState
from arco.ledger.segment import decode_segment
from arco.quality.gates import Action
from arco.servo.plan.document import Estimate, Plan, PlannedTask, PlanSpec
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.executor import Attempt, Commit, Done, Outcome, Output
from arco.servo.schedule.starting import RunRequest, Started, open_run, start_run
from arco.storage.keys import SegmentKey, parse
from arco.storage.paging import walk
from arco_sim.faults import ROUGH
from arco_sim.world import Env, Incarnation, World

SCOPE = Scope.of("t", "w")
MADE = EventType("execution.materialization_completed.v1")
Story = Callable[["Place"], Awaitable[None]]


def task_id(letter: str) -> str:
    return f"task_{ord(letter):016x}"


def plan_of(reads: Mapping[str, str]) -> Plan:
    """One task for each letter, and the letters that it reads."""
    tasks = tuple(
        PlannedTask(
            id=task_id(letter),
            asset=f"shop.{letter}",
            partitions=[],
            partition_count=1,
            stage=0,
            priority=0,
            depends_on=tuple(task_id(one) for one in upstream),
            inputs=(),
            because=(),
            estimate=Estimate(partitions=1),
        )
        for letter, upstream in reads.items()
    )
    return Plan.of(
        PlanSpec(
            format=1,
            deployment="d",
            code_version="c",
            snapshot="s",
            mode="standard",
            selection=(),
            partitions={},
            tasks=tasks,
        )
    )


@dataclass(slots=True)
class Catalog:
    """What was published, by key. It refuses a key that was settled, and remembers who asked."""

    published: dict[str, str] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    settled: list[str] = field(default_factory=list)

    def commit(self, key: str, task: str) -> None:
        if key in self.dead:
            raise Fenced("this attempt is over")
        self.published[key] = task

    async def settle(self, run: RunId, staged: OutputStaged, reason: str) -> Settled:
        assert staged.publish is not None
        self.settled.append(staged.publish.key)
        if staged.publish.key in self.published:
            return DidLand("somewhere")
        self.dead.add(staged.publish.key)
        return NeverLands(was_free=True)


Step = Callable[[PlannedTask, Attempt], Awaitable[Outcome]]


@dataclass(slots=True)
class Script:
    """An executor that does what a test says for a letter, and otherwise publishes at once. It counts its attempts."""

    place: "Place"
    steps: dict[str, Step] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        letter = chr(int(task.id[5:], 16))
        self.ran.append(f"{letter}{attempt.number}")
        if letter in self.steps:
            return await self.steps[letter](task, attempt)
        return await self.publish(task, attempt)

    def output(self, task: PlannedTask, attempt: Attempt, **more: Any) -> Output:
        letter = chr(int(task.id[5:], 16))
        action = self.actions.get(letter, Action.CONTINUE)
        event = Draft(type=MADE, source="test", data={"task": letter, "attempt": attempt.number})
        words = {"action": action, "commit": Commit("publish", "hash", "u", 5), "events": (event,)}
        return Output(**(words | more))

    async def publish(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        ticket = await attempt.stage(self.output(task, attempt))
        self.place.catalog.commit(ticket.key, task.id)
        return Done(5)


class Place:
    """A world, its catalog, and drivers that are made in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.catalog = Catalog()
        self.script = Script(self)
        self.seen: list[AnyEntry] = []

    def env(self, name: str = "one") -> Env:
        return Env(self.world, Incarnation(name, 1))

    async def started(self, reads: Mapping[str, str], **request: Any) -> Started:
        env = self.env("starter")
        words = {"max_parallelism": 4} | request
        return await start_run(env.store, SCOPE, plan_of(reads), RunRequest(**words), env.clock, env.entropy)

    async def opened(self, run: RunId, name: str = "opener") -> Started:
        env = self.env(name)
        return await open_run(env.store, SCOPE, run, env.clock, env.entropy)

    def driver(self, started: Started, name: str = "one", **options: Any) -> Driver:
        env = self.env(name)
        appender = Appender(env.store, SCOPE, env.clock, env.entropy)
        ground = Ground(env.store, self.catalog, appender, env.clock, env.entropy)
        words = {"observer": self, "poll_s": 2.0} | options
        return Driver(ground, started.log, started.plan, self.script, Options(**words))

    async def drive(
        self, reads: Mapping[str, str], *, driving: Mapping[str, Any] | None = None, **request: Any
    ) -> RunState:
        started = await self.started(reads, **request)
        return await self.driver(started, **(driving or {})).drive()

    # It is its drivers' observer

    def saw(self, entry: AnyEntry, state: RunState) -> None:
        self.seen.append(entry)

    def progressed(self, task: str, facts: Mapping[str, Any]) -> None:
        self.seen.append((task, dict(facts)))  # type: ignore[arg-type]

    async def ledger(self) -> list[Event]:
        env = self.env("reader")
        events: list[Event] = []
        async for entry in walk(env.store, "t/w/_catalog/ledger/"):
            key, found = parse(entry.key), await env.store.get(entry.key)
            assert isinstance(key, SegmentKey)
            assert found is not None
            events += decode_segment(key, found.data).events
        return events

    def statuses(self, state: RunState) -> dict[str, str]:
        return {chr(int(task[5:], 16)): its.status.value for task, its in state.tasks.items()}


def in_a_calm_world(story: Story) -> None:
    """Run a story to its end. One that never ends has stopped for want of anything to happen."""
    world = World(1, ROUGH, plan={})
    ended = []

    async def told() -> None:
        await story(Place(world))
        ended.append(True)

    try:
        world.loop.run(told())
    finally:
        world.end()
    assert ended, "the story came to a halt"


async def log_of(place: Place, run: RunId) -> RunLog:
    return (await place.opened(run, "auditor")).log
