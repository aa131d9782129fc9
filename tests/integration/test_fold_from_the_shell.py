"""`arco fold`, `arco rebuild` and `arco query` as people type them, in a folder with a root beside them, on real Spark."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from .arco_server import arco_server

RUN, LATER = "01JCW4ZZZZ0000000000000002", "01JCW4ZZZZ0000000000000003"
COMPLETED = {"run_id": RUN, "state": "succeeded", "tasks": {"succeeded": 1}, "started_ms": 1000, "ended_ms": 3000}
APPEND = f"""
import asyncio
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.storage.keys import Domain
from arco.storage.local import LocalStore

async def story():
    store = LocalStore("lake", SystemClock(), SystemEntropy())
    ledger = Appender(store, Scope.of(), SystemClock(), SystemEntropy())
    said = Draft(type=EventType("execution.run_completed.v1"), source="arco/servo", idempotencykey="k", data={COMPLETED!r})
    wrong = Draft(type=EventType("execution.run_completed.v1"), source="arco/servo", data={{"run_id": 7}})
    await ledger.append(Domain.EXECUTION, [said, wrong])
    await ledger.append(Domain.EXECUTION, [said])  # once more, as after a lost reply
    await ledger.close()
    await store.close()

asyncio.run(story())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    subprocess.run([sys.executable, "-c", APPEND], cwd=tmp_path, check=True)
    return tmp_path


