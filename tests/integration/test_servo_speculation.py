"""Runs on a cluster where Spark runs a task twice: beside a slow one, or again after an executor is gone.

Every test proves from Spark's own event log that it happened. Each row is published once, files of a copy that lost are not,
and checks count what was published.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import functions as f

from arco import accepted_values, asset, row_count, static, unique
from arco.fold.spark_session import Session, SparkSettings
from arco.ledger.run_state import RunState
from arco.servo.execute.file_access import files_below, plain_path
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake
from fixtures.servo.runs import Runs, ended
from tests.quick_java import QUICK

from .spark_cluster import HOSTS, spark_cluster
from .spark_local import running

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

ROWS, PARTS, SLOW = 3000, 3, 2500
# The check that fails is one that no footer can answer: it is counted while the rows are written.
PLACE = f"if(n >= 50 and n < {ROWS - 50}, 'middle', 'edge') place"
CHECKS = [row_count(min=ROWS, max=ROWS), accepted_values("place", ["middle"], severity="warning"), unique("n")]
# Many processes that live for a minute: what they would gain from optimizing their code costs more than it saves.
CONF = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.driver.host": HOSTS[0],
    "spark.driver.bindAddress": HOSTS[0],
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, events: Path) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("cluster")
    with spark_cluster(folder) as master:
        conf = CONF | {"spark.eventLog.dir": events.as_uri(), "spark.local.dir": str(folder)}
        with running(SparkSettings(master, "twice", conf, python_path=(folder,))) as found:
            yield found


@pytest.fixture
def runs(session: Session, home: Lake, tmp_path: Path) -> Runs:
    return Runs(home, session, tmp_path)


def slow_first_copy(folder: Path, *, hangs: bool) -> Any:
    """A function of rows that holds up the first copy of the last task until there is a second one, or for ever.

    What it returns is long: a worker of Spark's says nothing before it has filled a buffer.
    """

    def held(value: int) -> str:
        copy = TaskContext.get().attemptNumber()
        if value == SLOW:
            Path(folder, f"copy-{copy}").touch()
            while (hangs and copy == 0) or not Path(folder, f"copy-{1 - copy}").exists():
                time.sleep(0.02)
        return f"{value:02000}"

    return f.udf(held, "string", useArrow=False).asNondeterministic()


@pytest.mark.parametrize("hangs", [True, False], ids=["the first never ends", "both end"])
@pytest.mark.parametrize("writer", ["native", "arrow"])
def test_of_two_copies_of_a_task_one_is_published(runs: Runs, events: Path, writer: str, hangs: bool) -> None:
    held, before = slow_first_copy(runs.folder, hangs=hangs), len(tasks(events, "Start"))
    other = "array(1) other" if writer == "arrow" else "1 other"

    @asset(checks=CHECKS)
    def copied(run):
        rows = run.spark.range(0, ROWS, 1, PARTS).select(held("id").alias("filling"))
        return rows.selectExpr("cast(filling as bigint) n", "filling", other).selectExpr("*", PLACE)

    state = runs.run(copied)
    assert any(one["Speculative"] for one in tasks(events, "Start")[before:]), "Spark started no second copy"
    assert {one.name for one in runs.folder.glob("copy-*")} == {"copy-0", "copy-1"}
    assert_right(runs, state, "copied")
    table = runs.table("copied")
    on_disk = {plain_path(one.location) for one in files_below(runs.lake.io, f"{table.location}/data")}
    published = {plain_path(entry.data_file.file_path) for entry in runs.lake.entries(table)}
    assert len(published) == PARTS
    assert published <= on_disk
    if writer == "native":
        assert published == on_disk
    elif hangs:
        assert published < on_disk, "the copy that lost had written nothing"


def test_rows_that_were_counted_twice_are_counted_again(runs: Runs, session: Session, events: Path) -> None:
    """An executor dies when its tasks have been counted, and what it held for the next stage is computed once more."""
    noting, before = note_and_wait(runs.folder), len(tasks(events, "End"))

    @asset(partitions=static("part", ["a", "b"]), checks=CHECKS)
    def lost(run):
        rows = run.spark.range(0, ROWS, 1, PARTS).select(noting("id").alias("n"))
        return rows.selectExpr("n", "if(n % 2 = 0, 'a', 'b') part", PLACE)

    def kill() -> None:
        until(lambda: any(one.numCompletedTasks >= PARTS - 1 for one in active_stages(session)))
        os.kill(int(Path(runs.folder, "executor").read_text()), signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    state = runs.run(lost)
    killing.join()
    counted = Counter(
        (one["Stage ID"], one["Task Info"]["Index"]) for one in tasks(events, "End")[before:] if succeeded(one)
    )
    assert 2 in counted.values(), "no task counted twice"
    assert_right(runs, state, "lost")


def note_and_wait(folder: Path) -> Any:
    """A function of rows: the first task says which executor runs it, the last one waits until the first runs again."""

    def noted(value: int) -> int:
        if value == 0:
            daemon = os.getppid()
            found = subprocess.run(["ps", "-o", "ppid=", "-p", str(daemon)], capture_output=True, check=True)
            if TaskContext.get().attemptNumber() == 0:
                Path(folder, "executor").write_bytes(found.stdout)
            else:
                Path(folder, "again").touch()
        while value == SLOW and not Path(folder, "again").exists():
            time.sleep(0.02)
        return value

    return f.udf(noted, "bigint", useArrow=False).asNondeterministic()


def assert_right(runs: Runs, state: RunState, name: str) -> None:
    """Every row once, and every check as it is about those."""
    assert ended(state) == {"succeeded": 1}
    assert sorted(row[0] for row in runs.frame(name).select("n").collect()) == list(range(ROWS))
    (its,) = state.tasks.values()
    assert its.staged is not None
    assert its.staged.written["rows"] == ROWS
    found = {one["kind"]: (one["passed"], one["failed_rows"], one["total_rows"]) for one in its.staged.checks}
    assert found["accepted_values"] == (False, 100, ROWS)
    assert found["row_count"][0]
    assert found["unique"][0]


def tasks(events: Path, what: str) -> list[dict[str, Any]]:
    """What Spark's event log says of the starts or ends of tasks."""
    (log,) = events.iterdir()
    lines = log.read_text().split("\n")[:-1]
    return [
        one | {"Speculative": one["Task Info"]["Speculative"]}
        for one in map(json.loads, lines)
        if one["Event"] == f"SparkListenerTask{what}"
    ]


def succeeded(task: dict[str, Any]) -> bool:
    return bool(task["Task End Reason"]["Reason"] == "Success")


def active_stages(session: Session) -> list[Any]:
    tracker = session.spark.sparkContext.statusTracker()
    found = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
    return [one for one in found if one is not None]


def until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)
