"""The events of the domain `execution`, and of `quality` beside it: what runs did.

One event speaks of one task and a set of partitions, as ranges; never one event a partition. A materialization is recorded
only after its output was published, so whoever folds these knows what can be read. What must never enter: reading state.
"""

from typing import Any, Self, TypeVar

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import EventId, clip, encode_ulid
from arco.ledger.drafts import Draft
from arco.ledger.envelope import Event, EventType

RUN_CREATED = EventType("execution.run_created.v1")
PLAN_GENERATED = EventType("execution.plan_generated.v1")
TASK_STARTED = EventType("execution.task_started.v1")
TASK_ENDED = EventType("execution.task_ended.v1")
MATERIALIZATION_COMPLETED = EventType("execution.materialization_completed.v1")
OUTPUT_HELD = EventType("execution.output_held.v1")
RUN_COMPLETED = EventType("execution.run_completed.v1")
CHECK_EXECUTED = EventType("quality.check_executed.v1")
LINEAGE_RECORDED = EventType("lineage.lineage_recorded.v1")
SOURCE = "arco/servo"

P = TypeVar("P", bound="Payload")


def derived_event_id(at_ms: int, *about: str) -> str:
    """The id of an event that several processes may announce: the same for all of them, and known before it happens."""
    return str(EventId(encode_ulid(at_ms << 80 | int(fingerprint("event", *about)[:20], 16))))


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """What an event says. Fields that a later version adds are passed over when it is read."""

    def draft(self, kind: EventType, event_id: str, *, subject: str, run_id: str, sequence: int | None = None) -> Draft:
        """The event of this payload under an id that is known before anything is published."""
        return Draft(
            type=kind,
            source=SOURCE,
            subject=subject,
            id=EventId(event_id),
            # As it is read back: lists where there are tuples, texts where there are ids.
            data=msgspec.json.decode(msgspec.json.encode(self, enc_hook=str)),
            streamid=run_id,
            sequence=sequence,
            correlationid=run_id,
        )

    @classmethod
    def of(cls, event: Event) -> Self:
        try:
            return msgspec.convert(event.data, cls)
        except msgspec.ValidationError as error:
            raise InvalidInput(clip(f"event {event.id}: {error}".replace("`", ""), 300)) from None


class RunCreated(Payload, frozen=True, kw_only=True):
    run_id: str
    project: str
    deployment: str
    code_version: str
    trigger: str
    triggered_by: str
    tasks: int


class PlanGenerated(Payload, frozen=True, kw_only=True):
    run_id: str
    plan_fingerprint: str
    planning_snapshot: str
    tasks: int
    assets: tuple[str, ...]


class TaskBegun(Payload, frozen=True, kw_only=True):
    """An attempt that a worker has begun."""

    run_id: str
    task_id: str
    attempt: int
    asset: str
    asset_id: str
    partitions: list[dict[str, Any]]
    worker: str
    started_ms: int


class TaskEnded(Payload, frozen=True, kw_only=True):
    """How a task ended, whatever came of it."""

    run_id: str
    task_id: str
    asset: str
    asset_id: str
    state: str
    attempts: int
    started_ms: int
    ended_ms: int
    failure_class: str | None = None
    message: str | None = None


class MaterializationCompleted(Payload, frozen=True, kw_only=True):
    """One publish of one asset. `inputs` are the versions of what it read, range by range; `counts` are per partition.

    `grain` is the kind of each dimension, so that the ranges can be told apart into partitions. `sequence_number` is that of the
    snapshot on the base it was made from: of two publishes that replaced one another it is smaller in the first, even where
    commits that they could pass came between.
    """

    materialization_id: str
    run_id: str
    task_id: str
    attempt: int
    asset: str
    asset_id: str
    table_uuid: str
    partitions: list[dict[str, Any]]
    code: str
    code_version: str
    plan_fingerprint: str
    inputs: dict[str, list[dict[str, Any]]]
    input_snapshots: dict[str, int | None]
    snapshot_id: int | None
    rows: int
    bytes: int
    files: int
    schema_id: int | None
    started_ms: int
    published_ms: int
    counts: list[dict[str, Any]] = []
    checks_failed: tuple[str, ...] = ()
    mode: str = "replace"
    grain: dict[str, str] | None = None
    sequence_number: int | None = None


class OutputHeld(Payload, frozen=True, kw_only=True):
    """An output that the gate held back, and where it is kept."""

    materialization_id: str
    run_id: str
    task_id: str
    asset: str
    asset_id: str
    partitions: list[dict[str, Any]]
    action: str
    reasons: tuple[str, ...]
    branch: str | None
    snapshot_id: int | None


class CheckExecuted(Payload, frozen=True, kw_only=True):
    """One check of one output. `result` is the document of the check's result."""

    check_id: str
    run_id: str
    task_id: str
    materialization_id: str
    asset: str
    asset_id: str
    partitions: list[dict[str, Any]]
    result: dict[str, Any]
    action: str


class LineageRecorded(Payload, frozen=True, kw_only=True):
    """What a task read to make what it made: one edge an input."""

    run_id: str
    task_id: str
    materialization_id: str
    edges: list[dict[str, Any]]


class RunCompleted(Payload, frozen=True, kw_only=True):
    run_id: str
    state: str
    tasks: dict[str, int]
    started_ms: int
    ended_ms: int
