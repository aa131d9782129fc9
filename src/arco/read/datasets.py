"""Which tables of the catalog the datasets of other systems are, so that their lineage meets ours.

A dataset has the name that its system gives it, and perhaps symlinks. It is a table of this catalog if, in this order,
  1. one of its names is where that table's files lie
  2. one of its names in the namespace `arco`, or in none, is the table's full name, with or without the catalog's name before it
  3. namespace and name together are the table's full name, where the namespace is no address
  4. one of its names in another system is `arco.` and the table's full name: clients call this catalog `arco`
A name alone is never enough: what a metastore elsewhere calls shop.orders is not ours. Names mean what they mean in the cut that
is asked. What must never enter: storage, and guessing.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from arco.fold.dataset_table import DATASETS
from arco.fold.tables import ASSETS, CATALOG_TABLES, ICEBERG_TABLES
from arco.read.naming import asset_names, names_and_kinds
from arco.read.reader import Reader

_CATALOG = "arco"
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
_SAME_STORE = re.compile(r"^s3[an]://")
_FILE = re.compile(r"^file:/*")

Called = tuple[str, str]
"""A namespace and a name."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a dataset is here: an asset by its id, or a table that no project made by its uuid."""

    id: str
    kind: str


async def known_datasets(reader: Reader) -> dict[str, Known]:
    """The datasets that are tables of the catalog, by the ids that edges know them by."""

    async def make() -> dict[str, Known]:
        called: dict[str, list[Called]] = defaultdict(list)
        datasets = await reader.relation(DATASETS)
        for row in await reader.rows(f"SELECT dataset_id, namespace, name FROM {datasets} ORDER BY ALL"):
            called[row["dataset_id"]].append((row["namespace"], row["name"]))
        if not called:
            return {}
        located, named = await _locations(reader), await _full_names(reader)
        tables = {one: _table(names, located, named) for one, names in called.items()}
        kinds = await names_and_kinds(reader, {table for table in tables.values() if table is not None})
        is_asset = {one for one, (_, kind) in kinds.items() if kind == "asset"}
        return {
            one: Known(table, "asset" if table in is_asset else "table")
            for one, table in tables.items()
            if table is not None
        }

    return await reader.once("known_datasets", make)


def place_of(called: Called) -> str | None:
    """Where a dataset lies, in one spelling; None if its name is no place."""
    namespace, name = called
    if _ADDRESS.match(name) or name.startswith("file:"):
        return _spelled(name)
    if namespace == "file" or namespace.startswith("file:"):
        return _spelled(f"file:/{name}")
    return _spelled(f"{namespace.rstrip('/')}/{name.lstrip('/')}") if _ADDRESS.match(namespace) else None


def full_names(called: Called) -> Iterator[tuple[int, str]]:
    """The full names that a table may have which is called so, and by which rule."""
    namespace, name = called
    before = f"{_CATALOG}."
    if namespace in {"", _CATALOG}:
        yield 2, name
        if name.startswith(before):
            yield 2, name.removeprefix(before)
        return
    if not _ADDRESS.match(namespace):
        yield 3, f"{namespace}.{name}"
    if name.startswith(before):
        yield 4, name.removeprefix(before)


def _table(names: list[Called], located: dict[str, str], named: dict[str, str]) -> str | None:
    for one in names:
        place = place_of(one)
        if place is not None and place in located:
            return located[place]
    for _, full in sorted(found for one in names for found in full_names(one)):
        if full in named:
            return named[full]
    return None


def _spelled(location: str) -> str:
    """One spelling for what clients write in several: the schemes of Hadoop for S3, and the slashes of local files."""
    return _FILE.sub("file:/", _SAME_STORE.sub("s3://", location)).rstrip("/")


async def _locations(reader: Reader) -> dict[str, str]:
    """Where tables lie, and what each is asked by. Of two at one place the one that stands, or else the newer."""
    tables, commits = await reader.relation(CATALOG_TABLES), await reader.relation(ICEBERG_TABLES)
    assets = await reader.relation(ASSETS)
    rows = await reader.rows(
        f"""WITH standing AS (SELECT asset, asset_id FROM {assets} WHERE asset IS NOT NULL AND NOT coalesce(retired, false)),
            known AS (SELECT asset_id FROM {assets} WHERE asset IS NOT NULL)
            SELECT [t.location, c.location] AS places,
                coalesce(c.asset_id, known.asset_id, standing.asset_id, table_uuid) AS asset_id
            FROM {tables} t FULL JOIN {commits} c USING (table_uuid)
            LEFT JOIN known ON known.asset_id = t.asset_id
            LEFT JOIN standing ON standing.asset = t."table" AND NOT coalesce(t.dropped, false)
            ORDER BY coalesce(t.dropped, false) DESC, coalesce(t.created_at, c.first_commit_at), table_uuid"""
    )
    return {_spelled(place): row["asset_id"] for row in rows for place in row["places"] if place is not None}


async def _full_names(reader: Reader) -> dict[str, str]:
    """Every name that finds an asset or a table: whoever has it now before who had it once."""
    names = await asset_names(reader)
    rows = await reader.rows(f"SELECT name, asset_id FROM {names} ORDER BY standing DESC, asset_id DESC")
    return {row["name"]: row["asset_id"] for row in rows}
