"""A run whose process is killed at every step, then resumed: everything is published, and nothing twice."""

import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from arco.fold.spark_session import Session, SparkSettings
from arco.kernel.errors import NotFound
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED
from arco.ledger.outstanding import run_ids
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.plan.planner import PlanRequest
from arco.surface.cli.projects import read_project
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake
from fixtures.servo.runs import Runs, ended

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

REPOSITORY = Path(__file__).resolve().parents[2]
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
"""
AGAIN = """
from arco import asset, daily

@asset(partitions=daily("date", start="2025-01-01", end="2025-01-04"))
def days(run, version: int = 0):
    rows = [(day, version) for day in run.values("date")]
    return run.spark.createDataFrame(rows, "date date, version int")

@asset(mode="merge", key="id")
def merged(run, version: int = 0):
    return run.spark.range(version, version + 3).selectExpr("id", f"{version} version")
"""
# Commits to tables that are there, by which partitions are replaced and rows merged.
PLACES_AGAIN = [("commit.swung", 1), ("commit.swung", 2)]
# Where, and which time that it is reached. The second publish is that of the rows that are set aside.
PLACES = [
    ("run.task_claimed", 1),
    ("run.output_staged", 1),
    ("catalog.manifest_swung", 3),
    ("publish.committed", 1),
    ("run.events_appended", 1),
    ("publish.committed", 2),
    ("run.output_staged", 2),
]
# For `make kill`: a JVM for each takes its time.
MORE_PLACES = [
    ("run.plan_written", 1),
    ("create.staged", 1),
    ("publish.drafted", 1),
    ("catalog.commit_written", 3),
    ("publish.drafted", 2),
    ("publish.committed", 3),
    ("run.events_appended", 3),
]
if os.environ.get("EVERY_PLACE"):
    PLACES += MORE_PLACES
    PLACES_AGAIN += [
        ("commit.staged", 1),
        ("commit.staged", 2),
        ("commit.receipt_written", 1),  # that of the last commit is written beside what follows: the run may have ended
        ("ledger.segment_durable", 1),
        ("ledger.segment_durable", 2),
    ]


@pytest.fixture
def runs(session: Session, home: Lake, tmp_path: Path) -> Runs:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "killed.py").write_text(ASSETS)
    (tmp_path / "arco.toml").write_text(PROJECT)
    return Runs(home, session, tmp_path)


@pytest.mark.parametrize(("point", "nth"), PLACES, ids=[f"{point}-{nth}" for point, nth in PLACES])
def test_a_run_that_was_killed_is_resumed_and_nothing_is_published_twice(runs: Runs, point: str, nth: int) -> None:
    _killed(runs, point, nth, "run", "--parallel", "1")
    pipeline = _pipeline(runs)
    state = runs.lake.run(_resumed(pipeline))
    assert ended(state) == {"succeeded": 2}
    assert runs.rows("numbers") == [(one,) for one in range(10)]
    assert runs.rows("appended") == [(one, one) for one in range(0, 10, 2)]
    assert sorted(row[0] for row in runs.rows("appended__quarantine")) == [1, 3, 5, 7, 9]
    made = Counter(event.subject for event in runs.events() if event.type == MATERIALIZATION_COMPLETED)
    assert set(made) == {"db.numbers", "db.appended"}
    materializations = {
        event.data["materialization_id"] for event in runs.events() if event.type == MATERIALIZATION_COMPLETED
    }
    assert len(materializations) == 2
    assert runs.lake.run(pipeline.prepare(PlanRequest())).plan.spec.tasks == ()


@pytest.mark.parametrize(("point", "nth"), PLACES_AGAIN, ids=[f"{point}-{nth}" for point, nth in PLACES_AGAIN])
def test_a_killed_run_that_replaces_and_merges_is_finished_by_the_command(runs: Runs, point: str, nth: int) -> None:
    _published_once(runs)
    _killed(runs, point, nth, "run", "--parallel", "1", "--param", "version=2")
    _resumed_by_command(runs)


def test_whoever_resumes_may_be_killed_while_it_settles(runs: Runs) -> None:
    _published_once(runs)
    _killed(runs, "run.output_staged", 1, "run", "--parallel", "1", "--param", "version=2")
    _killed(runs, "run.attempt_settled", 1, "resume", "--now")
    _resumed_by_command(runs)


def _published_once(runs: Runs) -> None:
    (runs.folder / "assets" / "killed.py").write_text(AGAIN)
    pipeline = _pipeline(runs)
    assert ended(runs.lake.run(_resumed(pipeline))) == {"succeeded": 2}


def _resumed_by_command(runs: Runs) -> None:
    """Go on with the run as people do, and see that every partition and every key is there once, as the run makes it."""
    command = [Path(sys.executable).with_name("arco"), "resume", "--now", "--project", runs.folder]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert [row[1] for row in runs.rows("days")] == [2, 2, 2]
    assert runs.rows("merged") == [(0, 0), (1, 0), (2, 2), (3, 2), (4, 2)]
    told = [event.data["materialization_id"] for event in runs.events() if event.type == MATERIALIZATION_COMPLETED]
    assert len(told) == len(set(told)) == 4
    for name in ("days", "merged"):
        assert len(runs.table(name).snapshots) == 2


def _killed(runs: Runs, point: str, nth: int, *words: str) -> None:
    """Type a command in a process that dies at a place."""
    dying = [sys.executable, "-m", "tests.integration.run_killed", point, str(nth)]
    command = [*dying, *words, "--project", str(runs.folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == -9, f"it was not killed: {done.stdout}{done.stderr}"


async def _resumed(pipeline: Pipeline):
    """Go on with the run; where it was killed before it began, begin it."""
    parts = pipeline.catalog.parts
    for run in await run_ids(parts.tier1.store, parts.scope):
        with suppress(NotFound):
            return await pipeline.drive(await pipeline.open(run), seize=True)
    return await pipeline.drive(await pipeline.start(await pipeline.prepare(PlanRequest()), HowToRun()))


def _pipeline(runs: Runs) -> Pipeline:
    project = read_project(str(runs.folder)).load()
    return Pipeline(
        catalog=runs.lake.another(), project=project, root=runs.lake.root, options={}, spark=SparkSettings(), by="ann"
    )
