"""Atomic runs on real Spark: everything is visible at once or nothing is, whoever dies, and nobody sees a mix."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from arco import asset, daily, not_null, row_count
from arco.fold.spark_session import Session, SparkSettings
from arco.iceberg import changes
from arco.iceberg.requests import CommitTable
from arco.kernel.errors import InvalidInput
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED, OUTPUT_HELD
from arco.ledger.outstanding import run_ids
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.execute.publish import SOURCE
from arco.servo.plan.planner import PlanRequest
from arco.surface.cli.projects import read_project
from arco.surface.python.connecting import connect
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake
from fixtures.servo.runs import Runs, ended, exits, why

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

REPOSITORY = Path(__file__).resolve().parents[2]
ATOMIC = HowToRun(atomic=True)
PROJECT = """
root = "./lake"

[project]
name = "killed"
namespace = "db"

[spark]
master = "local[1]"
conf = { "spark.sql.shuffle.partitions" = "1" }
"""
ASSETS = """
from arco import asset, not_null

@asset
def numbers(run):
    return run.spark.range(10)

@asset(mode="append", checks=[not_null("even", quarantine_rows=True)])
def appended(numbers):
    return numbers.selectExpr("id", "if(id % 2 = 0, id, null) even")

@asset
def counted(appended, numbers):
    return appended.crossJoin(numbers.selectExpr("count(*) many")).selectExpr("count(*) rows", "max(many) many")
