"""A commit's updates applied to a table's metadata: one table of functions, one order, one way to finish.

`apply` is a pure function of the base, the updates, the time and the base's location: two servers that apply one request to
one base write the same document. What must never enter: requirements (checked before, on the same base), policy
(`guardrails.py`), and a clock.
"""

from collections.abc import Callable, Sequence
from typing import Any

from arco.iceberg import changes, history, structure
from arco.iceberg.changes import TableUpdate, UpgradeFormatVersion
from arco.iceberg.draft import Draft, open_draft, settle_current_snapshot
from arco.iceberg.metadata import DEFAULT_FORMAT_VERSION, FORMAT_VERSIONS, TableMetadata
from arco.iceberg.shape import JsonObject
from arco.iceberg.specs import UNPARTITIONED, UNSORTED, UNSORTED_ORDER_ID, check_order_fits, check_spec_fits
from arco.kernel.errors import InvalidMetadata
from arco.kernel.ids import clip

PREVIOUS_VERSIONS_PROPERTY = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_DEFAULT = 100

_APPLY: dict[type, Callable[[Draft, Any], None]] = {
    changes.AssignUuid: structure.assign_uuid,
    changes.UpgradeFormatVersion: structure.upgrade_format_version,
    changes.AddSchema: structure.add_schema,
    changes.SetCurrentSchema: structure.set_current_schema,
    changes.AddSpec: structure.add_spec,
    changes.SetDefaultSpec: structure.set_default_spec,
    changes.AddSortOrder: structure.add_sort_order,
    changes.SetDefaultSortOrder: structure.set_default_sort_order,
    changes.AddSnapshot: history.add_snapshot,
    changes.SetSnapshotRef: history.set_snapshot_ref,
    changes.RemoveSnapshots: history.remove_snapshots,
    changes.RemoveSnapshotRef: history.remove_snapshot_ref,
    changes.SetLocation: structure.set_location,
    changes.SetProperties: structure.set_properties,
    changes.RemoveProperties: structure.remove_properties,
    changes.SetStatistics: history.set_statistics,
    changes.RemoveStatistics: history.remove_statistics,
    changes.SetPartitionStatistics: history.set_partition_statistics,
    changes.RemovePartitionStatistics: history.remove_partition_statistics,
    changes.RemovePartitionSpecs: structure.remove_partition_specs,
    changes.RemoveSchemas: structure.remove_schemas,
    changes.AddEncryptionKey: structure.add_encryption_key,
    changes.RemoveEncryptionKey: structure.remove_encryption_key,
}


def apply(
    base: TableMetadata | None, updates: Sequence[TableUpdate], *, now_ms: int, previous_location: str | None = None
) -> TableMetadata:
    """The table after the updates; `base` itself, the same object, if they change nothing.

    Without a base this is a create commit: the updates must say the whole table. `previous_location` is where the base was
    read from, and enters the metadata log.
    """
    draft = open_draft(base, format_version=_first_version(updates), now_ms=now_ms)
    for update in updates:
        _APPLY[type(update)](draft, update)
    document = draft.document
    document["snapshots"] = list(draft.snapshots.values())
    if base is None:
        _complete(draft)
    elif document == base.document:
        return base
    _finish(draft, base)
    if base is not None and previous_location is not None:
        entry = {"timestamp-ms": base.last_updated_ms, "metadata-file": previous_location}
        document["metadata-log"] = [*document["metadata-log"], entry]
    _trim_metadata_log(document)
    return TableMetadata(document)


def property_as_int(properties: dict[str, str], key: str, default: int) -> int:
    """A number among properties; one that cannot be read is refused when it is set, not met later by every commit."""
    text = properties.get(key)
    if text is None:
        return default
    digits = text.strip().removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        raise InvalidMetadata(f"property {key}: {clip(text)!r} is not a number")
    return int(text)


def _first_version(updates: Sequence[TableUpdate]) -> int:
    """A create commit starts at the version it names: version 1 tables are made, not downgraded to."""
    first = next((update for update in updates if isinstance(update, UpgradeFormatVersion)), None)
    return first.format_version if first is not None and first.format_version in FORMAT_VERSIONS else DEFAULT_FORMAT_VERSION


def _complete(draft: Draft) -> None:
    """What a create commit may leave out; what it must not is named, all of it."""
    document = draft.document
    if not draft.specs.entries:
        document["default-spec-id"] = draft.specs.add_as(UNPARTITIONED, UNPARTITIONED["spec-id"])
    if not draft.orders.entries:
        document["default-sort-order-id"] = draft.orders.add_as(UNSORTED, UNSORTED_ORDER_ID)
    needed = {
        "table-uuid": "assign-uuid",
        "location": "set-location",
        "current-schema-id": "set-current-schema",
        "default-spec-id": "set-default-spec",
        "default-sort-order-id": "set-default-sort-order",
    }
    missing = [update for key, update in needed.items() if document[key] is None]
    if missing:
        raise InvalidMetadata(f"a commit that creates a table lacks: {', '.join(missing)}")


def _finish(draft: Draft, base: TableMetadata | None) -> None:
    document = draft.document
    _check_structure(draft, base)
    history.settle_snapshot_log(draft)
    if base is None or draft.current_snapshot_id != base.current_snapshot_id:
        settle_current_snapshot(draft)
    if draft.format_version == 1:
        _repeat_for_v1_readers(document)
    # Never before what the document itself already tells of: readers refuse a table that is older than its history.
    times = [draft.now_ms, document["last-updated-ms"]]
    times += [snapshot["timestamp-ms"] for snapshot in document["snapshots"]]
    times += [entry["timestamp-ms"] for entry in document["snapshot-log"][-1:]]
    document["last-updated-ms"] = max(times)


def _check_structure(draft: Draft, base: TableMetadata | None) -> None:
    """The default spec and order must work with the current schema, whichever of the three the updates changed."""
    keys = ("current-schema-id", "default-spec-id", "default-sort-order-id")
    if base is not None and all(draft.document[key] == base.document[key] for key in keys):
        return
    columns = draft.current_columns()
    spec = draft.specs.get(draft.document["default-spec-id"])
    order = draft.orders.get(draft.document["default-sort-order-id"])
    if spec is not None:
        check_spec_fits(spec, columns)
    if order is not None:
        check_order_fits(order, columns)


def _repeat_for_v1_readers(document: JsonObject) -> None:
    document["schema"] = next(one for one in document["schemas"] if one["schema-id"] == document["current-schema-id"])
    default = next(one for one in document["partition-specs"] if one["spec-id"] == document["default-spec-id"])
    document["partition-spec"] = default["fields"]


def _trim_metadata_log(document: JsonObject) -> None:
    kept = max(1, property_as_int(document["properties"], PREVIOUS_VERSIONS_PROPERTY, PREVIOUS_VERSIONS_DEFAULT))
    document["metadata-log"] = document["metadata-log"][-kept:]
