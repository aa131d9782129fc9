"""Every update and every requirement of the REST description as frozen data, named as clients name them.

Reading is strict about what an update says and silent about what it adds: unknown members of a known update are ignored,
unknown updates are refused (all of them, in one answer). What must never enter: what an update does to metadata.
"""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from arco.iceberg.shape import Count, Id, IdOrLast, JsonObject, Long, Positive, Text, listed, read
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.limits import COMMIT_REQUIREMENTS_MAX, COMMIT_UPDATES_MAX, REF_NAME_CHARS_MAX

RefName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=REF_NAME_CHARS_MAX)]


class _Update(msgspec.Struct, frozen=True, tag_field="action", rename="kebab"):
    pass


class AssignUuid(_Update, frozen=True, tag="assign-uuid"):
    uuid: Text


class UpgradeFormatVersion(_Update, frozen=True, tag="upgrade-format-version"):
    format_version: Id


class AddSchema(_Update, frozen=True, tag="add-schema"):
    schema: JsonObject
    # Sent by older clients; the server computes it, so that a wrong one can do no harm.
    last_column_id: Long | None = None


class SetCurrentSchema(_Update, frozen=True, tag="set-current-schema"):
    schema_id: IdOrLast


class AddSpec(_Update, frozen=True, tag="add-spec"):
    spec: JsonObject


class SetDefaultSpec(_Update, frozen=True, tag="set-default-spec"):
    spec_id: IdOrLast


class AddSortOrder(_Update, frozen=True, tag="add-sort-order"):
    sort_order: JsonObject


class SetDefaultSortOrder(_Update, frozen=True, tag="set-default-sort-order"):
    sort_order_id: IdOrLast


class AddSnapshot(_Update, frozen=True, tag="add-snapshot"):
    snapshot: JsonObject


class SetSnapshotRef(_Update, frozen=True, tag="set-snapshot-ref"):
    ref_name: RefName
    snapshot_id: Count
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: Positive | None = None
    max_snapshot_age_ms: Positive | None = None
    max_ref_age_ms: Positive | None = None


class RemoveSnapshots(_Update, frozen=True, tag="remove-snapshots"):
    snapshot_ids: tuple[Long, ...]


class RemoveSnapshotRef(_Update, frozen=True, tag="remove-snapshot-ref"):
    ref_name: Text


class SetLocation(_Update, frozen=True, tag="set-location"):
    location: Text


class SetProperties(_Update, frozen=True, tag="set-properties"):
    updates: dict[Text, str]


class RemoveProperties(_Update, frozen=True, tag="remove-properties"):
    removals: tuple[str, ...]


class SetStatistics(_Update, frozen=True, tag="set-statistics"):
    statistics: JsonObject
    snapshot_id: Long | None = None


class RemoveStatistics(_Update, frozen=True, tag="remove-statistics"):
    snapshot_id: Long


class SetPartitionStatistics(_Update, frozen=True, tag="set-partition-statistics"):
    partition_statistics: JsonObject


class RemovePartitionStatistics(_Update, frozen=True, tag="remove-partition-statistics"):
    snapshot_id: Long


class RemovePartitionSpecs(_Update, frozen=True, tag="remove-partition-specs"):
    spec_ids: tuple[Id, ...]


class RemoveSchemas(_Update, frozen=True, tag="remove-schemas"):
    schema_ids: tuple[Id, ...]


class AddEncryptionKey(_Update, frozen=True, tag="add-encryption-key"):
    encryption_key: JsonObject


class RemoveEncryptionKey(_Update, frozen=True, tag="remove-encryption-key"):
    key_id: Text


class AddViewVersion(_Update, frozen=True, tag="add-view-version"):
    view_version: JsonObject


class SetCurrentViewVersion(_Update, frozen=True, tag="set-current-view-version"):
    view_version_id: IdOrLast


TableUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)

ViewUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)


class _Requirement(msgspec.Struct, frozen=True, tag_field="type", rename="kebab"):
    pass


class AssertCreate(_Requirement, frozen=True, tag="assert-create"):
    pass


class AssertTableUuid(_Requirement, frozen=True, tag="assert-table-uuid"):
    uuid: Text


class AssertRefSnapshotId(_Requirement, frozen=True, tag="assert-ref-snapshot-id"):
    ref: Text
    # None: the ref must not exist.
    snapshot_id: Long | None = None


class AssertLastAssignedFieldId(_Requirement, frozen=True, tag="assert-last-assigned-field-id"):
    last_assigned_field_id: Long


class AssertCurrentSchemaId(_Requirement, frozen=True, tag="assert-current-schema-id"):
    current_schema_id: Long


class AssertLastAssignedPartitionId(_Requirement, frozen=True, tag="assert-last-assigned-partition-id"):
    last_assigned_partition_id: Long


