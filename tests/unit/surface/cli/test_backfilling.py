"""`arco backfill` as the shell calls it, where nothing needs Spark: the preview, how far one is, a pause."""

import asyncio
from pathlib import Path

import pytest

from arco.ledger.run_entries import Trigger
from arco.servo.execute.pipeline import HowToRun
from arco.servo.plan.planner import Mode, PlanRequest
from arco.surface.cli.projects import At
from arco.surface.cli.running import at_work

from .shell import Shell, arco

__all__ = ["arco"]

ASSETS = """
from arco import asset, daily, static

@asset(partitions=[daily("date", start="2015-01-01", end="2025-01-01"), static("region", ["de", "fr"])])
def orders(run): ...
"""
TOML = """
root = "lake"
[project]
name = "shop"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCO_ROOT", raising=False)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text(ASSETS)
    (tmp_path / "arco.toml").write_text(TOML)
    return tmp_path


def begun() -> str:
    """A backfill that nobody drives yet."""

    async def start() -> str:
        async with at_work(At(".", None, [])) as (pipeline, _):
            prepared = await pipeline.prepare(PlanRequest(mode=Mode.BACKFILL, partitions_per_task=2000))
            started = await pipeline.start(prepared, HowToRun(trigger=Trigger.BACKFILL))
            return str(started.log.run)

    return asyncio.run(start())


def test_the_preview_says_how_many_ranges_thousands_of_partitions_are(arco: Shell) -> None:
    ended = arco("backfill", "start", "orders", "--dry-run", "--per-task", "2000")
    assert ended.code == 0
    assert "This expands to 4 tasks: 1 asset, 7,306 partitions." in ended.out
    assert len(arco("backfill", "start", "orders", "--dry-run", "--json").json["spec"]["tasks"]) == 15
    month = arco("backfill", "start", "--partition", "date=2024-01-01..2024-01-31", "--dry-run").out
    assert "This expands to 1 task: 1 asset, 62 partitions." in month
    assert arco("backfill", "start", "--per-task", "0", "--dry-run").code == 2
    assert arco("backfill", "list").out.startswith("nothing was backfilled yet")


def test_how_far_a_backfill_is_range_by_range_and_that_it_rests(arco: Shell) -> None:
    run = begun()
    (listed,) = arco("backfill", "list", "--json").json
    assert (listed["run"], listed["state"], listed["ranges"], listed["partitions"]) == (run, "pending", 4, 7306)
    assert "0 of 7,306" in arco("backfill", "list").out
    shown = arco("backfill", "show", run, "--json").json
    assert [one["partitions"] for one in shown["of_each"]] == [2000, 2000, 2000, 1306]
    assert shown["of_each"][0]["range"] == "date 2015-01-01 … before 2017-09-27, region de,fr"

    assert "is paused" in arco("backfill", "pause", run, "--why", "the cluster is needed").out
    assert "the cluster is needed" in arco("backfill", "show", run).out
    assert "paused" in arco("runs").out
    assert arco("backfill", "list", "--json").json[0]["state"] == "paused"
    assert arco("backfill", "resume", run).code == 0
    again = arco("backfill", "resume", run)
    assert again.code == 2
    assert "is not paused" in again.err
    assert "is asked to end" in arco("backfill", "cancel", run).out
    assert arco("backfill", "pause", run).code == 2


def test_a_detached_backfill_is_started_and_left_to_workers(arco: Shell) -> None:
    started = arco("backfill", "start", "--per-task", "2000", "--parallel", "8", "--detach", "--json").json
    assert (started["status"], started["trigger"], started["max_parallelism"]) == ("pending", "backfill", 8)
    assert {task["status"] for task in started["tasks"]} == {"ready"}
    assert "for whatever workers there are" in arco("backfill", "start", "--per-task", "2000", "--detach").out
