"""A project at work: deployed, planned, started and driven to its end, in one process with one Spark session.

Spark is started only when there is something to do, and after the plan is stored. What must never enter: how anything is shown.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from arco.catalog.catalog import Catalog
from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import Session, SparkSettings
from arco.fold.spark_threads import SparkThreads
from arco.kernel.errors import BrokenInvariant, Conflict, Unavailable
from arco.kernel.ids import RunId
from arco.ledger.appender import Appender
from arco.ledger.run_entries import OnFailure, Trigger
from arco.ledger.run_state import RunState
from arco.servo.deploy.deploying import Deployments, deployed
from arco.servo.deploy.manifest import Deployment
from arco.servo.deploy.table_columns import columns_of_tables
from arco.servo.execute.file_access import file_io
from arco.servo.execute.gathering import gather, load_snapshot, store_snapshot
from arco.servo.execute.spark_executor import Bench, SparkExecutor
from arco.servo.plan.document import Plan, PlannedTask
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.plan.parameters import overridden
from arco.servo.plan.planner import PlanRequest, plan
from arco.servo.plan.staleness import World
from arco.servo.schedule.announcing import Announcements, begun
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.executor import Attempt, Executor, NoObserver, Observer, Outcome, TaskPolicy
from arco.servo.schedule.settling import CatalogSettler
from arco.servo.schedule.starting import RunRequest, Started, open_run, start_run
from arco.servo.sdk.project import Project

_INTERRUPTED = "interrupted"
_HEARD_S = 0.5


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan with everything it was made from."""

    plan: Plan
    snapshot: PlanningSnapshot
    deployment: Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class HowToRun:
    """What somebody says about a run, beside what is to be made."""

    trigger: Trigger = Trigger.MANUAL
    parallelism: int = 4
    timeout_s: float | None = None
    on_failure: OnFailure = OnFailure.KEEP_GOING
    key: str | None = None


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

    @property
    def deployments(self) -> Deployments:
        parts = self.catalog.parts
        return Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy)

    async def prepare(self, request: PlanRequest) -> Prepared:
        """Deploy what is not deployed yet, look at what there is, and plan."""
        tables = await columns_of_tables(self.catalog, self.project)
        deployment, _ = await self.deployments.deploy(self.project, by=self.by, tables=tables)
        snapshot = await gather(self.catalog, self.project, deployment, file_options=self.options)
        made = await asyncio.to_thread(plan, self.project.graph, snapshot, deployed(deployment), request)
        return Prepared(made, snapshot, deployment)

    async def start(self, prepared: Prepared, how: HowToRun) -> Started:
        """A run of a plan; the one that was started before with the same key, if there is one."""
        parts = self.catalog.parts
        await store_snapshot(self.catalog, prepared.snapshot)
        request = RunRequest(
            trigger=how.trigger,
            who=self.by,
            max_parallelism=how.parallelism,
            timeout_s=how.timeout_s,
            on_failure=how.on_failure,
            idempotency_key=how.key,
            about=self.project.name,
            announce=lambda run: begun(run, prepared.plan, self.project.name, how.trigger.value, self.by),
        )
        return await start_run(parts.tier1.store, parts.scope, prepared.plan, request, parts.clock, parts.entropy)

    async def open(self, run: RunId) -> Started:
        """A run that was started before."""
        parts = self.catalog.parts
        started = await open_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)
        if started.plan.spec.code_version != self.project.code_version and not started.log.state.is_finished:
            raise Conflict(
                f"run {run} was planned for code {started.plan.spec.code_version}, and the code is"
                f" {self.project.code_version} now",
                hint="check out that code to go on with it, or plan anew: arco run",
            )
        return started

    async def drive(self, started: Started, *, seize: bool = False) -> RunState:
        """Drive a run to its end. Cancelled, it stops what it started and writes down that it did."""
        if started.log.state.is_finished and not started.log.state.owed:
            return started.log.state
        if started.log.state.run.stopping is not None:
            return await self._given_up(started, seize=seize)
        try:
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
            # Whoever interrupts a run at a terminal interrupts Spark's own process too, and may be heard there first. Then this
            # is no failure of Spark's: the cancellation arrives while we wait.
            await self.catalog.parts.clock.sleep(_HEARD_S)
            raise

    def new_home(self, place: str | None = None) -> SparkHome:
        """A Spark session for this project, when it is needed. `place` is the root as any process opens it."""
        settings = replace(self.spark, python_path=(*self.spark.python_path, self.project.folder))
        return SparkHome(settings, place or self.root, self.options)

    async def _driven(
        self, started: Started, deployment: Deployment, snapshot: PlanningSnapshot, session: Session, *, seize: bool
    ) -> RunState:
        world = World(overridden(self.project.graph, started.plan.spec.parameters), snapshot)
        threads = SparkThreads(session, _slots(started))
        bench = Bench(
            catalog=self.catalog,
            io=file_io(self.options),
            threads=threads,
            world=world,
            plan=started.plan,
            asset_ids=_asset_ids(deployment),
            schemas={key: one.schema for key, one in deployment.assets.items() if one.schema is not None},
            folder=self.project.folder,
            root=self.root,
            state=lambda: started.log.state,
        )
        try:
            async with self._driver(started, deployment, SparkExecutor(bench), seize=seize) as driver:
                return await self._until_done(driver)
        finally:
            threads.close()

    async def _given_up(self, started: Started, *, seize: bool) -> RunState:
        """The end of a run in which nothing more is to begin: that needs no Spark."""
        deployment = await self.deployments.load(started.plan.spec.deployment)
        async with self._driver(started, deployment, _Nobody(), seize=seize) as driver:
            driver.cancel(self.by, _INTERRUPTED)
            return await driver.drive()

    @asynccontextmanager
    async def _driver(
        self, started: Started, deployment: Deployment, executor: Executor, *, seize: bool
    ) -> AsyncIterator[Driver]:
        parts = self.catalog.parts
        appender = Appender(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
        ground = Ground(parts.tier1.store, CatalogSettler(parts), appender, parts.clock, parts.entropy)
        options = Options(
            policies=self._policies(started.plan),
            slots=_slots(started),
            observer=self.observer,
            announce=Announcements(started.log.run, started.plan, _asset_ids(deployment)),
            seize=seize,
        )
        try:
            yield Driver(ground, started.log, started.plan, executor, options)
        finally:
            await appender.close()

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
        return {task.id: by_key[task.asset] for task in planned.spec.tasks}


class _Nobody:
    """Executes nothing: a run that is to end claims no task."""

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        raise BrokenInvariant(f"task {task.id} was begun in a run that is to end (attempt {attempt.number})")


def _slots(started: Started) -> int:
    created = started.log.state.run.created
    return 4 if created is None else created.max_parallelism


def _asset_ids(deployment: Deployment) -> dict[str, str]:
    return {key: one.asset_id for key, one in deployment.assets.items()}
