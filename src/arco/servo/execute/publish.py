"""Publishing: one commit that makes an output visible, through the same path as every client's commit.

    adopt if it is there → read what the change needs → draft a snapshot → write its files → commit → on a conflict, rebase

A publish is keyed by its attempt, asserts the snapshot it looked at, and first looks for its own materialization in that base's
history. So an attempt that was thought dead and its successor cannot both commit, and whoever comes second finds the first.
Every rebase is a commit of its own with a key of its own, because a refusal is remembered under its key for ever; it happens
only when what others committed cannot meet what this replaces. Nothing is ever deleted here: files of a commit that did not
happen are left to upkeep.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import msgspec
from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile

from arco.catalog.catalog import Catalog
from arco.catalog.model import Levels
from arco.iceberg import changes, updates
from arco.iceberg.metadata import MAIN, TableMetadata
from arco.iceberg.requests import CommitTable
from arco.iceberg.shape import LAST_ADDED, JsonObject
from arco.kernel.canonical_json import request_hash
from arco.kernel.crash_points import reach
from arco.kernel.errors import Conflict, Fenced, KeyReused, OutcomeUnknown, PartitionsTouched
from arco.kernel.ids import MaterializationId, clip
from arco.kernel.limits import PUBLISH_REBASES_MAX
from arco.ledger.materializations import INPUT_SNAPSHOTS, MATERIALIZATION
from arco.ledger.receipts import Source, SourceKind
from arco.servo.execute.file_access import plain_path
from arco.servo.execute.snapshots import (
    Append,
    AppendNext,
    Change,
    Compact,
    Draft,
    Drafting,
    Matching,
    MergeManifests,
    Replace,
    ReplaceAll,
    Replay,
    Rewrite,
    applied,
    needed,
    place_of,
    refuse_outsiders,
)
from arco.servo.execute.table_files import TableFiles
from arco.servo.execute.table_state import TableState, state_of
from arco.servo.schedule.publish_keys import publish_key
from arco.storage.readback import pause_s

REPEATS_MAX = 5
SOURCE = Source(kind=SourceKind.SERVO, principal="servo")


@dataclass(frozen=True, slots=True)
class Publication:
    """An output that is ready to be seen.

    `base` is the table as it was inspected; for a table that does not exist yet, as it was staged. `schema` is the one the
    files were written with, if the table has to take it over. `at_ms` is when the attempt began to publish: it is part of the
    key, so whoever settles the attempt must know it. `snapshot_id` is the snapshot's if it was announced before; otherwise one
    is drawn. A table that is created belongs to the asset of `asset_id`. `facts` go into the snapshot's summary.
    """

    levels: Levels
    name: str
    base: TableMetadata
    files: tuple[DataFile, ...]
    change: Change
    run_id: str
    task_id: str
    materialization_id: MaterializationId
    attempt: int
    at_ms: int
    schema: JsonObject | None = None
    ref: str = MAIN
    creates: bool = False
    snapshot_id: int | None = None
    asset_id: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    def key(self, rebase: int) -> str:
        return publish_key(self.run_id, self.task_id, self.attempt, rebase, self.at_ms)

    def summary(self) -> dict[str, str]:
        own = {
            "arco.run-id": self.run_id,
            "arco.task-id": self.task_id,
            MATERIALIZATION: self.materialization_id,
            "arco.attempt": str(self.attempt),
        }
        return {word: str(value) for word, value in {**self.facts, **own}.items()}


@dataclass(frozen=True, slots=True)
class PublishedOutput:
    """Where an output is seen. `adopted` if an earlier attempt had published it already."""

    metadata: TableMetadata
    snapshot_id: int
    metadata_location: str | None
    rebases: int
    adopted: bool


def evolved(table: TableMetadata, schema: JsonObject | None, now_ms: int) -> TableMetadata:
    """The table as it will be with another schema: what its new files are written with."""
    if schema is None:
        return table
    return updates.apply(table, [changes.AddSchema(schema), changes.SetCurrentSchema(LAST_ADDED)], now_ms=now_ms)


def published_before(table: TableMetadata, materialization_id: str, ref: str = MAIN) -> int | None:
    """The snapshot of a materialization in the history of a ref."""
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in table.snapshots}
    current: int | None = table.refs.get(ref, {}).get("snapshot-id")
    while current is not None and current in by_id:
        if (by_id[current].get("summary") or {}).get(MATERIALIZATION) == materialization_id:
            return int(current)
        current = by_id[current].get("parent-snapshot-id")
    return None


class Publisher:
    """Publishes to the tables of one workspace."""

    def __init__(self, catalog: Catalog, source: Source = SOURCE) -> None:
        self._catalog = catalog
        self._source = source
        self._files = TableFiles(catalog.parts)

    async def publish(self, publication: Publication) -> PublishedOutput:
        """Make an output visible, or raise why not. After `OutcomeUnknown` it may be visible or become so."""
        base, one = publication.base, publication
        for rebase in range(PUBLISH_REBASES_MAX):
            if rebase:
                await self._catalog.parts.clock.sleep(pause_s(min(rebase, 4), self._catalog.parts.entropy))
            before = published_before(base, one.materialization_id, one.ref)
            if before is not None:
                return PublishedOutput(base, before, None, rebase, adopted=True)
            draft, request = await self.drafted(one, base)
            try:
                metadata, location = await self._committed(one, request, rebase)
            except PartitionsTouched:
                raise
            except Conflict as conflict:
                _, found = await self._catalog.tables.load(one.levels, one.name)
                await self.refuse_other_base(one, base, found.metadata, conflict)
                base = found.metadata
                one = replace(one, creates=False)
                continue
            reach("publish.committed")
            return PublishedOutput(metadata, draft.snapshot["snapshot-id"], location, rebase, adopted=False)
        raise PartitionsTouched(f"{one.name}: others commit to this table all the time")

    async def drafted(self, one: Publication, base: TableMetadata) -> tuple[Draft, CommitTable]:
        """The snapshot of a publication on a base, with its manifests written, and the commit that would make it visible."""
        draft = await self._drafted(one, base)
        await self._files.write(draft.files)
        reach("publish.drafted")
        return draft, commit_of(one, base, draft)

    async def _drafted(self, one: Publication, base: TableMetadata) -> Draft:
        clock = self._catalog.parts.clock
        table = evolved(base, one.schema, clock.now_ms())
        if isinstance(one.change, Replace):
            refuse_outsiders(one.files, one.change.where, table)
        parent = parent_of(base, one.ref)
        manifests = await self._files.manifests(parent)
        entries = await self._files.entries(needed(one.change, manifests, table))
        drawn = int.from_bytes(self._catalog.parts.entropy.token_bytes(8), "big") >> 1 or 1
        # The snapshot may be announced and the same on every base; its files never are.
        name = f"{one.materialization_id}-{one.attempt}-{drawn:016x}"
        drafting = Drafting(table, parent, one.snapshot_id or drawn, name)
        after = applied(drafting, one.change, manifests, entries, one.files)
        return drafting.draft(after, one.files, one.summary(), max(clock.now_ms(), base.last_updated_ms), one.change)

    async def _committed(self, one: Publication, request: CommitTable, rebase: int) -> tuple[TableMetadata, str]:
        """Commit under this attempt's key. An unknown outcome is asked for again under the same key, never done anew."""
        body = request_hash([str(one.levels), one.name, hashlib.sha256(msgspec.json.encode(request)).hexdigest()])
        key = self._catalog.parts.markers.request_key(one.key(rebase), "publish", body)
        for repeat in range(REPEATS_MAX):
            if repeat:
                await self._catalog.parts.clock.sleep(2.0**repeat / 4)
            try:
                if one.creates:
                    return await self._catalog.staging.create_by_commit(
                        one.levels, one.name, request, key, self._source, one.asset_id
                    )
                done = await self._catalog.table_commits.commit(one.levels, one.name, request, key, self._source)
            except KeyReused as used:
                # Nobody else makes this key, so whoever used it settled this attempt, or runs it a second time.
                raise Fenced(f"this attempt to publish {one.name} was settled by another worker") from used
            except OutcomeUnknown:
                if repeat == REPEATS_MAX - 1:
                    raise
            else:
                return done.metadata, done.location
        raise OutcomeUnknown(f"{one.name}: the commit did not say whether it landed")

    async def refuse_other_base(
        self, one: Publication, base: TableMetadata, now: TableMetadata, conflict: Conflict
    ) -> None:
        """Whether a publication that was drafted on a base can stand on the table as it is now."""
        if published_before(now, one.materialization_id, one.ref) is not None:
            return
        if now.table_uuid != base.table_uuid:
            raise PartitionsTouched(f"{one.name} is another table now") from conflict
        if one.schema is not None and now.current_schema_id != base.current_schema_id:
            raise PartitionsTouched(f"the schema of {one.name} was changed by another commit") from conflict
        await self.refuse_passed(one, now, parent_of(base, one.ref).snapshot_id)

    async def refuse_passed(self, one: Publication, now: TableMetadata, before: int | None) -> None:
        """Whether any commit to the ref since a snapshot concerns what a publication replaces."""
        for snapshot in _since(now, before, parent_of(now, one.ref).snapshot_id, one.name):
            await self._refuse_touched(one, now, snapshot)

    async def _refuse_touched(self, one: Publication, table: TableMetadata, snapshot: JsonObject) -> None:
        """Whether another commit concerns what this one replaces."""
        who = f"snapshot {snapshot['snapshot-id']}"
        if isinstance(one.change, AppendNext) and INPUT_SNAPSHOTS in (snapshot.get("summary") or {}):
            raise PartitionsTouched(f"{who} published {one.name}, which what is appended here was to follow")
        if isinstance(one.change, Append | MergeManifests):
            return
        if isinstance(one.change, ReplaceAll):
            raise PartitionsTouched(f"{who} changed {one.name} while all of it was being replaced")
        touches = _toucher(one.change, table)
        state = TableState(table, snapshot, table.current_schema)
        manifests = [one for one in await self._files.manifests(state) if one.added_snapshot_id == state.snapshot_id]
        found = await self._files.entries(manifests)
        for manifest in manifests:
            for entry in found[manifest.manifest_path]:
                if entry.status is not ManifestEntryStatus.EXISTING and touches(manifest, entry):
                    raise PartitionsTouched(f"{who} changed rows of {one.name} that were being replaced")


