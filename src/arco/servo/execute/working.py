"""A worker: one process that claims and executes tasks of whatever runs of its project are open, in its own Spark session or,
where tasks are kept apart, in a process each.

A run that was planned for other code than this process has loaded is refused: its tasks would be made by code that nobody
planned. What must never enter: how anything is shown, and any state that another worker would need.
"""

import asyncio
from dataclasses import dataclass, field, replace

from arco.fold.spark_home import SparkHome
from arco.fold.spark_threads import SparkThreads, is_alive
from arco.kernel.errors import Unavailable
from arco.kernel.limits import TASK_LEASE_S
from arco.ledger.run_entries import Failure
from arco.ledger.run_state import LOST_LEASE
from arco.servo.deploy.manifest import Deployment
from arco.servo.execute.computing import Compute
from arco.servo.execute.gathering import load_snapshot
from arco.servo.execute.isolated import Isolation
from arco.servo.execute.pipeline import Pipeline
from arco.servo.execute.spark_executor import SparkExecutor
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.crew import Crew, Refused, Told, Ways
from arco.servo.schedule.driver import Driver
from arco.servo.schedule.envelopes import EnvelopeKeys, Signer
from arco.servo.schedule.executor import Attempt, Executor, Failed, Outcome
from arco.servo.schedule.open_runs import OpenRun
from arco.servo.schedule.seals import run_refusal
from arco.servo.schedule.slots import Slots
from arco.servo.schedule.starting import Started


def ways_of(pipeline: Pipeline, told: Told) -> Ways:
    """How the open runs of a project are looked for."""
    parts = pipeline.catalog.parts
    return Ways(
        store=parts.tier1.store,
        scope=parts.scope,
        project=pipeline.project.name,
        clock=parts.clock,
        entropy=parts.entropy,
        hand_over=pipeline.hand_over,
        told=told,
    )


def other_code(pipeline: Pipeline, started: Started) -> str | None:
    """Why a run is not for the code that is here; None if it is."""
    planned, here = started.plan.spec.code_version, pipeline.project.code_version
    if planned == here:
        return None
    return f"it was planned for code {planned}, and the code here is {here}: start a worker there, or cancel it"


def signer_of(pipeline: Pipeline, started: Started, keys: EnvelopeKeys | None) -> Signer | None:
    """Signs and judges envelopes of one run. The plan's fingerprint is computed: what is written beside a plan proves nothing."""
    if keys is None:
        return None
    scope, plan_id = pipeline.catalog.parts.scope, started.plan.spec.fingerprint()
    return Signer(keys, scope, str(started.log.run), plan_id, pipeline.project.code_version)


def unsealed(pipeline: Pipeline, started: Started, keys: EnvelopeKeys | None) -> str | None:
    """Why a run is not to be trusted by a process with a key; None if it is, or if there is no key."""
    scope, created = pipeline.catalog.parts.scope, started.log.state.run.created
    return run_refusal(keys, scope, str(started.log.run), started.plan, created)


class Worker:
    """`keys`: with them only what a scheduler signed is run. `home` is the Spark session of this process.

    `apart`: tasks have processes of their own, with a Spark and keys of their own, and this process has none.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        home: SparkHome,
        *,
        slots: int,
        keys: EnvelopeKeys | None,
        told: Told,
        lease_s: float = TASK_LEASE_S,
        apart: Isolation | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._lease_s = lease_s
        self._home = home
        self._slots = Slots(slots)
        self._keys = keys
        self._apart = apart
        self._threads: SparkThreads | None = None
        self._is_without_spark = False
        parts = pipeline.catalog.parts
        self._appender = parts.appender()
        self._crew = Crew(ways_of(pipeline, told), self._take)

    @property
    def busy(self) -> int:
        return self._crew.busy

    def stop(self) -> None:
        """Claim nothing more, and end when what runs has ended or was handed back."""
        self._crew.stop()

    async def serve(self, *, once: bool) -> None:
        """Until told to stop. Spark is started first: a worker that has none must not claim what others could run."""
        try:
            if self._apart is None:
                self._threads = SparkThreads(await self._home.session(), self._slots.total)
            await self._crew.serve(once=once)
            if self._is_without_spark:
                raise Unavailable(
                    "Spark is gone: its process has ended", hint="start the worker again; .arco/spark.log says why"
                )
        finally:
            if self._threads is not None:
                self._threads.close()
            await self._appender.close()

    async def _take(self, _note: OpenRun, started: Started) -> Driver | Refused:
        pipeline = self._pipeline
        if (why := other_code(pipeline, started) or unsealed(pipeline, started, self._keys)) is not None:
            return Refused(why)
        deployment = await pipeline.deployments.load(started.plan.spec.deployment)
        options = replace(
            pipeline.driving(started, deployment),
            slots=self._slots,
            lease_s=self._lease_s,
            poll_s=pipeline.hand_over.looks_every_s,
            asks_for=signer_of(pipeline, started, self._keys),
        )
        executor: Executor = _WhenNeeded(self, started, deployment)
        return Driver(pipeline.ground(self._appender, started), started.log, started.plan, executor, options)

    async def has_spark(self) -> bool:
        """Whether Spark still answers. Without it this worker claims nothing more: every task would fail here."""
        if self._threads is None or await is_alive(self._threads.session):
            return True
        self._is_without_spark = True
        self._crew.stop()
        return False

    async def executor_of(self, started: Started, deployment: Deployment) -> SparkExecutor:
        snapshot = await load_snapshot(self._pipeline.catalog, started.plan.spec.snapshot)
        pipeline = self._pipeline
        if self._apart is not None:
            compute: Compute = pipeline.apart(self._apart, started, snapshot)
        else:
            threads = self._threads or SparkThreads(await self._home.session(), self._slots.total)
            compute = pipeline.in_session(threads)
        return pipeline.executor(started, deployment, snapshot, compute)


_WITHOUT_SPARK = Failure(
    kind=LOST_LEASE,
    message="the worker's Spark is gone",
    transient=True,
    hint="it is tried again by another worker",
    severity="warning",
)
"""No word about the task: it is counted with the workers that fell silent."""


@dataclass(slots=True)
class _WhenNeeded:
    """Reads what a run was planned on when the first of its tasks is ours: most tasks of most runs are others'."""

    worker: Worker
    started: Started
    deployment: Deployment
    _made: SparkExecutor | None = None
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        async with self._making:
            if self._made is None:
                self._made = await self.worker.executor_of(self.started, self.deployment)
        outcome = await self._made.run(task, attempt)
        if isinstance(outcome, Failed) and not await self.worker.has_spark():
            return Failed(_WITHOUT_SPARK)
        return outcome
