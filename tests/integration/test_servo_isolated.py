"""A worker that keeps tasks apart, on a folder: nothing to vend there, and everything else of the way is the same."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import arco
from arco.kernel.ids import TaskId
from arco.ledger.run_state import RunState
from arco.servo.execute.attempt_log import read_log
from arco.servo.execute.computing import Assignment, Rooms
from arco.servo.execute.isolated import Isolation
from arco.servo.execute.pipeline import HowToRun
from arco.servo.execute.task_messages import ProjectSource
from arco.servo.execute.working import Worker
from arco.servo.plan.planner import PlanRequest
from arco.surface.cli.projects import At, read_project
from arco.surface.cli.running import at_work
from arco.surface.cli.settings import tasks_environment
from arco.surface.cli.working import _Said
from fixtures.servo.frames import MARKS

pytestmark = MARKS

TOML = """
root = "lake"

[project]
name = "db"

[spark]
master = "local[1]"
conf = { "spark.sql.shuffle.partitions" = "1", "spark.driver.memory" = "512m" }
"""
ASSETS = """
import logging
import os

from arco import asset, daily, not_null, static

@asset(partitions=static("region", ["de", "fr"]), checks=[not_null("name", quarantine_rows=True)])
def named(run):
    print("printed by the code")
    logging.getLogger("shop").info("logged by the code")
    regions = run.spark.createDataFrame([(one,) for one in run.values("region")], "region string")
    around = " ".join(sorted(os.environ))
    rows = regions.crossJoin(run.spark.range(3))
    return rows.selectExpr("region", "id", "if(id = 1, null, 'x') name", f"{os.getpid()} pid", f"'{around}' around")

@asset
def broken(named):
    raise ValueError(f"no good: {named.count()}")
"""


class OfAFolder:
    """A folder makes no keys, and needs none."""

    async def options(self, given: Assignment, rooms: Rooms) -> dict[str, str]:
        return {}


async def worked(folder: Path) -> tuple[RunState, dict[str, list[str]]]:
    """A run that a worker makes, and what each of its tasks logged."""
    async with at_work(At(str(folder), None, [])) as (pipeline, _):
        file = read_project(str(folder))
        source = ProjectSource(folder=str(folder), name=file.name, namespace=file.namespace, assets=file.assets)
        apart = Isolation(source=source, keys=OfAFolder(), environment=tasks_environment())
        started = await pipeline.start(await pipeline.prepare(PlanRequest()), HowToRun(), here=False)
        home = pipeline.home or pipeline.new_home()
        worker = Worker(pipeline, home, slots=1, keys=None, told=_Said(), apart=apart)
        await worker.serve(once=True)
        assert not home.is_open, "this process has no Spark"
        parts = pipeline.catalog.parts
        state = (await pipeline.open(started.log.run)).log.state
        logs: dict[str, list[str]] = {}
        for task in started.plan.spec.tasks:
            async for _, lines in read_log(parts.tier1.store, parts.scope, started.log.run, TaskId(task.id)):
                logs.setdefault(task.asset, []).extend(one.text for one in lines)
        return state, logs


def test_tasks_are_computed_in_processes_of_their_own_and_published_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv("ARCO_TASK_KEY", "0123456789abcdef0123456789abcdef")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text(ASSETS)
    (tmp_path / "arco.toml").write_text(TOML)
    state, logs = asyncio.run(worked(tmp_path))
    ends = {its.status.value: its.failure for its in state.tasks.values()}
    assert set(ends) == {"succeeded", "failed"}, ends

    lake = arco.connect(str(tmp_path / "lake"))
    rows: list[dict[str, Any]] = lake.table("db.named").to_arrow().to_pylist()
    assert sorted((one["region"], one["id"]) for one in rows) == [("de", 0), ("de", 2), ("fr", 0), ("fr", 2)]
    assert len(lake.table("db.named__quarantine").to_arrow()) == 2
    assert os.getpid() not in {one["pid"] for one in rows}
    around = rows[0]["around"].split()
    assert "AWS_SECRET_ACCESS_KEY" not in around
    assert "ARCO_TASK_KEY" not in around

    assert {"reading", "writing", "printed by the code", "shop: logged by the code"} <= set(logs["db.named"])
    failed = ends["failed"]
    assert failed is not None
    assert (failed.kind, failed.transient) == ("transform", False)
    assert "no good: 4" in failed.message
    assert "a.py:18" in failed.message
    assert any("ValueError: no good: 4" in line for line in logs["db.broken"])
