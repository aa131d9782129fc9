"""Runs of ticks: what a schedule has to know before it decides, and each tick planned, started and driven like any other run.

A tick whose run is there already is gone on with, unless somebody else is at work on it. What must never enter: when anything is
due (`schedule/tick_decisions.py`), and how a run is shown.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import Conflict, InvalidInput, NoSuchTable, NotFound, TooLarge
from arco.ledger.run_entries import Trigger
from arco.ledger.run_state import RunState
from arco.servo.deploy.manifest import DeployedSchedule, Deployment
from arco.servo.execute.gathering import gather
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.execute.standing import content_id
from arco.servo.plan.freshness import Deadline, deadlines, urgent
from arco.servo.plan.planner import Mode, PlanRequest
from arco.servo.plan.staleness import World
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.schedule_state import Tick
from arco.servo.schedule.starting import Started
from arco.servo.schedule.tick_decisions import Known
from arco.servo.schedule.ticking import Carried, Elsewhere, NothingToDo, Ran, Refused
from arco.servo.sdk.tables import table_of

Drive = Callable[[Started], Awaitable[RunState]]


async def known_of(pipeline: Pipeline, deployment: Deployment, schedule: DeployedSchedule) -> Known:
    """What a schedule decides on, beside the time."""
    when = schedule.definition["when"]
    match when["kind"]:
        case "source":
            return Known(sources=await _contents(pipeline, when["sources"]))
        case "freshness":
            world = await _world(pipeline, deployment)
            return Known(urgent=urgent(world, _kept_fresh(world, when["assets"])))
        case _:
            return Known()


async def deadlines_of(pipeline: Pipeline, deployment: Deployment, schedule: DeployedSchedule) -> list[Deadline]:
    """When each asset that a schedule keeps fresh has to be begun."""
    world = await _world(pipeline, deployment)
    return deadlines(world, _kept_fresh(world, schedule.definition["when"]["assets"]))


@dataclass(frozen=True, slots=True)
class ScheduledRuns:
    """The runs of ticks of one project. `how` is what is said of all of them; `here`: they are driven by this process."""

    pipeline: Pipeline
    how: HowToRun
    drive: Drive
    here: bool = True

    async def carry_out(self, schedule: str, tick: Tick, key: str) -> Carried:
        request, how = self._request(tick), self._how(schedule, tick, key)
        if self.pipeline.keys is not None and not self._is_of_the_code(schedule, tick):
            return Refused(
                "it is not what the schedule of the code here says, and with a signing key nothing else is started"
            )
        try:
            started = await self.pipeline.started_before(request, how)
        except Conflict as error:
            return Refused(error.one_line())  # it was planned for other code than there is here
        try:
            started = started or await self._started(request, how)
        except (InvalidInput, NotFound, TooLarge) as error:
            return Refused(error.one_line())
        if started is None:
            return NothingToDo()
        state = started.log.state
        if not state.is_finished:
            if not started.is_new and await self._claims(started).is_driven(state):
                return Elsewhere(str(started.log.run))
            state = await self.drive(started)
            if not state.is_finished:
                return Elsewhere(str(started.log.run))  # it was left to others
        return Ran(str(started.log.run), state.run.status.value)

    async def _started(self, request: PlanRequest, how: HowToRun) -> Started | None:
        prepared = await self.pipeline.prepare(request)
        return await self.pipeline.start(prepared, how, here=self.here) if prepared.plan.spec.tasks else None

    def _is_of_the_code(self, schedule: str, tick: Tick) -> bool:
        """Whether a tick asks for what its schedule says here: what is due is written in the root, and a key vouches for it."""
        written = self.pipeline.project.schedules.get(schedule)
        if written is None:
            return False
        said = written.document()
        make = said["when"]["assets"] if said["when"]["kind"] == "freshness" else said["make"]
        is_made = set(tick.make) <= set(make) if said["when"]["kind"] == "freshness" else list(tick.make) == list(make)
        return is_made and (tick.partitions, tick.mode, tick.parameters) == (
            said["partitions"], said["mode"], said["parameters"],
        )  # fmt: skip

    def _request(self, tick: Tick) -> PlanRequest:
        return PlanRequest(
            words=tick.make,
            partitions=tick.partitions,
            mode=Mode(tick.mode),
            parameters=tick.parameters,
            due_by_ms=tick.due_by_ms,
        )

    def _how(self, schedule: str, tick: Tick, key: str) -> HowToRun:
        return HowToRun(
            trigger=Trigger(tick.trigger),
            parallelism=self.how.parallelism,
            timeout_s=self.how.timeout_s,
            on_failure=self.how.on_failure,
            key=key,
            who=f"schedule {schedule} ({tick.cause}), ticked by {self.pipeline.by}",
        )

    def _claims(self, started: Started) -> Claims:
        parts = self.pipeline.catalog.parts
        return Claims(parts.tier1.store, parts.scope, started.log.run, "", parts.clock, parts.entropy)


async def _contents(pipeline: Pipeline, sources: list[str]) -> dict[str, str]:
    """Which content each source has: its table, and which snapshot of it may have changed rows last."""
    found = {}
    for key in map(AssetKey.parse, sources):
        asset = pipeline.project.assets.get(key)
        if asset is None:
            continue
        try:
            _, base = await pipeline.catalog.tables.load(*table_of(asset))
        except NoSuchTable:
            continue
        last = content_id(base.metadata)
        if last is not None:
            found[str(key)] = f"{base.metadata.table_uuid}/{last}"
    return found


async def _world(pipeline: Pipeline, deployment: Deployment) -> World:
    snapshot = await gather(pipeline.catalog, pipeline.project, deployment, file_options=pipeline.options)
    return World(pipeline.project.graph, snapshot)


def _kept_fresh(world: World, assets: list[str]) -> list[AssetKey]:
    return [key for key in map(AssetKey.parse, assets) if key in world.graph.assets]
