"""Requests that cannot be started: said once, told to whoever asked, and nobody else waits for them."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from arco.catalog.catalog import Catalog
from arco.fold.spark_session import SparkSettings
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError, CorruptObject
from arco.kernel.ids import KeyHash
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.ledger.asked_runs import AskedRun, AskedVerdict, Decided, request_id
from arco.ledger.asked_troubles import AskedTrouble, AskedTroubles
from arco.ledger.run_log import write_plan
from arco.servo.execute.asking import requests_of, start_asked
from arco.servo.execute.pipeline import Pipeline
from arco.servo.plan.planner import PlanRequest
from arco.servo.schedule.asked import Mind
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.sdk.project import load_project
from arco.storage.keys import AskedTroubleKey, parse
from arco.storage.memory import MemoryStore
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from stand_ins.hand_clock import HandClock

ASSETS = """
from arco import asset

@asset
def orders(run): ...
"""


class Place:
    def __init__(self, folder: Path) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        catalog = Catalog.open(self.store, "memory://", Scope.of(), self.clock, SeededEntropy(1))
        (folder / "assets").mkdir()
        (folder / "assets" / "asked.py").write_text(ASSETS)
        project = load_project(folder, name="shop", namespace="shop", assets=("assets",))
        self.pipeline = Pipeline(
            catalog=catalog, project=project, root="memory://", options={}, spark=SparkSettings(), by="ann"
        )
        self.requests = requests_of(self.pipeline)
        self.breaks: list[bool] = []

    async def asked(self, key: str) -> AskedRun:
        self.clock.at_ms += 1000
        wanted = AskedRun(id=request_id(key), project="shop", make=("orders",), asked_ms=self.clock.now_ms())
        return await self.requests.ask(wanted)

    async def decided_by_somebody(self) -> AskedRun:
        """A request that somebody without the key decided to start."""
        asked = await self.asked("by hand")
        plan = (await self.pipeline.prepare(PlanRequest())).plan.encode()
        await write_plan(self.store, Scope.of(), asked.run, plan, self.clock, SeededEntropy(4))
        await self.requests.decide(
            AskedVerdict(asked=asked, decided=Decided.STARTED, by="eve", at_ms=0, run=str(asked.run))
        )
        return asked

    async def trouble(self, asked: AskedRun) -> AskedTrouble | None:
        troubles = AskedTroubles(self.store, Scope.of(), self.clock, SeededEntropy(5))
        return await troubles.read(KeyHash(asked.id))

    async def troubles(self) -> int:
        page = await self.store.list_page("", "", 1000)
        return sum(isinstance(parse(one.key), AskedTroubleKey) for one in page.entries)


def with_a_key(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, keys=EnvelopeKeys((Secret("k" * 32),)))


def test_what_keeps_a_request_is_logged_once_and_written_down_until_its_run_begins(tmp_path: Path, caplog) -> None:
    async def story() -> None:
        place, mind = Place(tmp_path), Mind()
        asked = await place.decided_by_somebody()
        with caplog.at_level(logging.ERROR):
            for _ in range(4):
                place.clock.at_ms += 5000
                assert await start_asked(with_a_key(place.pipeline), mind) == []
        (line,) = [record.getMessage() for record in caplog.records]
        assert "somebody decided to start run" in line
        found = await place.trouble(asked)
        assert found is not None
        assert "somebody decided to start run" in found.message
        assert (found.by, found.at_ms) == ("ann", place.clock.at_ms - 15_000), "when it was said first"

        await start_asked(with_a_key(place.pipeline), Mind())  # another process says it to its own log, and writes nothing
        assert await place.trouble(asked) == found
        assert len(caplog.records) == 2

        assert len(await start_asked(place.pipeline, mind)) == 1
        assert mind.said == {}
        for _ in range(2):  # the request, and what kept it
            await upkeep_pass(Setting(place.pipeline.catalog.parts), jobs_named(("asked",)))
        assert await place.troubles() == 0

    asyncio.run(story())


def test_what_keeps_an_open_request_stays_written_down(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        asked = await place.decided_by_somebody()
        await start_asked(with_a_key(place.pipeline))
        await upkeep_pass(Setting(place.pipeline.catalog.parts), jobs_named(("asked",)))
        assert await place.trouble(asked) is not None

    asyncio.run(story())


def test_a_scheduler_of_code_that_was_superseded_leaves_requests_to_others(tmp_path: Path) -> None:
    async def story() -> None:
        place = Place(tmp_path)
        old = replace(place.pipeline, goes_back=False)
        await old.deploy()
        (tmp_path / "assets" / "asked.py").write_text(ASSETS.replace("...", "return 1"))
        project = load_project(tmp_path, name="shop", namespace="shop", assets=("assets",))
        new = replace(old, project=project)
        counts = await new.deploy()
        asked = await place.asked("one")
        assert await start_asked(old) == []
        assert await new.deployments.current("shop") == counts
        kept = await place.trouble(asked)
        assert kept is not None
        assert f"deployment {counts.id} of shop counts" in kept.message
        assert len(await start_asked(new)) == 1

    asyncio.run(story())


@pytest.mark.parametrize("trouble", [CorruptObject("torn"), KeyError("when")])
def test_requests_that_cannot_be_started_keep_neither_the_process_nor_others_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog, trouble: Exception
) -> None:
    monkeypatch.setattr("arco.servo.schedule.asked.ASKED_RUNS_TAKEN_MAX", 2)

    async def story() -> None:
        place, mind = Place(tmp_path), Mind()
        await place.pipeline.prepare(PlanRequest())
        bad = [await place.asked(f"bad {number}") for number in range(3)]
        good = await place.asked("good")
        prepare = Pipeline.prepare

        async def breaks(self: Pipeline, request: PlanRequest):
            if place.breaks.pop():
                raise trouble
            return await prepare(self, request)

        monkeypatch.setattr(Pipeline, "prepare", breaks)
        place.breaks = [False, True, True, True]
        assert await start_asked(place.pipeline, mind) == []
        (started,) = await start_asked(place.pipeline, mind)
        assert started.log.run == good.run
        for one in bad:
            found = await place.trouble(one)
            assert found is not None
            assert str(trouble).strip("'") in found.message
        assert len([one for one in caplog.records if one.levelno >= logging.ERROR]) == 3
        assert all((one.exc_info is None) == isinstance(trouble, ArcoError) for one in caplog.records)

    asyncio.run(story())
