"""Schedules that follow tables of others, on a real catalog: no content is missed, and none is acted upon twice."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from arco.catalog.feed import Feed
from arco.fold.spark_session import SparkSettings
from arco.iceberg.changes import AddSnapshot, RemoveSnapshots, SetSnapshotRef
from arco.kernel import crash_points
from arco.kernel.scope import Scope
from arco.servo.execute.pipeline import Pipeline
from arco.servo.execute.scheduled import known_of
from arco.servo.execute.standing import CONTENT
from arco.servo.plan.planner import PlanRequest
from arco.servo.schedule.schedule_state import Tick
from arco.servo.schedule.ticking import Carried, Elsewhere, Ran, Schedules
from arco.servo.sdk.project import load_project
from fixtures.servo.lake import Lake

ASSETS = """
from arco import asset, schedule, source

raw = source("raw", table="db.raw")

@asset
def orders(raw): ...

schedule("new", after="raw", make="orders", mode="force")
"""
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


class Process:
    """One process that ticks: it remembers nothing of what others did."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake = lake
        project = load_project(folder, name="shop", namespace="shop", assets=("assets",))
        self.pipeline = Pipeline(
            catalog=lake.another(), project=project, root=lake.root, options={}, spark=SparkSettings(), by="ann"
        )
        self.is_busy = False
        self.keys: list[str] = []

    async def carry_out(self, schedule: str, tick: Tick, key: str) -> Carried:
        if key not in self.keys:
            self.keys.append(key)
        return Elsewhere("r") if self.is_busy else Ran("r", "succeeded")

    def tick(self) -> list[str]:
        """The ticks that were carried out."""

        async def ticked() -> list[str]:
            deployment = await self.pipeline.deployments.current("shop")
            assert deployment is not None
            one = deployment.schedules["new"]
            schedules = Schedules(self.lake.store, Scope.of(), "shop", self.lake.clock, self.lake.entropy)
            done = await schedules.tick(one, partial(known_of, self.pipeline, deployment, one), self)
            return [tick.id for tick, _ in done]

        return self.lake.run(ticked())


@pytest.fixture
def lake() -> Iterator[Lake]:
    with Lake() as found:
        found.create("raw", SCHEMA)
        yield found


@pytest.fixture
def process(lake: Lake, tmp_path: Path) -> Process:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text(ASSETS)
    made = Process(lake, tmp_path)
    lake.run(made.pipeline.prepare(PlanRequest()))  # which deploys it
    return made


def commit(lake: Lake, snapshot_id: int, operation: str = "append", **summary: str) -> None:
    table = lake.load("raw")
    parent = table.current_snapshot_id
    snapshot = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": lake.clock.now_ms(),
        "sequence-number": table.last_sequence_number + 1,
        "manifest-list": f"{table.location}/metadata/{snapshot_id}.avro",
        "summary": {"operation": operation, **summary},
        "schema-id": 0,
    }
    more = {} if parent is None else {"parent-snapshot-id": parent}
    lake.commit("raw", AddSnapshot(snapshot | more), SetSnapshotRef("main", snapshot_id, "branch"))


def test_commits_between_two_ticks_are_one_tick(lake: Lake, process: Process) -> None:
    assert process.tick() == []
    commit(lake, 1)
    commit(lake, 2)
    assert process.tick() == ["number 1"]
    assert process.tick() == []
    commit(lake, 3)
    assert process.tick() == ["number 2"]


def test_a_commit_while_nobody_ticks_is_found_by_whoever_comes_and_by_one_alone(
    lake: Lake, process: Process, tmp_path: Path
) -> None:
    commit(lake, 1)
    assert process.tick() == ["number 1"]
    commit(lake, 2)
    another = Process(lake, tmp_path)
    assert another.tick() == ["number 2"]
    assert (process.tick(), another.tick()) == ([], [])


def test_a_commit_while_the_run_of_the_last_one_goes_on_has_its_tick_after_it(lake: Lake, process: Process) -> None:
    process.is_busy = True
    commit(lake, 1)
    assert process.tick() == ["number 1"]
    commit(lake, 2)
    assert process.tick() == ["number 1"]
    process.is_busy = False
    assert process.tick() == ["number 1"]
    assert process.tick() == ["number 2"]
    assert process.tick() == []
    assert len(process.keys) == 2


class Died(Exception):
    """The process is gone."""


def test_a_commit_whose_writer_died_before_its_receipt_is_found_before_the_feed_has_it(
    lake: Lake, process: Process
) -> None:
    commit(lake, 1)
    lake.run(lake.catalog.parts.afterwards.settle())
    assert process.tick() == ["number 1"]

    def dies(name: str) -> None:
        if name == "commit.swung":
            raise Died

    crash_points.install(dies)
    try:
        with pytest.raises(Died):
            commit(lake, 2)
    finally:
        crash_points.install(None)

    async def told() -> str:
        feed = Feed(lake.another().parts)
        await feed.refresh()
        pages = [await feed.page(number) for number in range(1, (await feed.fed()).number + 1)]
        return json.dumps([event for page in pages if page is not None for event in page.events])

    assert '"snapshot-id": 1,' in lake.run(told())
    assert '"snapshot-id": 2,' not in lake.run(told()), "a receipt that nobody wrote is in no feed"
    assert process.tick() == ["number 2"]
    commit(lake, 3)  # whoever commits next writes the receipt of the last one
    lake.run(lake.catalog.parts.afterwards.settle())
    assert '"snapshot-id": 2,' in lake.run(told())
    assert process.tick() == ["number 3"]
    assert process.tick() == []


@pytest.mark.parametrize("ours", [True, False])
def test_files_that_are_rewritten_are_no_new_content_though_the_snapshot_before_expires(
    lake: Lake, process: Process, ours: bool
) -> None:
    commit(lake, 1)
    assert process.tick() == ["number 1"]
    for rewritten in (2, 3) if ours else (2,):
        commit(lake, rewritten, "replace", **({CONTENT: "1"} if ours else {}))
        assert process.tick() == []
        lake.commit("raw", RemoveSnapshots((rewritten - 1,)))
        assert process.tick() == []
    commit(lake, 4)
    assert process.tick() == ["number 2"]
