"""What can be found, as it is now: the words that assets and tables have today, to hold hits of the search index against."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from arco.fold.tables import ASSETS, COLUMNS, DECLARED_SCHEMAS, ICEBERG_TABLES
from arco.fold.words import words_of
from arco.read.incarnations import tables_of
from arco.read.reader import Reader, Rows
from arco.read.views import text


@dataclass(frozen=True, slots=True)
class Standing:
    """One asset or table as it is now. A word in a field that is not known here is taken at its word."""

    name: str
    description: str | None
    owners: tuple[str, ...]
    tags: tuple[str, ...]
    words: dict[str, frozenset[str]]

    def has(self, field: str, word: str) -> bool:
        known = self.words.get(field)
        return known is None or word in known


async def standing_subjects(reader: Reader, candidates: Rows) -> dict[tuple[str, str], Standing]:
    """Those of some hits that are still there and still in the namespace of the hit."""
    assets = sorted({row["subject_id"] for row in candidates if (row["subject_kind"] or "asset") == "asset"})
    tables = sorted({row["subject_id"] for row in candidates if row["subject_kind"] == "table"})
    by_column = {row["subject_id"] for row in candidates if any(place.startswith("column:") for place in row["places"])}
    found = await _assets(reader, assets, by_column)
    for uuid in await _tables(reader, tables):
        row = next(one for one in candidates if one["subject_id"] == uuid)
        found[row["namespace"], uuid] = Standing(row["subject"] or uuid, None, (), (), {})
    return found


async def _assets(reader: Reader, ids: list[str], by_column: Collection[str]) -> dict[tuple[str, str], Standing]:
    if not ids:
        return {}

    async def select() -> str:
        return f"""SELECT asset_id, asset, namespace, description, owners, tags, former_names
            FROM {await reader.relation(ASSETS)} WHERE asset IS NOT NULL AND NOT coalesce(retired, false)"""

    live = await reader.kept("live_assets", select)
    rows = await reader.rows(f"SELECT * FROM {live} WHERE asset_id IN ({', '.join(map(text, ids))})")
    columns = await _columns(reader, [row["asset_id"] for row in rows if row["asset_id"] in by_column])
    found = {}
    for row in rows:
        owners, tags = tuple(row["owners"] or ()), tuple(row["tags"] or ())
        words = {
            "name": _words(row["asset"]),
            "former_name": _words(*(row["former_names"] or ())),
            "namespace": _words(row["namespace"]),
            "description": _words(row["description"]),
            "owner": _words(*owners),
            "tag": _words(*tags),
        }
        if row["asset_id"] in columns:
            words["column"] = _words(*columns[row["asset_id"]])
        found[row["namespace"], row["asset_id"]] = Standing(row["asset"], row["description"], owners, tags, words)
    return found


async def _columns(reader: Reader, ids: list[str]) -> dict[str, list[str]]:
    """The columns that assets have now, in their tables and as declared."""
    if not ids:
        return {}
    newest: dict[str, dict[str, Any]] = {}
    for row in await tables_of(reader, ids):
        known = newest.get(row["asset_id"])
        if known is None or (row["first_commit_at"], row["table_uuid"]) > (known["first_commit_at"], known["table_uuid"]):
            newest[row["asset_id"]] = row
    owners = {row["table_uuid"]: row for row in newest.values()}
    columns = await reader.rows(f"SELECT table_uuid, schema_id, path, name FROM {await reader.relation(COLUMNS, owners)}")
    declared = await reader.rows(f"SELECT asset_id, name FROM {await reader.relation(DECLARED_SCHEMAS, ids)}")
    found: dict[str, list[str]] = {one: [] for one in ids}
    for row in columns:
        owner = owners[row["table_uuid"]]
        if row["schema_id"] == owner["schema_id"]:
            found[owner["asset_id"]].append(row["path"] or row["name"])
    for row in declared:
        found[row["asset_id"]].append(row["name"])
    return found


async def _tables(reader: Reader, uuids: list[str]) -> list[str]:
    if not uuids:
        return []
    relation = await reader.relation(ICEBERG_TABLES, uuids)
    return [row["table_uuid"] for row in await reader.rows(f"SELECT table_uuid FROM {relation}")]


def _words(*texts: str | None) -> frozenset[str]:
    return frozenset(word for one in texts if one for word in words_of(one))
