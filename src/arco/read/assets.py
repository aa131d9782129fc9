"""Assets: the list with its filters, and the page of one: definition, table, partitions, checks, freshness, health."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from arco.fold.tables import ASSETS
from arco.read.answers import Answer, document, shaped
from arco.read.checks import CheckResult
from arco.read.facts import Facts, Published, facts
from arco.read.health import Freshness, Health, HealthPage, LastRun, Sla, SlaPage, Status, health_of, sla_of
from arco.read.naming import Named, found_asset
from arco.read.pages import FIRST_PAGE, Listing, Page, Window, paged
from arco.read.plain_tables import plain_tables
from arco.read.reader import Reader, Rows
from arco.read.runs import HeldOutput
from arco.read.views import text


class Filter(msgspec.Struct, frozen=True):
    """Which assets are listed; what is null does not matter. A namespace holds those below it.

    `retired`: also assets that were retired, and tables that were dropped. `promised`: only those that promise to be fresh
    within some time. `made_here`: only what a project made. `ids`: only these, all if there are none.
    """

    namespace: str | None = None
    tag: str | None = None
    owner: str | None = None
    kind: str | None = None
    project: str | None = None
    retired: bool = False
    promised: bool = False
    made_here: bool = False
    ids: tuple[str, ...] = ()


EVERY_ASSET = Filter()
PROMISED = Filter(promised=True)
MADE_HERE = Filter(made_here=True)


class AssetLine(msgspec.Struct, frozen=True, kw_only=True):
    """An asset in a list; or a table that no project made, whose id is its uuid, and which is retired if it was dropped."""

    asset_id: str
    asset: str
    namespace: str | None
    kind: str | None
    project: str | None
    description: str | None
    owners: tuple[str, ...]
    tags: tuple[str, ...]
    retired: bool
    fresh_within_s: int | None
    deployed_at: datetime | None
    made_by_project: bool = True


class AssetTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table that an asset has now. Commits that Servo did not make are external."""

    table_uuid: str
    location: str | None = None
    metadata_location: str | None = None
    snapshot_id: int | None = None
    sequence_number: int | None = None
    schema_id: int | None = None
    format_version: int | None = None
    total_rows: int | None = None
    total_bytes: int | None = None
    total_files: int | None = None
    committed_at: datetime | None = None
    external_sequence_number: int | None = None
    external_commit_at: datetime | None = None
    external_principal: str | None = None


class PartitionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The current partitions together. `marked` are those that somebody else committed over since."""

    partitions: int
    marked: int
    rows: int
    bytes: int
    files: int
    first_key: str | None
    last_key: str | None


class LastPublish(msgspec.Struct, frozen=True, kw_only=True):
    materialization_id: str
    run_id: str | None
    published_at: datetime


class AssetPage(Answer, frozen=True, kw_only=True):
    """Everything about one asset. `alias` is the former name that it was asked by."""

    asset: AssetLine
    alias: str | None
    former_names: tuple[str, ...]
    inputs: tuple[str, ...]
    check_names: tuple[str, ...]
    partitioning: list[dict[str, Any]]
    definition: dict[str, Any]
    deployment: str | None
    code_version: str | None
    fingerprint: str | None
    deployed_by: str | None
    first_deployed_at: datetime | None
    table: AssetTable | None
    summary: PartitionSummary
    last_publish: LastPublish | None
    checks: tuple[CheckResult, ...]
    held: tuple[HeldOutput, ...]
    freshness: Freshness
    last_run: LastRun | None
    status: Status
    reasons: tuple[str, ...]


async def assets(reader: Reader, wanted: Filter = EVERY_ASSET, window: Window = FIRST_PAGE) -> Page[AssetLine]:
    """The assets that a filter lets through, by name; and the tables that no project made."""
    rows, cursor = await _listed(reader, wanted, window, "assets", tables=True)
    return Page(snapshot_id=reader.cut.snapshot_id, items=tuple(map(_line, rows)), next_cursor=cursor)


async def asset(reader: Reader, asked: str, now_ms: int) -> AssetPage:
    """One asset by its name, a former name or its id; or a table that no project made, by its name or its uuid."""
    named = await found_asset(reader, asked)
    known = (await facts(reader, [named.asset_id]))[named.asset_id]
    return _page(reader, named, known, health_of(known, now_ms))


async def asset_definition(reader: Reader, asset_id: str) -> dict[str, Any]:
    """The definition of an asset as it was deployed."""
    rows = await reader.rows(f"SELECT definition FROM {await reader.relation(ASSETS, asset_id)}")
    found: dict[str, Any] = document(rows[0]["definition"]) or {} if rows else {}
    return found


async def health(reader: Reader, asked: str, now_ms: int) -> HealthPage:
    """The health of one asset."""
    named = await found_asset(reader, asked)
    known = (await facts(reader, [named.asset_id]))[named.asset_id]
    return _health_page(reader, (health_of(known, now_ms),), now_ms, None)


async def health_list(
    reader: Reader,
    now_ms: int,
    wanted: Filter = EVERY_ASSET,
    window: Window = FIRST_PAGE,
) -> HealthPage:
    """The health of the assets that a filter lets through, by name; and of the tables that no project made."""
    rows, cursor = await _listed(reader, wanted, window, "health", tables=True)
    known = await facts(reader, [row["asset_id"] for row in rows])
    found = tuple(health_of(known[row["asset_id"]], now_ms) for row in rows)
    return _health_page(reader, found, now_ms, cursor)


async def sla(reader: Reader, asked: str, now_ms: int) -> SlaPage:
    """The SLA of one asset and where it stands."""
    named = await found_asset(reader, asked)
    known = (await facts(reader, [named.asset_id]))[named.asset_id]
    return _sla_page(reader, (sla_of(known, now_ms),), now_ms, None)


async def sla_list(reader: Reader, now_ms: int, wanted: Filter = PROMISED, window: Window = FIRST_PAGE) -> SlaPage:
    """The SLAs of the assets that a filter lets through, by name."""
    rows, cursor = await _listed(reader, wanted, window, "sla")
    known = await facts(reader, [row["asset_id"] for row in rows])
    return _sla_page(reader, tuple(sla_of(known[row["asset_id"]], now_ms) for row in rows), now_ms, cursor)


def _sla_page(reader: Reader, found: tuple[Sla, ...], now_ms: int, cursor: str | None) -> SlaPage:
    at = datetime.fromtimestamp(now_ms / 1000, UTC)
    return SlaPage(snapshot_id=reader.cut.snapshot_id, computed_at=at, sla=found, next_cursor=cursor)


def _health_page(reader: Reader, found: tuple[Health, ...], now_ms: int, cursor: str | None) -> HealthPage:
    at = datetime.fromtimestamp(now_ms / 1000, UTC)
    return HealthPage(snapshot_id=reader.cut.snapshot_id, computed_at=at, health=found, next_cursor=cursor)


async def _listed(
    reader: Reader, wanted: Filter, window: Window, question: str, *, tables: bool = False
) -> tuple[Rows, str | None]:
    columns = ", ".join(name for name in AssetLine.__struct_fields__ if name != "made_by_project")
    relation = f"SELECT {columns}, true AS made_by_project FROM {await reader.relation(ASSETS)}"
    if tables:
        relation += f" UNION ALL SELECT {columns}, false FROM {await plain_tables(reader)}"
    conditions, values = ["asset IS NOT NULL"], []
    if not wanted.retired:
        conditions.append("NOT coalesce(retired, false)")
    if wanted.made_here:
        conditions.append("made_by_project")
    if wanted.promised:
        conditions.append("fresh_within_s IS NOT NULL")
    if wanted.ids:
        conditions.append(f"asset_id IN ({', '.join(map(text, wanted.ids))})")
    for condition, value in (
        ("(namespace = ? OR starts_with(namespace, ? || '.'))", wanted.namespace),
        ("list_contains(tags, ?)", wanted.tag),
        ("list_contains(owners, ?)", wanted.owner),
        ("kind = ?", wanted.kind),
        ("project = ?", wanted.project),
    ):
        if value is not None:
            conditions.append(condition)
            values += [value] * condition.count("?")
    listing = Listing(f"SELECT * FROM ({relation}) WHERE {' AND '.join(conditions)}", ("asset", "asset_id"))
    return await paged(reader, {question: msgspec.structs.asdict(wanted)}, listing, values, window)


def _line(row: dict[str, Any]) -> AssetLine:
    lists = {name: tuple(row[name] or ()) for name in ("owners", "tags")}
    return shaped(AssetLine, row, retired=bool(row["retired"]), **lists)


def _page(reader: Reader, named: Named, known: Facts, healthy: Health) -> AssetPage:
    row = known.row
    return shaped(
        AssetPage,
        {name: row[name] for name in ("deployment", "code_version", "fingerprint", "deployed_by", "first_deployed_at")},
        snapshot_id=reader.cut.snapshot_id,
        asset=_line(row),
        alias=named.alias,
        former_names=tuple(row["former_names"] or ()),
        inputs=tuple(row["inputs"] or ()),
        check_names=tuple(row["checks"] or ()),
        partitioning=document(row["partitioning"]) or [],
        definition=document(row["definition"]) or {},
        table=_table(known),
        summary=_summary(known.published),
        last_publish=_last_publish(known.published),
        checks=tuple(sorted(known.checks, key=lambda one: (one.passed is not False, one.check_name or one.check_id))),
        held=known.held,
        freshness=healthy.freshness,
        last_run=healthy.last_run,
        status=healthy.status,
        reasons=healthy.reasons,
    )


def _table(known: Facts) -> AssetTable | None:
    if known.table is None:
        return None
    return shaped(AssetTable, known.table.row or {}, table_uuid=known.table.table_uuid)


def _summary(published: Published) -> PartitionSummary:
    return PartitionSummary(**{name: getattr(published, name) for name in PartitionSummary.__struct_fields__})


def _last_publish(published: Published) -> LastPublish | None:
    if published.last_at is None or published.last_materialization_id is None:
        return None
    return LastPublish(
        materialization_id=published.last_materialization_id,
        run_id=published.last_run_id,
        published_at=published.last_at,
    )
