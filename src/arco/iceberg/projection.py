"""A schema as flat rows, for the catalog's `columns` and for people.

Iceberg metadata is the authority; these rows are a projection of it and can always be made again. What must never enter:
anything that is not in the schema.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.schemas import columns
from arco.iceberg.shape import JsonObject
from arco.iceberg.view_metadata import ViewMetadata


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """One column at any depth; `position` counts among its siblings, `ordinal` over the whole schema."""

    field_id: int
    path: str
    name: str
    type: str
    required: bool
    doc: str | None
    position: int
    ordinal: int
    parent_field_id: int | None


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One schema a table has or had. `first_snapshot_id` is the oldest remaining snapshot written with it."""

    schema_id: int
    current: bool
    first_snapshot_id: int | None
    first_snapshot_ms: int | None
    columns: tuple[ColumnRow, ...]


def column_rows(schema: JsonObject) -> tuple[ColumnRow, ...]:
    return tuple(_rows(schema))


def current_columns(metadata: TableMetadata | ViewMetadata) -> tuple[ColumnRow, ...]:
    return column_rows(metadata.current_schema)


def schema_history(metadata: TableMetadata) -> tuple[SchemaVersion, ...]:
    """All schemas in the order they were added."""
    first: dict[int, JsonObject] = {}
    for snapshot in sorted(metadata.snapshots, key=lambda one: (one["timestamp-ms"], one.get("sequence-number", 0))):
        schema_id = snapshot.get("schema-id")
        if schema_id is not None:
            first.setdefault(schema_id, snapshot)
    return tuple(_version(schema, metadata, first.get(schema["schema-id"])) for schema in metadata.schemas)


def type_text(kind: Any) -> str:
    """A type as people write it: `struct<a: int, b: list<string>>`."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        fields = ", ".join(f"{field['name']}: {type_text(field['type'])}" for field in kind["fields"])
        return f"struct<{fields}>"
    if kind["type"] == "list":
        return f"list<{type_text(kind['element'])}>"
    return f"map<{type_text(kind['key'])}, {type_text(kind['value'])}>"


def _rows(schema: JsonObject) -> Iterator[ColumnRow]:
    siblings: dict[int | None, int] = {}
    for ordinal, column in enumerate(columns(schema)):
        parent = column.parent.field_id if column.parent else None
        position = siblings.get(parent, 0)
        siblings[parent] = position + 1
        yield ColumnRow(
            field_id=column.field_id,
            path=column.full_name,
            name=column.name,
            type=type_text(column.type),
            required=column.required,
            doc=column.doc,
            position=position,
            ordinal=ordinal,
            parent_field_id=parent,
        )


def _version(schema: JsonObject, metadata: TableMetadata, snapshot: JsonObject | None) -> SchemaVersion:
    return SchemaVersion(
        schema_id=schema["schema-id"],
        current=schema["schema-id"] == metadata.current_schema_id,
        first_snapshot_id=snapshot["snapshot-id"] if snapshot else None,
        first_snapshot_ms=snapshot["timestamp-ms"] if snapshot else None,
        columns=column_rows(schema),
    )