def arco(folder: Path, *words: str) -> Any:
    command = [sys.executable, "-c", "from arco.surface.cli.main import run; run()", *words, "--root", "lake", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_events_become_rows_that_a_query_finds(folder: Path) -> None:
    asked = ("query", "SELECT run_id, state, ended_at FROM runs")
    expected = [{"run_id": RUN, "state": "succeeded", "ended_at": "1970-01-01T00:00:03"}]
    assert arco(folder, *asked)["rows"] == []
    assert arco(folder, *asked, "--fresh")["rows"] == expected
    done = arco(folder, "fold", "--spark", "local[1]")
    assert done["failed"] == {}
    assert done["heads"]["execution"] == {"segments": 2, "receipts": 0, "events": 2, "refused": 1}
    assert arco(folder, *asked) == {"snapshot": done["snapshot"], "rows": expected}
    # The second look finds nothing, and the same snapshot stands.
    assert arco(folder, "fold")["snapshot"] == done["snapshot"]
    made = arco(folder, "rebuild", "--domain", "execution", "--spark", "local[1]")
    assert made["heads"]["execution"]["rows"] == 1
    assert arco(folder, *asked)["rows"] == expected
    assert arco(folder, *asked, "--snapshot", done["snapshot"])["rows"] == expected
    # From a state that is whole: its files stay, and what came after it is folded again.
    kept = arco(folder, "rebuild", "--from", done["snapshot"], "--spark", "local[1]")
    assert kept["heads"]["execution"] == made["heads"]["execution"]
    assert arco(folder, *asked)["rows"] == expected


def test_a_run_is_folded_at_its_end_and_its_assets_are_there_before_it(tmp_path: Path) -> None:
    called(tmp_path, "init", "shop")
    project = tmp_path / "shop"
    called(project, "deploy")
    deployed = "SELECT asset, kind, retired FROM assets ORDER BY asset"
    assert [row["asset"] for row in asked(project, deployed, "--fresh")] == [
        "shop.orders",
        "shop.orders_raw",
        "shop.revenue",
    ]
    assert asked(project, deployed) == []
    said = called(project, "run")
    assert "arco query" in said
    assert len(asked(project, deployed)) == 3
    counted = "SELECT asset, count(*) AS partitions FROM partitions GROUP BY 1 ORDER BY 1"
    folded = asked(project, counted)
    assert folded == asked(project, counted, "--fresh")
    assert {row["asset"] for row in folded} == {"shop.orders", "shop.orders_raw", "shop.revenue"}
    assert asked(project, "SELECT state FROM runs") == [{"state": "succeeded"}]
    # Everything that the catalog committed is known to be Servo's, and nothing is left to fold.
    commits = asked(project, "SELECT source, count(*) AS commits FROM iceberg_commits GROUP BY 1")
    assert [row["source"] for row in commits] == ["servo"]
    assert all(one["segments"] == 0 for one in arco(project, "fold")["heads"].values())
    checked = arco(project, "verify", "--state")
    assert (checked["clean"], checked["disagreements"]) == (True, [])


def test_a_server_with_a_fold_shows_what_is_posted(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    event = {"type": "execution.run_completed.v1", "source": "airflow", "data": COMPLETED}
    with arco_server(root, "--fold", "--fold-every", "600", "--log-level", "error") as address:
        base = address.removesuffix("/iceberg")
        posted(base, event)
        # The timer is ten minutes away: it was woken by the event.
        while not asked(tmp_path, "SELECT run_id FROM runs"):
            time.sleep(0.5)
        # Spark is in a process of its own, and what becomes of that is not what becomes of the server.
        (fold,) = folds_of(root)
        os.kill(fold, signal.SIGKILL)
        posted(base, event | {"data": COMPLETED | {"run_id": LATER}})
        while len(asked(tmp_path, "SELECT run_id FROM runs")) < 2:
            time.sleep(0.5)
        with urllib.request.urlopen(f"{base}/ready", timeout=60) as answer:
            ready = json.load(answer)
        assert (ready["status"], ready["fold"]["state"], ready["fold"]["restarts"]) == ("ready", "following", 1)
    assert not folds_of(root), "it ends with its server"
    found = asked(tmp_path, "SELECT run_id, state FROM runs ORDER BY run_id")
    assert found == [{"run_id": one, "state": "succeeded"} for one in (RUN, LATER)]


def test_a_server_whose_fold_does_not_list_shows_what_it_is_told_of_and_nothing_else(tmp_path: Path) -> None:
    called(tmp_path, "init", "shop")
    project = tmp_path / "shop"
    root = project / "lake"
    event = {"type": "execution.run_completed.v1", "source": "airflow", "data": COMPLETED | {"run_id": LATER}}
    runs, assets = "SELECT run_id FROM runs ORDER BY run_id", "SELECT asset FROM assets"
    with arco_server(root, "--fold", "--fold-no-listing", "--fold-every", "1", "--log-level", "error") as address:
        base = address.removesuffix("/iceberg")
        silent = APPEND.replace("[said, wrong]", "[said]")
        subprocess.run([sys.executable, "-c", silent], cwd=project, check=True)  # says nothing to anybody
        posted(base, event)
        while not asked(project, runs):
            time.sleep(0.5)
        assert asked(project, runs) == [{"run_id": LATER}]
        # Another process, which is told that folds do not list: what it writes is said to them.
        with (project / "arco.toml").open("a") as file:
            file.write("\n[fold]\nlisting = false\n")
        called(project, "deploy")
        while not asked(project, assets):
            time.sleep(0.5)
        assert len(asked(project, assets)) == 3
        called(project, "run", "--no-fold")
        while len(asked(project, runs)) < 2:
            time.sleep(0.5)
        assert asked(project, "SELECT source FROM iceberg_commits GROUP BY 1") == [{"source": "servo"}]
        assert {"run_id": RUN} not in asked(project, runs), "nothing was listed all the time"
        unsaid = min(root.glob("default/default/_catalog/ledger/execution/*/*.jsonl"))
        posted(base, {"segments": [unsaid.relative_to(root).as_posix()]}, "/api/v1/fold/notify")
        while {"run_id": RUN} not in asked(project, runs):
            time.sleep(0.5)


def posted(base: str, event: dict[str, Any], path: str = "/api/v1/events") -> None:
    words = json.dumps(event).encode()
    request = urllib.request.Request(f"{base}{path}", words, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 202


def folds_of(root: Path) -> list[int]:
    """The processes that fold a root for a server."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found += [int(process.name)] if b"--watched" in words and str(root).encode() in words else []
    return found


def called(folder: Path, *words: str) -> str:
    command = [sys.executable, "-c", "from arco.surface.cli.main import run; run()", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def asked(folder: Path, sql: str, *words: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = arco(folder, "query", sql, *words)["rows"]
    return rows