"""
# Before the decision, and after it. Events are told beside everything else: at any time, but never of what is half there.
PLACES = ["txn.reserved", "txn.decided"]
if os.environ.get("EVERY_PLACE"):
    PLACES += ["run.output_staged", "run.publish_begun", "txn.claimed", "run.publish_decided", "run.events_appended"]


@pytest.fixture
def runs(session: Session, home: Lake, tmp_path: Path) -> Runs:
    return Runs(home, session, tmp_path)


@asset
def first(run):
    return run.spark.createDataFrame([(1, "Ada"), (2, "Bob")], "id bigint, name string")


@asset(checks=[not_null("name", quarantine_rows=True)])
def second(first):
    return first.unionByName(first.selectExpr("id + 10 id", "cast(null as string) name"))


@asset
def third(second):
    return second.groupBy("name").count()


def names_of(runs: Runs) -> set[str]:
    """The tables that are there."""
    catalog = runs.lake.another()
    found = runs.lake.run(catalog.parts.tier1.current()).names
    return {name for (_, name) in found.entries}


def made(runs: Runs) -> list[str]:
    return [event.subject for event in runs.events() if event.type == MATERIALIZATION_COMPLETED]


def test_an_atomic_run_creates_all_its_tables_in_one_transaction(runs: Runs) -> None:
    state = runs.run(first, second, third, how=ATOMIC)
    assert ended(state) == {"succeeded": 3}
    assert state.run.published
    assert names_of(runs) == {"first", "second", "second__quarantine", "third"}
    assert runs.rows("third") == [("Ada", 1), ("Bob", 1)]
    assert sorted(row[0] for row in runs.rows("second__quarantine")) == [11, 12]
    assert sorted(made(runs)) == ["db.first", "db.second", "db.third"]
    assert runs.plan(first, second, third).plan.spec.tasks == ()
    receipts = runs.lake.run(_receipts(runs))
    assert len({one.transaction for one in receipts}) == 1
    assert len(receipts) == 4
    again = runs.force(first, second, third, how=ATOMIC)
    assert ended(again) == {"succeeded": 3}
    assert runs.rows("third") == [("Ada", 1), ("Bob", 1)]


async def _receipts(runs: Runs):
    catalog = runs.lake.another()
    names = (await catalog.parts.tier1.current()).names
    pointers = [await catalog.parts.pointers.read(entry.uuid) for entry in names.entries.values()]
    return [one.value.published[-1] for one in pointers]


def test_tasks_of_one_table_stand_on_each_other_and_a_table_that_is_there_moves_once(runs: Runs) -> None:
    @asset(partitions=daily("date", start="2025-01-01", end="2025-01-05"), partitions_per_task=1)
    def days(run):
        return run.spark.createDataFrame([(day,) for day in run.values("date")], "date date")

    @asset
    def total(days):
        return days.selectExpr("count(*) days")

    runs.run(days, total)
    before = len(runs.table("days").snapshots)
    state = runs.force(days, total, how=ATOMIC)
    assert ended(state) == {"succeeded": 5}
    assert runs.rows("total") == [(4,)]
    assert runs.frame("days").count() == 4
    assert len(runs.table("days").snapshots) == before + 4


def test_a_failing_check_leaves_nothing_visible_and_says_which(runs: Runs) -> None:
    runs.run(first)
    before = runs.table("first").current_snapshot_id

    @asset(checks=[row_count(min=1000)])
    def wanting(first):
        return first

    state = runs.force(first, wanting, how=ATOMIC)
    assert ended(state) == {"cancelled": 1, "failed": 1}
    assert exits(state) == 1
    assert "checks failed: row_count" in why(state)[-1]
    assert runs.table("first").current_snapshot_id == before
    assert names_of(runs) == {"first"}
    assert made(runs) == ["db.first"]
    assert not [event for event in runs.events() if event.type == OUTPUT_HELD]
    assert {task.asset for task in runs.plan(first, wanting).plan.spec.tasks} == {"db.wanting"}


def test_whoever_commits_meanwhile_keeps_the_run_from_being_published(runs: Runs) -> None:
    runs.run(first)
    runs.force(first)
    oldest, _ = (one["snapshot-id"] for one in runs.table("first").snapshots)

    async def meddle() -> None:
        catalog = runs.lake.another()
        back = CommitTable(None, (), (changes.SetSnapshotRef("main", oldest, "branch"),))
        await catalog.table_commits.commit(("db",), "first", back, runs.lake.key("commit"), SOURCE)
        await catalog.parts.afterwards.settle()

    @asset
    def meddling(first):
        # By now the run has staged a new version of first.
        asyncio.run(meddle())
        return first

    state = runs.force(first, meddling, how=ATOMIC)
    assert ended(state) == {"cancelled": 2}
    assert exits(state) == 1
    assert state.run.status.value == "failed"
    assert "main" in state.run.withheld.reason
    assert "arco run --atomic" in state.run.withheld.hint
    assert runs.table("first").current_snapshot_id == oldest
    assert names_of(runs) == {"first"}
    assert made(runs) == ["db.first", "db.first"]


def test_too_many_tables_are_refused_before_anything_begins(runs: Runs) -> None:
    how = HowToRun(atomic=True, transaction_tables=3)
    with pytest.raises(InvalidInput, match="up to 4 tables in one transaction, more than 3") as refused:
        runs.run(first, second, third, how=how)
    assert "--transaction-tables 4" in refused.value.hint
    assert names_of(runs) == set()


def test_readers_never_see_a_mix(runs: Runs) -> None:
    @asset
    def left(run):
        return run.spark.createDataFrame([(run.run_id,)], "run string")

    @asset
    def right(left):
        return left

    runs.run(left, right, how=ATOMIC)
    seen: list[tuple[str, str]] = []
    over = threading.Event()

    def look() -> None:
        lake = connect(runs.lake.root)
        while not over.is_set():
            one, other = lake.together("db.left", "db.right")
            seen.append((one.to_arrow()["run"][0].as_py(), other.to_arrow()["run"][0].as_py()))

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for _ in range(3):
            assert ended(runs.force(left, right, how=ATOMIC)) == {"succeeded": 2}
    finally:
        over.set()
        reader.join()
    assert {one for one, _ in seen} > {seen[0][0]}
    assert [pair for pair in seen if pair[0] != pair[1]] == []


@pytest.mark.parametrize("point", PLACES)
def test_an_atomic_run_that_was_killed_is_resumed_and_published_once(runs: Runs, point: str) -> None:
    (runs.folder / "assets").mkdir()
    (runs.folder / "assets" / "killed.py").write_text(ASSETS)
    (runs.folder / "arco.toml").write_text(PROJECT)
    command = [
        sys.executable,
        "-m",
        "tests.integration.run_killed",
        point,
        "1",
        "run",
        "--atomic",
        "--project",
        str(runs.folder),
    ]
    killed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    assert killed.returncode == -9, f"it was not killed: {killed.stdout}{killed.stderr}"
    decided = bool(names_of(runs))
    assert names_of(runs) == ({"numbers", "appended", "appended__quarantine", "counted"} if decided else set())
    assert point == "run.events_appended" or decided == (point in {"txn.decided", "run.publish_decided"})
    project = read_project(str(runs.folder)).load()
    pipeline = Pipeline(
        catalog=runs.lake.another(), project=project, root=runs.lake.root, options={}, spark=SparkSettings(), by="ann"
    )
    # What landed counts when a plan is made, also before anybody has written it down.
    planned = runs.lake.run(pipeline.prepare(PlanRequest())).plan.spec.tasks
    assert len(planned) == (0 if decided else 3)
    state = runs.lake.run(_resumed(pipeline))
    assert ended(state) == {"succeeded": 3}
    assert runs.rows("appended") == [(one, one) for one in range(0, 10, 2)]
    assert sorted(row[0] for row in runs.rows("appended__quarantine")) == [1, 3, 5, 7, 9]
    assert runs.rows("counted") == [(5, 10)]
    assert sorted(made(runs)) == ["db.appended", "db.counted", "db.numbers"]
    assert runs.lake.run(pipeline.prepare(PlanRequest())).plan.spec.tasks == ()


async def _resumed(pipeline: Pipeline):
    parts = pipeline.catalog.parts
    (run,) = await run_ids(parts.tier1.store, parts.scope)
    return await pipeline.drive(await pipeline.open(run), seize=True)
