"""Updates that say what happened to a table: snapshots, refs, statistics, and the logs that follow from them.

Readers refuse a table whose logs run backwards by more than a minute, so a client with a slow clock must not be able to
write such a table: log entries are never earlier than the entry before them. What must never enter: the structure of a
table (`structure.py`), and the files that snapshots name.
"""

from typing import Literal

import msgspec

from arco.iceberg.changes import (
    AddSnapshot,
    RemovePartitionStatistics,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetPartitionStatistics,
    SetSnapshotRef,
    SetStatistics,
)
from arco.iceberg.draft import Draft
from arco.iceberg.metadata import MAIN
from arco.iceberg.shape import Count, Id, JsonObject, Long, Text, read
from arco.kernel.errors import Conflict, InvalidMetadata
from arco.kernel.ids import clip
from arco.kernel.limits import SNAPSHOT_LEAD_MS_MAX


class _Summary(msgspec.Struct, frozen=True):
    operation: Literal["append", "replace", "overwrite", "delete"]


class _Snapshot(msgspec.Struct, frozen=True, rename="kebab"):
    snapshot_id: Count
    timestamp_ms: Count
    sequence_number: Count = 0
    parent_snapshot_id: Long | None = None
    manifest_list: Text | None = None
    manifests: list[str] | None = None
    summary: dict[str, str] | None = None
    schema_id: Id | None = None
    first_row_id: Count | None = None
    added_rows: Count | None = None
    key_id: str | None = None


class _Blob(msgspec.Struct, frozen=True, rename="kebab"):
    # Any type: new kinds of sketches appear without a new format version.
    type: Text
    snapshot_id: Long
    sequence_number: Long
    fields: list[Long]
    properties: dict[str, str] = {}


class _StatisticsFile(msgspec.Struct, frozen=True, rename="kebab"):
    snapshot_id: Long
    statistics_path: Text
    file_size_in_bytes: Count
    file_footer_size_in_bytes: Count
    blob_metadata: list[_Blob]


class _PartitionStatisticsFile(msgspec.Struct, frozen=True, rename="kebab"):
    snapshot_id: Long
    statistics_path: Text
    file_size_in_bytes: Count


def add_snapshot(draft: Draft, update: AddSnapshot) -> None:
    snapshot = read(update.snapshot, _Snapshot, "snapshot")
    _check_complete(draft, snapshot)
    _check_new(draft, snapshot, update.snapshot)
    if draft.format_version > 1:
        _check_sequence(draft, snapshot)
    if draft.format_version >= 3:
        _take_row_ids(draft, snapshot)
    draft.snapshots[snapshot.snapshot_id] = _tidy(update.snapshot)
    draft.added_snapshot_ids.add(snapshot.snapshot_id)
    if draft.format_version > 1:
        draft.document["last-sequence-number"] = max(draft.document["last-sequence-number"], snapshot.sequence_number)


def set_snapshot_ref(draft: Draft, update: SetSnapshotRef) -> None:
    if update.type == "tag":
        if update.ref_name == MAIN:
            raise InvalidMetadata("main is a branch and cannot be a tag")
        if update.min_snapshots_to_keep is not None or update.max_snapshot_age_ms is not None:
            raise InvalidMetadata(
                f"tag {clip(update.ref_name)!r}: tags do not support min-snapshots-to-keep or max-snapshot-age-ms"
            )
    snapshot = draft.snapshots.get(update.snapshot_id)
    if snapshot is None:
        raise InvalidMetadata(f"Cannot set {clip(update.ref_name)} to unknown snapshot: {update.snapshot_id}")
    ref = _ref(update)
    if draft.document["refs"].get(update.ref_name) == ref:
        return
    draft.document["refs"][update.ref_name] = ref
    if update.ref_name == MAIN:
        added = update.snapshot_id in draft.added_snapshot_ids
        _log_current(draft, update.snapshot_id, snapshot["timestamp-ms"] if added else draft.now_ms)
        if added:
            draft.passed_through_main.add(update.snapshot_id)


def remove_snapshot_ref(draft: Draft, update: RemoveSnapshotRef) -> None:
    draft.document["refs"].pop(update.ref_name, None)


def remove_snapshots(draft: Draft, update: RemoveSnapshots) -> None:
    gone = {snapshot_id for snapshot_id in update.snapshot_ids if snapshot_id in draft.snapshots}
    if not gone:
        return
    draft.removed_snapshots = True
    for snapshot_id in gone:
        del draft.snapshots[snapshot_id]
    refs = draft.document["refs"]
    for name in [name for name, ref in refs.items() if ref["snapshot-id"] in gone]:
        del refs[name]
    for key in ("statistics", "partition-statistics"):
        draft.document[key][:] = [entry for entry in draft.document[key] if entry["snapshot-id"] not in gone]


def set_statistics(draft: Draft, update: SetStatistics) -> None:
    file = read(update.statistics, _StatisticsFile, "statistics")
    if update.snapshot_id is not None and update.snapshot_id != file.snapshot_id:
        raise InvalidMetadata(
            f"set-statistics: snapshot-id {update.snapshot_id} is not that of the file, {file.snapshot_id}"
        )
    _replace(draft, "statistics", _tidy(update.statistics))


