"""Every object name Arco makes, and the reading of each: one class per kind of object, its template beside it.

`str(key)` makes the name, `parse(name)` gives the key back, and the two are exact inverses. Names derive from ids, never from
what users call things, and always lie inside one scope, so that traversal and other tenants' prefixes cannot be expressed.
A slug in a table's folder is for people only: it is never parsed for meaning and never trusted.

Keys are structs and no dataclasses since there are so many: every command imports them, and a dataclass takes forty times as
long to define.
"""

import re
from datetime import date as calendar_date
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, ClassVar, Self, get_type_hints

import msgspec

from arco.kernel.clock import utc_date
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import (
    AssetId,
    CommitId,
    ConsumedListId,
    DeploymentId,
    Identifier,
    KeyHash,
    MaterializationId,
    PlanningSnapshotId,
    RunId,
    ScheduleName,
    SegmentId,
    SnapshotId,
    TableUuid,
    TaskId,
    TransactionId,
    ViewUuid,
    clip,
)
from arco.kernel.scope import Scope
from arco.storage.port import check_key
from arco.storage.templates import filled, reader_of, values_of


class Head(StrEnum):
    """The heads: one compare-and-swap object each. `catalog` belongs to tier 1, the others to the fold."""

    CATALOG = "catalog"
    EXECUTION = "execution"
    QUALITY = "quality"
    LINEAGE = "lineage"
    ASSETS = "assets"
    ICEBERG = "iceberg"
    SEARCH = "search"
    ROOT = "root"


class Domain(StrEnum):
    """The domains of the ledger."""

    EXECUTION = "execution"
    QUALITY = "quality"
    LINEAGE = "lineage"
    CATALOG = "catalog"
    ICEBERG = "iceberg"
    AUDIT = "audit"


class Phase(StrEnum):
    """The two receipts of a commit: before the swing, and after it."""

    PENDING = "pending"
    COMMITTED = "committed"


class Day(Identifier):
    """A UTC date in a name."""

    __slots__ = ()
    what = "date"
    pattern = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
    form = "YYYY-MM-DD"

    def __new__(cls, text: str) -> Self:
        day = super().__new__(cls, text)
        try:
            calendar_date.fromisoformat(day)
        except ValueError:
            raise InvalidInput(f"{text!r} is not a date that exists") from None
        return day


class FileName(Identifier):
    """The last segment of a name that a writer chooses, such as a Parquet file's."""

    __slots__ = ()
    what = "file name"
    pattern = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,199}")
    form = "letters, digits, _ - and single dots, starting with a letter or digit, at most 200"


class Word(Identifier):
    """A lower-case word that names a table of state, a kind of governance object, or a chain."""

    __slots__ = ()
    what = "word"
    pattern = re.compile(r"[a-z][a-z0-9_]{0,62}")
    form = "a lower-case letter, then a-z, 0-9 and _"


class Slug(Identifier):
    """What people recognise a table's folder by. Never parsed for meaning, never trusted."""

    __slots__ = ()
    what = "slug"
    pattern = re.compile(r"[a-z0-9_]{1,48}")
    form = "1 to 48 of a-z, 0-9 and _"

    @classmethod
    def from_name(cls, name: str) -> Self:
        """A slug for any name in any script."""
        letters = "".join(char if char in "abcdefghijklmnopqrstuvwxyz0123456789" else "_" for char in name.lower())
        return cls(re.sub("_+", "_", letters).strip("_")[:48].rstrip("_") or "x")


class MetadataHash(Identifier):
    """The part of a metadata file's name that covers the idempotency key and the request."""

    __slots__ = ()
    what = "metadata hash"
    pattern = re.compile(r"[0-9a-f]{32}")
    form = "32 lower-case hexadecimal digits"


_SCOPES_KEPT_MAX = 64
_METADATA_FILE = re.compile(r"[0-9]{5,20}-[0-9a-f]{32}\.metadata\.json")


def _fan_out(key: Any) -> str:
    """What spreads names that are hashes of somebody's key."""
    return str(key.key_hash[:2])


