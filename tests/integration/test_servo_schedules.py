"""Ticks on real Spark, from the shell: what is due runs once, what another process is at is left to it, new content is seen."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fixtures.servo.frames import MARKS

pytestmark = MARKS

ASSETS = """
from arco import asset, schedule, source

@asset(fresh_within="6h", mode="append")
def ticks(run):
    return run.spark.range(1)

schedule("in_time", keep_fresh="ticks")
"""
READER = """
from arco import asset, schedule, source

ticks = source("ticks", table="shop.ticks")

@asset
def count(ticks):
    return ticks.groupBy().count()

schedule("new_ticks", after="ticks", make="count")
"""
TOML = """
root = "{root}"
[project]
name = "{name}"
[spark]
master = "local[2]"
conf = {{ "spark.sql.shuffle.partitions" = "1", "spark.ui.enabled" = "false" }}
"""


@pytest.fixture
def projects(tmp_path: Path) -> tuple[Path, Path]:
    """Two projects on one lake: the tables of one are sources of the other."""
    made = []
    for name, text in (("shop", ASSETS), ("report", READER)):
        folder = tmp_path / name
        (folder / "assets").mkdir(parents=True)
        (folder / "assets" / "a.py").write_text(text)
        (folder / "arco.toml").write_text(TOML.format(root=tmp_path / "lake", name=name))
        made.append(folder)
    return made[0], made[1]


def arco(folder: Path, *words: str) -> Any:
    """What the command says to programs."""
    environment = {word: value for word, value in os.environ.items() if word != "ARCO_ROOT"}
    ended = subprocess.run(
        [sys.executable, "-c", "from arco.surface.cli.main import run; run()", *words, "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_what_is_due_runs_once_and_what_is_new_is_seen_once(projects: tuple[Path, Path]) -> None:
    shop, report = projects
    (first,) = arco(shop, "schedule", "tick", "--no-fold")
    assert (first["schedule"], first["status"]) == ("in_time", "succeeded")
    assert arco(shop, "schedule", "tick", "--no-fold") == []  # it is fresh
    (seen,) = arco(report, "schedule", "tick", "--no-fold")
    assert (seen["schedule"], seen["cause"], seen["status"]) == ("new_ticks", "new in report.ticks", "succeeded")
    assert arco(report, "schedule", "tick", "--no-fold") == []
    arco(shop, "run", "--force", "--no-fold")
    (again,) = arco(report, "schedule", "tick", "--no-fold")
    assert (again["tick"], again["status"]) == ("number 2", "succeeded")
    runs = {one["run"] for one in arco(report, "runs")}
    assert {first["run"], seen["run"], again["run"]} < runs
    (deadline,) = arco(shop, "schedule", "next")
    assert deadline["asset"] == "shop.ticks"
