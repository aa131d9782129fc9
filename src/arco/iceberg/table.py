"""Tables as a whole: making a new one, writing and reading its metadata file, and the few facts a pointer keeps.

Creating is applying: `new_table` turns a request into the updates a create commit would send, so that a created table and
the same table staged and committed are one document. What must never enter: where files lie, names, and policy.
"""

from dataclasses import dataclass
from typing import Literal

from arco.iceberg import metadata_file, schemas
from arco.iceberg.changes import (
    AddSchema,
    AddSortOrder,
    AddSpec,
    AssignUuid,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from arco.iceberg.metadata import DEFAULT_FORMAT_VERSION, FORMAT_VERSIONS, TableMetadata, from_document
from arco.iceberg.requests import CreateTable
from arco.iceberg.shape import LAST_ADDED, JsonObject
from arco.iceberg.specs import PARTITION_FIELD_ID_FIRST, UNPARTITIONED, UNSORTED, remapped
from arco.iceberg.updates import apply
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

FORMAT_VERSION_PROPERTY = "format-version"

_FIRST_SORTED_ORDER_ID = 1

# What clients show as properties but metadata keeps elsewhere: stored, the copies would go stale.
_RESERVED_PROPERTIES = frozenset(
    {
        FORMAT_VERSION_PROPERTY,
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)


@dataclass(frozen=True, slots=True)
class RefFact:
    snapshot_id: int
    type: Literal["branch", "tag"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a pointer stores of the metadata it points to."""

    table_uuid: str
    format_version: int
    location: str
    current_snapshot_id: int | None
    current_schema_id: int
    last_sequence_number: int
    last_updated_ms: int
    refs: dict[str, RefFact]


def new_table(request: CreateTable, *, table_uuid: str, location: str, now_ms: int) -> TableMetadata:
    """Metadata for a create request, with column ids from 1 and partition field ids from 1000, whatever was sent."""
    return apply(None, _create_updates(request, table_uuid, location), now_ms=now_ms)


def encode(metadata: TableMetadata, location: str) -> bytes:
    """The bytes of the metadata file at `location`."""
    return metadata_file.to_bytes(metadata.document, location)


def decode(data: bytes, location: str) -> TableMetadata:
    """The metadata in a file; `CorruptObject`, `UnknownFormat` or `TooLarge` if there is none to be had."""
    return from_document(metadata_file.from_bytes(data, location), location)


def facts(metadata: TableMetadata) -> Facts:
    return Facts(
        table_uuid=metadata.table_uuid,
        format_version=metadata.format_version,
        location=metadata.location,
        current_snapshot_id=metadata.current_snapshot_id,
        current_schema_id=metadata.current_schema_id,
        last_sequence_number=metadata.last_sequence_number,
        last_updated_ms=metadata.last_updated_ms,
        refs={name: RefFact(ref["snapshot-id"], ref["type"]) for name, ref in metadata.refs.items()},
    )


def requested_format_version(properties: dict[str, str]) -> int:
    text = properties.get(FORMAT_VERSION_PROPERTY, str(DEFAULT_FORMAT_VERSION))
    if text not in {str(version) for version in FORMAT_VERSIONS}:
        raise InvalidInput(f"Unsupported format version: v{clip(text)} (supported: v{FORMAT_VERSIONS[-1]})")
    return int(text)


def _create_updates(request: CreateTable, table_uuid: str, location: str) -> list[TableUpdate]:
    version = requested_format_version(request.properties)
    sent = schemas.checked(request.schema, format_version=version)
    schema, fresh = schemas.with_fresh_ids(sent)
    return [
        AssignUuid(table_uuid),
        UpgradeFormatVersion(version),
        AddSchema({**schema, "schema-id": 0}),
        SetCurrentSchema(LAST_ADDED),
        AddSpec(_fresh_spec(request.partition_spec, fresh)),
        SetDefaultSpec(LAST_ADDED),
        AddSortOrder(_fresh_order(request.write_order, fresh)),
        SetDefaultSortOrder(LAST_ADDED),
        SetLocation(location),
        SetProperties({key: value for key, value in request.properties.items() if key not in _RESERVED_PROPERTIES}),
    ]


def _fresh_spec(spec: JsonObject | None, fresh: dict[int, int]) -> JsonObject:
    if spec is None:
        return UNPARTITIONED
    moved = remapped(spec, "partition spec", fresh)
    fields = [{**field, "field-id": PARTITION_FIELD_ID_FIRST + place} for place, field in enumerate(moved["fields"])]
    return {**moved, "spec-id": 0, "fields": fields}


def _fresh_order(order: JsonObject | None, fresh: dict[int, int]) -> JsonObject:
    if order is None:
        return UNSORTED
    return {**remapped(order, "sort order", fresh), "order-id": _FIRST_SORTED_ORDER_ID}
