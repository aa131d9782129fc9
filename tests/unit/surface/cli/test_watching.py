"""`arco runs show`, `arco watch` and `arco logs` on a run that was written down."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from arco.catalog.catalog import Catalog
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import StoreRefused, Unavailable
from arco.kernel.ids import RunId, TaskId, UlidSource
from arco.kernel.scope import Scope
from arco.ledger.run_entries import (
    AnyEntry,
    Failure,
    OutputStaged,
    RunFinished,
    RunStatus,
    TaskClaimed,
    TaskFailed,
    TaskPublished,
    TaskRetried,
    TaskSkipped,
    TaskStarted,
)
from arco.ledger.run_log import RunLog, write_plan
from arco.ledger.run_state import RunState, TaskState, TaskStatus
from arco.servo.execute.attempt_log import AttemptLog
from arco.servo.plan.document import Plan
from arco.servo.schedule.starting import RunRequest, start_run
from arco.storage.keys import RunLogKey
from arco.storage.local import LocalStore
from arco.storage.port import Object
from arco.storage.roots import open_root
from arco.surface.cli.run_pages import bar
from unit.servo.schedule.ground import plan_of, task_id

from .shell import Shell, arco

__all__ = ["arco"]
A, B, C = (task_id(letter) for letter in "abc")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of three tasks that has ended: one published, one failed after a retry, one skipped for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    monkeypatch.setenv("ARCO_ROOT", str(tmp_path / "lake"))
    return asyncio.run(_story(tmp_path / "lake"))


async def _story(root: Path) -> str:
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(str(root), {}, clock, entropy)
    scope = Scope.of()
    started = await start_run(store, scope, plan_of({"a": "", "b": "", "c": "b"}), RunRequest(who="ann"), clock, entropy)
    log = started.log
    made = "01JGQ00000000000000000000M"
    lost = Failure(kind="transient_io", message="the store was slow", transient=True)
    wrong = Failure(kind="user_code", message="orders.py:7: no such column", hint="look at the source")
    steps = [
        [TaskClaimed(task=A, attempt=1, worker="w1", lease_s=30), TaskClaimed(task=B, attempt=1, worker="w1", lease_s=30)],
        [TaskStarted(task=A, attempt=1), TaskStarted(task=B, attempt=1)],
        [OutputStaged(task=A, attempt=1, at_ms=1, materialization_id=made, action="continue", written={"rows": 1200})],
        [TaskPublished(task=A, attempt=1, materialization_id=made, snapshot_id=7)],
        [TaskRetried(task=B, attempt=1, failure=lost, not_before_ms=0)],
        [TaskClaimed(task=B, attempt=2, worker="w1", lease_s=30), TaskStarted(task=B, attempt=2)],
        [TaskFailed(task=B, attempt=2, failure=wrong), TaskSkipped(task=C, because=B)],
        [RunFinished(status=RunStatus.FAILED)],
    ]
    for entries in steps:
        assert await log.append(entries)
    said = AttemptLog(Catalog.open(store, f"file://{root}", scope, clock, entropy).parts, RunId(log.run), TaskId(B), 2)
    said.say("shop.orders: three orders")
    await said.flush()
    await store.close()
    return str(log.run)


def test_a_run_is_a_page(run: str, arco: Shell) -> None:
    for words in (("runs", run), ("runs", "show", run)):
        page = arco(*words).out
        assert "█" in page
        assert "1,200 rows" in page
        assert "orders.py:7: no such column" in page
        assert "shop.b: user_code (error): look at the source" in page
        assert "skipped: shop.b was not published" in page
        assert "(attempt 2)" in page
        assert "ann" in page
    assert "one run is shown at a time" in arco("runs", "show").err
    assert "one run is shown at a time" in arco("runs", run, run).err


def test_the_log_of_a_task_has_what_happened_and_what_was_said(run: str, arco: Shell) -> None:
    text = arco("logs", "b").out
    order = ["claimed by w1", "the store was slow; it is tried again", "no such column", "look at the source"]
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert "shop.orders: three orders" in text
    lines = [json.loads(line) for line in arco("logs", "shop.a", "--run", run, "--follow", "--json").out.splitlines()]
    assert [line["text"] for line in lines] == [
        "claimed by w1", "started", "written and checked: continue, 1,200 rows", "published",
    ]  # fmt: skip
    assert {line["attempt"] for line in lines} == {1}
    assert "no task is called 'z'" in arco("logs", "z").err


async def _planned(root: Path, *, is_deleted: bool) -> None:
    """A newer run: one whose process died before it began, or one that is being deleted."""
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(str(root), {}, clock, entropy)
    plan = plan_of({"b": ""})
    if is_deleted:
        log = (await start_run(store, Scope.of(), plan, RunRequest(), clock, entropy)).log
        await log.append([TaskClaimed(task=B, attempt=1, worker="w9", lease_s=30)])
        await log.close()
        await store.delete(str(RunLogKey(Scope.of(), log.run, 1)))
    else:
        run = RunId(UlidSource(clock, entropy).next())
        await write_plan(store, Scope.of(), run, plan.encode(), clock, entropy)
    await store.close()


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_newer_run_that_never_began_or_is_being_deleted_hides_no_other(
    run: str, tmp_path: Path, arco: Shell, is_deleted: bool
) -> None:
    asyncio.run(_planned(tmp_path / "lake", is_deleted=is_deleted))
    assert run in arco("runs").out
    assert run in arco("watch").out
    assert "the store was slow" in arco("logs", "b").out


def test_the_log_of_an_asset_has_all_of_its_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arco: Shell) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    monkeypatch.setenv("ARCO_ROOT", str(tmp_path / "lake"))

    async def story() -> None:
        clock, entropy = SystemClock(), SystemEntropy()
        store = open_root(str(tmp_path / "lake"), {}, clock, entropy)
        spec = plan_of({"a": "", "b": "", "c": ""}).spec
        days = tuple(msgspec.structs.replace(task, asset="shop.days") for task in spec.tasks[:2])
        plan = Plan.of(msgspec.structs.replace(spec, tasks=(*days, spec.tasks[2])))
        log = (await start_run(store, Scope.of(), plan, RunRequest(), clock, entropy)).log
        for task, worker in ((A, "w1"), (B, "w2"), (C, "w3")):
            await log.append([TaskClaimed(task=task, attempt=1, worker=worker, lease_s=30)])
        await store.close()

    asyncio.run(story())
    text = arco("logs", "days").out
    assert (f"{A}   1  info     claimed by w1" in text, f"{B}   1  info     claimed by w2" in text) == (True, True)
    assert "w3" not in text
    lines = [json.loads(line) for line in arco("logs", "shop.days", "--json").out.splitlines()]
    assert [(line["task"], line["text"]) for line in lines] == [(A, "claimed by w1"), (B, "claimed by w2")]
    assert A not in arco("logs", A).out


def test_watching_a_run_that_has_ended(run: str, arco: Shell) -> None:
    ended = arco("watch", run)
    assert ended.code == 1
    assert ended.out.splitlines()[-1] == f"failed: arco runs show {run}"
    assert arco("watch").out == ended.out


def test_nothing_to_watch(arco: Shell, tmp_path: Path) -> None:
    assert "nothing has run yet" in arco("watch", "--root", str(tmp_path / "empty")).err


def test_bars_lie_on_one_line_of_time() -> None:
    state = RunState.__new__(RunState)
    facts = type("Facts", (), {"created_ms": 1000, "ended_ms": 11_000})
    state._facts = {"run": facts}

    def drawn(**its: int | None) -> str:
        return bar(TaskState(status=TaskStatus.SUCCEEDED, **its), state, 11_000, chars=10)

    assert drawn(claimed_ms=1000, started_ms=1000, ended_ms=6000) == "█████"
    assert drawn(claimed_ms=6000, started_ms=6000, ended_ms=11_000) == "·····█████"
    assert drawn(claimed_ms=6000, started_ms=6000, ended_ms=6001) == "·····█"
    assert drawn(claimed_ms=9000) == "········▒▒"
    assert drawn() == ""


class _Outage:
    """A store that answers no read of a run for a while, from one of them on; then the run ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, log: RunLog, begins: int, error: Exception) -> None:
        self.asked, self.log = 0, log
        read = LocalStore.get

        async def get(store: LocalStore, key: str) -> Object | None:
            self.asked += "/runs/" in key
            if "/runs/" in key and begins <= self.asked < begins + _LASTS:
                raise error
            if self.asked >= begins + _LASTS and not self.log.state.is_finished:
                assert await self.log.append(_FAILED)
            return await read(store, key)

        monkeypatch.setattr(LocalStore, "get", get)
        monkeypatch.setattr("arco.surface.cli.watching.RUN_POLL_S", 0.001)


