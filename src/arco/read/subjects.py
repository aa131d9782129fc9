"""What can be found, as it is now: the words that assets and tables have today, to hold hits of the search index against."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arco.fold.tables import ASSETS, COLUMNS, DECLARED_SCHEMAS, ICEBERG_TABLES
from arco.fold.words import words_of_name, words_of_text
from arco.read.incarnations import tables_of
from arco.read.plain_tables import plain_rows
from arco.read.reader import Reader, Rows
from arco.read.views import text


@dataclass(frozen=True, slots=True)
class Standing:
    """One asset or table as it is now, and the words of each of its fields."""

    kind: str
    name: str
    namespace: str
    description: str | None
    owners: tuple[str, ...]
    tags: tuple[str, ...]
    words: dict[str, frozenset[str]]

    def places(self, wanted: Collection[str]) -> list[tuple[str, str]]:
        """Which of some words it has, and in which fields."""
        return sorted((field, word) for field, words in self.words.items() for word in words.intersection(wanted))


async def standing_subjects(reader: Reader, candidates: Rows, asked: list[set[str]]) -> dict[str, Standing]:
    """Those of some candidates that are still there, by their ids.

    `asked` has a set for each word of the query: the words of the index that it may mean.
    """
    ids = sorted({row["subject_id"] for row in candidates})
    if not ids:
        return {}
    live = await _live(reader, ids)
    found = {row["asset_id"]: _asset(row) for row in live}
    for one, columns in (await _columns(reader, _short(found, asked))).items():
        found[one].words["column"] = _words(columns)
    return found | await _tables(reader, [one for one in ids if one not in found], asked)


def _short(found: dict[str, Standing], asked: list[set[str]]) -> list[str]:
    """Those whose columns are looked at: they lie elsewhere, and matter only where no other field has the words."""
    return [one for one, now in found.items() if not all(now.places(words) for words in asked)]


async def _live(reader: Reader, ids: list[str]) -> Rows:
    async def select() -> str:
        return f"""SELECT asset_id, asset, namespace, description, owners, tags, former_names
            FROM {await reader.relation(ASSETS)} WHERE asset IS NOT NULL AND NOT coalesce(retired, false)"""

    live = await reader.kept("live_assets", select)
    return await reader.rows(f"SELECT * FROM {live} WHERE asset_id IN ({', '.join(map(text, ids))})")


def _asset(row: dict[str, Any], kind: str = "asset") -> Standing:
    owners, tags = tuple(row["owners"] or ()), tuple(row["tags"] or ())
    words = {
        "name": _words([row["asset"]]),
        "former_name": _words(row["former_names"] or ()),
        "tag": _words(tags),
        "owner": _words(owners),
        "description": frozenset(words_of_text(row["description"] or "")),
    }
    return Standing(kind, row["asset"], row["namespace"], row["description"], owners, tags, words)


async def _columns(reader: Reader, ids: list[str]) -> dict[str, list[str]]:
    """The columns that assets have now, in their tables and as declared."""
    if not ids:
        return {}
    newest: dict[str, dict[str, Any]] = {}
    for row in await tables_of(reader, ids):
        known = newest.get(row["asset_id"])
        if known is None or (row["first_commit_at"], row["table_uuid"]) > (known["first_commit_at"], known["table_uuid"]):
            newest[row["asset_id"]] = row
    owners = {row["table_uuid"]: row["asset_id"] for row in newest.values()}
    in_tables = await _columns_of_tables(reader, {row["table_uuid"]: row["schema_id"] for row in newest.values()})
    declared = await reader.rows(f"SELECT asset_id, name FROM {await reader.relation(DECLARED_SCHEMAS, ids)}")
    found: dict[str, list[str]] = {one: [] for one in ids}
    for uuid, columns in in_tables.items():
        found[owners[uuid]] += columns
    for row in declared:
        found[row["asset_id"]].append(row["name"])
    return found


async def _columns_of_tables(reader: Reader, schemas: Mapping[str, int | None]) -> dict[str, list[str]]:
    """The columns of tables, in the schema that each has now."""
    rows = await reader.rows(f"SELECT table_uuid, schema_id, path, name FROM {await reader.relation(COLUMNS, schemas)}")
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["schema_id"] == schemas[row["table_uuid"]]:
            found.setdefault(row["table_uuid"], []).append(row["path"] or row["name"])
    return found


async def _tables(reader: Reader, ids: list[str], asked: list[set[str]]) -> dict[str, Standing]:
    """Tables that no project made, and that stand."""
    rows = await plain_rows(reader, ids) if ids else []
    found = {row["asset_id"]: _asset(row, row["kind"]) for row in rows if not row["retired"]}
    if short := _short(found, asked):
        relation = await reader.relation(ICEBERG_TABLES, short)
        schemas = {row["table_uuid"]: row["schema_id"] for row in await reader.rows(f"SELECT * FROM {relation}")}
        for uuid, columns in (await _columns_of_tables(reader, schemas)).items():
            found[uuid].words["column"] = _words(columns)
    return found


def _words(names: Iterable[str]) -> frozenset[str]:
    return frozenset(word for one in names for word in words_of_name(one))
