"""Entries of a run's log as bytes: what is written is read back, and nothing is guessed at."""

import msgspec
import pytest

from arco.kernel.errors import CorruptObject, InvalidInput, TooLarge, UnknownFormat
from arco.kernel.ids import EventId, RunId, WriteId, encode_ulid
from arco.kernel.limits import RUN_LOG_BYTES_MAX
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.run_entries import (
    FORMAT,
    AnyEntry,
    Batch,
    EventsAppended,
    Failure,
    OnFailure,
    OutputStaged,
    Publish,
    PublishBegun,
    RunCancelRequested,
    RunCreated,
    RunFinished,
    RunPaused,
    RunPublished,
    RunResumed,
    RunStatus,
    RunWithheld,
    StagedCommit,
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
    decode_batch,
    encode_batch,
)

RUN = RunId(encode_ulid(1))
MADE = encode_ulid(7)
EVENT = Draft(
    type=EventType("execution.materialization_completed.v1"),
    source="arco/servo",
    subject="shop.orders",
    data={"rows": 10, "partitions": [{"from": "2025-01-01"}]},
    id=EventId(encode_ulid(5)),
    causationid=EventId(encode_ulid(6)),
    time_ms=12,
)
FAILURE = Failure(kind="timeout", message="too slow", transient=True, hint="give it more time")
EVERY = (
    RunCreated(
        plan_id="plan_x",
        tasks=3,
        trigger=Trigger.BACKFILL,
        who="me",
        max_parallelism=2,
        timeout_s=1.5,
        on_failure=OnFailure.FAIL_FAST,
        idempotency_key="nightly",
        atomic=True,
        transaction_tables=20,
        events=(EVENT,),
    ),
    RunCancelRequested(who="me", reason="enough", timed_out=True),
    RunPaused(who="me", why="not now"),
    RunResumed(who="me"),
    RunFinished(status=RunStatus.FAILED, events=(EVENT,)),
    PublishBegun(number=2, at_ms=8, key="k"),
    RunPublished(number=2),
    RunWithheld(number=2, reason="a table was changed", hint="again"),
    EventsAppended(through=7),
    TaskDispatched(
        task="a",
        attempt=1,
        envelope=TaskEnvelope(
            tenant="t",
            workspace="w",
            run="r",
            task="a",
            attempt=1,
            plan_id="plan_1",
            code_version="code_1",
            expires_ms=1,
            key_id="k",
            signature="s",
        ),
    ),
    TaskClaimed(task="a", attempt=1, worker="w", lease_s=30.0),
    TaskStarted(task="a", attempt=1),
    OutputStaged(
        task="a",
        attempt=1,
        at_ms=9,
        materialization_id=MADE,
        action="warn",
        publish=Publish(key="k", operation="publish", request_hash="h", table_uuid="u", snapshot_id=2**62),
        written={"rows": 3},
        checks=({"check": "unique", "passed": True},),
        decision={"action": "warn"},
        events=(EVENT, EVENT),
        commits=(StagedCommit(namespace=("db",), name="t", place=1, request={"updates": [{"id": 2**62}]}, asset_id="x"),),
    ),
    TaskStaged(task="a", attempt=1, materialization_id=MADE, snapshot_id=2**62),
    TaskPublished(task="a", attempt=1, materialization_id=MADE, snapshot_id=2**62, adopted=True),
    TaskBlocked(task="a", attempt=1, materialization_id=MADE, reason="r"),
    TaskQuarantined(task="a", attempt=1, materialization_id=MADE, reason="r", snapshot_id=4),
    TaskFailed(task="a", attempt=1, failure=FAILURE, stops_run=True, materialization_id=MADE),
    TaskRetried(task="a", attempt=1, failure=FAILURE, not_before_ms=99),
    TaskCancelled(task="a", attempt=0, reason="r"),
    TaskSkipped(task="a", because="b"),
)


def batch(*entries: AnyEntry, sequence: int = 3) -> Batch:
    return Batch(
        format=FORMAT,
        format_version=1,
        run=RUN,
        sequence=sequence,
        write_id=WriteId(encode_ulid(2)),
        writer="w",
        at_ms=5,
        entries=entries,
    )


@pytest.mark.parametrize("entry", EVERY, ids=lambda entry: type(entry).__name__)
def test_every_entry_is_read_as_it_was_written(entry: AnyEntry) -> None:
    assert decode_batch(RUN, 3, encode_batch(batch(entry))) == batch(entry)


def test_every_kind_of_entry_is_here() -> None:
    assert {type(entry) for entry in EVERY} == set(AnyEntry.__args__)


def test_entries_keep_their_order() -> None:
    assert decode_batch(RUN, 3, encode_batch(batch(*EVERY))).entries == EVERY


def test_an_object_says_whose_it_is() -> None:
    data = encode_batch(batch(*EVERY))
    with pytest.raises(CorruptObject, match="says that it is entry 3"):
        decode_batch(RUN, 4, data)
    with pytest.raises(CorruptObject, match="says that it is entry 3 of run"):
        decode_batch(RunId(encode_ulid(9)), 3, data)


@pytest.mark.parametrize(("field", "value"), [("format", "arco.lease"), ("format_version", 2)])
def test_another_format_or_version_is_refused(field: str, value: object) -> None:
    document = msgspec.json.decode(encode_batch(batch(*EVERY))) | {field: value}
    with pytest.raises(UnknownFormat):
        decode_batch(RUN, 3, msgspec.json.encode(document))


def test_a_kind_of_entry_that_nobody_knows_is_refused() -> None:
    document = msgspec.json.decode(encode_batch(batch(TaskStarted(task="a", attempt=1))))
    document["entries"][0]["entry"] = "task_teleported"
    with pytest.raises(CorruptObject, match="task_teleported"):
        decode_batch(RUN, 3, msgspec.json.encode(document))


def test_a_truncated_object_is_refused_at_every_length() -> None:
    data = encode_batch(batch(*EVERY))
    for length in range(0, len(data), 7):
        with pytest.raises(CorruptObject):
            decode_batch(RUN, 3, data[:length])


def test_an_event_that_is_none_is_refused() -> None:
    document = msgspec.json.decode(encode_batch(batch(EVERY[0])))
    document["entries"][0]["events"][0]["id"] = "not an id"
    with pytest.raises(CorruptObject):
        decode_batch(RUN, 3, msgspec.json.encode(document))


def test_an_object_that_is_too_large_is_refused_before_it_is_written() -> None:
    large = TaskCancelled(task="a", attempt=0, reason="x" * RUN_LOG_BYTES_MAX)
    with pytest.raises(TooLarge):
        encode_batch(batch(large))


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidInput, match="object"):
        encode_batch(
            batch(OutputStaged(task="a", attempt=1, at_ms=1, materialization_id=MADE, action="x", written={"o": object()}))
        )
