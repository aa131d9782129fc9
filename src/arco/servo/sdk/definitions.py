"""What an asset is, as data: everything that planning, running and explaining need to know of it.

The decorators make these, the planner reads them, and a deployment stores them (without the function). What must never enter:
Spark, the store, and anything that is only known at run time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import RUN_TIMEOUT_S_MAX
from arco.kernel.retention import PARTITION_VERSION_DAYS, PARTITION_VERSIONS_MAX, PARTITION_VERSIONS_MIN
from arco.quality.checks import Check
from arco.quality.compatibility import Compatibility
from arco.quality.gates import STRICT, GatingPolicy
from arco.servo.partitions.mappings import Mapping as PartitionMapping
from arco.servo.partitions.mappings import Window
from arco.servo.partitions.partitioning import UNPARTITIONED, Partitioning


class AssetKind(StrEnum):
    PYTHON = "python"
    SQL = "sql"
    SOURCE = "source"  # a table that others write: read, never written


class InputKind(StrEnum):
    TABLE = "table"  # the asset's table, pinned to the planned snapshot
    CHANGES = "changes"  # the rows appended since the last published snapshot
    FILES = "files"  # files of a folder, listed when the plan is made
    CHECK = "check"  # a table that a check compares with: read, pinned, and no reason to make anything again


class WriteMode(StrEnum):
    REPLACE = "replace"  # the task's partitions, or the whole table when there are none
    APPEND = "append"
    MERGE = "merge"  # by key: rows of the same key are replaced
    FULL = "full"  # the whole table, whatever the task's partitions are


def why_not_changes(mode: WriteMode, *, has_partitions: bool) -> str | None:
    """Why an asset may not read changes: a publish must leave alone what was made of the rows before.

    What replaces, loses them. With partitions, a publish of some says nothing of how far the others have read.
    """
    if mode not in {WriteMode.APPEND, WriteMode.MERGE}:
        return f"and mode={mode.value!r} would replace what was made of those before"
    return "and which of them each partition has seen is not known" if has_partitions else None


class Mode(StrEnum):
    """What of the things that are asked for is made."""

    STALE = "stale"  # what is not as its inputs and its code are now
    FORCE = "force"  # everything that is asked for
    BACKFILL = "backfill"  # what was never published


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where something was written: every error about it names this."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class InputDefinition:
    """One input: the parameter it arrives in, and what it is. `path` is for files, `asset` for everything else."""

    parameter: str
    kind: InputKind = InputKind.TABLE
    asset: AssetKey | None = None
    path: str | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    mapping: PartitionMapping = field(default_factory=Window)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a task is tried again, for failures that may pass by themselves."""

    attempts: int = 3
    pause_s: float = 2.0
    pause_s_max: float = 60.0

    def __post_init__(self) -> None:
        _need_whole("retry: attempts", self.attempts, 0)
        if not 0 <= self.pause_s <= self.pause_s_max <= RUN_TIMEOUT_S_MAX:
            raise InvalidInput(
                f"retry pauses {self.pause_s:g} s, and {self.pause_s_max:g} s at most",
                hint=f"pause_s is zero or more, and pause_s_max is not less, and at most {RUN_TIMEOUT_S_MAX}",
            )


@dataclass(frozen=True, slots=True)
class Retention:
    """How long old versions of a partition are kept."""

    days: int = PARTITION_VERSION_DAYS
    versions_min: int = PARTITION_VERSIONS_MIN
    versions_max: int = PARTITION_VERSIONS_MAX

    def __post_init__(self) -> None:
        _need_whole("retention: days", self.days, 0)
        _need_whole("retention: versions_min", self.versions_min, 1)
        _need_whole("retention: versions_max", self.versions_max, self.versions_min)


def _need_whole(what: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{what} is {value!r}", hint=f"a whole number from {least} on")


@dataclass(frozen=True, slots=True)
class Write:
    """How an output is laid out. `partition_by` are Iceberg transforms; by default the asset's own dimensions."""

    mode: WriteMode = WriteMode.REPLACE
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] | None = None
    sort_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AssetDefinition:
    """One asset. `fingerprint` is of its code alone: what it computes, not what people say of it."""

    key: AssetKey
    kind: AssetKind
    where: CallSite
    fingerprint: str
    function: Callable[..., Any] | None = field(default=None, compare=False)
    sql: str | None = None
    inputs: tuple[InputDefinition, ...] = ()
    wants_run: bool = False
    partitions: Partitioning = UNPARTITIONED
    checks: tuple[Check, ...] = ()
    write: Write = Write()
    schema: Any = None
    compatibility: Compatibility = Compatibility.BACKWARD
    gate: GatingPolicy = STRICT
    retry: Retry = Retry()
    retention: Retention = Retention()
    timeout_s: float | None = None
    fresh_within_s: int | None = None
    partitions_per_task: int | None = None
    concurrency: int | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    renamed_from: tuple[AssetKey, ...] = ()
    table: str | None = None

    @property
    def is_source(self) -> bool:
        return self.kind is AssetKind.SOURCE
