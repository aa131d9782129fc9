"""Drivers of one atomic run die, stall beyond their leases and the lifetime of keys, and lose replies; readers look all the time.

The run changes two tables and creates a third. In some worlds a gate refuses an output, somebody else commits to one of the
tables, somebody asks for the end, or the time runs out. Whatever happens, readers see all of the run or nothing of it, and what
its log says of it is what they see.
"""

from arco.catalog.catalog import Catalog
from arco.catalog.side_by_side import side_by_side
from arco.iceberg import requests
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import AskHistory, Conflict, NoSuchTable, RetryLater
from arco.ledger.appender import Appender
from arco.ledger.receipts import Source
from arco.ledger.run_state import RunState, TaskStatus
from arco.servo.schedule.catalog_together import CatalogTogether
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.executor import TaskPolicy
from arco.servo.schedule.settling import CatalogSettler
from arco.servo.schedule.starting import RunRequest, Started, start_run
from arco.servo.sdk.definitions import Retry
from arco.storage.port import ObjectStore
from arco_sim import invariants
from arco_sim.faults import FaultProfile
from arco_sim.scenario import violate
from arco_sim.scenarios.atomic_runs_work import CREATED, StagingExecutor, atomic_jobs_of, snapshot_body
from arco_sim.scenarios.run_log import LEASE_S, RunLogScenario, check_events, check_log, closed_run
from arco_sim.scenarios.run_log_work import NAMESPACE, SCOPE, Job, announce, plan_of, task_name
from arco_sim.world import Env, World

_OLD = ("a", "b")
_LOOKS = 60
_FORGOTTEN_S = 30_000.0


def _is_left_alone(world: World) -> bool:
    """Whether whoever dies in this world is not replaced, and the run is resumed when its transaction is an old story."""
    return world.seed % 6 == 3


def _open(env: Env, store: ObjectStore) -> Catalog:
    return Catalog.open(store, "file:///lake", SCOPE, env.clock, env.entropy)


class AtomicRunsScenario(RunLogScenario):
    name = "atomic_runs"
    promise = "everything that an atomic run makes is visible at once, and once, or nothing of it ever is, as its log says"
    profile = FaultProfile.of(
        fault_share=0.05,
        crash_share=0.006,
        stall_s=300.0,
        longer_stalls_s=(2500.0, 30_000.0),
        wrong_s_max=600.0,
        limit_s=3e6,
    )
    asleep_s = 60_000.0

    def start(self, world: World, *, small: bool) -> None:
        jobs = atomic_jobs_of(world.seed, small=small)
        world.notes.update(jobs=jobs, small=small, runs=set())
        lives = 2 if small else 1 if _is_left_alone(world) else 4
        for number in range(1 if _is_left_alone(world) else 2):
            world.spawn(f"driver{number}", lambda env: self._live(env, jobs, small=small), lives=lives)
        if small:
            return
        world.spawn("reader", self._look)
        if world.seed % 4 == 0:
            world.spawn("canceller", self._cancel)
        if world.seed % 4 == 1:
            world.spawn("stranger", self._interfere)

    def resumed_after_s(self, world: World) -> float:
        return _FORGOTTEN_S if _is_left_alone(world) else 0.0

    async def _started(self, env: Env, store: ObjectStore, jobs: list[Job]) -> Started:
        request = RunRequest(
            max_parallelism=2,
            timeout_s=400.0 if env.world.seed % 5 == 0 else None,
            idempotency_key="nightly",
            atomic=True,
        )
        while True:
            try:
                return await start_run(store, SCOPE, plan_of(jobs), request, env.clock, env.entropy)
            except (AskHistory, RetryLater):
                await env.clock.sleep(5.0)

    async def drive(self, env: Env, store: ObjectStore, started: Started, *, seize: bool) -> None:
        notes = env.world.notes
        catalog = _open(env, store)
        appender = Appender(store, SCOPE, env.clock, env.entropy)
        executor = StagingExecutor(env, catalog, notes["jobs"], lambda: started.log.state, small=notes["small"])
        policy = TaskPolicy(Retry(attempts=2, pause_s=3.0), timeout_s=150.0)
        options = Options(
            policies={task.id: policy for task in started.plan.spec.tasks},
            lease_s=LEASE_S,
            poll_s=4.0,
            announce=announce,
            seize=seize,
        )
        together = CatalogTogether(catalog, 10, Source())
        ground = Ground(store, CatalogSettler(catalog.parts), appender, env.clock, env.entropy, together)
        await Driver(ground, started.log, started.plan, executor, options).drive()
        await catalog.parts.afterwards.settle()
        await appender.close()

    async def _look(self, env: Env) -> None:
        """Two tables as of one moment, and the third if it is there."""
        catalog = _open(env, env.store)
        for _ in range(_LOOKS):
            await env.clock.sleep(env.entropy.fraction() * 12.0)
            for names in (_OLD, (*_OLD, CREATED)):
                try:
                    found = await side_by_side(catalog, [(NAMESPACE, name) for name in names])
                except (NoSuchTable, RetryLater, AskHistory):
                    continue
                seen = {entry.name: _tasks_in(base.metadata) for entry, base in found}
                _judge_cut(env.world, seen)

    async def _interfere(self, env: Env) -> None:
        """Somebody else commits to a table of the run, once."""
        catalog = _open(env, env.store)
        await env.clock.sleep(env.entropy.fraction() * 200.0)
        for _ in range(20):
            try:
                _, base = await catalog.tables.load(NAMESPACE, "a")
                body = snapshot_body(base.metadata, 77, env.clock.now_ms(), {})
                key = catalog.parts.markers.request_key(None, "updateTable", "")
                request = requests.parse_commit_table(body)
                await catalog.table_commits.commit(NAMESPACE, "a", request, key, Source())
            except (Conflict, RetryLater, AskHistory):
                await env.clock.sleep(1.0)
            else:
                return

    # Afterwards

    async def verify(self, world: World, env: Env) -> None:
        log = await closed_run(self, world, env)
        if log is None:
            return
        check_log(world, log.state)
        catalog = _open(env, env.store)
        tables: dict[str, TableMetadata] = {}
        for name in (*_OLD, CREATED):
            try:
                tables[name] = (await catalog.tables.load(NAMESPACE, name))[1].metadata
            except NoSuchTable:
                continue
        _judge_end(world, log.state, tables)
        await check_events(world, env, log)