_LASTS = 3
_FAILED: list[AnyEntry] = [
    TaskFailed(task=A, attempt=1, failure=Failure(kind="user_code", message="no such column")),
    RunFinished(status=RunStatus.FAILED),
]


async def _open_run(root: Path) -> RunLog:
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(str(root), {}, clock, entropy)
    log = (await start_run(store, Scope.of(), plan_of({"a": ""}), RunRequest(), clock, entropy)).log
    await log.append([TaskClaimed(task=A, attempt=1, worker="w1", lease_s=30), TaskStarted(task=A, attempt=1)])
    said = AttemptLog(Catalog.open(store, f"file://{root}", Scope.of(), clock, entropy).parts, log.run, TaskId(A), 1)
    said.say("half of it")
    await said.flush()
    return log


@pytest.mark.parametrize("begins", [5, 6, 7])
def test_watching_goes_on_when_the_store_answers_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arco: Shell, begins: int
) -> None:
    (tmp_path / "lake").mkdir()
    log = asyncio.run(_open_run(tmp_path / "lake"))
    _Outage(monkeypatch, log, begins, Unavailable("the store did not answer"))
    ended = arco("watch", str(log.run), "--root", str(tmp_path / "lake"))
    assert ended.err.splitlines() == ["arco: the store did not answer; it is tried again until it answers"]
    assert ended.out.splitlines()[-1] == f"failed: arco runs show {log.run}"


@pytest.mark.parametrize("begins", [9, 10, 11, 12])
def test_following_a_log_goes_on_when_the_store_answers_again_and_leaves_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arco: Shell, begins: int
) -> None:
    (tmp_path / "lake").mkdir()
    log = asyncio.run(_open_run(tmp_path / "lake"))
    _Outage(monkeypatch, log, begins, Unavailable("the store did not answer"))
    ended = arco("logs", "a", "--follow", "--root", str(tmp_path / "lake"))
    assert ended.err.splitlines() == ["arco: the store did not answer; it is tried again until it answers"]
    assert [line.split("  ")[-1].strip() for line in ended.out.splitlines()] == [
        "claimed by w1", "started", "half of it", "user_code: no such column",
    ]  # fmt: skip


@pytest.mark.parametrize("what", [("watch",), ("logs", "a", "--follow")])
def test_what_does_not_get_better_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arco: Shell, what: tuple[str, ...]
) -> None:
    (tmp_path / "lake").mkdir()
    log = asyncio.run(_open_run(tmp_path / "lake"))
    _Outage(monkeypatch, log, 9, StoreRefused("the store does not let us"))
    ended = arco(*what, "--root", str(tmp_path / "lake"))
    assert (ended.code, "the store does not let us" in ended.err) == (2, True)