def _toucher(
    change: Replace | Rewrite | Compact | Replay, table: TableMetadata
) -> Callable[[ManifestFile, ManifestEntry], bool]:
    """Whether what another commit did to a file concerns a change."""
    if isinstance(change, Compact):
        # Rows that are put into other files are neither to come back nor to be deleted where they were.
        return lambda manifest, entry: (
            manifest.content == ManifestContent.DELETES or plain_path(entry.data_file.file_path) in change.files
        )
    if isinstance(change, Replay):
        return lambda _, entry: place_of(entry.data_file) in change.places
    wanted = Matching(change.where, table)

    def touches(manifest: ManifestFile, entry: ManifestEntry) -> bool:
        # A file of deletes says nothing of the rows it concerns but their partition.
        is_data = manifest.content == ManifestContent.DATA
        return wanted.some(entry.data_file) if is_data else wanted.may_concern(entry.data_file)

    return touches


def parent_of(table: TableMetadata, ref: str) -> TableState:
    """What a new snapshot of a ref stands on: its own head, or main's for a branch that begins."""
    return state_of(table, ref=ref if ref in table.refs else MAIN)


def commit_of(one: Publication, base: TableMetadata, draft: Draft) -> CommitTable:
    """The commit of a draft: it holds for exactly the base that was looked at."""
    snapshot: list[changes.TableUpdate] = [
        changes.AddSnapshot(draft.snapshot),
        changes.SetSnapshotRef(one.ref, draft.snapshot["snapshot-id"], "branch"),
    ]
    if one.creates:
        return CommitTable(None, (changes.AssertCreate(),), (*_creation(base), *_schema_updates(one), *snapshot))
    head = base.refs.get(one.ref, {}).get("snapshot-id")
    required: list[changes.TableRequirement] = [
        changes.AssertTableUuid(base.table_uuid),
        changes.AssertRefSnapshotId(one.ref, head),
    ]
    if one.schema is not None:
        required.append(changes.AssertCurrentSchemaId(base.current_schema_id))
        required.append(changes.AssertLastAssignedFieldId(base.last_column_id))
    return CommitTable(None, tuple(required), (*_schema_updates(one), *snapshot))