def _tasks_in(table: TableMetadata) -> list[tuple[str, int]]:
    """The tasks whose snapshots lead to main, with the attempts that made them."""
    by_id = {one["snapshot-id"]: one for one in table.snapshots}
    found: list[tuple[str, int]] = []
    current = table.refs.get("main", {}).get("snapshot-id")
    while current is not None:
        summary = by_id[current]["summary"]
        if "arco.task" in summary:
            found.append((summary["arco.task"], int(summary["arco.attempt"])))
        current = by_id[current].get("parent-snapshot-id")
    return found


def _wanted_in(world: World, tables: tuple[str, ...]) -> set[str]:
    jobs: list[Job] = world.notes["jobs"]
    return {task_name(place) for place, job in enumerate(jobs) if job.table in tables}


def _judge_cut(world: World, seen: dict[str, list[tuple[str, int]]]) -> None:
    shown = {task for tasks in seen.values() for task, _ in tasks}
    wanted = _wanted_in(world, tuple(seen))
    if shown and shown != wanted:
        violate(world, invariants.NOT_HALF_VISIBLE, f"a reader saw {sorted(shown)} of {sorted(wanted)} at one moment")
    if CREATED in seen and not shown:
        violate(world, invariants.NOT_HALF_VISIBLE, "a table of the run is there, and nothing of the run")


def _judge_end(world: World, state: RunState, tables: dict[str, TableMetadata]) -> None:
    """What the log says of the run is what its tables say."""
    shown = [task for table in tables.values() for task in _tasks_in(table)]
    if not state.run.published:
        if shown or CREATED in tables:
            violate(world, invariants.OUTCOMES_TRUE, f"the run was not published, and {shown} are visible")
        ended = [task for task, its in state.tasks.items() if its.status is TaskStatus.SUCCEEDED]
        if ended:
            violate(world, invariants.OUTCOMES_TRUE, f"the run was not published, and {ended} are said to be")
        return
    if sorted(shown) != sorted((task, its.attempt) for task, its in state.tasks.items()):
        verdict = invariants.PUBLISHED_ONCE if len(shown) > len(state.tasks) else invariants.NOTHING_LOST
        violate(world, verdict, f"the run was published, and {shown} are visible")
    if any(its.status is not TaskStatus.SUCCEEDED for its in state.tasks.values()):
        violate(world, invariants.OUTCOMES_TRUE, "the run was published, and not all of its tasks are said to be")
