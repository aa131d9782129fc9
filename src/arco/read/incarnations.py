"""Which tables an asset had, and which of them counts: the newest one. A table that is dropped and made again is another.

A table is as old as its first commit; while the fold has not seen a commit of it yet, as old as the first partition published
there. Partitions and versions of older tables stay known as history, and are never current.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arco.fold.tables import ICEBERG_TABLES, PARTITIONS
from arco.read.publishers import counted
from arco.read.reader import Reader, Rows
from arco.read.views import text


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One table of an asset. `row` is its row among the tables, if a commit of it was folded."""

    table_uuid: str
    born: datetime | None
    row: dict[str, Any] | None


async def tables_of(reader: Reader, asset_ids: Collection[str]) -> Rows:
    """The rows of the tables that belong to some assets."""

    async def select() -> str:
        # A table that no project made is its own asset, by its uuid.
        owner = "coalesce(asset_id, table_uuid) AS asset_id"
        return f"SELECT * REPLACE ({owner}) FROM {await reader.relation(ICEBERG_TABLES)} ORDER BY asset_id"

    tables = await reader.kept("tables_by_asset", select)
    listed = ", ".join(text(one) for one in asset_ids) or "NULL"
    return await reader.rows(f"SELECT * FROM {tables} WHERE asset_id IN ({listed})")


async def incarnations(reader: Reader, asset_ids: Collection[str]) -> dict[str, list[Incarnation]]:
    """The tables of each asset, oldest first: the last one counts."""
    committed = await tables_of(reader, asset_ids)
    partitions = await counted(reader, PARTITIONS, asset_ids)
    published = await reader.rows(
        f"SELECT asset_id, table_uuid, min(first_published_at) AS born FROM {partitions} GROUP BY ALL"
    )
    return {asset_id: _ordered(asset_id, committed, published) for asset_id in asset_ids}


def newest(tables: Iterable[Incarnation]) -> Incarnation | None:
    return max(tables, key=_age, default=None)


def _ordered(asset_id: str, committed: Rows, published: Rows) -> list[Incarnation]:
    found = {
        row["table_uuid"]: Incarnation(row["table_uuid"], row["born"], None)
        for row in published
        if row["asset_id"] == asset_id and row["table_uuid"] is not None
    }
    for row in committed:
        if row["asset_id"] == asset_id:
            found[row["table_uuid"]] = Incarnation(row["table_uuid"], row["first_commit_at"], row)
    return sorted(found.values(), key=_age)


def _age(table: Incarnation) -> tuple[datetime, str]:
    return (table.born or datetime.min, table.table_uuid)  # noqa: DTZ901 - beside moments of DuckDB, which have no zone
