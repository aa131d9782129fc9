"""Two schemas of an asset compared, by the ids of their columns, with what quality says of the change.

What must never enter: an opinion on changes. `quality.compatibility` has it.
"""

import msgspec

from arco.kernel.errors import InvalidInput, NotFound
from arco.quality.compatibility import Compatibility, verdict
from arco.quality.schemas import Column, Schema
from arco.read.answers import Answer, document
from arco.read.assets import asset_definition
from arco.read.naming import found_asset
from arco.read.reader import Reader
from arco.read.schemas import DeclaredSchema, SchemaColumn, TableSchema, schema_history


class SchemaChange(msgspec.Struct, frozen=True, kw_only=True):
    """One difference. `refused` is why the mode refuses it, and the way out; null where it is allowed."""

    kind: str
    column: str
    before: str | None
    after: str | None
    refused: str | None
    in_place: bool


class SchemaDiff(Answer, frozen=True, kw_only=True):
    """From one schema to another. `allowed` is the verdict under the asset's mode of compatibility."""

    asset: str
    asset_id: str
    before: str
    after: str
    mode: Compatibility
    allowed: bool
    in_place: bool
    changes: tuple[SchemaChange, ...]


async def schema_diff(
    reader: Reader, asked: str, before: str, after: str, *, mode: Compatibility | None = None
) -> SchemaDiff:
    """Two schemas of an asset: numbers of its table's schemas, or hashes of declared ones."""
    named = await found_asset(reader, asked)
    history = await schema_history(reader, asked)
    if before.isdecimal() != after.isdecimal():
        raise InvalidInput(
            "a schema of the table and a declared one number their columns differently",
            hint="compare two numbers, or two hashes",
        )
    chosen = mode or await _mode(reader, named.asset_id)
    found = verdict(
        schema_of(_named_schema(before, history.table, history.declared)),
        schema_of(_named_schema(after, history.table, history.declared)),
        chosen,
    )
    refused = {refusal.change: f"{refusal.reason}; {refusal.way_out}" for refusal in found.refusals}
    return SchemaDiff(
        snapshot_id=reader.cut.snapshot_id,
        asset=named.asset,
        asset_id=named.asset_id,
        before=before,
        after=after,
        mode=chosen,
        allowed=found.allowed,
        in_place=found.in_place,
        changes=tuple(
            SchemaChange(
                kind=change.kind.value,
                column=change.column,
                before=change.before,
                after=change.after,
                refused=refused.get(change),
                in_place=change.in_place,
            )
            for change in found.changes
        ),
    )


def schema_of(found: TableSchema | DeclaredSchema) -> Schema:
    """A schema as quality compares it: from Iceberg's own document, or from its columns where there is none."""
    written = document(found.document) if isinstance(found, TableSchema) else None
    if isinstance(written, dict) and written.get("fields"):
        return Schema.of(written)
    parents: dict[str, int | str] = {}
    columns = []
    for column in found.columns:
        parents[column.path] = column.id
        columns.append(_column(column, parents.get(column.path.rpartition(".")[0])))
    return Schema(tuple(columns))


def _column(column: SchemaColumn, parent: int | str | None) -> Column:
    return Column(
        id=column.id,
        path=tuple(column.path.split(".")),
        type=column.type or "unknown",
        required=bool(column.required),
        doc=column.doc,
        parent=parent,
    )


def _named_schema(
    asked: str, table: tuple[TableSchema, ...], declared: tuple[DeclaredSchema, ...]
) -> TableSchema | DeclaredSchema:
    if asked.isdecimal():
        found: TableSchema | DeclaredSchema | None = next((one for one in table if one.schema_id == int(asked)), None)
        known = [str(one.schema_id) for one in table]
    else:
        found = next((one for one in declared if one.schema_hash.startswith(asked)), None)
        known = [one.schema_hash[:12] for one in declared]
    if found is None:
        raise NotFound(f"there is no schema {asked!r} of it", hint=f"there are {', '.join(known) or 'none'}")
    return found


async def _mode(reader: Reader, asset_id: str) -> Compatibility:
    said = (await asset_definition(reader, asset_id)).get("compatibility")
    return Compatibility(said) if said in set(Compatibility) else Compatibility.BACKWARD
