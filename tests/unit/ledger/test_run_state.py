"""The state of a run: which entry may follow which, and what follows from each."""

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco.kernel.errors import Conflict, CorruptObject, Fenced, InvalidInput, Refresh
from arco.kernel.ids import EventId, RunId, WriteId, encode_ulid
from arco.ledger import run_entries as entries
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.run_entries import (
    Batch,
    EventsAppended,
    Failure,
    OnFailure,
    OutputStaged,
    PublishBegun,
    RunCancelRequested,
    RunCreated,
    RunFinished,
    RunPublished,
    RunStatus,
    TaskBlocked,
    TaskCancelled,
    TaskClaimed,
    TaskDispatched,
    TaskEnvelope,
    TaskFailed,
    TaskPublished,
    TaskQuarantined,
    TaskRetried,
    TaskSkipped,
    TaskStaged,
    TaskStarted,
    Trigger,
)
from arco.ledger.run_outline import Outline
from arco.ledger.run_state import TRANSITIONS, RunState, TaskStatus, fold

RUN = RunId(encode_ulid(1))
MADE = encode_ulid(7)
FAILURE = Failure(kind="storage_error", message="no answer", transient=True)
DOCS = Path(__file__).resolve().parents[3] / "docs"
S = TaskStatus


def created(**more) -> RunCreated:
    words = {"plan_id": "plan_x", "tasks": 2, "trigger": Trigger.MANUAL, "who": "me", "max_parallelism": 4}
    return RunCreated(**(words | more))


def state_of(reads: dict[str, tuple[str, ...]], *then, **of_run) -> RunState:
    state = RunState(Outline.of(reads))
    for entry in (created(**of_run), *then):
        state.apply(entry, 1000)
    return state


def claimed(task: str = "a", attempt: int = 1) -> TaskClaimed:
    return TaskClaimed(task=task, attempt=attempt, worker="w", lease_s=30.0)


def started(task: str = "a", attempt: int = 1) -> TaskStarted:
    return TaskStarted(task=task, attempt=attempt)


def staged(task: str = "a", attempt: int = 1, action: str = "continue", events: tuple[Draft, ...] = ()) -> OutputStaged:
    return OutputStaged(task=task, attempt=attempt, at_ms=5, materialization_id=MADE, action=action, events=events)


def published(task: str = "a", attempt: int = 1) -> TaskPublished:
    return TaskPublished(task=task, attempt=attempt, materialization_id=MADE, snapshot_id=9)


def done(task: str, attempt: int = 1) -> list:
    return [claimed(task, attempt), started(task, attempt), staged(task, attempt), published(task, attempt)]


def failed(task: str = "a", attempt: int = 1, **more) -> TaskFailed:
    return TaskFailed(task=task, attempt=attempt, failure=FAILURE, **more)


def event(number: int) -> Draft:
    return Draft(
        type=EventType("execution.happened.v1"), source="test", data={"n": number}, id=EventId(encode_ulid(number))
    )


# Every entry from every state

WAY_TO = {
    S.PENDING: [],
    S.READY: [],
    S.QUEUED: [claimed(), TaskRetried(task="a", attempt=1, failure=FAILURE, not_before_ms=0)],
    S.DISPATCHED: [claimed()],
    S.RUNNING: [claimed(), started(), staged()],
    S.SUCCEEDED: done("a"),
    S.FAILED: [claimed(), failed()],
    S.BLOCKED: [
        claimed(),
        started(),
        staged(action="block_downstream"),
        TaskBlocked(task="a", attempt=1, materialization_id=MADE, reason="r"),
    ],
    S.QUARANTINED: [
        claimed(),
        started(),
        staged(action="quarantine"),
        TaskQuarantined(task="a", attempt=1, materialization_id=MADE, reason="r"),
    ],
    S.SKIPPED: [claimed("up"), failed("up"), TaskSkipped(task="a", because="up")],
    S.CANCELLED: [TaskCancelled(task="a", attempt=0, reason="r")],
    S.STAGED: [claimed(), started(), staged(), TaskStaged(task="a", attempt=1, materialization_id=MADE)],
}


def at(status: TaskStatus, kind: type) -> RunState:
    """A run of two tasks in which `a` is in a state; it reads `up` only where it has to wait for it."""
    waits = status in {S.PENDING, S.SKIPPED}
    is_atomic = status is S.STAGED or (kind is TaskStaged and status is S.RUNNING)
    state = state_of({"up": (), "a": ("up",) if waits else ()}, *WAY_TO[status], atomic=is_atomic)
    if status is S.STAGED and kind is TaskPublished:
        publish_all(state)
    return state


