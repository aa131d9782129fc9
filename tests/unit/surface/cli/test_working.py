"""What `arco worker`, `arco scheduler` and `arco run --detach` say and refuse, as far as they need no Spark."""

from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.secret import Secret, SecretRef
from arco.ledger.run_state import TaskState, TaskStatus
from arco.servo.schedule.claims import Claim
from arco.surface.cli.projects import read_project
from arco.surface.cli.run_pages import alive_text
from arco.surface.cli.settings import load_task_keys

from .shell import Shell, arco

__all__ = ["arco"]
KEY = "0123456789abcdef0123456789abcdef"
TOML = """
root = "lake"
[project]
name = "shop"
"""
ASSETS = """
from arco import asset

@asset
def orders(run): ...
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ARCO_ROOT", "ARCO_TASK_KEY", "ARCO_TASK_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text(ASSETS)
    (tmp_path / "arco.toml").write_text(TOML)
    return tmp_path


def test_a_detached_run_is_started_and_left(arco: Shell) -> None:
    started = arco("run", "--detach", "--json").json
    assert started["status"] == "pending"
    assert [task["status"] for task in started["tasks"]] == ["ready"]
    said = arco("run", "--detach")
    assert "1 task for whatever workers there are" in said.out


def test_a_scheduler_drives_a_cancelled_run_to_its_end_and_says_what_waiting_costs(arco: Shell) -> None:
    run = arco("run", "--detach", "--json").json["run"]
    arco("cancel", run)
    ended = arco("scheduler", "--once")
    assert f"run {run} cancelled: 1 cancelled" in ended.out
    assert "requests an hour while nothing is open" in ended.out
    assert arco("runs", "--json").json[0]["status"] == "cancelled"


def test_pools_are_sizes(here: Path) -> None:
    (here / "arco.toml").write_text(TOML + "[pools]\nwarehouse = 3\n")
    assert read_project(str(here)).pools == {"warehouse": 3.0}
    for wrong in ("0", '"many"', "true", "-1"):
        (here / "arco.toml").write_text(TOML + f"[pools]\nwarehouse = {wrong}\n")
        with pytest.raises(InvalidInput, match="pool 'warehouse'"):
            read_project(str(here))


def test_arco_toml_says_where_a_key_is_and_never_what_it_is(here: Path) -> None:
    (here / "arco.toml").write_text(TOML + '[workers]\nkeys = ["env:NEW", "file:/run/secrets/old"]\n')
    assert read_project(str(here)).task_keys == ("env:NEW", "file:/run/secrets/old")
    (here / "arco.toml").write_text(TOML + f'[workers]\nkeys = ["{KEY}"]\n')
    with pytest.raises(InvalidInput) as refused:
        read_project(str(here))
    assert KEY not in str(refused.value)


def test_keys_come_from_the_environment_or_from_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_task_keys(()) == ()
    monkeypatch.setenv("ARCO_TASK_KEY", KEY)
    assert load_task_keys(()) == (Secret(KEY),)
    (here / "secret").write_text(KEY[::-1] + "\n")
    assert load_task_keys((f"file:{here}/secret", "env:ARCO_TASK_KEY")) == (Secret(KEY[::-1]), Secret(KEY))
    monkeypatch.setenv("ARCO_TASK_KEY_FILE", str(here / "secret"))
    assert load_task_keys(()) == (Secret(KEY[::-1]),)


def test_a_secret_that_is_not_there_is_said_in_a_line(here: Path) -> None:
    for missing in ("env:NOWHERE", f"file:{here}/nowhere"):
        with pytest.raises(InvalidInput, match="the secret"):
            load_task_keys((missing,))
    assert str(SecretRef.parse("file:/run/secrets/key")) == "file:/run/secrets/key"


def test_a_key_that_is_too_short_is_refused_before_anything_starts(arco: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCO_TASK_KEY", "swordfish")
    ended = arco("scheduler", "--once")
    assert ended.code == 2
    assert "a signing key of fewer than 32 characters" in ended.err
    assert "swordfish" not in ended.err + ended.out


@pytest.mark.parametrize(
    ("sign", "said"),
    [
        (None, "runs"),
        (Claim("w", 1, 40_000, {"phase": "writing", "tasks_done": 3, "tasks": 8}, 9_000), "writing, 3 of 8 Spark tasks"),
        (Claim("w", 1, 140_000, {"phase": "writing"}, 10_000), "writing, alive, no progress for 1 min 30 s"),
        (Claim("w", 1, 60_000, {"phase": "writing"}, 9_000), "silent for 1 min 10 s: whoever drives the run takes it over"),
    ],
)
def test_slow_and_dead_are_told_apart(sign: Claim | None, said: str) -> None:
    its = TaskState(status=TaskStatus.RUNNING, attempt=1, worker="w", claimed_ms=0, lease_s=30.0, started_ms=0)
    now_ms = 10_000 if sign is None or sign.expires_ms == 40_000 else 100_000
    assert alive_text(its, sign, now_ms) == said