class Key(msgspec.Struct, frozen=True):
    """A name inside a scope. Subclasses give the template; its fields are theirs, or derived from them."""

    template: ClassVar[str] = ""
    scope: Scope

    def __str__(self) -> str:
        tail = filled(self.template, self)
        return check_key(f"{self.scope.tenant}/{self.scope.workspace}/{tail}")


class WorkspaceKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/workspace.json"


class HeadKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/manifests/{head}.manifest.json"
    head: Head


class ManifestKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/manifests/{head}/{snapshot}.json"
    head: Head
    snapshot: SnapshotId


class CatalogCommitKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/core/commits/{commit}.json"
    commit: CommitId


class CatalogStateKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/core/state/{file}"
    file: FileName


class ToldKey(Key, frozen=True):
    """Up to which commit of tier 1 the ledger was told."""

    template: ClassVar[str] = "_catalog/core/told.json"


class LeaseKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/core/locks/{name}.json"
    name: Word


class PointerKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/iceberg_pointers/{table}.json"
    table: TableUuid


class MarkerKey(Key, frozen=True):
    """One scope for all operations: a table in the path would hide that a key was used elsewhere."""

    template: ClassVar[str] = "_catalog/iceberg_idempotency/{fan_out}/{key_hash}.json"
    key_hash: KeyHash
    fan_out = property(_fan_out)


class TransactionKey(Key, frozen=True):
    """The date is that of the id's own time: a retry after midnight finds the same record."""

    template: ClassVar[str] = "_catalog/iceberg_transactions/{date}/{transaction}.json"
    transaction: TransactionId

    @property
    def date(self) -> str:
        return utc_date(self.transaction.time_ms)


class StagedIntentKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/iceberg_staged/{table}.json"
    table: TableUuid


class ReceiptKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/events/{day}/iceberg/{phase}/{commit_key}.json"
    day: Day
    phase: Phase
    commit_key: KeyHash


class FeedPageKey(Key, frozen=True):
    """A page of the feed of events. Pages are numbered from 1, without a gap."""

    template: ClassVar[str] = "_catalog/feed/pages/{number:012}.json"
    number: int


class FeedCheckpointKey(Key, frozen=True):
    """What the feed holds up to a page, so that nobody has to read all of it."""

    template: ClassVar[str] = "_catalog/feed/checkpoints/{number:012}.json"
    number: int


class SegmentKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/ledger/{domain}/{day}/{segment}.jsonl"
    domain: Domain
    day: Day
    segment: SegmentId


class ArchivedSegmentKey(Key, frozen=True):
    """Where a segment lies once every head that reads it has consumed it. It stays input to a rebuild."""

    template: ClassVar[str] = "_catalog/archive/{domain}/{day}/{segment}.jsonl"
    domain: Domain
    day: Day
    segment: SegmentId


class ConsumedKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/consumed/{head}/{list}.json"
    head: Head
    list: ConsumedListId


class DeadLetterKey(Key, frozen=True):
    """One event, or a whole segment, that a head could not fold. The letter is a hash of what was refused."""

    template: ClassVar[str] = "_catalog/dead_letters/{head}/{segment}/{letter}.json"
    head: Head
    segment: SegmentId
    letter: KeyHash


class HintKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/hints/{domain}.json"
    domain: Domain


class StateFileKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/state/{head}/{table}/{file}"
    head: Head
    table: Word
    file: FileName


class GovernanceKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/governance/{kind}/{file}"
    kind: Word
    file: FileName


class AuditHeadKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/audit/{chain}.head.json"
    chain: Word


class AuditSegmentKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/audit/{chain}/{segment}.jsonl"
    chain: Word
    segment: SegmentId


class RunPlanKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/runs/{run}/plan.json"
    run: RunId


class RunLogKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/runs/{run}/log/{sequence:08}.json"
    run: RunId
    sequence: int


class RunClaimKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/runs/{run}/claims/{task}.json"
    run: RunId
    task: TaskId


