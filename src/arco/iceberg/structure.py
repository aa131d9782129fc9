"""Updates that say what a table is: its identity, format version, schemas, specs, orders, location, properties and keys.

One function per update, each changing the draft it is given. Removing what is not there is no error, because the state asked
for is the state that is. What must never enter: snapshots, time and logs (`history.py`).
"""

import msgspec

from arco.iceberg import schemas
from arco.iceberg.changes import (
    AddEncryptionKey,
    AddSchema,
    AddSortOrder,
    AddSpec,
    AssignUuid,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemoveProperties,
    RemoveSchemas,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from arco.iceberg.draft import Draft
from arco.iceberg.locations import same_place, without_trailing_slash
from arco.iceberg.metadata import FORMAT_VERSIONS
from arco.iceberg.shape import Text, read, without_nulls
from arco.iceberg.specs import (
    UNSORTED,
    UNSORTED_ORDER_ID,
    checked_order,
    checked_spec,
    has_sequential_ids,
)
from arco.kernel.errors import InvalidMetadata
from arco.kernel.ids import clip

_KEYS_MIN_VERSION = 3


class _EncryptionKey(msgspec.Struct, frozen=True, rename="kebab"):
    key_id: Text
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] = {}


def assign_uuid(draft: Draft, update: AssignUuid) -> None:
    current = draft.document["table-uuid"]
    if current is None:
        draft.document["table-uuid"] = update.uuid
    elif current.lower() != update.uuid.lower():
        raise InvalidMetadata(f"Cannot reassign uuid: the table is {current}")


def upgrade_format_version(draft: Draft, update: UpgradeFormatVersion) -> None:
    wanted, current = update.format_version, draft.format_version
    if wanted not in FORMAT_VERSIONS:
        raise InvalidMetadata(
            f"Cannot upgrade table to unsupported format version: v{wanted} (supported: v{FORMAT_VERSIONS[-1]})"
        )
    if wanted < current:
        raise InvalidMetadata(f"Cannot downgrade v{current} table to v{wanted}")
    draft.document["format-version"] = wanted
    if wanted >= 2:
        # Version 1 repeats the current schema and spec for old readers; kept, they would go stale.
        draft.document.pop("schema", None)
        draft.document.pop("partition-spec", None)
        draft.document.setdefault("last-sequence-number", 0)
    if wanted >= 3:
        draft.document.setdefault("next-row-id", 0)


def add_schema(draft: Draft, update: AddSchema) -> None:
    schema, columns = schemas.checked_columns(update.schema, format_version=draft.format_version)
    draft.schemas.add(schema, keep_id=draft.creating)
    draft.document["last-column-id"] = max([draft.document["last-column-id"], *columns])


def set_current_schema(draft: Draft, update: SetCurrentSchema) -> None:
    draft.document["current-schema-id"] = draft.schemas.resolve(update.schema_id)


def remove_schemas(draft: Draft, update: RemoveSchemas) -> None:
    if draft.document["current-schema-id"] in update.schema_ids:
        raise InvalidMetadata(f"Cannot remove the current schema: {draft.document['current-schema-id']}")
    draft.schemas.remove(set(update.schema_ids))


def add_spec(draft: Draft, update: AddSpec) -> None:
    spec = checked_spec(
        update.spec,
        draft.current_columns(),
        first_new_id=draft.document["last-partition-id"] + 1,
        known=draft.specs.entries,
    )
    spec_id = draft.specs.add(_with_id(spec, "spec-id"), keep_id=draft.creating)
    stored = draft.specs.get(spec_id) or spec
    if draft.format_version == 1 and not has_sequential_ids(stored):
        raise InvalidMetadata("Spec does not use sequential IDs that are required in v1")
    used = max((field["field-id"] for field in stored["fields"]), default=0)
    draft.document["last-partition-id"] = max(draft.document["last-partition-id"], used)


def set_default_spec(draft: Draft, update: SetDefaultSpec) -> None:
    draft.document["default-spec-id"] = draft.specs.resolve(update.spec_id)


def remove_partition_specs(draft: Draft, update: RemovePartitionSpecs) -> None:
    if draft.document["default-spec-id"] in update.spec_ids:
        raise InvalidMetadata(f"Cannot remove the default partition spec: {draft.document['default-spec-id']}")
    draft.specs.remove(set(update.spec_ids))


def add_sort_order(draft: Draft, update: AddSortOrder) -> None:
    order = _with_id(checked_order(update.sort_order, draft.current_columns()), "order-id")
    if order["fields"]:
        draft.orders.add(order, keep_id=draft.creating)
    else:
        draft.orders.add_as(UNSORTED, UNSORTED_ORDER_ID)


def set_default_sort_order(draft: Draft, update: SetDefaultSortOrder) -> None:
    if update.sort_order_id == UNSORTED_ORDER_ID and draft.orders.get(UNSORTED_ORDER_ID) is None:
        # Every table can be unsorted, whether or not somebody wrote that order down.
        last_added = draft.orders.last_added
        draft.orders.add_as(UNSORTED, UNSORTED_ORDER_ID)
        draft.orders.last_added = last_added
    draft.document["default-sort-order-id"] = draft.orders.resolve(update.sort_order_id)


def set_location(draft: Draft, update: SetLocation) -> None:
    current = draft.document["location"]
    if current is None or not same_place(current, update.location):
        draft.document["location"] = without_trailing_slash(update.location)


def set_properties(draft: Draft, update: SetProperties) -> None:
    changed = dict(update.updates)
    version = changed.pop("format-version", None)
    if version is not None and version != str(draft.format_version):
        raise InvalidMetadata(
            f"format-version is not a property: the table is v{draft.format_version}, not v{clip(version)}",
            hint="send upgrade-format-version",
        )
    draft.document["properties"].update(changed)


def remove_properties(draft: Draft, update: RemoveProperties) -> None:
    for key in update.removals:
        draft.document["properties"].pop(key, None)


def add_encryption_key(draft: Draft, update: AddEncryptionKey) -> None:
    key = read(update.encryption_key, _EncryptionKey, "encryption key")
    if draft.format_version < _KEYS_MIN_VERSION:
        raise InvalidMetadata(f"encryption keys are not supported until v{_KEYS_MIN_VERSION}")
    keys = draft.document.setdefault("encryption-keys", [])
    tidy = without_nulls(update.encryption_key)
    existing = next((other for other in keys if other["key-id"] == key.key_id), None)
    if existing is None:
        keys.append(tidy)
    elif existing != tidy:
        # Under the old key's id the new key could not be told from it, and what the old one locks would be lost.
        raise InvalidMetadata(f"encryption key {clip(key.key_id)!r} exists already with another content")


def remove_encryption_key(draft: Draft, update: RemoveEncryptionKey) -> None:
    keys = draft.document.get("encryption-keys")
    if keys:
        keys[:] = [key for key in keys if key["key-id"] != update.key_id]


def _with_id(entry: dict[str, object], id_key: str) -> dict[str, object]:
    """The id is read-only in the description: one of the wrong type is as good as none."""
    chosen = entry.get(id_key)
    if isinstance(chosen, int) and not isinstance(chosen, bool) and 0 <= chosen < 2**31:
        return {id_key: chosen, **entry}
    return {id_key: None, **{key: value for key, value in entry.items() if key != id_key}}
