"""`arco fold`, `arco rebuild` and `arco query` as people type them, in a folder with a root beside them, on real Spark."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = "01JCW4ZZZZ0000000000000002"
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


@pytest.mark.timeout(600)
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
