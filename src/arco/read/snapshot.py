"""One snapshot as a whole: when it was published, what each head had folded, what its tables hold, and its assets, page by page.

Of an asset it has what whoever plans needs first: what it is, its last materialization, and the schema it has. Every partition of
it is one question further (`partitions.py`). Heads and tables are in the manifests.
"""

from datetime import UTC, datetime

import msgspec

from arco.fold.manifests import Gap
from arco.fold.tables import PARTITIONS, TABLES
from arco.read.answers import Answer, shaped
from arco.read.assets import AssetLine, Filter, assets
from arco.read.binding import Ingestion
from arco.read.cut import HeadCut
from arco.read.facts import Published, published
from arco.read.pages import FIRST_PAGE, Window
from arco.read.publishers import counted
from arco.read.reader import Reader
from arco.read.schemas import CurrentSchema, current_schemas
from arco.read.views import text


class SnapshotHead(msgspec.Struct, frozen=True, kw_only=True):
    """One head. `events` were folded so far, `refused` could not be, `set_aside` are of versions that are not known.

    `gaps` are segments that writers must have stored and no listing showed; `more_gaps` counts those that are not listed.
    """

    head: str
    snapshot: str
    sequence: int
    published_at: datetime
    events: int
    refused: int
    set_aside: int
    gaps: tuple[Gap, ...] = ()
    more_gaps: int = 0


class SnapshotTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table. `rows` are those of its files: with more than one layer, a row that changed is in several of them."""

    table: str
    head: str
    rows: int
    bytes: int
    files: int
    layers: int


class LatestMaterialization(msgspec.Struct, frozen=True, kw_only=True):
    """The newest publish that is current somewhere in an asset: of this partition, in this snapshot of its table."""

    partition_id: str
    partition_key: str
    materialization_id: str | None
    run_id: str | None
    table_uuid: str
    snapshot_id: int | None
    schema_id: int | None
    rows: int | None
    bytes: int | None
    files: int | None
    quality: str | None
    published_at: datetime | None


class SnapshotAsset(AssetLine, frozen=True, kw_only=True):
    """An asset, or a table that no project made. `partitions` counts those that are current."""

    partitions: int
    materialization: LatestMaterialization | None
    schema: CurrentSchema | None


class CatalogSnapshot(Answer, frozen=True, kw_only=True):
    """`ingestion` is how much of a run is in it, where it was asked for by a run. `assets` are a page of all, by name."""

    published_at: datetime | None
    ingestion: Ingestion | None
    heads: tuple[SnapshotHead, ...]
    tables: tuple[SnapshotTable, ...]
    assets: tuple[SnapshotAsset, ...]
    next_cursor: str | None = None


async def catalog_snapshot(
    reader: Reader,
    ingestion: Ingestion | None = None,
    asset_ids: tuple[str, ...] = (),
    window: Window = FIRST_PAGE,
) -> CatalogSnapshot:
    """The snapshot that a reader has open, with some assets by their ids, retired ones too, or with all that stand."""
    cut = reader.cut
    lines = await assets(reader, Filter(ids=asset_ids, retired=bool(asset_ids)), window)
    return CatalogSnapshot(
        snapshot_id=cut.snapshot_id,
        published_at=_moment(cut.published_ms) if cut.snapshot_id else None,
        ingestion=ingestion,
        heads=tuple(map(_head, cut.heads)),
        tables=tuple(_table(reader, table.name, table.head.value) for table in TABLES),
        assets=await _assets(reader, lines.items),
        next_cursor=lines.next_cursor,
    )


async def _assets(reader: Reader, lines: tuple[AssetLine, ...]) -> tuple[SnapshotAsset, ...]:
    ids = [one.asset_id for one in lines]
    if not ids:
        return ()
    tables, current = await published(reader, ids)
    schemas = await current_schemas(reader, {one: tables.get(one) for one in ids})
    latest = await _latest(reader, ids, [one.table_uuid for one in tables.values()])
    return tuple(
        SnapshotAsset(
            **msgspec.structs.asdict(one),
            partitions=current.get(one.asset_id, Published()).partitions,
            materialization=latest.get(one.asset_id),
            schema=schemas.get(one.asset_id),
        )
        for one in lines
    )


async def _latest(reader: Reader, ids: list[str], tables: list[str]) -> dict[str, LatestMaterialization]:
    relation, listed = await counted(reader, PARTITIONS, ids), ", ".join(map(text, tables)) or "NULL"
    order = "published_at DESC, coalesce(sequence_number, 0) DESC, materialization_id DESC, partition_key DESC"
    rows = await reader.rows(
        f"""SELECT * FROM {relation} WHERE table_uuid IN ({listed})
            QUALIFY row_number() OVER (PARTITION BY asset_id ORDER BY {order}) = 1"""
    )
    return {row["asset_id"]: shaped(LatestMaterialization, row) for row in rows}


def _head(one: HeadCut) -> SnapshotHead:
    return SnapshotHead(
        head=one.head,
        snapshot=one.snapshot_id,
        sequence=one.sequence,
        published_at=_moment(one.published_ms),
        events=one.events,
        refused=one.refused,
        set_aside=one.set_aside,
        gaps=one.gaps,
        more_gaps=one.more_gaps,
    )


def _table(reader: Reader, name: str, head: str) -> SnapshotTable:
    layers = reader.cut.tables.get(name)
    files = [] if layers is None else list(layers.files())
    return SnapshotTable(
        table=name,
        head=head,
        rows=sum(file.rows for file in files),
        bytes=sum(file.bytes for file in files),
        files=len(files),
        layers=0 if layers is None else bool(layers.base) + len(layers.deltas),
    )


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
