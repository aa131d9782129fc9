"""`arco runs`, `cancel` and `resume` on runs that were written down: no Spark is needed to look at a run, or to end it."""

import asyncio
from pathlib import Path

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import RunId
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft
from arco.ledger.run_entries import Failure, TaskClaimed, TaskFailed, TaskStarted
from arco.servo.plan.document import PLAN_FORMAT, Estimate, Plan, PlannedTask, PlanSpec
from arco.servo.schedule.announcing import begun
from arco.servo.schedule.starting import RunRequest, open_run, start_run
from arco.storage.roots import open_root
from fixtures.state.published_state import publish_in_folder
from fixtures.state.shop_story import FAILED_RUN, told
from fixtures.state.state_world import NOW_MS, ulid

from .shell import Shell, arco

__all__ = ["arco"]

NOBODY = "01JZ3V5Q0E8Y7M2K4T6B9N1D3F"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of one task that nobody drives."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCO_ROOT", raising=False)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text("from arco import asset\n\n\n@asset\ndef orders(run):\n    return run\n")
    (tmp_path / "arco.toml").write_text('root = "./lake"\n[project]\nname = "shop"\n')
    (tmp_path / "lake").mkdir()
    return asyncio.run(_started(tmp_path))


async def _started(folder: Path) -> str:
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(str(folder / "lake"), {}, clock, entropy)
    task = PlannedTask(
        id="task_00000000000000aa",
        asset="shop.orders",
        partitions=[{}],
        partition_count=1,
        stage=0,
        priority=0,
        depends_on=(),
        inputs=(),
        because=(),
        estimate=Estimate(partitions=1),
    )
    spec = PlanSpec(
        format=PLAN_FORMAT,
        deployment=NOBODY,
        code_version="code_of_another_day",
        snapshot="none",
        mode="stale",
        selection=("shop.orders",),
        partitions={},
        tasks=(task,),
    )
    plan = Plan.of(spec)

    def announced(run: RunId) -> tuple[Draft, ...]:
        return begun(run, plan, "shop", "manual", "ann")

    try:
        started = await start_run(
            store, Scope.of("default", "default"), plan, RunRequest(who="ann", announce=announced), clock, entropy
        )
        return str(started.log.run)
    finally:
        await store.close()


def test_runs_are_listed_with_what_became_of_them(run: str, arco: Shell) -> None:
    ended = arco("runs")
    assert ended.code == 0
    assert run in ended.out
    assert "1 ready" in ended.out
    assert "ann" in ended.out
    (document,) = arco("runs", "--json").json
    assert document["run"] == run
    assert document["tasks"][0]["asset"] == "shop.orders"


def test_one_run_is_shown_by_its_tasks(run: str, arco: Shell) -> None:
    shown = arco("runs", run).out
    assert "shop.orders" in shown
    assert shown.splitlines()[0].endswith(", manual by ann, 4 at once")
    document = arco("runs", run, "--json").json
    assert (document["trigger"], document["who"], document["max_parallelism"]) == ("manual", "ann", 4)
    assert (document["timeout_s"], document["on_failure"], document["idempotency_key"]) == (None, "keep_going", None)


def test_a_failure_is_shown_with_its_class_and_what_to_do(run: str, arco: Shell, tmp_path: Path) -> None:
    asyncio.run(_failed(tmp_path, RunId(run)))
    said = "shop.orders: storage (warning, may pass by itself): it may pass: run it again: arco run"
    assert said in arco("runs", run).out.splitlines()
    assert arco("runs", run, "--json").json["tasks"][0]["failure"] == {
        "class": "storage",
        "severity": "warning",
        "transient": True,
        "message": "the store is silent",
        "hint": "it may pass: run it again: arco run",
    }


