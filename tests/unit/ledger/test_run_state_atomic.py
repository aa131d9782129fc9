"""The state of an atomic run: everything is staged, then decided once, and nothing follows before that is certain."""

import msgspec
import pytest

from arco.kernel.errors import Conflict
from arco.kernel.ids import EventId, encode_ulid
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.run_entries import (
    Failure,
    OutputStaged,
    PublishBegun,
    RunCancelRequested,
    RunCreated,
    RunFinished,
    RunPublished,
    RunStatus,
    RunWithheld,
    StagedCommit,
    TaskCancelled,
    TaskClaimed,
    TaskFailed,
    TaskPublished,
    TaskStaged,
    TaskStarted,
    Trigger,
)
from arco.ledger.run_outline import Outline
from arco.ledger.run_state import RunState, TaskStatus

MADE = encode_ulid(7)
BEGUN = PublishBegun(number=1, at_ms=5, key="k")
CANCEL = RunCancelRequested(who="me", reason="enough")


def commit(table: str, place: int) -> StagedCommit:
    return StagedCommit(namespace=("db",), name=table, place=place, request={"updates": [table, place]})


def event(number: int) -> Draft:
    return Draft(type=EventType("execution.made.v1"), source="test", data={}, id=EventId(encode_ulid(number)))


def run_of(reads: dict[str, tuple[str, ...]], *then, **more) -> RunState:
    state = RunState(Outline.of(reads))
    words = {"plan_id": "p", "tasks": 2, "trigger": Trigger.MANUAL, "who": "me", "max_parallelism": 4, "atomic": True}
    for entry in (RunCreated(**(words | more)), *then):
        state.apply(entry, 1000)
    return state


def stages(task: str, *commits: StagedCommit, attempt: int = 1) -> list:
    return [
        TaskClaimed(task=task, attempt=attempt, worker="w", lease_s=30.0),
        TaskStarted(task=task, attempt=attempt),
        OutputStaged(
            task=task,
            attempt=attempt,
            at_ms=4,
            materialization_id=MADE,
            action="continue",
            commits=commits,
            events=(event(ord(task)),),
        ),
        TaskStaged(task=task, attempt=attempt, materialization_id=MADE, snapshot_id=9),
    ]


def published(task: str) -> TaskPublished:
    return TaskPublished(task=task, attempt=1, materialization_id=MADE, snapshot_id=9)


def cancelled(task: str) -> TaskCancelled:
    return TaskCancelled(task=task, attempt=1, reason="r")


def all_staged(*then) -> RunState:
    return run_of({"a": (), "b": ("a",)}, *stages("a", commit("a", 0)), *stages("b", commit("b", 0)), *then)


def test_what_reads_a_staged_task_runs_and_its_events_are_not_owed() -> None:
    state = run_of({"a": (), "b": ("a",)}, *stages("a", commit("a", 0)))
    assert state.task("b").status is TaskStatus.READY
    assert state.task("a").snapshot_id == 9
    assert not state.owed
    assert not state.is_all_staged


def test_commits_of_one_table_stand_on_each_other() -> None:
    state = run_of({"a": (), "b": (), "c": ()}, *stages("a", commit("t", 0)), *stages("b", commit("t", 1), commit("q", 0)))
    assert [one.place for one in state.staged_commits[("db",), "t"]] == [0, 1]
    *first, last = stages("c", commit("t", 1))
    for entry in first:
        state.apply(entry, 1)
    with pytest.raises(Conflict, match=r"db\.t has 2 commits of this run, not 1"):
        state.apply(last, 1)


def test_a_trial_takes_back_what_was_staged() -> None:
    state = run_of({"a": ()})
    with state.trial():
        for entry in stages("a", commit("t", 0)):
            state.apply(entry, 1)
        assert state.is_all_staged
    assert state.staged_commits == {}
    assert not state.is_all_staged


def test_only_an_atomic_run_stages_its_tasks() -> None:
    *first, last = stages("a", commit("t", 0))
    state = run_of({"a": ()}, *first, atomic=False)
    with pytest.raises(Conflict, match="only an atomic run"):
        state.apply(last, 1)


def test_a_publish_begins_when_everything_is_staged_and_nothing_stops_it() -> None:
    with pytest.raises(Conflict, match="not everything"):
        run_of({"a": (), "b": ("a",)}, *stages("a"), BEGUN)
    with pytest.raises(Conflict, match="stopping"):
        all_staged(CANCEL, BEGUN)
    with pytest.raises(Conflict, match="does not follow"):
        all_staged(msgspec.structs.replace(BEGUN, number=2))
    assert all_staged(BEGUN, msgspec.structs.replace(BEGUN, number=2)).run.undecided.number == 2


def test_nothing_is_published_task_by_task_before_the_run_is() -> None:
    state = all_staged(BEGUN)
    with pytest.raises(Conflict, match="before all of it"):
        state.apply(published("a"), 1)
    state.apply(RunPublished(number=1), 1)
    state.apply(published("a"), 1)
    state.apply(published("b"), 1)
    assert [one.id for its in state.owed.values() for one in its] == [event(ord("a")).id, event(ord("b")).id]
    state.apply(RunFinished(status=RunStatus.SUCCEEDED), 1)


@pytest.mark.parametrize("then", [(BEGUN,), (BEGUN, CANCEL), (BEGUN, RunPublished(number=1))])
def test_what_is_staged_is_not_given_up_while_it_may_be_visible(then: tuple) -> None:
    with pytest.raises(Conflict, match="may still be"):
        all_staged(*then, cancelled("a"))


def test_a_run_that_was_withheld_gives_up_what_it_staged_and_fails() -> None:
    state = all_staged(BEGUN, RunWithheld(number=1, reason="somebody changed db.a"), cancelled("a"), cancelled("b"))
    assert state.run.stopping == "somebody changed db.a"
    assert state.task("a").materialization_id is None
    assert not state.owed
    state.apply(RunFinished(status=RunStatus.FAILED), 1)


@pytest.mark.parametrize("late", [RunPublished(number=1), RunWithheld(number=1, reason="r"), BEGUN])
def test_a_run_is_decided_once(late) -> None:
    for decided in (RunPublished(number=1), RunWithheld(number=1, reason="r")):
        with pytest.raises(Conflict, match="decided before"):
            all_staged(BEGUN, decided, late)


def test_only_the_publish_that_was_begun_last_is_decided() -> None:
    again = msgspec.structs.replace(BEGUN, number=2)
    for late in (RunPublished(number=1), RunWithheld(number=1, reason="r")):
        with pytest.raises(Conflict, match="begun last"):
            all_staged(BEGUN, again, late)


def test_a_failure_stops_an_atomic_run() -> None:
    failure = TaskFailed(task="b", attempt=1, failure=Failure(kind="data_quality", message="checks failed"))
    state = run_of({"a": (), "b": ("a",), "c": ()}, *stages("a", commit("a", 0)), *stages("b")[:2], failure)
    assert state.run.stopping == "task b failed"
    state.apply(cancelled("a"), 1)
    state.apply(TaskCancelled(task="c", attempt=0, reason="r"), 1)
    state.apply(RunFinished(status=RunStatus.FAILED), 1)
