"""The schema registry: every declared column under an identity that survives deployments and renames.

Before its asset has a table, a column is known by the id written beside it, or, where none is written, by its name inside the
same parent. Once there is a table, it is tied to a field of it, and its identity is that field's (`columns.py`). A dropped
column's id is gone for good: a new column of the same name is another column, unless its table still has the field. What a
change means for readers is decided by `quality.compatibility` alone. What must never enter: a second opinion.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.quality.compatibility import Compatibility, verdict
from arco.quality.schemas import Column, ColumnKey, Schema
from arco.servo.deploy.columns import TableColumns, column_id


class RegisteredColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column at any depth. `written_id` is the id that the author wrote beside it, if any.

    `table_uuid` and `field_id` say which field of which table it is; None until there is one.
    """

    column_id: str
    path: tuple[str, ...]
    type: str
    required: bool
    default: Any = None
    doc: str | None = None
    written_id: int | None = None
    table_uuid: str | None = None
    field_id: int | None = None


class RegisteredSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of an asset, parents first, and those it had before."""

    columns: tuple[RegisteredColumn, ...]
    dropped: tuple[RegisteredColumn, ...] = ()


class SchemaVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a deployment changed of one schema, and what of it the asset's compatibility refuses."""

    compatibility: str
    changes: tuple[str, ...]
    refused: tuple[str, ...]
    in_place: bool


def registered(schema: Schema, before: RegisteredSchema | None, new_id: Callable[[], str]) -> RegisteredSchema:
    """A declared schema under the ids that its columns have had so far, and new ones for what is new."""
    known = before or RegisteredSchema(columns=())
    matched = _matched(schema, known)
    _refuse_used_ids(schema, matched, known)
    columns = tuple(_column(column, matched.get(column.id), new_id) for column in schema.columns)
    kept = {column.column_id for column in columns}
    gone = tuple(column for column in known.columns if column.column_id not in kept)
    return RegisteredSchema(columns=columns, dropped=(*known.dropped, *gone))


def tied(found: RegisteredSchema, asset_id: str, table: TableColumns | None, new_id: Callable[[], str]) -> RegisteredSchema:
    """A schema whose columns are tied to the fields of the asset's table, as far as it has them.

    By name, since that is how rows are written; a column whose field was renamed stays tied to it, unless another column has
    that name. Of a table that was dropped and made anew every field is another.
    """
    if table is None:
        return found
    fields = _fields(found.columns, table)
    given = {place: str(column_id(asset_id, table.uuid, number)) for place, number in fields.items()}
    taken = set(given.values())
    columns = []
    for place, one in enumerate(found.columns):
        changes: dict[str, Any] = {}
        if place in given:
            changes = {"column_id": given[place], "table_uuid": table.uuid, "field_id": fields[place]}
        elif one.column_id in taken:
            changes = {"column_id": new_id(), "table_uuid": None, "field_id": None}
        columns.append(msgspec.structs.replace(one, **changes))
    dropped = tuple(one for one in found.dropped if one.column_id not in taken)
    return RegisteredSchema(columns=tuple(columns), dropped=dropped)


def _fields(columns: Sequence[RegisteredColumn], table: TableColumns) -> dict[int, int]:
    """The field of each column, by its place. No two columns have one."""
    found = {place: table.fields[one.path] for place, one in enumerate(columns) if one.path in table.fields}
    free = set(table.fields.values()) - set(found.values())
    for place, one in enumerate(columns):
        if place not in found and one.table_uuid == table.uuid and one.field_id in free:
            found[place] = one.field_id
            free.discard(one.field_id)
    return found


