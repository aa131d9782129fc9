"""A scheduler and a worker around a project, as far as they need no Spark: what is started, driven, signed and refused."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from arco.catalog.catalog import Catalog
from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import SparkSettings
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject, InvalidInput, StoreRefused, Superseded
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.ledger.run_entries import RunStatus
from arco.ledger.run_state import RunState
from arco.servo.execute.minding import Chore, Scheduler, chores, tick_schedules
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.execute.pooling import needs_of
from arco.servo.execute.working import Worker
from arco.servo.plan.planner import PlanRequest
from arco.servo.schedule.crew import Refused
from arco.servo.schedule.driver import Driver
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.schedule.interventions import request_cancel
from arco.servo.schedule.open_runs import OpenRun, OpenRunsNote
from arco.servo.schedule.pools import Need
from arco.servo.schedule.schedule_state import schedule_object
from arco.servo.schedule.ticking import Schedules
from arco.servo.sdk.project import load_project
from arco.storage.memory import MemoryStore
from stand_ins.hand_clock import HandClock

ASSETS = """
from arco import asset, schedule

@asset(concurrency=1, resources={"warehouse": 2, "cores": 4})
def orders(run): ...

@asset
def revenue(orders): ...

schedule("often", cron="*/5 * * * *", make=orders)
"""

MORE = """
schedule("broken", cron="*/5 * * * *", make=orders)
"""


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def took(self, run: str, tasks: int) -> None:
        self.lines.append("took")

    def refused(self, run: str, why: str) -> None:
        self.lines.append(f"refused: {why}")

    def ended(self, run: str, state: RunState) -> None:
        self.lines.append(state.run.status.value)

    def troubled(self, what: str, error: Exception) -> None:
        self.lines.append(f"{what}: {error}")


class Place:
    def __init__(self, folder: Path, assets: str = ASSETS) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        self.catalog = Catalog.open(self.store, "memory://", Scope.of(), self.clock, SeededEntropy(1))
        (folder / "assets").mkdir()
        (folder / "assets" / "minded.py").write_text(assets)
        project = load_project(folder, name="shop", namespace="shop", assets=("assets",))
        self.pipeline = Pipeline(
            catalog=self.catalog, project=project, root="memory://", options={}, spark=SparkSettings(), by="ann"
        )

    async def noted(self) -> list[OpenRun]:
        parts = self.catalog.parts
        return list(await OpenRunsNote(self.store, parts.scope, parts.clock, parts.entropy).read())

    async def started(self):
        return await self.pipeline.start(await self.pipeline.prepare(PlanRequest()), HowToRun())

    def scheduler(self, keys: EnvelopeKeys | None = None, **changes) -> Scheduler:
        return Scheduler(replace(self.pipeline, **changes), keys=keys, told=Heard())

    def worker(self, keys: EnvelopeKeys | None = None, **changes) -> Worker:
        pipeline = replace(self.pipeline, **changes)
        return Worker(pipeline, SparkHome(SparkSettings()), slots=2, keys=keys, told=Heard())


def other_code(place: Place):
    return replace(place.pipeline.project, code_version="code_other")


def test_a_run_that_is_started_is_noted_for_whoever_looks_for_work(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        started = await place.started()
        (note,) = await place.noted()
        assert (note.run, note.project) == (str(started.log.run), "shop")
        assert note.code_version == place.pipeline.project.code_version

    asyncio.run(story())


def test_a_scheduler_starts_the_run_of_a_tick_once_and_leaves_it_to_workers(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        await place.pipeline.prepare(PlanRequest())  # which deploys it
        place.clock.at_ms += 600_000
        for _ in range(3):
            await tick_schedules(place.pipeline, Heard().troubled)
        (note,) = await place.noted()
        assert note.project == "shop"

    asyncio.run(story())


def test_schedules_tick_by_a_scheduler_that_has_the_deployed_code(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        await place.pipeline.prepare(PlanRequest())
        place.clock.at_ms += 600_000
        await tick_schedules(replace(place.pipeline, project=other_code(place)), Heard().troubled)
        assert await place.noted() == []

    asyncio.run(story())


SAME_CODE = ASSETS.replace("*/5", "0")


def of_now(place: Place, folder: Path, assets: str) -> Pipeline:
    """A process that starts by itself from other files of the project."""
    (folder / "assets" / "minded.py").write_text(assets)
    project = load_project(folder, name="shop", namespace="shop", assets=("assets",))
    return replace(place.pipeline, project=project, goes_back=False)


@pytest.mark.parametrize("newer", [SAME_CODE, ASSETS + MORE, ASSETS.replace("(run): ...", "(run): return 1")])
def test_a_scheduler_of_code_that_was_superseded_ticks_nothing_and_puts_nothing_back(tmp_path: Path, newer: str) -> None:
    async def story() -> None:
        place, heard = Place(tmp_path), Heard()
        old = replace(place.pipeline, goes_back=False)
        await old.deploy()
        new = of_now(place, tmp_path, newer)
        counts = await new.deploy()
        place.clock.at_ms += 7_200_000
        with pytest.raises(Superseded):
            await old.deploy()
        await tick_schedules(old, heard.troubled)
        assert await place.noted() == []
        (said,) = heard.lines
        assert said.startswith(f"schedules: deployment {counts.id} of shop counts, and the code here is not that one")
        assert await new.deployments.current("shop") == counts
        await tick_schedules(new, heard.troubled)
        assert len(await place.noted()) >= 1
        assert len(heard.lines) == 1

    asyncio.run(story())


@pytest.mark.parametrize("trouble", [StoreRefused("not yours"), CorruptObject("torn"), KeyError("when")])
def test_a_schedule_that_cannot_tick_is_said_and_the_others_tick(tmp_path: Path, trouble: Exception) -> None:
    async def story() -> None:
        place, heard = Place(tmp_path, ASSETS + MORE), Heard()
        await place.pipeline.prepare(PlanRequest())
        place.clock.at_ms += 600_000
        tick = Schedules.tick

        async def breaks(self, deployed, known, runs):
            if deployed.name == "broken":
                raise trouble
            return await tick(self, deployed, known, runs)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Schedules, "tick", breaks)
            await tick_schedules(place.pipeline, heard.troubled)
        assert len(await place.noted()) == 1
        (said,) = heard.lines
        assert said.startswith("schedule broken: ")

    asyncio.run(story())


def test_a_chore_that_ends_ends_the_scheduler_with_what_ended_it(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)

        async def ends(pipeline, troubled):
            raise KeyError("when")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("arco.servo.execute.minding.chores", lambda: (Chore("schedules", 10.0, ends, ends),))
            with pytest.raises(KeyError):
                await asyncio.wait_for(place.scheduler().serve(once=False), 60.0)

    asyncio.run(story())


def test_what_kept_a_schedule_from_ticking_once_is_how_that_ends(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        await place.pipeline.prepare(PlanRequest())

        async def refused(self, deployed, known, runs):
            raise StoreRefused("not yours")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Schedules, "tick", refused)
            with pytest.raises(StoreRefused):
                await place.scheduler().serve(once=True)

    asyncio.run(story())


def test_ticking_is_one_of_the_chores() -> None:
    assert tick_schedules in [chore.do for chore in chores()]


def test_a_scheduler_ends_a_run_that_was_cancelled_though_nobody_has_its_code(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        started = await place.started()
        parts = place.catalog.parts
        await request_cancel(started.log, "ann", "not needed", parts.clock, parts.entropy)
        scheduler = place.scheduler(project=other_code(place))
        await scheduler._crew.serve(once=True)
        await started.log.catch_up()
        assert started.log.state.run.status is RunStatus.CANCELLED
        assert await place.noted() == []

    asyncio.run(story())


def test_a_worker_refuses_a_run_of_other_code_in_one_line(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        started = await place.started()
        (note,) = await place.noted()
        refused = await place.worker(project=other_code(place))._take(note, started)
        assert isinstance(refused, Refused)
        assert "code_other" in refused.why
        assert "\n" not in refused.why
        assert isinstance(await place.worker()._take(note, started), Driver)

    asyncio.run(story())


def test_with_a_key_a_scheduler_signs_and_a_worker_asks_for_it(tmp_path: Path) -> None:
    async def story() -> None:
        place, keys = Place(tmp_path), EnvelopeKeys((Secret("k" * 32),))
        place.pipeline = replace(place.pipeline, keys=keys)
        started = await place.started()
        (note,) = await place.noted()
        signs = await place.scheduler(keys)._take(note, started)
        assert isinstance(signs, Driver)
        assert signs._options.hands_out is not None
        assert signs._options.slots == 0
        asks = await place.worker(keys)._take(note, started)
        assert isinstance(asks, Driver)
        assert asks._options.asks_for is not None
        foreign = await place.scheduler(keys, project=other_code(place))._take(note, started)
        assert isinstance(foreign, Driver)
        assert foreign._options.hands_out is None

    asyncio.run(story())


def test_with_a_key_nothing_is_signed_or_run_of_a_run_that_nobody_with_the_key_started(tmp_path: Path) -> None:
    async def story() -> None:
        place, keys = Place(tmp_path), EnvelopeKeys((Secret("k" * 32),))
        started = await place.started()
        (note,) = await place.noted()
        for process in (place.scheduler(keys), place.worker(keys)):
            refused = await process._take(note, started)
            assert isinstance(refused, Refused)
            assert "nobody with the signing key" in refused.why
        assert isinstance(await place.scheduler()._take(note, started), Driver)

    asyncio.run(story())


@pytest.mark.parametrize("words", [{}, {"parameters": {"limit": "1"}}, {"make": ("revenue",)}, {"mode": "force"}])
def test_with_a_key_a_tick_starts_what_its_schedule_says_and_nothing_else(tmp_path: Path, words: dict) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        place.pipeline = replace(place.pipeline, keys=EnvelopeKeys((Secret("k" * 32),)))
        await place.pipeline.prepare(PlanRequest())
        place.clock.at_ms += 600_000
        parts, project = place.catalog.parts, place.pipeline.project
        deployment = await place.pipeline.deployments.current("shop")
        assert deployment is not None
        await Schedules(place.store, parts.scope, "shop", parts.clock, parts.entropy).decide(deployment.schedules["often"])
        due = schedule_object(place.store, parts.scope, project.name, "often", parts.clock, parts.entropy)

        def changed(now):
            return msgspec.structs.replace(now.value, open=(msgspec.structs.replace(now.value.open[0], **words),))

        await due.update(changed)
        await tick_schedules(place.pipeline, Heard().troubled)
        assert len(await place.noted()) == (0 if words else 1)
        ended = (await due.read()).value.ended
        assert [one.outcome for one in ended] == (["refused"] if words else [])

    asyncio.run(story())


def test_what_tasks_need_of_pools_is_what_their_assets_say(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        plan = (await place.pipeline.prepare(PlanRequest())).plan
        by_asset = {task.asset: task.id for task in plan.spec.tasks}
        needs = needs_of(place.pipeline.project, plan, {"warehouse": 3.0})
        assert needs == {
            by_asset["shop.orders"]: (Need("pool warehouse", 3.0, 2.0), Need("asset shop.orders", 1.0)),
        }
        with pytest.raises(InvalidInput, match="asks for 2 of pool warehouse, which has 1"):
            needs_of(place.pipeline.project, plan, {"warehouse": 1.0})

    asyncio.run(story())