def publish_all(state: RunState) -> None:
    for entry in WAY_TO[S.STAGED]:
        state.apply(msgspec.structs.replace(entry, task="up"), 1)
    state.apply(PublishBegun(number=1, at_ms=1, key="k"), 1)
    state.apply(RunPublished(number=1), 1)


def envelope(task: str, attempt: int) -> TaskEnvelope:
    words = dict.fromkeys(("tenant", "workspace", "run", "plan_id", "code_version", "key_id", "signature"), "x")
    return TaskEnvelope(task=task, attempt=attempt, expires_ms=9, **words)


def an(kind: type, state: RunState):
    """An entry of a kind that fits the attempt of `a`, and what its gate would have decided."""
    now = state.task("a").attempt
    if kind is TaskSkipped:
        if state.task("up").status is S.READY:
            state.apply(claimed("up"), 1)
            state.apply(failed("up"), 1)
        return TaskSkipped(task="a", because="up")
    fields = {"task": "a", "attempt": now + 1 if kind in {TaskClaimed, TaskDispatched} else now}
    more = {
        TaskDispatched: {"envelope": envelope("a", now + 1)},
        TaskClaimed: {"worker": "w", "lease_s": 1.0},
        OutputStaged: {"at_ms": 6, "materialization_id": MADE, "action": "continue"},
        TaskStaged: {"materialization_id": MADE},
        TaskPublished: {"materialization_id": MADE},
        TaskBlocked: {"materialization_id": MADE, "reason": "r"},
        TaskQuarantined: {"materialization_id": MADE, "reason": "r"},
        TaskFailed: {"failure": FAILURE},
        TaskRetried: {"failure": FAILURE, "not_before_ms": 0},
        TaskCancelled: {"reason": "r"},
    }
    return kind(**fields, **more.get(kind, {}))


def with_gate_of(kind: type, state: RunState) -> None:
    """Let a running task have staged what an entry of this kind ends it with."""
    word = {TaskBlocked: "block_downstream", TaskQuarantined: "quarantine"}.get(kind)
    if word is not None and state.task("a").status is S.RUNNING:
        state.apply(staged(action=word), 1)


@pytest.mark.parametrize("status", list(TaskStatus))
@pytest.mark.parametrize("kind", list(TRANSITIONS), ids=lambda kind: kind.__name__)
def test_an_entry_follows_from_exactly_the_states_of_the_table(kind: type, status: TaskStatus) -> None:
    state = at(status, kind)
    assert state.task("a").status is status
    with_gate_of(kind, state)
    allowed, after = TRANSITIONS[kind]
    entry = an(kind, state)
    if status in allowed:
        state.apply(entry, 2000)
        assert state.task("a").status is (status if after is None else after)
    else:
        before = state.task("a")
        with pytest.raises(Refresh):
            state.apply(entry, 2000)
        assert state.task("a") == before


def test_the_document_prints_the_table() -> None:
    page = (DOCS / "formats" / "states.md").read_text()
    rows = re.findall(r"^\| `(task_[a-z]+|output_staged)` \| ([a-z, ]+) \| ([a-z]+) \|", page, re.MULTILINE)
    printed = {tag: ({word.strip() for word in froms.split(",")}, to) for tag, froms, to in rows}
    wanted = {
        str(kind.__struct_config__.tag): ({one.value for one in allowed}, "unchanged" if after is None else after.value)
        for kind, (allowed, after) in TRANSITIONS.items()
    }
    assert printed == wanted


def test_the_document_names_every_state() -> None:
    page = (DOCS / "formats" / "states.md").read_text()
    for status in (*TaskStatus, *RunStatus):
        assert re.search(rf"^\| {status.value} \|", page, re.MULTILINE), status


# Attempts are epochs


def test_an_entry_of_an_earlier_attempt_is_fenced() -> None:
    state = state_of(
        {"a": ()}, claimed(), TaskRetried(task="a", attempt=1, failure=FAILURE, not_before_ms=0), claimed("a", 2)
    )
    for entry in (started(), staged(), published(), failed(), TaskCancelled(task="a", attempt=1, reason="r")):
        with pytest.raises(Fenced, match="attempt 1 of task a is over"):
            state.apply(entry, 1)
    state.apply(started("a", 2), 1)