def remembered(counting: RegisteredSchema | None, latest: RegisteredSchema | None) -> RegisteredSchema | None:
    """After a rollback: the schema that counts, and what a later deployment had added to it, which rows may already hold."""
    if counting is None or latest is None:
        return counting or latest
    ids = {one.column_id for one in (*counting.columns, *counting.dropped)}
    paths = {one.path for one in counting.columns}
    later = [one for one in latest.columns if one.column_id not in ids]
    gone = [one for one in latest.dropped if one.column_id not in ids]
    return RegisteredSchema(
        columns=(*counting.columns, *(one for one in later if one.path not in paths)),
        dropped=(*counting.dropped, *gone, *(one for one in later if one.path in paths)),
    )


def schema_of(found: RegisteredSchema) -> Schema:
    """A registered schema with the registry's own ids: what two versions are compared by."""
    columns: list[Column] = []
    by_path: dict[tuple[str, ...], Column] = {}
    for one in found.columns:
        parent = by_path.get(one.path[:-1])
        in_map_key = parent is not None and (parent.in_map_key or (parent.type == "map" and one.path[-1] == "key"))
        column = Column(
            one.column_id,
            one.path,
            one.type,
            one.required,
            one.default,
            one.doc,
            None if parent is None else parent.id,
            in_map_key,
        )
        columns.append(column)
        by_path[one.path] = column
    return Schema(tuple(columns))


def judged(
    before: RegisteredSchema, after: RegisteredSchema, mode: Compatibility, properties: Mapping[str, str]
) -> SchemaVerdict | None:
    """The verdict on a change; None where nothing changed."""
    version = properties.get("format-version", "2")
    found = verdict(schema_of(before), schema_of(after), mode, format_version=int(version) if version.isdecimal() else 2)
    if not found.changes:
        return None
    return SchemaVerdict(
        compatibility=mode.value,
        changes=tuple(str(change) for change in found.changes),
        refused=tuple(str(refusal) for refusal in found.refusals),
        in_place=found.in_place,
    )


def _matched(schema: Schema, known: RegisteredSchema) -> dict[ColumnKey, RegisteredColumn]:
    """Which column was which: by written id first, then by name inside the same parent."""
    by_written = {one.written_id: one for one in known.columns if one.written_id is not None}
    found: dict[ColumnKey, RegisteredColumn] = {
        column.id: by_written[column.id]
        for column in schema.columns
        if isinstance(column.id, int) and column.id in by_written
    }
    ids = {one.path: one.column_id for one in known.columns}
    by_place = {(ids.get(one.path[:-1]), one.path[-1]): one for one in known.columns}
    taken = {one.column_id for one in found.values()}
    for column in schema.columns:
        above = None if column.parent is None else found.get(column.parent)
        if column.id in found or (column.parent is not None and above is None):
            continue
        same = by_place.get((None if above is None else above.column_id, column.name))
        if same is None or same.column_id in taken:
            continue
        if isinstance(column.id, int) and same.written_id is not None:
            continue  # another id of the author's own: another column, though the name is the same
        found[column.id] = same
        taken.add(same.column_id)
    return found


def _refuse_used_ids(schema: Schema, matched: Mapping[ColumnKey, RegisteredColumn], known: RegisteredSchema) -> None:
    used = {one.written_id: one for one in known.dropped if one.written_id is not None}
    for column in schema.columns:
        if column.id not in matched and isinstance(column.id, int) and column.id in used:
            gone = ".".join(used[column.id].path)
            raise InvalidInput(
                f"column {clip(column.full_name)!r} has id {column.id}, which the dropped column {clip(gone)!r} had",
                hint="give it an id that no column had before",
            )


def _column(column: Column, before: RegisteredColumn | None, new_id: Callable[[], str]) -> RegisteredColumn:
    canonical_bytes(column.default)  # what cannot be written down is refused here
    written = column.id if isinstance(column.id, int) else None
    return RegisteredColumn(
        column_id=new_id() if before is None else before.column_id,
        path=column.path,
        type=column.type,
        required=column.required,
        default=column.default,
        doc=column.doc,
        written_id=before.written_id if written is None and before is not None else written,
        table_uuid=None if before is None else before.table_uuid,
        field_id=None if before is None else before.field_id,
    )
