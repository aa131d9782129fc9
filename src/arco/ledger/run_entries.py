"""What the log of a run says: typed entries, several of them in one numbered object.

An entry is one fact or one decision. The entries of one object were decided together, on everything before them, and count
together. Entries of a task's attempt carry the attempt's number. It is the task's epoch: it only grows, and whoever holds a
smaller one is fenced. What must never enter: what follows from an entry (`run_state.py`), and where it is stored (`run_log.py`).
"""

from enum import StrEnum
from typing import Any

import msgspec

from arco.kernel.errors import CorruptObject, InvalidInput, TooLarge, UnknownFormat
from arco.kernel.ids import Identifier, RunId, WriteId, clip
from arco.kernel.limits import RUN_LOG_BYTES_MAX, TRANSACTION_TABLES_MAX
from arco.ledger.drafts import Draft
from arco.ledger.envelope import identifier

FORMAT = "arco.run_log"
FORMAT_VERSION = 1


class Trigger(StrEnum):
    """Why a run was started."""

    MANUAL = "manual"
    SCHEDULED = "scheduled"
    FRESHNESS = "freshness"
    SOURCE = "source"
    EVENT = "event"
    BACKFILL = "backfill"


class OnFailure(StrEnum):
    """What the rest of a run does when a task has failed for good."""

    FAIL_FAST = "fail_fast"
    KEEP_GOING = "keep_going"


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Entry(msgspec.Struct, frozen=True, kw_only=True, tag_field="entry"):
    """One entry. `events` are owed to the ledger from the moment the entry counts."""

    events: tuple[Draft, ...] = ()


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """Says that somebody with a key made what it stands beside: an HMAC over all of it, and which key made it."""

    key_id: str
    signature: str


class RunCreated(Entry, frozen=True, kw_only=True, tag="run_created"):
    """The first entry of every log. `plan_id` is the fingerprint of the plan that is stored beside it.

    `atomic`: all outputs become visible in one transaction, over `transaction_tables` tables at most, or none does. `seal` where
    whoever started it has a key.
    """

    plan_id: str
    tasks: int
    trigger: Trigger
    who: str
    max_parallelism: int
    timeout_s: float | None = None
    on_failure: OnFailure = OnFailure.KEEP_GOING
    idempotency_key: str | None = None
    atomic: bool = False
    transaction_tables: int = TRANSACTION_TABLES_MAX
    seal: Seal | None = None


class RunCancelRequested(Entry, frozen=True, kw_only=True, tag="run_cancel_requested"):
    """From here on nothing new is started, and what runs is stopped."""

    who: str
    reason: str
    timed_out: bool = False


class RunPaused(Entry, frozen=True, kw_only=True, tag="run_paused"):
    """From here on nothing is claimed, whoever drives the run. What runs goes on to its end."""

    who: str
    why: str


class RunResumed(Entry, frozen=True, kw_only=True, tag="run_resumed"):
    """The pause is over."""

    who: str


class RunFinished(Entry, frozen=True, kw_only=True, tag="run_finished"):
    """Every task has ended. After this only `EventsAppended` follows."""

    status: RunStatus


class PublishBegun(Entry, frozen=True, kw_only=True, tag="publish_begun"):
    """Every output of an atomic run is staged, and their transaction is about to be sent, under this key.

    Whoever drives the run sends it. `number` counts from 1: the next one begins only when this one can no longer land.
    """

    number: int
    at_ms: int
    key: str


class RunPublished(Entry, frozen=True, kw_only=True, tag="run_published"):
    """The transaction landed: every staged output is visible."""

    number: int


class RunWithheld(Entry, frozen=True, kw_only=True, tag="run_withheld"):
    """The transaction did not land and never will: nothing of the run is visible."""

    number: int
    reason: str
    hint: str = ""


class EventsAppended(Entry, frozen=True, kw_only=True, tag="events_appended"):
    """The events owed by the entries up to this number are in the ledger."""

    through: int


class TaskEntry(Entry, frozen=True, kw_only=True):
    """About one task."""

    task: str


class AttemptEntry(TaskEntry, frozen=True, kw_only=True):
    """About one attempt of one task."""

    attempt: int


class TaskEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler signs when it hands a task out: this attempt of this task, of this plan and code, until it expires.

    `key_id` says with which key; the signature covers everything else.
    """

    tenant: str
    workspace: str
    run: str
    task: str
    attempt: int
    plan_id: str
    code_version: str
    expires_ms: int
    key_id: str
    signature: str


class TaskDispatched(AttemptEntry, frozen=True, kw_only=True, tag="task_dispatched"):
    """A scheduler hands the next attempt of a task out to workers that run only what is signed. It claims nothing."""

    envelope: TaskEnvelope


class TaskClaimed(AttemptEntry, frozen=True, kw_only=True, tag="task_claimed"):
    """A worker has the task, and says for how long it may be silent."""

    worker: str
    lease_s: float


class TaskStarted(AttemptEntry, frozen=True, kw_only=True, tag="task_started"):
    """The worker has begun."""


class RowsAside(msgspec.Struct, frozen=True, kw_only=True):
    """The commit of the rows that an attempt sets aside: where to look for it. Its keys are the attempt's, for another table."""

    table_uuid: str
    snapshot_id: int