def test_an_entry_of_the_attempt_that_ended_a_task_is_fenced() -> None:
    state = state_of({"a": ()}, *done("a"))
    with pytest.raises(Fenced):
        state.apply(staged(), 1)


@pytest.mark.parametrize("attempt", [0, 1, 3])
def test_a_claim_is_the_next_attempt_and_no_other(attempt: int) -> None:
    state = state_of({"a": ()}, claimed(), TaskRetried(task="a", attempt=1, failure=FAILURE, not_before_ms=0))
    with pytest.raises(Refresh):
        state.apply(claimed("a", attempt), 1)
    state.apply(claimed("a", 2), 1)


def test_an_attempt_that_nobody_claimed_is_no_attempt() -> None:
    with pytest.raises(Conflict, match="at attempt 1, not at 2"):
        state_of({"a": ()}, claimed()).apply(started("a", 2), 1)


def test_stored_entries_that_do_not_hold_are_ignored_and_remembered() -> None:
    late = [claimed(), TaskRetried(task="a", attempt=1, failure=FAILURE, not_before_ms=0), claimed("a", 2), failed("a", 1)]
    state = fold(Outline.of({"a": ()}), [batch(1, created()), batch(2, *late), batch(3, started("a", 2))])
    assert state.task("a").status is S.RUNNING
    assert [(one.sequence, one.entry) for one in state.ignored] == [(2, failed("a", 1))]


# What a task needs


def test_a_task_is_ready_when_everything_it_reads_may_be_read() -> None:
    state = state_of({"a": (), "b": (), "c": ("a", "b")}, *done("a"))
    assert state.task("c").status is S.PENDING
    for entry in WAY_TO[S.QUARANTINED]:
        state.apply(msgspec.structs.replace(entry, task="b"), 1)
    assert state.task("c").status is S.READY


@pytest.mark.parametrize("status", [S.FAILED, S.BLOCKED, S.CANCELLED])
def test_what_reads_a_task_that_gave_nothing_is_doomed(status: TaskStatus) -> None:
    state = state_of({"a": (), "b": ("a",), "c": ("b",)}, *WAY_TO[status])
    assert state.doomed == {"b": "a"}
    state.apply(TaskSkipped(task="b", because="a"), 1)
    assert state.doomed == {"c": "b"}


def test_nothing_is_skipped_without_a_reason() -> None:
    state = state_of({"a": (), "x": (), "b": ("a",)}, claimed("x"), failed("x"))
    with pytest.raises(Conflict, match="that skips nothing"):
        state.apply(TaskSkipped(task="b", because="a"), 1)
    with pytest.raises(Conflict, match="does not read"):
        state.apply(TaskSkipped(task="b", because="x"), 1)


def test_of_two_ready_tasks_the_one_of_lower_rank_goes_first_and_pauses_are_kept() -> None:
    state = state_of({"a": (), "b": (), "c": ()})
    assert state.to_claim(2, 0) == ["a", "b"]
    state.apply(claimed("a"), 0)
    state.apply(TaskRetried(task="a", attempt=1, failure=FAILURE, not_before_ms=500), 0)
    assert state.to_claim(9, 499) == ["b", "c"]
    assert state.to_claim(2, 500) == ["a", "b"]


def test_no_more_tasks_are_claimed_than_may_run_at_once() -> None:
    state = state_of({"a": (), "b": ()}, claimed("a"), max_parallelism=1)
    with pytest.raises(Conflict, match="1 tasks are under way already"):
        state.apply(claimed("b"), 1)


def test_a_claim_without_a_lease_is_refused() -> None:
    with pytest.raises(Conflict, match="a lease"):
        state_of({"a": ()}).apply(TaskClaimed(task="a", attempt=1, worker="w", lease_s=0.0), 1)


def test_the_order_of_claims_is_urgency_then_stage_then_the_plan() -> None:
    tasks = [
        {"id": "late", "depends_on": [], "priority": 9, "stage": 0},
        {"id": "second", "depends_on": [], "priority": 1, "stage": 1},
        {"id": "first", "depends_on": [], "priority": 1, "stage": 0},
        {"id": "last", "depends_on": [], "priority": 9, "stage": 0},
    ]
    plan = msgspec.json.encode({"fingerprint": "f", "spec": {"tasks": tasks, "mode": "standard"}})
    assert list(Outline.of_plan(plan).reads) == ["first", "second", "late", "last"]


def test_a_plan_that_does_not_parse_is_corrupt() -> None:
    with pytest.raises(CorruptObject):
        Outline.of_plan(b"{")


