"""A project at work: deployed, planned, started and driven to its end, in one process with one Spark session.

Spark is started only when there is something to do, and after the plan is stored. What must never enter: how anything is shown.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from arco.catalog.catalog import Catalog
from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import Session, SparkSettings, check_start
from arco.fold.spark_threads import SparkThreads
from arco.kernel.canonical_json import JsonValue, canonical_bytes
from arco.kernel.errors import AskHistory, BrokenInvariant, Conflict, NotFound, RetryLater, Unavailable
from arco.kernel.ids import RunId
from arco.kernel.limits import PLANS_ANEW_MAX, RUN_PARALLELISM_MAX, RUN_POLL_S, TRANSACTION_TABLES_MAX
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.run_entries import OnFailure, Trigger
from arco.ledger.run_state import RunState
from arco.servo.deploy.deploying import Deployments, deployed
from arco.servo.deploy.manifest import Deployment
from arco.servo.deploy.table_columns import columns_of_tables
from arco.servo.execute.computing import Compute
from arco.servo.execute.connect_limits import refuse_what_connect_lacks
from arco.servo.execute.deferring import gathered
from arco.servo.execute.file_access import file_io
from arco.servo.execute.gathering import load_snapshot, store_snapshot
from arco.servo.execute.in_session import InSession
from arco.servo.execute.isolated import Isolated, Isolation
from arco.servo.execute.moved import moved_since
from arco.servo.execute.pooling import needs_of
from arco.servo.execute.publish import SOURCE
from arco.servo.execute.spark_executor import Bench, SparkExecutor
from arco.servo.plan.document import Plan, PlannedTask
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.plan.parameters import overridden
from arco.servo.plan.planner import PlanRequest, plan
from arco.servo.plan.staleness import World
from arco.servo.schedule.announcing import Announcements, begun
from arco.servo.schedule.atomic_limits import refuse_too_many, sets_rows_aside
from arco.servo.schedule.catalog_together import CatalogTogether
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.schedule.executor import Attempt, Executor, NoObserver, Observer, Outcome, TaskPolicy
from arco.servo.schedule.hand_over import ANYTHING, HandOver, Looking
from arco.servo.schedule.open_runs import OpenRunsNote
from arco.servo.schedule.settling import CatalogSettler
from arco.servo.schedule.starting import RunRequest, Started, find_run, open_run, start_run
from arco.servo.sdk.project import Project

_INTERRUPTED = "interrupted"
_HEARD_S = 0.5
_NAMES_MAX = 8


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan with everything it was made from."""

    plan: Plan
    snapshot: PlanningSnapshot
    deployment: Deployment
    request: PlanRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class HowToRun:
    """What somebody says about a run, beside what is to be made."""

    trigger: Trigger = Trigger.MANUAL
    parallelism: int = 4
    timeout_s: float | None = None
    on_failure: OnFailure = OnFailure.KEEP_GOING
    key: str | None = None
    who: str | None = None
    """By whom or what it was started; by default whoever works here."""
    atomic: bool = False
    """Whether all outputs become visible at once, in one transaction over so many tables at most, or none does."""
    transaction_tables: int = TRANSACTION_TABLES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A project, the workspace that it publishes to, and the Spark that it runs on. `root` and `options` are the lake's."""

    catalog: Catalog
    project: Project
    root: str
    options: Mapping[str, str]
    spark: SparkSettings
    by: str
    observer: Observer = field(default_factory=NoObserver)
    home: SparkHome | None = None
    """Whose Spark session runs use, if somebody has one; otherwise each has its own and stops it."""
    pools: Mapping[str, float] = field(default_factory=dict)
    """How much there is of what tasks ask for by name."""
    hand_over: HandOver = field(default_factory=lambda: Looking(RUN_POLL_S))
    """How other processes are told that a run has news."""
    keys: EnvelopeKeys | None = None
    """What runs are sealed with that are started here, if there is a key."""
    defer_to: Scope | None = None
    """The workspace whose tables are read where this one has not built an asset."""
    goes_back: bool = True
    """Whether code that was deployed before, and superseded, may count again: where a person starts something (ADR 0056)."""

    @property
    def deployments(self) -> Deployments:
        parts = self.catalog.parts
        return Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy, parts.heard)

    async def deploy(self) -> Deployment:
        """The project as it is here, deployed if that is news."""
        tables = await columns_of_tables(self.catalog, self.project)
        deployment, _ = await self.deployments.deploy(self.project, by=self.by, tables=tables, goes_back=self.goes_back)
        return deployment

    async def prepare(self, request: PlanRequest) -> Prepared:
        """Deploy what is not deployed yet, look at what there is, and plan."""
        deployment = await self.deploy()
        snapshot = await gathered(self.catalog, self.project, deployment, self.defer_to, self.options)
        made = await asyncio.to_thread(plan, self.project.graph, snapshot, deployed(deployment), request)
        return Prepared(made, snapshot, deployment, request)

    async def as_of_now(self, prepared: Prepared) -> Prepared:
        """The same plan while it stands on what is there; otherwise another one, of the same request."""
        moved = await self._moved(prepared)
        for _ in range(PLANS_ANEW_MAX):
            if not moved:
                return prepared
            prepared = await self.prepare(prepared.request)
            moved = await self._moved(prepared)
        if moved:
            raise Conflict(
                f"{', '.join(moved[:_NAMES_MAX])} changed again each time that this was planned",
                hint="start it when whoever writes there has finished, or ask for less",
            )
        return prepared

    async def _moved(self, prepared: Prepared) -> list[str]:
        return await moved_since(self.catalog, self.project, prepared.plan, prepared.snapshot, self.options)

    async def start(self, prepared: Prepared, how: HowToRun, *, here: bool = True) -> Started:
        """A run of a plan; the one that was started before with the same key, if there is one. `here`: this process drives it.

        A plan of facts that moved since is made anew first, and refused where nothing is left to do.
        """
        parts = self.catalog.parts
        known = await self.started_before(prepared.request, how)
        if known is not None:
            return known  # what it has made since is what moved
        planned, prepared = prepared, await self.as_of_now(prepared)
        if planned.plan.spec.tasks and not prepared.plan.spec.tasks:
            raise Conflict(
                "everything that was planned was made by somebody else meanwhile",
                hint="there is nothing left to start; arco plan shows what is",
            )
        if here:
            await self._check_spark(prepared.plan)
        if how.atomic:
            refuse_too_many(prepared.plan, sets_rows_aside(self.project.assets), how.transaction_tables)
        await store_snapshot(self.catalog, prepared.snapshot)
        request = replace(
            self._asked(prepared.request, how),
            announce=lambda run: begun(run, prepared.plan, self.project.name, how.trigger.value, how.who or self.by),
        )
        needs_of(self.project, prepared.plan, self.pools)  # what never fits is said before anything begins
        made = await start_run(parts.tier1.store, parts.scope, prepared.plan, request, parts.clock, parts.entropy)
        self.hand_over.tell(ANYTHING)
        return self._of_this_code(made)

    async def started_before(self, request: PlanRequest, how: HowToRun) -> Started | None:
        """The run that was started with the same key before. There may be nothing left to plan for it."""
        if how.key is None:
            return None
        parts = self.catalog.parts
        run = await find_run(parts.tier1.store, parts.scope, self._asked(request, how))
        if run is None:
            return None
        try:
            return await self.open(run)
        except NotFound:
            return None  # whoever took the key stopped before the run began: starting it again finishes that

    async def open(self, run: RunId) -> Started:
        """A run that was started before."""
        parts = self.catalog.parts
        return self._of_this_code(await open_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy))

    def _asked(self, request: PlanRequest, how: HowToRun) -> RunRequest:
        """What is asked for is what the key is about: the same key for other assets or partitions is refused."""
        about: list[JsonValue] = [
            self.project.name, list(request.words), dict(request.partitions), request.mode.value, dict(request.parameters)
        ]  # fmt: skip
        if how.atomic:
            about.append("atomic")
        if request.partitions_per_task is not None:
            about.append(request.partitions_per_task)
        return RunRequest(
            trigger=how.trigger,
            who=how.who or self.by,
            max_parallelism=how.parallelism,
            timeout_s=how.timeout_s,
            on_failure=how.on_failure,
            idempotency_key=how.key,
            about=canonical_bytes(about).decode(),
            project=self.project.name,
            atomic=how.atomic,
            transaction_tables=how.transaction_tables,
            keys=self.keys,
        )

    def _of_this_code(self, started: Started) -> Started:
        if started.plan.spec.code_version != self.project.code_version and not started.log.state.is_finished:
            raise Conflict(
                f"run {started.log.run} was planned for code {started.plan.spec.code_version}, and the code is"
                f" {self.project.code_version} now",
                hint="check out that code to go on with it, or plan anew: arco run",
            )
        return started

    async def drive(self, started: Started, *, seize: bool = False) -> RunState:
        """Drive a run to its end. Cancelled, it stops what it started and writes down that it did."""
        if started.log.state.is_finished and not started.log.state.owed:
            return started.log.state
        state = await self._drive(started, seize=seize)
        await self._let_go(started)
        return state

    async def _let_go(self, started: Started) -> None:
        """Strike off a run that has ended. Whoever looks for open runs next does it otherwise."""
        state, parts = started.log.state, self.catalog.parts
        if state.is_finished and not state.owed:
            with suppress(RetryLater, AskHistory, Conflict):
                note = OpenRunsNote(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
                await note.strike({str(started.log.run)})

    async def _drive(self, started: Started, *, seize: bool) -> RunState:
        state = started.log.state
        if state.run.stopping is not None:
            return await self._given_up(started, seize=seize)
        if state.run.published or state.is_all_staged:
            return await self._concluded(started, seize=seize)
        try:
            await self._check_spark(started.plan)
            deployment = await self.deployments.load(started.plan.spec.deployment)
            snapshot = await load_snapshot(self.catalog, started.plan.spec.snapshot)
            home = self.home or self.new_home()
            session = await self._session(home)
        except asyncio.CancelledError:
            return await self._given_up(started, seize=seize)
        try:
            return await self._driven(started, deployment, snapshot, session, seize=seize)
        finally:
            if self.home is None:
                await home.stop()

    async def _session(self, home: SparkHome) -> Session:
        try:
            return await home.session()
        except Unavailable:
            # What stops a service signals all of its processes, and may be heard by Spark's first. Then this is no failure of
            # Spark's: the cancellation arrives while we wait.
            await self.catalog.parts.clock.sleep(_HEARD_S)
            raise

    async def _check_spark(self, planned: Plan) -> None:
        """What the place where Spark runs cannot do, or that nobody is there, is said before anything is begun."""
        if self.spark.is_connect:
            wanted = {task.asset for task in planned.spec.tasks}
            refuse_what_connect_lacks(one for key, one in self.project.assets.items() if str(key) in wanted)
        if self.home is None or not self.home.is_open:
            await asyncio.to_thread(check_start, self.spark)

    def new_home(self, place: str | None = None, told: Callable[[str], None] = lambda _: None) -> SparkHome:
        """A Spark session for this project, when it is needed. `place` is the root as any process opens it."""
        settings = replace(self.spark, python_path=(*self.spark.python_path, self.project.folder))
        return SparkHome(settings, place or self.root, self.options, told=told)

    async def _driven(
        self, started: Started, deployment: Deployment, snapshot: PlanningSnapshot, session: Session, *, seize: bool
    ) -> RunState:
        threads = SparkThreads(session, _slots(started))
        try:
            executor = self.executor(started, deployment, snapshot, self.in_session(threads))
            async with self._driver(started, deployment, executor, seize=seize) as driver:
                return await self._until_done(driver)
        finally:
            threads.close()

    def in_session(self, threads: SparkThreads) -> InSession:
        """Tasks computed in the session of this process, with the keys that it has."""
        return InSession(threads, file_io(self.options), self.project.folder, self.root)

    def apart(self, how: Isolation, started: Started, snapshot: PlanningSnapshot) -> Isolated:
        """Tasks of one run computed in processes of their own, with keys of their own."""
        return Isolated(
            how=how,
            code_version=self.project.code_version,
            parameters=started.plan.spec.parameters,
            snapshot=snapshot,
            spark=self.spark,
            root=self.root,
            io=file_io(self.options),
        )

    def executor(
        self, started: Started, deployment: Deployment, snapshot: PlanningSnapshot, compute: Compute
    ) -> SparkExecutor:
        """What executes the tasks of one run."""
        world = World(overridden(self.project.graph, started.plan.spec.parameters), snapshot)
        bench = Bench(
            catalog=self.catalog,
            compute=compute,
            world=world,
            plan=started.plan,
            asset_ids=_asset_ids(deployment),
            schemas={key: one.schema for key, one in deployment.assets.items() if one.schema is not None},
            state=lambda: started.log.state,
            elsewhere=self._elsewhere(started.plan),
        )
        return SparkExecutor(bench)

    def _elsewhere(self, plan: Plan) -> dict[str, Catalog]:
        """The other workspaces that a plan reads from, whoever drives it and whatever is deferred to by now."""
        named = {one.workspace for task in plan.spec.tasks for one in task.inputs if one.workspace}
        return {name: self.catalog.beside(Scope.parse_warehouse(name)) for name in sorted(named)}

    async def _given_up(self, started: Started, *, seize: bool) -> RunState:
        """The end of a run in which nothing more is to begin: that needs no Spark."""
        deployment = await self.deployments.load(started.plan.spec.deployment)
        async with self._driver(started, deployment, Nobody(), seize=seize) as driver:
            driver.cancel(self.by, _INTERRUPTED)
            return await driver.drive()

    async def _concluded(self, started: Started, *, seize: bool) -> RunState:
        """The end of an atomic run whose tasks are all done: publishing them needs no Spark either."""
        deployment = await self.deployments.load(started.plan.spec.deployment)
        async with self._driver(started, deployment, Nobody(), seize=seize) as driver:
            return await self._until_done(driver)

    @asynccontextmanager
    async def _driver(
        self, started: Started, deployment: Deployment, executor: Executor, *, seize: bool
    ) -> AsyncIterator[Driver]:
        parts = self.catalog.parts
        appender = parts.appender()
        options = replace(self.driving(started, deployment), slots=_slots(started), seize=seize)
        try:
            yield Driver(self.ground(appender, started), started.log, started.plan, executor, options)
        finally:
            await appender.close()

    def ground(self, appender: Appender, started: Started) -> Ground:
        """What a driver of a run of this project stands on."""
        parts, together = self.catalog.parts, self._together(started)
        return Ground(parts.tier1.store, CatalogSettler(parts), appender, parts.clock, parts.entropy, together)

    def driving(self, started: Started, deployment: Deployment) -> Options:
        """How a run of this project is driven, whoever does it."""
        return Options(
            policies=self._policies(started.plan),
            needs=needs_of(self.project, started.plan, self.pools),
            observer=self.observer,
            announce=Announcements(started.log.run, started.plan, _asset_ids(deployment)),
            tell=self.hand_over.tell,
        )

    def _together(self, started: Started) -> CatalogTogether | None:
        created = started.log.state.run.created
        if created is None or not created.atomic:
            return None
        return CatalogTogether(self.catalog, created.transaction_tables, SOURCE)

    async def _until_done(self, driver: Driver) -> RunState:
        """Driven to the end. A first cancellation is written down, and the run comes to an orderly end."""
        driving = asyncio.ensure_future(driver.drive())
        try:
            return await asyncio.shield(driving)
        except asyncio.CancelledError:
            driver.cancel(self.by, _INTERRUPTED)
            return await driving

    def _policies(self, planned: Plan) -> dict[str, TaskPolicy]:
        by_key = {str(key): TaskPolicy(one.retry, one.timeout_s) for key, one in self.project.assets.items()}
        return {task.id: by_key.get(task.asset, TaskPolicy()) for task in planned.spec.tasks}


class Nobody:
    """Executes nothing: a run that is to end claims no task."""

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        raise BrokenInvariant(f"task {task.id} was begun in a run that is to end (attempt {attempt.number})")


def _slots(started: Started) -> int:
    created = started.log.state.run.created
    return 4 if created is None else min(created.max_parallelism, RUN_PARALLELISM_MAX)


def _asset_ids(deployment: Deployment) -> dict[str, str]:
    return {key: one.asset_id for key, one in deployment.assets.items()}