class AssertDefaultSpecId(_Requirement, frozen=True, tag="assert-default-spec-id"):
    default_spec_id: Long


class AssertDefaultSortOrderId(_Requirement, frozen=True, tag="assert-default-sort-order-id"):
    default_sort_order_id: Long


class AssertViewUuid(_Requirement, frozen=True, tag="assert-view-uuid"):
    uuid: Text


TableRequirement: TypeAlias = (
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)

ViewRequirement: TypeAlias = AssertViewUuid


def _by_tag(union: Any) -> dict[str, type]:
    kinds = getattr(union, "__args__", (union,))
    return {kind.__struct_config__.tag: kind for kind in kinds}


_TABLE_UPDATES = _by_tag(TableUpdate)
_TABLE_REQUIREMENTS = _by_tag(TableRequirement)
_VIEW_UPDATES = _by_tag(ViewUpdate)
_VIEW_REQUIREMENTS = _by_tag(ViewRequirement)


def refuse_unknown_in_tables(changes: list[tuple[list[Any], list[Any]]]) -> None:
    """One refusal for all unknown updates and requirements of (updates, requirements) pairs."""
    _refuse_unknown(changes, _TABLE_UPDATES, _TABLE_REQUIREMENTS)


def refuse_unknown_in_view(updates: list[Any], requirements: list[Any]) -> None:
    _refuse_unknown([(updates, requirements)], _VIEW_UPDATES, _VIEW_REQUIREMENTS)


def table_updates(items: list[Any]) -> tuple[TableUpdate, ...]:
    """The updates of one commit, in order; neighbouring remove-snapshots become one."""
    merged: list[Any] = []
    for place, item in enumerate(items):
        update = _one(item, "action", _TABLE_UPDATES, f"updates[{place}]")
        if isinstance(update, RemoveSnapshots) and merged and isinstance(merged[-1][-1], RemoveSnapshots):
            merged[-1].append(update)
        else:
            merged.append([update])
            if len(merged) > COMMIT_UPDATES_MAX:
                raise TooLarge(f"a commit has more than {COMMIT_UPDATES_MAX} updates")
    return tuple(run[0] if len(run) == 1 else _merged(run) for run in merged)


def view_updates(items: list[Any]) -> tuple[ViewUpdate, ...]:
    if len(items) > COMMIT_UPDATES_MAX:
        raise TooLarge(f"a commit has more than {COMMIT_UPDATES_MAX} updates")
    return tuple(_one(item, "action", _VIEW_UPDATES, f"updates[{place}]") for place, item in enumerate(items))


def table_requirements(items: list[Any]) -> tuple[TableRequirement, ...]:
    return _requirements(items, _TABLE_REQUIREMENTS)


def view_requirements(items: list[Any]) -> tuple[ViewRequirement, ...]:
    return _requirements(items, _VIEW_REQUIREMENTS)


def _requirements(items: list[Any], known: dict[str, type]) -> tuple[Any, ...]:
    if len(items) > COMMIT_REQUIREMENTS_MAX:
        raise TooLarge(f"a commit has more than {COMMIT_REQUIREMENTS_MAX} requirements")
    return tuple(_one(item, "type", known, f"requirements[{place}]") for place, item in enumerate(items))


def _one(item: object, tag_field: str, known: dict[str, type], what: str) -> Any:
    tag = item.get(tag_field) if isinstance(item, dict) else None
    if not isinstance(tag, str):
        raise InvalidInput(f"{what}: it must be an object with a text field {tag_field}")
    if tag not in known:
        raise InvalidInput(f"{what}: unknown {tag_field} {listed([tag])}")
    return read(item, known[tag], f"{what} ({tag})")


def _merged(run: list[RemoveSnapshots]) -> RemoveSnapshots:
    return RemoveSnapshots(tuple(snapshot_id for update in run for snapshot_id in update.snapshot_ids))


def _refuse_unknown(
    changes: list[tuple[list[Any], list[Any]]], updates: dict[str, type], requirements: dict[str, type]
) -> None:
    unknown_updates = _unknown((item for sent, _ in changes for item in sent), "action", updates)
    unknown_requirements = _unknown((item for _, sent in changes for item in sent), "type", requirements)
    parts = []
    if unknown_updates:
        parts.append(f"unknown updates: {listed(unknown_updates)}")
    if unknown_requirements:
        parts.append(f"unknown requirements: {listed(unknown_requirements)}")
    if parts:
        raise InvalidInput("; ".join(parts), hint="send only what the Iceberg REST description lists")


def _unknown(items: Any, tag_field: str, known: dict[str, type]) -> list[str]:
    tags = (item.get(tag_field) for item in items if isinstance(item, dict))
    return [tag for tag in tags if isinstance(tag, str) and tag not in known]
