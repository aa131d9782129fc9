"""`arco run` in a terminal, and Ctrl-C: what it says, what it leaves in the log, and how it goes on.

As a terminal does, the signal goes to the whole group of processes: to the command, to Spark and to Spark's workers.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import arco
from fixtures.servo.frames import MARKS

pytestmark = MARKS

PROJECT = """
root = "./lake"

[project]
name = "db"

[spark]
master = "local[2]"
conf = { "spark.sql.shuffle.partitions" = "1" }
"""
# In rows, where Spark can stop it; and in the asset's own code, where nobody can.
ASSETS = """
import time
from pathlib import Path

from pyspark.sql import functions as f

from arco import asset

HERE = Path({folder!r})

def wait(value):
    (HERE / "waiting").touch()
    while not (HERE / "go").exists():
        time.sleep(0.05)
    return value

@asset
def quick(run):
    return run.spark.range(3)

@asset(mode="append")
def slow(quick):
    return quick.select(f.udf(wait, "bigint")("id").alias("id"))

@asset(mode="append")
def stubborn(quick):
    wait(0)
    return quick
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text(ASSETS.format(folder=str(tmp_path)))
    (tmp_path / "arco.toml").write_text(PROJECT)
    (tmp_path / "lake").mkdir()
    return tmp_path


class Terminal:
    """A command in a group of processes of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from arco.surface.cli.main import run; run()", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def interrupt(self) -> None:
        os.killpg(self._process.pid, signal.SIGINT)

    def first_line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            assert self._process.poll() is None, self._process.communicate()
            time.sleep(0.05)

    def first_error(self) -> str:
        assert self._process.stderr is not None
        return self._process.stderr.readline()

    def ends(self) -> tuple[int, str, str]:
        """How it ended: its code and the rest of what it said. Nothing that it started is left."""
        out, err = self._process.communicate()
        while _is_there(self._process.pid):
            time.sleep(0.05)
        return self._process.returncode, out, err


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def ended(folder: Path, *words: str) -> tuple[int, str, str]:
    return Terminal(folder, *words).ends()


def last_run(folder: Path) -> dict[str, Any]:
    _, out, _ = ended(folder, "runs", "--json")
    found: dict[str, Any] = json.loads(out)[0]
    return found | {"tasks": {one["asset"]: one["status"] for one in found["tasks"]}}


def told_to_end(folder: Path) -> bool:
    """Whether the log of a run has it that the run is to end."""
    entries = (folder / "lake").glob("*/*/_catalog/runs/*/log/*.json")
    return any("run_cancel_requested" in entry.read_text() for entry in entries)


def ids(folder: Path, table: str) -> list[int]:
    rows = arco.connect(str(folder / "lake")).table(table).to_arrow()
    return sorted(rows.column("id").to_pylist())


def test_ctrl_c_ends_a_run_in_order_and_the_next_one_makes_the_rest(folder: Path) -> None:
    terminal = Terminal(folder, "run", "quick", "slow")
    terminal.until((folder / "waiting").exists)
    terminal.interrupt()
    code, out, err = terminal.ends()
    assert code == 1
    assert err == "arco: stopping what runs, and writing it down; once more leaves at once\n"
    assert "cancelled: 1 cancelled, 1 succeeded; 3 rows" in out
    assert "arco run " in out.splitlines()[-1]
    found = last_run(folder)
    assert found["status"] == "cancelled"
    assert found["tasks"] == {"db.quick": "succeeded", "db.slow": "cancelled"}
    (folder / "go").touch()
    code, _, err = ended(folder, "resume")
    assert (code, err.startswith("arco: every run has finished")) == (2, True)
    code, out, err = ended(folder, "run", "quick", "slow")
    assert (code, err) == (0, "")
    assert "1 task" in out
    assert ids(folder, "db.slow") == [0, 1, 2]


def test_a_second_ctrl_c_leaves_at_once_and_resume_goes_on(folder: Path) -> None:
    terminal = Terminal(folder, "run", "quick", "stubborn")
    terminal.until((folder / "waiting").exists)
    terminal.interrupt()
    assert "once more leaves at once" in terminal.first_error()
    terminal.until(lambda: told_to_end(folder))
    terminal.interrupt()
    code, _, err = terminal.ends()
    found = last_run(folder)
    assert code == 130
    assert err == f"arco: left at once; arco resume {found['run']} --now settles what was under way\n"
    assert found["tasks"] == {"db.quick": "succeeded", "db.stubborn": "running"}
    (folder / "go").touch()
    code, out, err = ended(folder, "resume", found["run"], "--now")
    assert (code, err) == (1, "")
    assert "cancelled: 1 cancelled, 1 succeeded" in out
    assert last_run(folder)["status"] == "cancelled"
    assert ended(folder, "run", "quick", "stubborn")[0] == 0
    assert ids(folder, "db.stubborn") == [0, 1, 2]


def test_ctrl_c_before_spark_is_there_ends_a_run_in_order(folder: Path) -> None:
    terminal = Terminal(folder, "run", "quick")
    assert terminal.first_line().startswith("run ")
    terminal.interrupt()
    code, out, err = terminal.ends()
    assert code == 1
    assert err == "arco: stopping what runs, and writing it down; once more leaves at once\n"
    assert "cancelled: 1 cancelled; 0 rows" in out
    assert last_run(folder)["status"] == "cancelled"
