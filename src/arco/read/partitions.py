"""Partitions of an asset as they are now, and the versions that each of them had.

Current is what the asset's newest table has. A partition is *marked* if somebody else committed to the table after it was
published: what it holds is no longer only what its run wrote. It is *quarantined* if people hold it back. Version numbers are
counted here, in the order that decides what is current; they are for people and never identifiers: a late event renumbers them.
"""

from datetime import datetime
from typing import Any

import msgspec

from arco.fold.file_table import FILES
from arco.fold.tables import MATERIALIZATIONS, PARTITIONS
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.partition_key import PartitionKey
from arco.read.answers import Answer, document, shaped
from arco.read.incarnations import Incarnation, incarnations, newest
from arco.read.naming import Named, found_asset, not_found
from arco.read.pages import FIRST_PAGE, Listing, Page, Window, paged
from arco.read.partition_names import stored_key
from arco.read.publishers import BY_SERVO, counted, counting
from arco.read.quarantines import standing, words_about
from arco.read.reader import Reader, Rows
from arco.read.views import text


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """What is current in one partition."""

    partition_id: str
    partition_key: str
    table_uuid: str | None
    materialization_id: str | None
    run_id: str | None
    task_id: str | None
    asset: str | None
    snapshot_id: int | None
    sequence_number: int | None
    schema_id: int | None
    rows: int | None
    bytes: int | None
    files: int | None
    code_version: str | None
    quality: str | None
    published_at: datetime | None
    first_published_at: datetime | None
    marked: bool
    quarantined: bool


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One publish of one partition. `number` is for people."""

    number: int
    current: bool
    partition_id: str
    partition_key: str
    materialization_id: str
    run_id: str | None
    task_id: str | None
    attempt: int | None
    table_uuid: str | None
    snapshot_id: int | None
    sequence_number: int | None
    schema_id: int | None
    mode: str | None
    rows: int | None
    bytes: int | None
    files: int | None
    code: str | None
    code_version: str | None
    plan_fingerprint: str | None
    checks_failed: tuple[str, ...]
    quality: str | None
    input_snapshots: dict[str, int | None]
    started_at: datetime | None
    published_at: datetime | None


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a publish, with nulls and bounds of its columns as its footer has them."""

    path: str
    rows: int | None
    bytes: int | None
    columns: list[dict[str, Any]]


class Versions(Answer, frozen=True, kw_only=True):
    """The history of one partition, newest first. `files` are those that the current version wrote, if that were few."""

    asset: str
    asset_id: str
    partition_key: str
    versions: tuple[Version, ...]
    files: tuple[WrittenFile, ...] = ()


async def partitions(reader: Reader, asked: str, window: Window = FIRST_PAGE) -> Page[Partition]:
    """The current partitions of an asset, by their keys."""
    named = await found_asset(reader, asked)
    table = newest((await incarnations(reader, [named.asset_id]))[named.asset_id])
    select = f"SELECT * FROM ({await _current(reader, named, table)})"
    question = {"partitions": named.asset_id}
    rows, cursor = await paged(reader, question, Listing(select, ("partition_key", "partition_id")), [], window)
    items = tuple(await _partitions(reader, named, rows))
    return Page(snapshot_id=reader.cut.snapshot_id, items=items, next_cursor=cursor)


async def materializations(reader: Reader, asked: str, window: Window = FIRST_PAGE) -> Page[Version]:
    """Everything that was ever published of an asset, newest first."""
    named = await found_asset(reader, asked)
    tables = (await incarnations(reader, [named.asset_id]))[named.asset_id]
    numbered = await _numbered(reader, named.asset_id, tables)
    select = f"SELECT *, coalesce(epoch_ms(published_at), 0) AS at_ms FROM ({numbered})"
    order = Listing(select, ("at_ms", "materialization_id", "partition_id"), newest_first=True)
    rows, cursor = await paged(reader, {"materializations": named.asset_id}, order, [], window)
    return Page(snapshot_id=reader.cut.snapshot_id, items=tuple(map(_version, rows)), next_cursor=cursor)