async def _failed(folder: Path, run: RunId) -> None:
    """Its task fails."""
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(str(folder / "lake"), {}, clock, entropy)
    task = "task_00000000000000aa"
    failure = Failure(
        kind="storage",
        message="the store is silent",
        transient=True,
        hint="it may pass: run it again: arco run",
        severity="warning",
    )
    try:
        started = await open_run(store, Scope.of("default", "default"), run, clock, entropy)
        await started.log.append([TaskClaimed(task=task, attempt=1, worker=NOBODY, lease_s=30.0)])
        await started.log.append([TaskStarted(task=task, attempt=1)])
        assert await started.log.append([TaskFailed(task=task, attempt=1, failure=failure)])
    finally:
        await store.close()


def test_runs_are_listed_by_what_became_of_them_and_without_a_project(
    run: str, arco: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = arco("runs", "--json").json[0]["status"]
    other = "failed" if status != "failed" else "succeeded"
    monkeypatch.chdir(tmp_path / "assets")
    root = ("--root", str(tmp_path / "lake"))
    assert run in arco("runs", *root, "--status", status).out
    assert arco("runs", *root, "--status", other).out == f"no run is {other}: arco runs lists all\n"


def test_the_outputs_of_a_run_are_exactly_what_it_published(arco: Shell, tmp_path: Path) -> None:
    asyncio.run(publish_in_folder(tmp_path, told(), NOW_MS))
    root = ("--project", str(tmp_path), "--root", str(tmp_path))
    out = arco("runs", FAILED_RUN, "--outputs", *root).out
    assert out.splitlines()[1].split()[:4] == ["shop.customers", "all", "of", "it"]
    assert out.endswith(f"run {FAILED_RUN} published 1 partition, 0 held back\n")
    held = arco("runs", ulid("run ops last"), "--outputs", *root).out
    assert "held back: ops.features date=2025-03-19..2025-03-20 by null_rate(user_id), kept on branch held-" in held
    document = arco("runs", FAILED_RUN, "--outputs", *root, "--json").json
    assert [one["asset"] for one in document["outputs"]] == ["shop.customers"]
    assert "there is no run" in arco("runs", NOBODY, "--outputs", *root).err


def test_a_run_is_asked_to_end_and_the_log_says_so(run: str, arco: Shell) -> None:
    assert "is asked to end" in arco("cancel", run, "--reason", "wrong month").out
    assert "is asked to end" in arco("cancel", run).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["runs", "nonsense"], "'nonsense' is not the id of a run"),
        (["runs", "--outputs"], "--outputs is about one run"),
        (["run", "--timeout", "soon"], "'soon' is no length of time"),
        (["run", "--timeout", "nan"], "'nan' is no length of time"),
        (["run", "--timeout", "-5"], "'-5' is no length of time"),
        (["fold", "--follow", "--every", "nan"], "--every nan is no length of time"),
        (["fold", "--follow", "--every", "0"], "--every 0 is no length of time"),
        (["cancel", "nonsense"], "'nonsense' is not the id of a run"),
        (["resume", "nonsense"], "'nonsense' is not the id of a run"),
        (["cancel", NOBODY], NOBODY),
        (["resume", NOBODY], NOBODY),
        (["run", "--force", "--backfill"], "exclude each other"),
        (["run", "--partition", "date"], "has no value"),
        (["run", "--param", "a=1", "--param", "a=2"], "twice"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_said_in_a_line(run: str, arco: Shell, arguments: list[str], says: str) -> None:
    ended = arco(*arguments)
    assert ended.code == 2
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_a_run_of_other_code_is_not_gone_on_with(run: str, arco: Shell) -> None:
    ended = arco("resume", run)
    assert ended.code == 2
    assert "was planned for code code_of_another_day" in ended.err


def test_without_a_run_there_is_nothing_to_resume(run: str, arco: Shell, tmp_path: Path) -> None:
    ended = arco("resume", "--root", str(tmp_path / "other"))
    assert ended.code == 2
    assert "arco run plans a new one" in ended.err