class Publish(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that is about to be sent, so that anybody can settle it: its key, and where to look for it.

    `aside` is sent before it, if rows are set aside: whoever settles the attempt settles both.
    """

    key: str
    operation: str
    request_hash: str
    table_uuid: str | None = None
    snapshot_id: int | None = None
    aside: RowsAside | None = None


class StagedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """What an atomic run will do to one table: the requirements and updates of a commit, as the REST description writes them.

    `place` is how many commits of this run to the same table come before it: it stands on them, and holds on nothing else.
    """

    namespace: tuple[str, ...]
    name: str
    place: int
    request: dict[str, Any]
    asset_id: str | None = None

    @property
    def table(self) -> tuple[tuple[str, ...], str]:
        return self.namespace, self.name


class OutputStaged(AttemptEntry, frozen=True, kw_only=True, tag="output_staged"):
    """Written, checked, decided: the next step is the commit. Its `events` are owed only when the commit has landed.

    `at_ms` is the moment that the key of the commit carries. An attempt that was refused may stage again, under a later one.
    In an atomic run there is no commit to send: `commits` wait for the run.
    """

    at_ms: int
    materialization_id: str
    action: str
    publish: Publish | None = None
    written: dict[str, Any] = {}
    checks: tuple[dict[str, Any], ...] = ()
    decision: dict[str, Any] = {}
    commits: tuple[StagedCommit, ...] = ()


class TaskStaged(AttemptEntry, frozen=True, kw_only=True, tag="task_staged"):
    """Written, checked and decided in an atomic run. Nobody else sees it before the run is published; its own tasks read it."""

    materialization_id: str
    snapshot_id: int | None = None


class TaskPublished(AttemptEntry, frozen=True, kw_only=True, tag="task_published"):
    """The output is visible. `adopted`: found in the table's history, by somebody who settled the attempt."""

    materialization_id: str
    snapshot_id: int | None = None
    adopted: bool = False


class TaskBlocked(AttemptEntry, frozen=True, kw_only=True, tag="task_blocked"):
    """Held back by its checks; what reads it does not run."""

    materialization_id: str
    reason: str
    snapshot_id: int | None = None


class TaskQuarantined(AttemptEntry, frozen=True, kw_only=True, tag="task_quarantined"):
    """Held back by its checks; what reads it runs on the last good version."""

    materialization_id: str
    reason: str
    snapshot_id: int | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt failed. `transient`: it may pass by itself, so trying again makes sense. `severity` is for people."""

    kind: str
    message: str
    transient: bool = False
    hint: str = ""
    severity: str = "error"


class TaskFailed(AttemptEntry, frozen=True, kw_only=True, tag="task_failed"):
    """Failed for good. `materialization_id` if checks failed it and the output is kept beside main."""

    failure: Failure
    stops_run: bool = False
    materialization_id: str | None = None


class TaskRetried(AttemptEntry, frozen=True, kw_only=True, tag="task_retried"):
    """This attempt failed, and the next one may be claimed when the pause is over."""

    failure: Failure
    not_before_ms: int


class TaskCancelled(AttemptEntry, frozen=True, kw_only=True, tag="task_cancelled"):
    """Not run, or stopped. `attempt` is 0 if it was never claimed."""

    reason: str


class TaskSkipped(TaskEntry, frozen=True, kw_only=True, tag="task_skipped"):
    """Not run because of what became of a task that it reads."""

    because: str


AnyEntry = (
    RunCreated
    | RunCancelRequested
    | RunPaused
    | RunResumed
    | RunFinished
    | PublishBegun
    | RunPublished
    | RunWithheld
    | EventsAppended
    | TaskDispatched
    | TaskClaimed
    | TaskStarted
    | OutputStaged
    | TaskStaged
    | TaskPublished
    | TaskBlocked
    | TaskQuarantined
    | TaskFailed
    | TaskRetried
    | TaskCancelled
    | TaskSkipped
)


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """One object of the log. `write_id` makes its bytes nobody else's, so that a lost reply can be resolved."""

    format: str
    format_version: int
    run: RunId
    sequence: int
    write_id: WriteId
    writer: str
    at_ms: int
    entries: tuple[AnyEntry, ...]


class _Header(msgspec.Struct, frozen=True):
    format: str
    format_version: int


def encode_batch(batch: Batch) -> bytes:
    data = _ENCODER.encode(batch)
    if len(data) > RUN_LOG_BYTES_MAX:
        raise TooLarge(f"{len(data)} bytes for one object of a run's log", hint=f"at most {RUN_LOG_BYTES_MAX}")
    return data


def decode_batch(run: RunId, sequence: int, data: bytes) -> Batch:
    """The batch of one name. One that lies under another's name is refused, as is a kind of entry nobody knows."""
    try:
        header = _HEADER.decode(data)
        if (header.format, header.format_version) != (FORMAT, FORMAT_VERSION):
            raise UnknownFormat(f"entry {sequence} of run {run} is {clip(header.format)!r} version {header.format_version}")
        batch = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidInput) as error:
        raise CorruptObject(f"entry {sequence} of run {run} does not parse: {clip(str(error), 200)}") from error
    if (batch.run, batch.sequence) != (run, sequence):
        raise CorruptObject(f"entry {sequence} of run {run} says that it is entry {batch.sequence} of run {batch.run}")
    return batch


def encoded_size(part: tuple[AnyEntry, ...] | Draft) -> int:
    """About how many bytes some entries, or an event, take in an object."""
    return len(_ENCODER.encode(part))


def _plain(value: object) -> str:
    if isinstance(value, Identifier):
        return str(value)
    raise InvalidInput(f"a {type(value).__name__} cannot be stored in a run's log")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
_DECODER = msgspec.json.Decoder(Batch, dec_hook=identifier)
_HEADER = msgspec.json.Decoder(_Header)