def test_a_task_that_reads_what_the_plan_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput, match="which the plan does not have"):
        RunState(Outline.of({"a": ("b",)}))


def test_a_task_that_the_plan_does_not_have_is_refused() -> None:
    with pytest.raises(Conflict, match="no task"):
        state_of({"a": ()}).apply(claimed("zzz"), 1)


# Gates


@pytest.mark.parametrize(
    ("action", "entry"),
    [
        ("continue", TaskBlocked(task="a", attempt=1, materialization_id=MADE, reason="r")),
        ("block_downstream", published()),
        ("quarantine", published()),
        ("fail_task", published()),
        ("continue", failed(materialization_id=MADE)),
        ("warn", TaskQuarantined(task="a", attempt=1, materialization_id=MADE, reason="r")),
    ],
)
def test_an_output_ends_its_task_as_its_gate_decided_and_not_otherwise(action: str, entry) -> None:
    state = state_of({"a": ()}, claimed(), started(), staged(action=action))
    with pytest.raises(Conflict, match="the gate"):
        state.apply(entry, 1)


def test_only_what_was_staged_is_published() -> None:
    state = state_of({"a": ()}, claimed(), started())
    with pytest.raises(Conflict, match="staged nothing"):
        state.apply(published(), 1)
    state.apply(staged(), 1)
    with pytest.raises(Conflict, match="staged"):
        state.apply(msgspec.structs.replace(published(), materialization_id=encode_ulid(8)), 1)


def test_what_a_gate_decided_must_be_a_word_that_gates_know() -> None:
    with pytest.raises(Conflict, match="not what a gate decides"):
        state_of({"a": ()}, claimed(), started()).apply(staged(action="shrug"), 1)


# The run


def test_a_run_goes_from_pending_to_running_with_its_first_claim() -> None:
    state = state_of({"a": ()})
    assert state.run.status is RunStatus.PENDING
    state.apply(claimed(), 1)
    assert state.run.status is RunStatus.RUNNING


ENDS = [
    ([*done("a"), *done("b")], RunStatus.SUCCEEDED),
    ([*done("a"), claimed("b"), failed("b")], RunStatus.FAILED),
    ([*WAY_TO[S.BLOCKED], *done("b")], RunStatus.SUCCEEDED),
    (
        [*done("a"), RunCancelRequested(who="me", reason="r"), TaskCancelled(task="b", attempt=0, reason="r")],
        RunStatus.CANCELLED,
    ),
    (
        [RunCancelRequested(who="arco", reason="r", timed_out=True)]
        + [TaskCancelled(task=task, attempt=0, reason="r") for task in "ab"],
        RunStatus.FAILED,
    ),
    (
        [
            claimed("b"),
            RunCancelRequested(who="me", reason="r"),
            *done("a")[:0],
            failed("b"),
            TaskCancelled(task="a", attempt=0, reason="r"),
        ],
        RunStatus.CANCELLED,
    ),
    ([claimed("b"), failed("b", stops_run=True), TaskCancelled(task="a", attempt=0, reason="r")], RunStatus.FAILED),
]


@pytest.mark.parametrize(("then", "status"), ENDS, ids=range(len(ENDS)))
def test_a_run_ends_as_its_tasks_did(then: list, status: RunStatus) -> None:
    state = state_of({"a": (), "b": ()}, *then)
    for other in set(RunStatus) - {status}:
        with pytest.raises(Conflict, match="the run ends as"):
            state.apply(RunFinished(status=other), 1)
    state.apply(RunFinished(status=status), 1)
    assert state.run.status is status
    assert state.is_finished


def test_a_run_does_not_end_while_a_task_is_open() -> None:
    with pytest.raises(Conflict, match="1 tasks have not ended"):
        state_of({"a": ()}).apply(RunFinished(status=RunStatus.SUCCEEDED), 1)


def test_nothing_but_events_follows_the_end() -> None:
    state = state_of({"a": ()}, *done("a"), RunFinished(status=RunStatus.SUCCEEDED))
    for entry in (claimed("a", 2), RunCancelRequested(who="me", reason="r"), RunFinished(status=RunStatus.SUCCEEDED)):
        with pytest.raises(Fenced, match="has finished"):
            state.apply(entry, 1)
    state.apply(EventsAppended(through=1), 1)


def test_a_run_is_created_first_and_once() -> None:
    state = RunState(Outline.of({"a": ()}))
    with pytest.raises(Conflict, match="not created"):
        state.apply(claimed(), 1)
    state.apply(created(), 1)
    with pytest.raises(Conflict, match="created before"):
        state.apply(created(), 1)


