"""What `arco worker`, `arco scheduler` and `arco run --detach` say and refuse, as far as they need no Spark."""

import asyncio
from pathlib import Path

import pytest

from arco.kernel.errors import Conflict, InvalidInput
from arco.kernel.secret import Secret, SecretRef
from arco.ledger.run_state import TaskState, TaskStatus
from arco.servo.deploy.deploying import Deployments
from arco.servo.execute.minding import ASKED_EVERY_S, TICK_EVERY_S, _schedules, chores, requests_an_hour
from arco.servo.schedule.claims import Claim
from arco.surface.cli.projects import At, read_project
from arco.surface.cli.run_pages import alive_text
from arco.surface.cli.running import at_work
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


def test_with_a_key_a_scheduler_leaves_a_run_alone_that_was_started_without(arco: Shell, monkeypatch) -> None:
    run = arco("run", "--detach", "--json").json["run"]
    monkeypatch.setenv("ARCO_TASK_KEY", KEY)
    refused = arco("scheduler", "--once")
    assert refused.code == 0
    (line,) = [one for one in refused.out.splitlines() if run in one]
    assert line.startswith(f"run {run} is not for this process: nobody with the signing key made it")
    monkeypatch.delenv("ARCO_TASK_KEY")
    arco("cancel", run)
    monkeypatch.setenv("ARCO_TASK_KEY", KEY)
    assert arco("resume", run, "--json").json["status"] == "cancelled"
    sealed = arco("run", "--detach", "--json").json["run"]
    arco("cancel", sealed)
    assert f"run {sealed} cancelled" in arco("scheduler", "--once").out


def test_a_detached_run_without_the_key_that_arco_toml_names_is_refused(here: Path, arco: Shell) -> None:
    (here / "arco.toml").write_text(TOML + '[workers]\nkeys = ["env:NOWHERE"]\n')
    refused = arco("run", "--detach")
    assert refused.code == 2
    assert "env:NOWHERE" in refused.err
    assert arco("plan").code == 0


NEWER = ASSETS.replace("...", "return 1")


def test_a_scheduler_of_an_old_checkout_takes_nothing_back_and_goes_on_with_runs(here: Path, arco: Shell) -> None:
    run = arco("run", "--detach", "--json").json["run"]
    (here / "assets" / "a.py").write_text(NEWER)
    arco("deploy")
    counts = arco("deploy", "--history", "--json").json["current"]
    (here / "assets" / "a.py").write_text(ASSETS)
    arco("cancel", run)
    started = arco("scheduler", "--once")
    assert started.code == 2
    assert f"run {run} cancelled" in started.out
    assert "starts nothing" in started.out
    assert f"deployment {counts} of shop counts" in started.err
    assert "arco deploy" in started.err
    assert arco("deploy", "--history", "--json").json["current"] == counts
    ticked = arco("schedule", "tick")
    assert (ticked.code, len(ticked.err.splitlines())) == (2, 1)
    assert f"deployment {counts} of shop counts" in ticked.err
    assert arco("deploy", "--history", "--json").json["current"] == counts
    arco("deploy")
    assert arco("scheduler", "--once").code == 0


def test_a_scheduler_that_is_overtaken_by_another_deployment_stays(
    here: Path, arco: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    arco("deploy")
    (here / "assets" / "a.py").write_text(NEWER)

    async def lost(*_: object) -> None:
        raise Conflict("somebody else deployed this project meanwhile")

    monkeypatch.setattr(Deployments, "_swing", lost)
    started = arco("scheduler", "--once")
    assert "starts nothing" in started.out
    assert "counts, and the code here is not that one" in started.err


def test_a_scheduler_does_not_undo_a_rollback_and_whoever_runs_by_hand_may(here: Path, arco: Shell) -> None:
    arco("deploy")
    before = arco("deploy", "--history", "--json").json["current"]
    (here / "assets" / "a.py").write_text(NEWER)
    arco("deploy")
    arco("rollback")
    assert arco("scheduler", "--once").code == 2
    assert arco("deploy", "--history", "--json").json["current"] == before
    arco("run", "--detach")
    assert arco("deploy", "--history", "--json").json["current"] != before


def test_workers_and_schedulers_work_in_the_workspace_that_flags_name(arco: Shell) -> None:
    arco("workspace", "create", "dev")
    run = arco("run", "--detach", "--json", "--workspace", "dev").json["run"]
    arco("cancel", run, "--workspace", "dev")
    assert run not in arco("scheduler", "--once").out
    ended = arco("scheduler", "--once", "--workspace", "dev", "--defer-to", "default")
    assert f"run {run} cancelled: 1 cancelled" in ended.out
    assert "spark://" in arco("scheduler", "--once", "--spark", "spork://nowhere").err
    assert "spark://" in arco("worker", "--once", "--spark", "spork://nowhere").err


def test_what_waiting_costs_is_what_is_sent(here: Path) -> None:
    """The chores of a scheduler for an hour of their own time, request by request."""
    (here / "assets" / "b.py").write_text(
        "from arco import asset, schedule\n"
        "@asset(fresh_within='6h')\ndef daily(orders): ...\n"
        "schedule('nightly', cron='0 2 * * *')\nschedule('in_time', keep_fresh='daily')\n"
    )
    sent: list[str] = []

    class Sent:
        def store_requests(self, operation: str, kind: str, count: int, took_s: float) -> None:
            sent.extend([kind] * count)

    async def story() -> None:
        async with at_work(At(".", None, []), counter=Sent()) as (pipeline, _):
            deployment, _ = await pipeline.deployments.deploy(pipeline.project, by="ann")
            await _schedules(pipeline).pause(deployment.schedules["in_time"], "ann", "nothing is to be due")
            said = await requests_an_hour(pipeline, lambda: len(sent))
            before = len(sent)
            for chore in chores():
                for _ in range(3):
                    await chore.do(pipeline, raised)
            ticks, looks = 3600 / TICK_EVERY_S, 3600 / ASKED_EVERY_S
            assert said > 4 * ticks + looks  # a head, a deployment, the state of each schedule, and more; a listing
            assert (len(sent) - before - 3) / 3 * ticks + looks == said

    def raised(what: str, error: Exception) -> None:
        raise error

    asyncio.run(story())


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
