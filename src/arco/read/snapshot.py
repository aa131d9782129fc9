"""One snapshot as a whole: when it was published, what each head had folded, and what its tables hold.

All of it is in the manifests: no file of state is read.
"""

from datetime import UTC, datetime

import msgspec

from arco.fold.manifests import Gap
from arco.fold.tables import TABLES
from arco.read.answers import Answer
from arco.read.binding import Ingestion
from arco.read.cut import HeadCut
from arco.read.reader import Reader


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


class CatalogSnapshot(Answer, frozen=True, kw_only=True):
    """`ingestion` is how much of a run is in it, where it was asked for by a run."""

    published_at: datetime | None
    ingestion: Ingestion | None
    heads: tuple[SnapshotHead, ...]
    tables: tuple[SnapshotTable, ...]


def catalog_snapshot(reader: Reader, ingestion: Ingestion | None = None) -> CatalogSnapshot:
    """The snapshot that a reader has open."""
    cut = reader.cut
    return CatalogSnapshot(
        snapshot_id=cut.snapshot_id,
        published_at=_moment(cut.published_ms) if cut.snapshot_id else None,
        ingestion=ingestion,
        heads=tuple(map(_head, cut.heads)),
        tables=tuple(_table(reader, table.name, table.head.value) for table in TABLES),
    )


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