@pytest.mark.parametrize(
    ("entry", "fast"),
    [
        (RunCancelRequested(who="me", reason="enough"), False),
        (failed("b", stops_run=True), False),
        (failed("b"), True),
    ],
)
def test_a_run_that_stops_starts_nothing_new(entry, fast: bool) -> None:
    how = OnFailure.FAIL_FAST if fast else OnFailure.KEEP_GOING
    state = state_of({"a": (), "b": ()}, claimed("b"), entry, on_failure=how)
    assert state.run.stopping is not None
    with pytest.raises(Conflict, match="stopping"):
        state.apply(claimed("a"), 1)


def test_a_run_that_keeps_going_does() -> None:
    state_of({"a": (), "b": ()}, claimed("b"), failed("b")).apply(claimed("a"), 1)


def test_cancelling_is_asked_for_once() -> None:
    state = state_of({"a": ()}, RunCancelRequested(who="me", reason="enough"))
    with pytest.raises(Conflict, match="before"):
        state.apply(RunCancelRequested(who="you", reason="too"), 1)


def test_lost_leases_are_not_failures_of_the_task() -> None:
    lost = Failure(kind="lost_lease", message="silent", transient=True)
    again = TaskRetried(task="a", attempt=1, failure=lost, not_before_ms=0)
    state = state_of({"a": ()}, claimed(), again, claimed("a", 2))
    assert (state.task("a").failures, state.task("a").lost_leases) == (0, 1)


# Events


def test_events_are_owed_when_their_entry_counts_and_staged_ones_when_the_output_landed() -> None:
    state = state_of({"a": ()}, events=(event(1),))
    for number, entry in enumerate((claimed(), started(), staged(events=(event(2),)), published()), 2):
        state.fold(batch(number - 1, entry))
        waiting = {one.data["n"] for its in state.owed.values() for one in its}
        assert waiting == ({1, 2} if isinstance(entry, TaskPublished) else {1})


@pytest.mark.parametrize(
    "end",
    [
        TaskRetried(task="a", attempt=1, failure=FAILURE, not_before_ms=0),
        failed(),
        TaskCancelled(task="a", attempt=1, reason="r"),
    ],
)
def test_events_of_what_did_not_land_are_never_owed(end) -> None:
    state = state_of({"a": ()}, claimed(), started(), staged(events=(event(2),)), end)
    assert state.owed == {}


def test_events_of_what_a_gate_failed_are_owed() -> None:
    state = state_of({"a": ()}, claimed(), started(), staged(action="fail_task", events=(event(2),)))
    state.apply(failed(materialization_id=MADE), 1)
    assert [one.data for its in state.owed.values() for one in its] == [{"n": 2}]


def test_a_second_staging_replaces_the_first_with_its_events() -> None:
    state = state_of({"a": ()}, claimed(), started(), staged(events=(event(2),)), staged(events=(event(3),)), published())
    assert [one.data for its in state.owed.values() for one in its] == [{"n": 3}]


def test_what_was_appended_is_owed_no_more() -> None:
    batches = [
        batch(1, created(events=(event(1),))),
        batch(2, claimed()),
        batch(3, RunCancelRequested(who="m", reason="r", events=(event(2),))),
    ]
    state = fold(Outline.of({"a": ()}), batches)
    assert set(state.owed) == {1, 3}
    state.fold(batch(4, EventsAppended(through=2)))
    assert set(state.owed) == {3}
    with pytest.raises(Conflict, match="not owed yet"):
        state.apply(EventsAppended(through=6), 1)


# A pure function


def batch(sequence: int, *its) -> Batch:
    return Batch(
        format=entries.FORMAT,
        format_version=1,
        run=RUN,
        sequence=sequence,
        write_id=WriteId(encode_ulid(sequence)),
        writer="w",
        at_ms=1000 + sequence,
        entries=tuple(its),
    )


def picture(state: RunState) -> tuple:
    """Everything that a state says, to compare two of them."""
    return (
        state.sequence,
        state.run,
        dict(state.tasks),
        dict(state.active),
        dict(state.queued),
        dict(state.doomed),
        dict(state.owed),
        state.to_claim(99, 10**15),
        state.open_tasks,
        state.final_status(),
    )


