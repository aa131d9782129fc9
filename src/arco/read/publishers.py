"""Which publishes count: Servo's, and of what others say they published what the catalog does not gainsay.

Anybody may post that something was published. Where the table is in this catalog, its commits are known: a snapshot that it never
had is no publish, and a table that is no table of the asset has no partitions of it. Where the catalog has no table of the asset
at all, it is as others say. What must never enter: what is current among the publishes that count; the fold has decided that.
"""

from collections.abc import Collection, Mapping
from typing import Any

from arco.fold.tables import ICEBERG_COMMITS, ICEBERG_TABLES
from arco.fold.vocabulary import Table
from arco.ledger.payloads import SERVO
from arco.read.reader import Reader
from arco.read.views import text

BY_SERVO = f"coalesce(told_by, {text(SERVO)}) = {text(SERVO)}"
"""Whether Servo says it. Files of before it was kept do not tell; what they have is taken as it was then."""


async def counting(reader: Reader, table: Table, asset_ids: Collection[str]) -> str:
    """The condition, in SQL, under which a publish of some assets counts. `table` has one row a partition of them."""
    relation = await reader.relation(table, asset_ids)
    claimed = await reader.rows(f"SELECT DISTINCT asset_id, table_uuid, snapshot_id FROM {relation} WHERE NOT ({BY_SERVO})")
    if not claimed:
        return "true"
    own = await _own_tables(reader, relation, asset_ids)
    owners = await _owners(reader, {row["table_uuid"] for row in claimed})
    made = await _snapshots(reader, owners)
    idle = [row for row in claimed if not _stands(row, own.get(row["asset_id"]), owners, made)]
    if not idle:
        return "true"
    listed = ", ".join(
        f"({text(row['asset_id'])}, {text(row['table_uuid'])}, {_number(row['snapshot_id'])})" for row in idle
    )
    return f"({BY_SERVO} OR (asset_id, table_uuid, coalesce(snapshot_id, -1)) NOT IN ({listed}))"


async def counted(reader: Reader, table: Table, asset_ids: Collection[str]) -> str:
    """The publishes of some assets that count, as a relation."""
    condition = await counting(reader, table, asset_ids)
    relation = await reader.relation(table, asset_ids)
    return relation if condition == "true" else f"(SELECT * FROM {relation} WHERE {condition})"


async def _own_tables(reader: Reader, relation: str, asset_ids: Collection[str]) -> dict[str, set[str]]:
    """The tables that are certainly an asset's: Servo published in them, or committed to them for it."""
    listed = ", ".join(map(text, asset_ids)) or "NULL"
    committed = await reader.relation(ICEBERG_TABLES)
    rows = await reader.rows(
        f"""SELECT DISTINCT asset_id, table_uuid FROM {relation} WHERE {BY_SERVO}
            UNION SELECT asset_id, table_uuid FROM {committed} WHERE asset_id IN ({listed})"""
    )
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["asset_id"], set()).add(row["table_uuid"])
    return found


async def _owners(reader: Reader, tables: Collection[str]) -> dict[str, str | None]:
    """The assets that some tables were made for, of those that the catalog knows."""
    rows = await reader.rows(f"SELECT table_uuid, asset_id FROM {await reader.relation(ICEBERG_TABLES, tables)}")
    return {row["table_uuid"]: row["asset_id"] for row in rows}


async def _snapshots(reader: Reader, tables: Collection[str]) -> set[tuple[str, int | None]]:
    relation = await reader.relation(ICEBERG_COMMITS, tables)
    rows = await reader.rows(f"SELECT table_uuid, snapshot_id FROM {relation} WHERE snapshot_id IS NOT NULL")
    return {(row["table_uuid"], row["snapshot_id"]) for row in rows}


def _stands(
    claim: dict[str, Any], own: set[str] | None, owners: Mapping[str, str | None], made: set[tuple[str, int | None]]
) -> bool:
    """Whether nothing that is known gainsays what others say they published. `own` are the tables of the asset."""
    table = claim["table_uuid"]
    if own is not None and table not in own:
        return False
    if own is None and table not in owners:
        return True  # nothing of it is in this catalog: it is as they say
    return owners.get(table) in {None, claim["asset_id"]} and (table, claim["snapshot_id"]) in made


def _number(snapshot_id: int | None) -> int:
    return -1 if snapshot_id is None else snapshot_id