class TaskLogKey(Key, frozen=True):
    """A part of what an attempt said while it ran. For people; nothing depends on it."""

    template: ClassVar[str] = "_catalog/runs/{run}/logs/{task}/{attempt:04}-{part:06}.jsonl"
    run: RunId
    task: TaskId
    attempt: int
    part: int


class RunClosedKey(Key, frozen=True):
    """What a deleted run leaves behind, so that nobody writes into its place."""

    template: ClassVar[str] = "_catalog/runs/{run}/closed.json"
    run: RunId


class RunRequestKey(Key, frozen=True):
    """Which run an idempotency key stands for."""

    template: ClassVar[str] = "_catalog/run_requests/{fan_out}/{key_hash}.json"
    key_hash: KeyHash
    fan_out = property(_fan_out)


class AskedRunKey(Key, frozen=True):
    """A run that somebody asked for. Upkeep takes it away once what was decided about it is done."""

    template: ClassVar[str] = "_catalog/asked_runs/open/{key_hash}.json"
    key_hash: KeyHash


class AskedVerdictKey(Key, frozen=True):
    """What was decided about a run that somebody asked for."""

    template: ClassVar[str] = "_catalog/asked_runs/decided/{fan_out}/{key_hash}.json"
    key_hash: KeyHash
    fan_out = property(_fan_out)


class AskedTroubleKey(Key, frozen=True):
    """What keeps a run that somebody asked for from being started."""

    template: ClassVar[str] = "_catalog/asked_runs/troubled/{key_hash}.json"
    key_hash: KeyHash


class OpenRunsKey(Key, frozen=True):
    """Which runs have not ended: what workers and schedulers look at."""

    template: ClassVar[str] = "_catalog/open_runs.json"


class PoolKey(Key, frozen=True):
    """Who holds how much of a pool. A pool may be called anything, so its name is hashed."""

    template: ClassVar[str] = "_catalog/pools/{pool}.json"
    pool: KeyHash


class DeploymentKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/deployments/{deployment}.json"
    deployment: DeploymentId


class DeploymentHeadKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/deployments/heads/{project}.json"
    project: Word


class ScheduleKey(Key, frozen=True):
    """How far a schedule is, whether it is paused, and which of its ticks wait for their runs."""

    template: ClassVar[str] = "_catalog/schedules/{project}/{schedule}.json"
    project: Word
    schedule: ScheduleName


class HeldDecisionKey(Key, frozen=True):
    """What people decided about an output that was held back, or about rows that were set aside from it."""

    template: ClassVar[str] = "_catalog/quarantine/{materialization}/{what}.json"
    materialization: MaterializationId
    what: Word


class PlanningSnapshotKey(Key, frozen=True):
    template: ClassVar[str] = "_catalog/planning/{snapshot}.json"
    snapshot: PlanningSnapshotId


class DynamicValuesKey(Key, frozen=True):
    """The values of one dynamic dimension. A dimension may be called anything, so its name is hashed."""

    template: ClassVar[str] = "_catalog/dynamic_partitions/{asset}/{dimension}.json"
    asset: AssetId
    dimension: KeyHash


class UpkeepKey(Key, frozen=True):
    """What upkeep notes for itself. Nothing depends on it."""

    template: ClassVar[str] = "_catalog/upkeep/{name}.json"
    name: Word


class TableMetadataKey(Key, frozen=True):
    template: ClassVar[str] = "data/{slug}-{table}/metadata/{commit_number:05}-{hash}.metadata.json"
    slug: Slug
    table: TableUuid
    commit_number: int
    hash: MetadataHash


class TableFileKey(Key, frozen=True):
    """A file of a table: `folder` is data or metadata, and what lies below is the writing engine's choice."""

    template: ClassVar[str] = "data/{slug}-{table}/{folder}/{file}"
    slug: Slug
    table: TableUuid
    folder: Word
    file: FileName

    def __post_init__(self) -> None:
        if self.folder == "metadata" and _METADATA_FILE.fullmatch(self.file):
            raise InvalidInput(f"{self.file!r} is the name of a commit's metadata file", hint="use TableMetadataKey")