NAMES = ("a", "b", "c")
READS = {"a": (), "b": ("a",), "c": ("a", "b")}
ANY_ENTRY = st.one_of(
    st.builds(claimed, st.sampled_from(NAMES), st.integers(0, 3)),
    st.builds(started, st.sampled_from(NAMES), st.integers(0, 3)),
    st.builds(
        staged,
        st.sampled_from(NAMES),
        st.integers(1, 3),
        st.sampled_from(["continue", "quarantine", "block_downstream", "fail_run"]),
        st.sampled_from([(), (event(5),)]),
    ),
    st.builds(published, st.sampled_from(NAMES), st.integers(0, 3)),
    st.builds(failed, st.sampled_from(NAMES), st.integers(0, 3), stops_run=st.booleans()),
    st.builds(
        TaskRetried,
        task=st.sampled_from(NAMES),
        attempt=st.integers(0, 3),
        failure=st.just(FAILURE),
        not_before_ms=st.integers(0, 9),
    ),
    st.builds(
        TaskBlocked,
        task=st.sampled_from(NAMES),
        attempt=st.integers(0, 3),
        materialization_id=st.just(MADE),
        reason=st.just("r"),
    ),
    st.builds(TaskCancelled, task=st.sampled_from(NAMES), attempt=st.integers(0, 3), reason=st.just("r")),
    st.builds(TaskSkipped, task=st.sampled_from(NAMES), because=st.sampled_from(NAMES)),
    st.builds(RunCancelRequested, who=st.just("me"), reason=st.just("r")),
    st.builds(RunFinished, status=st.sampled_from(list(RunStatus))),
    st.builds(EventsAppended, through=st.integers(0, 5)),
)


@given(st.lists(ANY_ENTRY, max_size=30))
@settings(max_examples=300)
def test_a_trial_leaves_no_trace_and_refusals_change_nothing(drawn: list) -> None:
    state = state_of(READS)
    for entry in drawn:
        before = picture(state)
        with state.trial():
            holds = tried(state, entry)
            if not holds:
                assert picture(state) == before
            inside = picture(state)
            with state.trial():
                for other in drawn[:3]:
                    tried(state, other)
            assert picture(state) == inside
        assert picture(state) == before
        assert tried(state, entry) is holds


def tried(state: RunState, entry) -> bool:
    """Whether an entry holds, and so was applied."""
    try:
        state.apply(entry, 2000)
    except Refresh:
        return False
    return True


@given(st.lists(st.lists(ANY_ENTRY, min_size=1, max_size=4), max_size=12))
@settings(max_examples=200)
def test_the_fold_of_a_log_depends_on_its_entries_alone(groups: list[list]) -> None:
    batches = [batch(1, created()), *(batch(number, *group) for number, group in enumerate(groups, 2))]
    whole = fold(Outline.of(READS), batches)
    again = RunState(Outline.of(READS))
    for one in batches:
        with again.trial():
            for entry in one.entries[:2]:
                tried(again, entry)
        again.fold(one)
    assert picture(whole) == picture(again)
    assert whole.ignored == again.ignored
    void = [one.entry for one in whole.ignored]
    kept = [
        batch(one.sequence, *(entry for entry in one.entries if not any(entry is other for other in void)))
        for one in batches
    ]
    clean = fold(Outline.of(READS), kept)
    assert picture(clean) == picture(whole)
    assert clean.ignored == []


def test_the_next_object_of_a_log_is_the_next_number() -> None:
    state = RunState(Outline.of({"a": ()}))
    with pytest.raises(InvalidInput, match="does not follow"):
        state.fold(batch(2, created()))


def test_an_envelope_is_remembered_for_the_attempt_that_it_is_of() -> None:
    state = state_of({"a": ()})
    state.apply(TaskDispatched(task="a", attempt=1, envelope=envelope("a", 1)), 1)
    assert state.task("a").status is S.READY
    state.apply(claimed(), 2)
    assert state.task("a").envelope == envelope("a", 1)
    state.apply(TaskRetried(task="a", attempt=1, failure=FAILURE, not_before_ms=0), 3)
    assert state.task("a").envelope is None


def test_an_envelope_of_something_else_is_not_taken() -> None:
    state = state_of({"a": (), "b": ()})
    for other in (envelope("b", 1), envelope("a", 2)):
        with pytest.raises(Conflict):
            state.apply(TaskDispatched(task="a", attempt=1, envelope=other), 1)
    with pytest.raises(Conflict):
        state.apply(TaskDispatched(task="a", attempt=2, envelope=envelope("a", 2)), 1)
