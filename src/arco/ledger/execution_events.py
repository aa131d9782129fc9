"""The events of the domain `execution`: what runs did, Servo's and those of other systems.

One event speaks of one task and a set of partitions, as ranges; never one event a partition. A materialization is recorded
only after its output was published, so whoever folds these knows what can be read. What must never enter: reading state.
"""

from typing import Any

import msgspec

from arco.ledger.envelope import EventType
from arco.ledger.payloads import Payload

RUN_CREATED = EventType("execution.run_created.v1")
PLAN_GENERATED = EventType("execution.plan_generated.v1")
TASK_STARTED = EventType("execution.task_started.v1")
TASK_ENDED = EventType("execution.task_ended.v1")
MATERIALIZATION_COMPLETED = EventType("execution.materialization_completed.v1")
OUTPUT_HELD = EventType("execution.output_held.v1")
OUTPUT_RELEASED = EventType("execution.output_released.v1")
OUTPUT_DISCARDED = EventType("execution.output_discarded.v1")
RUN_COMPLETED = EventType("execution.run_completed.v1")


class RunCreated(Payload, frozen=True, kw_only=True):
    """A run began. `job` is what another system calls it; such a run has no deployment and no code version of ours."""

    run_id: str
    project: str
    deployment: str
    code_version: str
    trigger: str
    triggered_by: str
    tasks: int
    job: str | None = None


class PlanGenerated(Payload, frozen=True, kw_only=True):
    """What a run is going to do."""

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


class ColumnFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a file's footer says of a column, by its path. Bounds are texts, shortened as the table's metadata shortens them."""

    column: str
    nulls: int | None = None
    lower: str | None = None
    upper: str | None = None


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One file that a publish wrote. `partition` are the values of the table's own partition fields."""

    path: str
    rows: int
    bytes: int
    partition: dict[str, str | None] = msgspec.field(default_factory=dict)
    columns: tuple[ColumnFacts, ...] = ()


class CheckFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one check found, in short; `quality.check_executed.v1` has all of it. `action` is what the gate was asked for."""

    check: str
    passed: bool
    severity: str
    action: str
    failed_rows: int | None = None


class MaterializationCompleted(Payload, frozen=True, kw_only=True):
    """One publish of one asset. `inputs` are the versions of what it read, range by range; `counts` are per partition.

    `file_stats` has each file where fewer than ten were written: beyond that they would outgrow everything else that is said.

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
    counts: list[dict[str, Any]] = msgspec.field(default_factory=list)
    input_workspaces: dict[str, str] = msgspec.field(default_factory=dict)
    checks_failed: tuple[str, ...] = ()
    mode: str = "replace"
    grain: dict[str, str] | None = None
    sequence_number: int | None = None
    file_stats: tuple[FileFacts, ...] = ()
    checks: tuple[CheckFacts, ...] = ()


class OutputHeld(Payload, frozen=True, kw_only=True):
    """An output that the gate held back, and where it is kept.

    `completed` is what would have been said of it had it been published: whoever releases it says it then.
    """

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
    completed: dict[str, Any] | None = None


class SettledOutput(Payload, frozen=True, kw_only=True):
    """What every decision about something that was held back says. `what`: the `output`, or the `rows` set aside from it."""

    materialization_id: str
    asset: str
    asset_id: str
    what: str
    who: str
    why: str
    settled_ms: int
    run_id: str | None = None
    task_id: str | None = None
    partitions: list[dict[str, Any]] = msgspec.field(default_factory=list)
    branch: str | None = None


class OutputReleased(SettledOutput, frozen=True, kw_only=True):
    """Somebody published what was held back, as this snapshot of main."""

    snapshot_id: int | None = None


class OutputDiscarded(SettledOutput, frozen=True, kw_only=True):
    """Somebody decided that what was held back is never published. Its files stay until upkeep finds that nothing names them."""


class RunCompleted(Payload, frozen=True, kw_only=True):
    """A run ended. `started_ms` is null where whoever reports the end does not know the beginning."""

    run_id: str
    state: str
    tasks: dict[str, int]
    started_ms: int | None
    ended_ms: int
    message: str | None = None