def _schema_updates(one: Publication) -> list[changes.TableUpdate]:
    if one.schema is None:
        return []
    added = changes.AddSchema(one.schema)
    # What is held back on a branch must not change how main is read.
    return [added, changes.SetCurrentSchema(LAST_ADDED)] if one.ref == MAIN else [added]


def _creation(table: TableMetadata) -> list[changes.TableUpdate]:
    """The updates that say a whole table, from its staged metadata."""
    document = table.document
    return [
        changes.AssignUuid(table.table_uuid),
        changes.UpgradeFormatVersion(table.format_version),
        changes.AddSchema(table.current_schema),
        changes.SetCurrentSchema(LAST_ADDED),
        changes.AddSpec(document["partition-specs"][0]),
        changes.SetDefaultSpec(LAST_ADDED),
        changes.AddSortOrder(document["sort-orders"][0]),
        changes.SetDefaultSortOrder(LAST_ADDED),
        changes.SetLocation(table.location),
        changes.SetProperties(table.properties),
    ]


def _since(table: TableMetadata, before: int | None, after: int | None, name: str) -> list[JsonObject]:
    """What was committed to a ref meanwhile, newest first."""
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in table.snapshots}
    found = []
    current = after
    while current != before:
        if current is None or current not in by_id:
            raise PartitionsTouched(f"the history of {clip(name)} was changed")
        found.append(by_id[current])
        current = by_id[current].get("parent-snapshot-id")
    return found
