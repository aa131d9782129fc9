"""Which asset is meant: by its name, with or without its namespace, by a name it had, or by its id; or which other table.

What is not there is answered with what is near. A name that two assets can claim belongs to the one that has it now; then to
one that had it; assets that were retired come last.
"""

from collections.abc import Collection
from dataclasses import dataclass

from arco.catalog.spelling import parse_parts
from arco.fold.tables import ASSETS
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import clip
from arco.read.plain_tables import plain_tables
from arco.read.reader import Reader
from arco.read.views import text

_NEAR_MAX = 3
_NEAR_DISTANCE = 0.4


@dataclass(frozen=True, slots=True)
class Named:
    """An asset that was found. `alias` is the former name that it was asked by."""

    asset_id: str
    asset: str
    alias: str | None = None


async def asset_names(reader: Reader) -> str:
    """Every name that finds an asset or a table that no project made, as a relation; the least `standing` wins.

    Its columns are name, asset_id (a table's uuid), asset, namespace, project, what (asset, table or view), standing.
    """

    async def select() -> str:
        assets = await reader.relation(ASSETS)
        return f"""SELECT asset AS name, asset_id, asset, namespace, project, 'asset' AS what,
                CASE WHEN retired THEN 2 ELSE 0 END AS standing
            FROM {assets} WHERE asset IS NOT NULL
            UNION ALL
            SELECT unnest(former_names), asset_id, asset, namespace, project, 'asset', CASE WHEN retired THEN 3 ELSE 1 END
            FROM {assets} WHERE asset IS NOT NULL
            UNION ALL
            SELECT asset, asset_id, asset, namespace, project, kind, CASE WHEN retired THEN 2 ELSE 0 END
            FROM {await plain_tables(reader)}"""

    return await reader.kept("asset_names", select)


async def found_asset(reader: Reader, asked: str) -> Named:
    """The asset of a name, a former name, an id, or a name without its namespace."""
    names = await asset_names(reader)
    columns = "SELECT asset_id, asset, namespace, standing"
    parts = _parts(asked)
    rows = await reader.rows(f"{columns} FROM {names} WHERE name = ? OR name = ?", [asked, ".".join(parts)])
    # Names with dots in them may be spelled alike: of those the quotes tell which is meant.
    namespace = ".".join(parts[:-1])
    rows.sort(key=lambda row: (row["standing"], row["namespace"] != namespace, row["asset_id"]))
    if not rows:
        rows = await reader.rows(f"{columns} FROM {names} WHERE asset_id = ? AND standing IN (0, 2)", [asked])
    if not rows and "." not in asked:
        # Without its namespace, as `arco run` takes it: only if one asset alone is called so.
        short = await reader.rows(f"{columns} FROM {names} WHERE standing = 0 AND split_part(asset, '.', -1) = ?", [asked])
        rows = short if len(short) == 1 else []
    if not rows:
        raise await _no_such_asset(reader, names, asked)
    row = rows[0]
    return Named(row["asset_id"], row["asset"], asked if row["standing"] in {1, 3} else None)


def _parts(asked: str) -> tuple[str, ...]:
    """The parts of a name as people write it; all of it is one if that cannot be told."""
    try:
        return parse_parts(asked)
    except InvalidInput:
        return (asked,)


async def names_of(reader: Reader, ids: Collection[str]) -> dict[str, str]:
    """The names that assets and tables have now, by their ids; of those that are known."""
    return {one: name for one, (name, _) in (await names_and_kinds(reader, ids)).items()}


async def names_and_kinds(reader: Reader, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """The names that assets and tables have now and which of the two each is, by their ids."""
    names = await asset_names(reader)
    listed = ", ".join(text(one) for one in ids) or "NULL"
    rows = await reader.rows(
        f"SELECT asset_id, asset, what FROM {names} WHERE standing IN (0, 2) AND asset_id IN ({listed})"
    )
    return {row["asset_id"]: (row["asset"], row["what"]) for row in rows}


async def _no_such_asset(reader: Reader, names: str, asked: str) -> NotFound:
    near = await reader.rows(
        f"""SELECT name FROM (
                SELECT DISTINCT name, least(
                    damerau_levenshtein(lower(name), $asked), damerau_levenshtein(split_part(lower(name), '.', -1), $asked)
                ) AS distance FROM {names}
            ) WHERE distance <= {_NEAR_DISTANCE} * length($asked) ORDER BY distance, name LIMIT {_NEAR_MAX}""",
        {"asked": asked.lower()},
    )
    return not_found(f"there is no asset {clip(asked)!r}", [row["name"] for row in near], "`arco assets` lists all")


def not_found(message: str, near: list[str], otherwise: str) -> NotFound:
    """With what may have been meant, or else the way to see everything."""
    return NotFound(message, hint=f"did you mean {', '.join(near)}?" if near else otherwise)