def remove_statistics(draft: Draft, update: RemoveStatistics) -> None:
    _forget(draft, "statistics", update.snapshot_id)


def set_partition_statistics(draft: Draft, update: SetPartitionStatistics) -> None:
    read(update.partition_statistics, _PartitionStatisticsFile, "partition-statistics")
    _replace(draft, "partition-statistics", _tidy(update.partition_statistics))


def remove_partition_statistics(draft: Draft, update: RemovePartitionStatistics) -> None:
    _forget(draft, "partition-statistics", update.snapshot_id)


def settle_snapshot_log(draft: Draft) -> None:
    """Take out what readers must not see: snapshots nobody ever read, and history from before a removed snapshot.

    A gap in the log would give time travel into it a wrong answer; no answer is better.
    """
    never_seen = {snapshot_id for snapshot_id in draft.passed_through_main if snapshot_id != draft.current_snapshot_id}
    if not never_seen and not draft.removed_snapshots:
        return
    kept: list[JsonObject] = []
    for entry in draft.document["snapshot-log"]:
        if entry["snapshot-id"] not in draft.snapshots:
            kept.clear()
        elif entry["snapshot-id"] not in never_seen:
            kept.append(entry)
    draft.document["snapshot-log"] = kept


def _check_complete(draft: Draft, snapshot: _Snapshot) -> None:
    what = f"snapshot {snapshot.snapshot_id}"
    if snapshot.manifest_list is None and (draft.format_version > 1 or snapshot.manifests is None):
        raise InvalidMetadata(f"{what}: it has no manifest-list")
    if snapshot.summary is not None or draft.format_version > 1:
        read(snapshot.summary or {}, _Summary, f"{what}: summary")
    if not draft.schemas.entries:
        raise InvalidMetadata("Attempting to add a snapshot before a schema is added")
    if snapshot.schema_id is not None and draft.schemas.get(snapshot.schema_id) is None:
        raise InvalidMetadata(f"{what}: schema {snapshot.schema_id} does not exist")
    if snapshot.timestamp_ms > draft.now_ms + SNAPSHOT_LEAD_MS_MAX:
        raise InvalidMetadata(
            f"{what}: timestamp-ms {snapshot.timestamp_ms} is more than a day ahead of the server's clock"
        )


def _check_new(draft: Draft, snapshot: _Snapshot, sent: JsonObject) -> None:
    existing = draft.snapshots.get(snapshot.snapshot_id)
    if existing is None:
        return
    if snapshot.snapshot_id not in draft.added_snapshot_ids and existing.get("manifest-list") == sent.get("manifest-list"):
        # The same commit again, after its reply was lost. A 400 would make the client delete files that are in use.
        raise Conflict(f"Snapshot already exists for id: {snapshot.snapshot_id} (this commit has landed before)")
    raise InvalidMetadata(f"Snapshot already exists for id: {snapshot.snapshot_id}")


def _check_sequence(draft: Draft, snapshot: _Snapshot) -> None:
    last = draft.document["last-sequence-number"]
    # Without a parent nothing older is read together with it: this is how two concurrent replacements both succeed.
    if snapshot.sequence_number <= last and snapshot.parent_snapshot_id is not None:
        # The client counted on from what it had read, so somebody committed in between; it can count again.
        raise Conflict(
            f"Cannot add snapshot with sequence number {snapshot.sequence_number} older than last sequence number {last}"
        )


def _take_row_ids(draft: Draft, snapshot: _Snapshot) -> None:
    if snapshot.first_row_id is None or snapshot.added_rows is None:
        raise InvalidMetadata(
            f"snapshot {snapshot.snapshot_id}: first-row-id and added-rows are required in v{draft.format_version}"
        )
    upcoming = draft.document["next-row-id"]
    if snapshot.first_row_id < upcoming:
        raise Conflict(
            f"Cannot add a snapshot with first-row-id behind table next-row-id: {snapshot.first_row_id} < {upcoming}"
        )
    draft.document["next-row-id"] = snapshot.first_row_id + snapshot.added_rows


def _ref(update: SetSnapshotRef) -> JsonObject:
    ref: JsonObject = {"snapshot-id": update.snapshot_id, "type": update.type}
    optional = {
        "min-snapshots-to-keep": update.min_snapshots_to_keep,
        "max-snapshot-age-ms": update.max_snapshot_age_ms,
        "max-ref-age-ms": update.max_ref_age_ms,
    }
    return {**ref, **{key: value for key, value in optional.items() if value is not None}}


def _log_current(draft: Draft, snapshot_id: int, timestamp_ms: int) -> None:
    log = draft.document["snapshot-log"]
    earliest = log[-1]["timestamp-ms"] if log else 0
    log.append({"timestamp-ms": max(timestamp_ms, earliest), "snapshot-id": snapshot_id})


def _replace(draft: Draft, key: str, entry: JsonObject) -> None:
    _forget(draft, key, entry["snapshot-id"])
    draft.document[key].append(entry)


def _forget(draft: Draft, key: str, snapshot_id: int) -> None:
    draft.document[key][:] = [entry for entry in draft.document[key] if entry["snapshot-id"] != snapshot_id]


def _tidy(value: JsonObject) -> JsonObject:
    return {key: item for key, item in value.items() if item is not None}