class ViewMetadataKey(Key, frozen=True):
    template: ClassVar[str] = "views/{slug}-{view}/metadata/{commit_number:05}-{hash}.metadata.json"
    slug: Slug
    view: ViewUuid
    commit_number: int
    hash: MetadataHash


KINDS: tuple[type[Key], ...] = (
    HeadKey,
    ManifestKey,
    CatalogCommitKey,
    CatalogStateKey,
    ToldKey,
    WorkspaceKey,
    LeaseKey,
    PointerKey,
    MarkerKey,
    TransactionKey,
    StagedIntentKey,
    ReceiptKey,
    FeedPageKey,
    FeedCheckpointKey,
    SegmentKey,
    ArchivedSegmentKey,
    ConsumedKey,
    DeadLetterKey,
    HintKey,
    StateFileKey,
    GovernanceKey,
    AuditHeadKey,
    AuditSegmentKey,
    RunPlanKey,
    RunLogKey,
    RunClaimKey,
    TaskLogKey,
    RunClosedKey,
    RunRequestKey,
    AskedRunKey,
    AskedVerdictKey,
    AskedTroubleKey,
    OpenRunsKey,
    PoolKey,
    DeploymentKey,
    DeploymentHeadKey,
    ScheduleKey,
    HeldDecisionKey,
    PlanningSnapshotKey,
    DynamicValuesKey,
    UpkeepKey,
    TableMetadataKey,
    TableFileKey,
    ViewMetadataKey,
)
"""In the order they are tried: a more specific template comes before one that would also match."""


def prefix_of(scope: Scope, *segments: str) -> str:
    """A folder inside a scope, for listings."""
    folder = "/".join((scope.tenant, scope.workspace, *segments))
    return f"{check_key(folder)}/"


def tables_folder(scope: Scope) -> str:
    """Where the folders of all tables lie."""
    return prefix_of(scope, "data")


def table_folder(scope: Scope, slug: Slug, table: TableUuid) -> str:
    """Where everything of a table lies."""
    return prefix_of(scope, "data", f"{slug}-{table}")


def view_folder(scope: Scope, slug: Slug, view: ViewUuid) -> str:
    """Where everything of a view lies."""
    return prefix_of(scope, "views", f"{slug}-{view}")


def parse(name: str) -> Key:
    """The key of a name that Arco made. Anything else is refused with the reason."""
    check_key(name)
    tenant, _, rest = name.partition("/")
    workspace, _, tail = rest.partition("/")
    if not tail:
        raise InvalidInput(f"{clip(name)!r} lies in no scope", hint="names start with tenant/workspace/")
    scope = _scope(tenant, workspace)
    for kind, start in _starts():
        if not tail.startswith(start):
            continue
        hints, reader = _READERS.get(kind) or _reader(kind)
        found = reader.fullmatch(tail)
        values = None if found is None else values_of(hints, found.groupdict())
        key = None if values is None else kind(scope, **values)
        if key is not None and _spells(key, name):
            return key
    raise InvalidInput(f"{clip(name)!r} is not the name of an object of Arco", hint="docs/formats lists them")


@cache
def _starts() -> tuple[tuple[type[Key], str], ...]:
    """What the names of each kind start with: most names are of one kind only, and no other reader is tried on them."""
    return tuple((kind, kind.template.partition("{")[0]) for kind in KINDS)


@lru_cache(_SCOPES_KEPT_MAX)
def _scope(tenant: str, workspace: str) -> Scope:
    """Names that are read one after the other mostly lie in one scope."""
    return Scope.of(tenant, workspace)


def _spells(key: Key, name: str) -> bool:
    """Whether a key has exactly this name; one that has no name at all has not."""
    try:
        return str(key) == name
    except InvalidInput:
        return False


_Reader = tuple[dict[str, Any], re.Pattern[str]]
_READERS: dict[type[Key], _Reader] = {}


def _reader(kind: type[Key]) -> _Reader:
    """Made when a name is first tried on it: most commands parse few names, and making all readers takes a while."""
    hints = get_type_hints(kind)
    made = _READERS[kind] = hints, reader_of(kind.template, hints)
    return made
