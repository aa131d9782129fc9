"""One table as people and programs see it: what tier 1 says, and for Iceberg what its metadata says.

The platform API answers with these documents and `arco … --json` prints them, so that both say the same. Everything Iceberg
is a projection of the metadata file as of this moment. What must never enter: anything that is kept.
"""

from typing import Any

import msgspec

from arco.catalog import pii_marks
from arco.catalog.bases import Base
from arco.catalog.catalog import Catalog
from arco.catalog.inventory import Inventory, Place
from arco.catalog.model import ColumnNote, Dropped, Entry, Format, FormerName, Kind, Levels, Sensitivity
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.projection import ColumnRow, current_columns
from arco.iceberg.view_metadata import ViewMetadata


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a listing."""

    namespace: Levels
    name: str
    kind: Kind
    format: Format
    uuid: str
    asset_id: str
    location: str
    binding: int
    owner: str | None
    description: str | None
    tags: tuple[str, ...]
    sensitivity: Sensitivity | None
    created_ms: int
    updated_ms: int


class DroppedSummary(Summary, frozen=True, kw_only=True):
    drop_id: str
    dropped_ms: int
    dropped_by: str
    purge: bool
    unregistered: bool = False


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column at any depth; `path` has the names of those it lies in. Only Iceberg's have field ids."""

    path: str
    name: str
    type: str
    nullable: bool
    description: str | None
    field_id: int | None = None
    parent_field_id: int | None = None


class IcebergTable(msgspec.Struct, frozen=True, kw_only=True):
    """What the metadata of a table says. Counts are those of the current snapshot, where its writer said them."""

    metadata_location: str
    commit_number: int
    format_version: int
    updated_ms: int
    schema_id: int
    snapshot_id: int | None
    snapshot_ms: int | None
    snapshot_count: int
    refs: dict[str, int]
    row_count: int | None
    size_bytes: int | None
    file_count: int | None


class Representation(msgspec.Struct, frozen=True):
    dialect: str
    sql: str


class IcebergView(msgspec.Struct, frozen=True, kw_only=True):
    """What the metadata of a view says."""

    metadata_location: str
    commit_number: int
    format_version: int
    updated_ms: int
    version_id: int
    representations: tuple[Representation, ...]


class Overview(Summary, frozen=True, kw_only=True):
    """Everything there is to say. `iceberg` is null for tables of other formats."""

    pii_columns: dict[str, str]
    row_count: int | None
    size_bytes: int | None
    last_modified_ms: int | None
    former_names: tuple[FormerName, ...]
    properties: dict[str, str]
    columns: tuple[Column, ...]
    iceberg: IcebergTable | IcebergView | None


class TableOverview(Overview, frozen=True, kw_only=True):
    iceberg: IcebergTable | None


class ViewOverview(Overview, frozen=True, kw_only=True):
    iceberg: IcebergView | None


async def overview_of(catalog: Catalog, place: Place) -> Overview:
    """A table or view as it is now."""
    entry = await Inventory(catalog).find(place)
    if entry.format is not Format.ICEBERG:
        return _overview(entry, entry.properties, tuple(_noted(column) for column in entry.columns), None)
    if entry.kind is Kind.VIEW:
        entry, view = await catalog.views.load(*place)
        return _overview(entry, view.metadata.properties, _columns(view.metadata), _iceberg_view(view))
    entry, table = await catalog.tables.load(*place)
    return _overview(entry, table.metadata.properties, _columns(table.metadata), _iceberg_table(table))


def summary_of(entry: Entry) -> Summary:
    return Summary(**_said(entry))


def dropped_summary_of(dropped: Dropped) -> DroppedSummary:
    return DroppedSummary(
        **_said(dropped.entry),
        drop_id=dropped.drop_id,
        dropped_ms=dropped.dropped_ms,
        dropped_by=dropped.principal,
        purge=dropped.purge,
        unregistered=dropped.unregistered,
    )


def summary_count(snapshot: dict[str, Any] | None, word: str) -> int | None:
    """A number in a snapshot's summary, which is text of whoever wrote it."""
    text = str(((snapshot or {}).get("summary") or {}).get(word, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _said(entry: Entry) -> dict[str, Any]:
    governance = entry.governance
    return {
        "namespace": entry.namespace,
        "name": entry.name,
        "kind": entry.kind,
        "format": entry.format,
        "uuid": entry.uuid,
        "asset_id": entry.asset_id,
        "location": entry.location,
        "binding": entry.binding,
        "owner": governance.owner,
        "description": governance.description,
        "tags": governance.tags,
        "sensitivity": governance.sensitivity,
        "created_ms": entry.created_ms,
        "updated_ms": entry.updated_ms,
    }


def _overview(
    entry: Entry, properties: dict[str, str], columns: tuple[Column, ...], iceberg: IcebergTable | IcebergView | None
) -> Overview:
    governance = entry.governance
    known = _said(entry) | {
        "pii_columns": pii_marks.shown(governance, _ids(columns, entry)),
        "row_count": governance.row_count,
        "size_bytes": governance.size_bytes,
        "last_modified_ms": governance.last_modified_ms,
        "former_names": entry.former_names,
        "properties": properties,
        "columns": columns,
    }
    if isinstance(iceberg, IcebergView):
        return ViewOverview(**known, iceberg=iceberg)
    return TableOverview(**known, iceberg=iceberg)


def _ids(columns: tuple[Column, ...], entry: Entry) -> dict[str, int | None]:
    """A view that is replaced numbers its columns anew."""
    return {one.path: None if entry.kind is Kind.VIEW else one.field_id for one in columns}


def _iceberg_table(base: Base[TableMetadata]) -> IcebergTable:
    metadata = base.metadata
    current = metadata.current_snapshot_id
    snapshot = next((one for one in metadata.snapshots if one["snapshot-id"] == current), None)
    return IcebergTable(
        metadata_location=base.location,
        commit_number=base.pointer.value.commit_number,
        format_version=metadata.format_version,
        updated_ms=metadata.last_updated_ms,
        schema_id=metadata.current_schema_id,
        snapshot_id=current,
        snapshot_ms=None if snapshot is None else int(snapshot["timestamp-ms"]),
        snapshot_count=len(metadata.snapshots),
        refs={name: int(ref["snapshot-id"]) for name, ref in metadata.refs.items()},
        row_count=summary_count(snapshot, "total-records"),
        size_bytes=summary_count(snapshot, "total-files-size"),
        file_count=summary_count(snapshot, "total-data-files"),
    )


def _iceberg_view(base: Base[ViewMetadata]) -> IcebergView:
    version = base.metadata.current_version
    shown = (Representation(str(one.get("dialect", "")), str(one.get("sql", ""))) for one in version["representations"])
    return IcebergView(
        metadata_location=base.location,
        commit_number=base.pointer.value.commit_number,
        format_version=int(base.metadata.document["format-version"]),
        updated_ms=int(version["timestamp-ms"]),
        version_id=base.metadata.current_version_id,
        representations=tuple(shown),
    )


def _columns(metadata: TableMetadata | ViewMetadata) -> tuple[Column, ...]:
    return tuple(_projected(row) for row in current_columns(metadata))


def _projected(row: ColumnRow) -> Column:
    return Column(
        path=row.path,
        name=row.name,
        type=row.type,
        nullable=not row.required,
        description=row.doc,
        field_id=row.field_id,
        parent_field_id=row.parent_field_id,
    )


def _noted(column: ColumnNote) -> Column:
    return Column(
        path=column.name, name=column.name, type=column.type, nullable=column.nullable, description=column.description
    )
