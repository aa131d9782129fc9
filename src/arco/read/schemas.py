"""Schemas of an asset and their history: what its project declared, and what its table has. Columns are found by their ids."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import msgspec

from arco.fold.tables import COLUMNS, DECLARED_SCHEMAS, SCHEMAS
from arco.kernel.ids import clip
from arco.read.answers import Answer, plain, shaped
from arco.read.incarnations import Incarnation, incarnations
from arco.read.naming import found_asset, not_found
from arco.read.reader import Reader


class SchemaColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column at any depth. Its id is Iceberg's field id in a table, and a ULID where it was declared."""

    id: int | str
    path: str
    type: str | None
    required: bool | None
    doc: str | None
    ordinal: int | None


class TableSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema that a table had. `current` is the one that the asset's table has now."""

    table_uuid: str
    schema_id: int
    current: bool
    first_seen_at: datetime | None
    document: str | None
    columns: tuple[SchemaColumn, ...]


class DeclaredSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema as a project declared it. `verdict` is what was said of the change that it made."""

    schema_hash: str
    declared_at: datetime | None
    verdict: str | None
    columns: tuple[SchemaColumn, ...]


class CurrentSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The schema that something has now: that of its table, or what its project declared while there is no table."""

    table_uuid: str | None = None
    schema_id: int | None = None
    schema_hash: str | None = None
    columns: tuple[SchemaColumn, ...]


class SchemaHistory(Answer, frozen=True, kw_only=True):
    """Newest first, of the table and of the project."""

    asset: str
    asset_id: str
    table: tuple[TableSchema, ...]
    declared: tuple[DeclaredSchema, ...]


class CurrentColumns(Answer, frozen=True, kw_only=True):
    asset: str
    asset_id: str
    source: str
    columns: tuple[SchemaColumn, ...]


async def schema_history(reader: Reader, asked: str) -> SchemaHistory:
    """Every schema that an asset's tables had and its projects declared."""
    named = await found_asset(reader, asked)
    tables = (await incarnations(reader, [named.asset_id]))[named.asset_id]
    return SchemaHistory(
        snapshot_id=reader.cut.snapshot_id,
        asset=named.asset,
        asset_id=named.asset_id,
        table=await _of_tables(reader, tables),
        declared=(await _declared(reader, [named.asset_id])).get(named.asset_id, ()),
    )


async def current_columns(reader: Reader, asked: str) -> CurrentColumns:
    """The columns that an asset has: those of its table, or the declared ones while there is no table."""
    history = await schema_history(reader, asked)
    current = next((one for one in history.table if one.current), None)
    declared = history.declared[0].columns if history.declared else ()
    return CurrentColumns(
        snapshot_id=history.snapshot_id,
        asset=history.asset,
        asset_id=history.asset_id,
        source="table" if current is not None else "declared",
        columns=declared if current is None else current.columns,
    )


async def table_schema(reader: Reader, asked: str, schema_id: int) -> TableSchema:
    """One schema of the asset's newest table that had it."""
    history = await schema_history(reader, asked)
    found = next((one for one in history.table if one.schema_id == schema_id), None)
    if found is None:
        known = sorted({str(one.schema_id) for one in history.table})
        raise not_found(f"{clip(asked)} has no schema {schema_id}", known[:3], "its table is not known yet")
    return found


async def _of_tables(reader: Reader, tables: list[Incarnation]) -> tuple[TableSchema, ...]:
    ids = [table.table_uuid for table in tables]
    ages = {uuid: age for age, uuid in enumerate(ids)}
    schemas = await reader.rows(f"SELECT * FROM {await reader.relation(SCHEMAS, ids)}")
    columns = await _columns(reader, ids)
    newest = tables[-1].row if tables else None
    found = []
    for row in schemas:
        key = (row["table_uuid"], row["schema_id"])
        is_current = newest is not None and key == (newest["table_uuid"], newest["schema_id"])
        found.append(shaped(TableSchema, row, current=is_current, columns=columns.get(key, ())))
    return tuple(sorted(found, key=lambda one: (ages[one.table_uuid], one.current, one.schema_id), reverse=True))


async def current_schemas(reader: Reader, tables: Mapping[str, Incarnation | None]) -> dict[str, CurrentSchema]:
    """What some assets have now, with the table that counts of each: its schema, or while there is none the declared one."""
    known = {one: table.row for one, table in tables.items() if table is not None and table.row is not None}
    columns = await _columns(reader, {row["table_uuid"] for row in known.values()})
    found = {
        one: CurrentSchema(table_uuid=row["table_uuid"], schema_id=row["schema_id"], columns=its)
        for one, row in known.items()
        if (its := columns.get((row["table_uuid"], row["schema_id"])))
    }
    declared = await _declared(reader, [one for one in tables if one not in found])
    return found | {
        one: CurrentSchema(schema_hash=some[0].schema_hash, columns=some[0].columns) for one, some in declared.items()
    }


async def _columns(reader: Reader, table_uuids: Collection[str]) -> dict[tuple[str, int], tuple[SchemaColumn, ...]]:
    """The columns of every schema that some tables had."""
    found: dict[tuple[str, int], list[SchemaColumn]] = {}
    relation = await reader.relation(COLUMNS, table_uuids)
    for row in await reader.rows(f"SELECT * FROM {relation} ORDER BY ordinal, field_id"):
        path = row["path"] or row["name"] or str(row["field_id"])
        column = shaped(SchemaColumn, row, id=row["field_id"], path=path)
        found.setdefault((row["table_uuid"], row["schema_id"]), []).append(column)
    return {one: tuple(some) for one, some in found.items()}


async def _declared(reader: Reader, asset_ids: Collection[str]) -> dict[str, tuple[DeclaredSchema, ...]]:
    """What the projects of some assets declared, newest first."""
    rows = await reader.rows(
        f"SELECT * FROM {await reader.relation(DECLARED_SCHEMAS, asset_ids)} ORDER BY ordinal, column_id"
    )
    by_hash: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_hash.setdefault((row["asset_id"], row["schema_hash"]), []).append(row)
    # After a rollback an earlier one counts again, and is the newest.
    counted = {one: max(row["counted_order"] or "" for row in columns) for one, columns in by_hash.items()}
    found: dict[str, list[DeclaredSchema]] = {}
    for asset_id, schema_hash in sorted(by_hash, key=lambda one: (counted[one], one[1]), reverse=True):
        columns = by_hash[asset_id, schema_hash]
        schema = DeclaredSchema(
            schema_hash=schema_hash,
            declared_at=plain(max((row["declared_at"] for row in columns if row["declared_at"]), default=None)),
            verdict=columns[0]["verdict"],
            columns=tuple(
                shaped(SchemaColumn, row, id=row["column_id"], path=row["name"], doc=row["description"]) for row in columns
            ),
        )
        found.setdefault(asset_id, []).append(schema)
    return {one: tuple(some) for one, some in found.items()}