async def versions(reader: Reader, asked: str, key: str) -> Versions:
    """The versions of one partition, by its key as people or the state spell it, or its id."""
    named = await found_asset(reader, asked)
    key = await stored_key(reader, named, key)
    tables = (await incarnations(reader, [named.asset_id]))[named.asset_id]
    numbered = await _numbered(reader, named.asset_id, tables)
    rows = await reader.rows(
        f"SELECT * FROM ({numbered}) WHERE partition_key = $key OR partition_id = $key ORDER BY number DESC", {"key": key}
    )
    if not rows:
        raise await _no_such_partition(reader, named, key)
    return Versions(
        snapshot_id=reader.cut.snapshot_id,
        asset=named.asset,
        asset_id=named.asset_id,
        partition_key=rows[0]["partition_key"],
        versions=tuple(map(_version, rows)),
        files=await _files(reader, next((row for row in rows if row["current"]), None)),
    )


async def _files(reader: Reader, current: dict[str, Any] | None) -> tuple[WrittenFile, ...]:
    if current is None:
        return ()
    rows = await reader.rows(
        f"""SELECT * FROM {await reader.relation(FILES, current["asset_id"])}
            WHERE materialization_id = ? AND partition_id = ? ORDER BY path""",
        [current["materialization_id"], current["partition_id"]],
    )
    return tuple(shaped(WrittenFile, row, columns=document(row["columns"]) or []) for row in rows)


async def found_partition(reader: Reader, named: Named, key: str) -> Partition:
    """The current row of one partition, by its key as people or the state spell it, or its id."""
    key = await stored_key(reader, named, key)
    table = newest((await incarnations(reader, [named.asset_id]))[named.asset_id])
    current = await _current(reader, named, table)
    rows = await reader.rows(f"SELECT * FROM ({current}) WHERE partition_key = $key OR partition_id = $key", {"key": key})
    if not rows:
        raise await _no_such_partition(reader, named, key)
    (found,) = await _partitions(reader, named, rows)
    return found


async def _partitions(reader: Reader, named: Named, rows: Rows) -> list[Partition]:
    words = (await words_about(reader, [named.asset_id])).get(named.asset_id, [])
    held = {key for one in standing(words, rows) for key in one.partitions}
    return [shaped(Partition, row, quarantined=(row["partition_key"] or "") in held) for row in rows]


async def _current(reader: Reader, named: Named, table: Incarnation | None) -> str:
    relation = await counted(reader, PARTITIONS, [named.asset_id])
    outside = None if table is None or table.row is None else table.row["external_sequence_number"]
    marked = "false" if outside is None else f"coalesce(sequence_number < {outside}, true)"
    uuid = "NULL" if table is None else text(table.table_uuid)
    return f"SELECT *, {marked} AS marked FROM {relation} WHERE table_uuid = {uuid}"


async def _numbered(reader: Reader, asset_id: str, tables: list[Incarnation]) -> str:
    """Every publish with its number: tables by age, then what decides which one is current in a table.

    What others say stands below what Servo says, and what the catalog gainsays is current nowhere.
    """
    relation = await reader.relation(MATERIALIZATIONS, asset_id)
    counts = await counting(reader, MATERIALIZATIONS, [asset_id])
    ages = "[" + ", ".join(text(table.table_uuid) for table in tables) + "]::VARCHAR[]"
    within = ("coalesce(sequence_number, 0)", "published_at", "materialization_id")
    order = [f"coalesce(list_position({ages}, table_uuid), 0)", f"({counts})", f"({BY_SERVO})", *within]
    last = text(tables[-1].table_uuid) if tables else "NULL"
    return f"""SELECT *, row_number() OVER (PARTITION BY partition_id ORDER BY {", ".join(order)}) AS number,
        table_uuid = {last} AND {counts} AND row_number() OVER (
            PARTITION BY partition_id ORDER BY {", ".join(f"{one} DESC" for one in order)}) = 1 AS current
        FROM {relation}"""


def _version(row: dict[str, Any]) -> Version:
    return shaped(
        Version,
        row,
        input_snapshots=document(row["input_snapshots"]) or {},
        checks_failed=tuple(row["checks_failed"] or ()),
        current=bool(row["current"]),
    )


async def _no_such_partition(reader: Reader, named: Named, key: str) -> Exception:
    if not key.startswith("part_"):
        try:
            PartitionKey.parse(key)
        except InvalidInput as error:
            return error
    relation = await reader.relation(PARTITIONS, named.asset_id)
    near = await reader.rows(
        f"""SELECT DISTINCT partition_key FROM {relation}
            ORDER BY damerau_levenshtein(partition_key, ?), partition_key LIMIT 3""",
        [key],
    )
    message = f"{named.asset} has no partition {clip(key)!r}"
    return not_found(message, [row["partition_key"] for row in near if row["partition_key"]], "nothing of it was published")
