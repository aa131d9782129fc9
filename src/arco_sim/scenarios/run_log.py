"""Drivers of one run die, stall beyond their leases and lose replies, and whoever is left goes on from the log.

All of them start the run with the same key. Their tasks publish through the real commit path, so that an attempt that was
declared dead may wake up with its swing prepared. In some worlds somebody asks for the end of the run, or pauses it for a while,
or its time runs out.
At last one more driver, who knows nothing but the store, brings the run to its end; then what slept wakes up; then all is
counted.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from arco.catalog.bases import Bases
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.catalog.relations import Relations
from arco.catalog.subject import Tables
from arco.catalog.workspace import Workspace
from arco.iceberg import requests
from arco.kernel.errors import AskHistory, RetryLater
from arco.kernel.ids import RunId
from arco.ledger.appender import Appender
from arco.ledger.envelope import Event
from arco.ledger.receipts import Source
from arco.ledger.run_entries import AttemptEntry, Batch, OnFailure, OutputStaged, RunFinished, TaskClaimed
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import PASSABLE, RunState, TaskState, TaskStatus
from arco.ledger.segment import decode_segment
from arco.quality.gates import EFFECTS
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.executor import TaskPolicy
from arco.servo.schedule.interventions import (
    pay_what_is_owed,
    request_cancel,
    request_pause,
    request_resume,
)
from arco.servo.schedule.settling import CatalogSettler
from arco.servo.schedule.starting import RunRequest, Started, open_run, start_run
from arco.servo.sdk.definitions import Retry
from arco.storage.keys import RunLogKey, SegmentKey, parse
from arco.storage.paging import walk
from arco.storage.port import ObjectStore
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.outage import FailingStore
from arco_sim.scenario import violate
from arco_sim.scenarios.run_log_work import (
    NAMESPACE,
    SCOPE,
    Job,
    PublishingExecutor,
    announce,
    jobs_of,
    plan_of,
    task_name,
)
from arco_sim.world import Env, World

LEASE_S = 12.0
_ENDS = {TaskStatus.BLOCKED, TaskStatus.QUARANTINED, TaskStatus.FAILED}


def _workspace(env: Env, store: ObjectStore) -> Workspace:
    return Workspace.on(store, "file:///lake", SCOPE, env.clock, env.entropy)


class RunLogScenario:
    name = "run_log"
    promise = (
        "a task is published once if it is recorded as succeeded and never otherwise, and its events are in the ledger"
    )
    profile = FaultProfile.of(fault_share=0.05, crash_share=0.006, stall_s=900.0)
    faults = tuple(Fault)
    asleep_s = 5000.0

    async def prepare(self, world: World, env: Env) -> None:
        ws = _workspace(env, env.store)
        tables = Relations(ws, Tables(), Bases(ws, Tables()))
        await create_namespace(ws, NAMESPACE, {}, RequestKey("first", "create", "0", durable=False), Author())
        uuids = {}
        for name in ("a", "b"):
            field = {"id": 1, "name": "x", "type": "long", "required": False}
            body = {"name": name, "schema": {"type": "struct", "fields": [field]}}
            key = RequestKey(f"table {name}", "create", "0", durable=False)
            metadata, _ = await tables.create(NAMESPACE, requests.parse_create_table(body), key, Source())
            uuids[name] = metadata.table_uuid
        world.notes["uuids"] = uuids

    def start(self, world: World, *, small: bool) -> None:
        jobs = jobs_of(world.seed, small=small)
        world.notes.update(jobs=jobs, small=small, runs=set())
        for number in range(2):
            world.spawn(f"driver{number}", lambda env: self._live(env, jobs, small=small), lives=2 if small else 4)
        if not small and world.seed % 4 == 0:
            world.spawn("canceller", self._cancel)
        if not small and world.seed % 6 == 1:
            world.spawn("pauser", self._pause, lives=8)

    async def _live(self, env: Env, jobs: list[Job], *, small: bool) -> None:
        store: ObjectStore = env.store
        if not small and env.world.seed % 3 == 0 and env.name == "driver0":
            store = FailingStore(env)
        started = await self._started(env, store, jobs)
        env.world.notes["runs"].add(started.log.run)
        await self.drive(env, store, started, seize=False)

    async def _started(self, env: Env, store: ObjectStore, jobs: list[Job]) -> Started:
        request = RunRequest(
            max_parallelism=2,
            on_failure=OnFailure.FAIL_FAST if env.world.seed % 7 == 1 else OnFailure.KEEP_GOING,
            timeout_s=400.0 if env.world.seed % 5 == 0 else None,
            idempotency_key="nightly",
        )
        while True:
            try:
                return await start_run(store, SCOPE, plan_of(jobs), request, env.clock, env.entropy)
            except (AskHistory, RetryLater):
                await env.clock.sleep(5.0)

    async def drive(self, env: Env, store: ObjectStore, started: Started, *, seize: bool) -> None:
        notes = env.world.notes
        ws = _workspace(env, store)
        appender = Appender(store, SCOPE, env.clock, env.entropy)
        executor = PublishingExecutor(env, ws, notes["jobs"], notes["uuids"], small=notes["small"])
        # Where nothing is tried again, no later commit to the table covers for an attempt that was not settled.
        policy = TaskPolicy(Retry(attempts=0 if env.world.seed % 3 == 2 else 2, pause_s=3.0), timeout_s=150.0)
        options = Options(
            policies={task.id: policy for task in started.plan.spec.tasks},
            lease_s=LEASE_S,
            poll_s=4.0,
            announce=announce,
            seize=seize,
        )
        ground = Ground(store, CatalogSettler(ws), appender, env.clock, env.entropy)
        await Driver(ground, started.log, started.plan, executor, options).drive()
        await ws.afterwards.settle()
        await appender.close()

    async def _cancel(self, env: Env) -> None:
        await env.clock.sleep(env.entropy.fraction() * 60.0)
        for run in env.world.notes["runs"]:
            opened = await open_run(env.store, SCOPE, run, env.clock, env.entropy)
            await request_cancel(opened.log, "somebody", "not needed any more", env.clock, env.entropy)

    async def _pause(self, env: Env) -> None:
        """Once for a while; whoever comes after a pauser that died resumes, or nobody would finish."""
        await env.clock.sleep(env.entropy.fraction() * 30.0)
        for run in list(env.world.notes["runs"]):
            opened = await open_run(env.store, SCOPE, run, env.clock, env.entropy)
            if not env.world.notes.get("paused"):
                env.world.notes["paused"] = True
                await _insisted(env, partial(request_pause, opened.log, "ann", "to look", env.clock, env.entropy))
                await env.clock.sleep(env.entropy.fraction() * 200.0)
            await _insisted(env, partial(request_resume, opened.log, "ann", env.clock, env.entropy))

    # Afterwards

    async def verify(self, world: World, env: Env) -> None:
        log = await closed_run(self, world, env)
        if log is None:
            return
        check_log(world, log.state)
        published = await self._published(env, world)
        for place, job in enumerate(world.notes["jobs"]):
            _check_task(world, task_name(place), log.state.task(task_name(place)), job, published)
        await check_events(world, env, log)

    async def the_run(self, world: World, env: Env) -> RunId | None:
        """The one run that the key stands for, if anybody got so far as to create it."""
        runs = set()
        async for entry in walk(env.store, "t/w/_catalog/runs/"):
            key = parse(entry.key)
            if isinstance(key, RunLogKey):
                runs.add(key.run)
        if len(runs) > 1:
            violate(world, invariants.NOTHING_DOUBLED, f"one key started {len(runs)} runs")
        if world.notes["runs"] - runs:
            violate(world, invariants.NOTHING_LOST, "a run that was started is not there")
        return next(iter(runs), None)

    def resumed_after_s(self, _world: World) -> float:
        """How long nobody drives the run before the last one does."""
        return 0.0

    async def _published(self, env: Env, world: World) -> list[dict[str, str]]:
        """The summaries of all snapshots of all tables."""
        ws = _workspace(env, env.store)
        bases = Bases(ws, Tables())
        found = []
        for uuid in world.notes["uuids"].values():
            base = await bases.read(uuid)
            if base is None:
                violate(world, invariants.NOTHING_LOST, "a table's pointer is gone")
            else:
                found += [snapshot["summary"] for snapshot in base.metadata.snapshots]
        return found


async def closed_run(scenario: RunLogScenario, world: World, env: Env) -> RunLog | None:
    """The log of the run, after one more driver brought it to its end and what slept woke up; None if nobody began it."""
    run = await scenario.the_run(world, env)
    if run is None:
        return None
    await env.clock.sleep(scenario.resumed_after_s(world))
    started = await open_run(env.store, SCOPE, run, env.clock, env.entropy)
    await request_resume(started.log, "ann", env.clock, env.entropy)
    await scenario.drive(env, env.store, started, seize=True)
    await env.clock.sleep(scenario.asleep_s)
    log = (await open_run(env.store, SCOPE, run, env.clock, env.entropy)).log
    await pay_what_is_owed(log, Appender(env.store, SCOPE, env.clock, env.entropy), env.clock, env.entropy)
    return log


async def check_events(world: World, env: Env, log: RunLog) -> None:
    """What the log says happened is in the ledger under one id, and nothing else is."""
    events = await _ledger(env)
    owed, never = await _announced(env, log)
    there = {str(event.id) for event in events}
    for event_id, what in owed.items():
        if event_id not in there:
            violate(world, invariants.NOTHING_LOST, f"the event of {what} is not in the ledger")
    for event in events:
        if event.id in never:
            violate(world, invariants.OUTCOMES_TRUE, f"an event of {never[event.id]}, which never landed, is there")
        elif event.id not in owed:
            violate(world, invariants.NOTHING_DOUBLED, f"event {event.id} is in the ledger and not in the log")


async def _insisted(env: Env, ask: Callable[[], Awaitable[bool]]) -> None:
    while True:
        try:
            await ask()
        except (AskHistory, RetryLater):
            await env.clock.sleep(5.0)
        else:
            return


async def _ledger(env: Env) -> list[Event]:
    events: list[Event] = []
    async for entry in walk(env.store, "t/w/_catalog/ledger/"):
        key, found = parse(entry.key), await env.store.get(entry.key)
        if isinstance(key, SegmentKey) and found is not None:
            events += decode_segment(key, found.data).events
    return events


async def _announced(env: Env, log: RunLog) -> tuple[dict[str, str], dict[str, str]]:
    """The events that the log owes, by id; and those of attempts that staged something and did not land."""
    again = RunLog(env.store, SCOPE, log.run, log.state.outline, env.clock, env.entropy)
    staged: dict[tuple[str, int], OutputStaged] = {}
    owed: dict[str, str] = {}
    never: dict[str, str] = {}
    batches: list[Batch] = []
    again.on_batch = batches.append
    await again.read_all()
    for batch in batches:
        for entry in batch.entries:
            if isinstance(entry, OutputStaged):
                earlier = staged.get((entry.task, entry.attempt))
                if earlier is not None:
                    never.update({str(one.id): f"attempt {entry.attempt} of {entry.task}" for one in earlier.events})
                staged[entry.task, entry.attempt] = entry
            elif isinstance(entry, RunFinished):
                owed.update({str(one.id): "the run's end" for one in entry.events})
    for (task, attempt), entry in staged.items():
        its = log.state.task(task)
        landed = its.attempt == attempt and its.materialization_id is not None
        (owed if landed else never).update({str(one.id): f"attempt {attempt} of {task}" for one in entry.events})
    return owed, never


def check_log(world: World, state: RunState) -> None:
    for one in state.ignored:
        entry = one.entry
        who = f"attempt {entry.attempt} of {entry.task}" if isinstance(entry, AttemptEntry) else type(entry).__name__
        kind = "a claim" if isinstance(entry, TaskClaimed) else "an entry"
        violate(world, invariants.VALID_LOG, f"entry {one.sequence}: {kind} by {who} does not count: {one.reason}")
    if not state.is_finished:
        violate(world, invariants.PROGRESS, "the run did not finish")
    if state.owed:
        violate(world, invariants.NOTHING_LOST, f"{len(state.owed)} entries owe events after the end")


def _check_task(world: World, task: str, state: TaskState, job: Job, published: list[dict[str, str]]) -> None:
    """What the log says of a task is what its table says."""
    its = [summary for summary in published if summary["arco.task"] == task]
    ended_by_gate = state.materialization_id is not None
    landed = state.status in PASSABLE | _ENDS and ended_by_gate
    if not landed:
        for summary in its:
            what = f"attempt {summary['arco.attempt']} of {task} is in history"
            violate(world, invariants.OUTCOMES_TRUE, f"{task} is recorded as {state.status}, and {what}")
        return
    if len(its) != 1:
        verdict = invariants.PUBLISHED_ONCE if its else invariants.NOTHING_LOST
        violate(world, verdict, f"{task} is {state.status} and was published {len(its)} times")
        return
    if int(its[0]["arco.attempt"]) != state.attempt:
        found = its[0]["arco.attempt"]
        violate(world, invariants.NO_FENCED_WRITE, f"{task} ended with attempt {state.attempt}, attempt {found} published")
    if (its[0]["arco.ref"] == "main") is not EFFECTS[job.action].main_moves:
        violate(world, invariants.OUTCOMES_TRUE, f"{task} moved main against its gate, or did not though it should")
