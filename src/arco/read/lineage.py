"""Lineage of assets: what one is made of and what is made of it, to any depth, with columns and counts where asked for.

How often an edge was gone along is counted from distinct rows (hazard 7), and only on demand: those rows are the largest table.
"""

from collections.abc import Collection, Mapping

import msgspec

from arco.fold.tables import LINEAGE_COLUMNS, LINEAGE_EXECUTIONS
from arco.ledger.lineage_events import is_place_outside
from arco.read.answers import Answer, shaped
from arco.read.datasets import known_datasets
from arco.read.graph import Direction, Edge, Walk, walked
from arco.read.naming import found_asset, names_and_kinds
from arco.read.reader import Reader


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """An asset, a table or a place outside. `depth` is how many edges lie between it and what was asked for."""

    id: str
    name: str
    kind: str
    depth: int


class NamedEdge(Edge, frozen=True, kw_only=True):
    """One dependency, under the names that its ends have now. `…_called` are the names it was told by, where they are others."""

    source_called: str | None = None
    target_called: str | None = None


class ColumnMapping(msgspec.Struct, frozen=True, kw_only=True):
    """A column that a column is made of."""

    edge_id: str
    target_column: str
    source_column: str
    transform: str | None
    confidence: str | None
    reason: str | None


class Lineage(Answer, frozen=True, kw_only=True):
    """Nodes nearest first. `executions` has counts by edge where they were asked for."""

    asset: str
    asset_id: str
    direction: Direction
    depth: int
    nodes: tuple[Node, ...]
    edges: tuple[NamedEdge, ...]
    columns: tuple[ColumnMapping, ...] = ()
    executions: dict[str, int] | None = None
    truncated: bool = False


class Extras(msgspec.Struct, frozen=True):
    """What else is wanted of the edges."""

    columns: bool = False
    executions: bool = False


EDGES_ALONE = Extras()


async def lineage(
    reader: Reader,
    asked: str,
    direction: Direction,
    *,
    depth: int = 1,
    extras: Extras = EDGES_ALONE,
) -> Lineage:
    """Everything within so many edges of an asset, in one direction."""
    named = await found_asset(reader, asked)
    walk = await walked(reader, named.asset_id, direction, depth=depth)
    met = await nodes(reader, walk)
    names = {node.id: node.name for node in met}
    return Lineage(
        snapshot_id=reader.cut.snapshot_id,
        asset=named.asset,
        asset_id=named.asset_id,
        direction=direction,
        depth=depth,
        nodes=met,
        edges=tuple(_named(edge, names) for edge in walk.edges),
        columns=await column_mappings(reader, [edge.edge_id for edge in walk.edges]) if extras.columns else (),
        executions=await execution_counts(reader, walk.edges) if extras.executions else None,
        truncated=walk.truncated,
    )


async def nodes(reader: Reader, walk: Walk) -> tuple[Node, ...]:
    """What a walk met, under the names that things have now. A place outside is called what its edge calls it."""
    called = names_in_edges(walk) | await names_and_kinds(reader, walk.depths)
    return tuple(
        Node(id=node, name=called.get(node, (node, "asset"))[0], kind=called.get(node, (node, "asset"))[1], depth=depth)
        for node, depth in walk.depths.items()
    )


def _named(edge: Edge, names: Mapping[str, str]) -> NamedEdge:
    source, target = (
        names.get(one, called) for one, called in ((edge.source_id, edge.source), (edge.target_id, edge.target))
    )
    return shaped(
        NamedEdge,
        msgspec.structs.asdict(edge),
        source=source,
        target=target,
        source_called=edge.source if edge.source != source else None,
        target_called=edge.target if edge.target != target else None,
    )


def names_in_edges(walk: Walk) -> dict[str, tuple[str, str]]:
    """What edges call their ends, and take them for."""
    called: dict[str, tuple[str, str]] = {}
    for edge in walk.edges:
        called.setdefault(edge.source_id, (edge.source or edge.source_id, edge.source_kind or "external"))
        kind = "external" if is_place_outside(edge.target_id) else "asset"
        called.setdefault(edge.target_id, (edge.target or edge.target_id, kind))
    return called


async def column_mappings(reader: Reader, edges: Collection[str]) -> tuple[ColumnMapping, ...]:
    """Which columns came of which, along some edges."""
    relation = await reader.relation(LINEAGE_COLUMNS, edges)
    rows = await reader.rows(f"SELECT * FROM {relation} ORDER BY edge_id, target_column, source_column")
    return tuple(shaped(ColumnMapping, row) for row in rows)


async def execution_counts(reader: Reader, edges: Collection[Edge]) -> dict[str, int]:
    """How many tasks went along each edge: distinct rows, never a counter."""
    targets = {edge.target_id for edge in edges}
    # Executions lie where the edge was recorded, also under another system's name.
    targets |= {one for one, known in (await known_datasets(reader)).items() if known.id in targets}
    relation = await reader.relation(LINEAGE_EXECUTIONS, targets)
    rows = await reader.rows(f"SELECT edge_id, count(*) AS times FROM {relation} GROUP BY edge_id")
    counted = {row["edge_id"]: row["times"] for row in rows}
    return {edge.edge_id: counted.get(edge.edge_id, 0) for edge in edges}
