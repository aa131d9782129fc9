"""The graph of lineage: edges that stand, walked breadth first from an asset, a level at a time.

A walk visits a node once, so cycles end; edges by hand that somebody took back are not there. What must never enter:
partitions, and anything about a node but its name.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from arco.fold.tables import LINEAGE_EDGES
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import LINEAGE_DEPTH_MAX, LINEAGE_NODES_MAX
from arco.ledger.lineage_events import BY_HAND
from arco.read.answers import shaped
from arco.read.datasets import Known, known_datasets
from arco.read.plain_tables import plain_tables
from arco.read.reader import Reader


class Direction(StrEnum):
    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """One dependency."""

    edge_id: str
    source_id: str
    source: str | None
    source_kind: str | None
    target_id: str
    target: str | None
    edge_kind: str | None
    recorded_by: str | None
    first_run_id: str | None
    first_seen_at: datetime | None
    last_run_id: str | None
    last_seen_at: datetime | None
    owner: str | None
    description: str | None
    seen_by: str | None = None
    column_coverage: float | None = None
    unmapped_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Walk:
    """What was met: nodes with their distance, in the order they were met, and every edge gone along."""

    depths: dict[str, int]
    edges: tuple[Edge, ...]
    truncated: bool


class Graph:
    """All edges that stand, in memory: their columns as Arrow, and where the edges into and out of each node are.

    `datasets` are the ends under another system's names that are tables of the catalog.
    """

    def __init__(self, edges: Any, datasets: Mapping[str, Known]) -> None:
        self._edges = edges
        self._datasets = datasets
        nodes = {one: known.id for one, known in datasets.items()}
        self._sources = [nodes.setdefault(one, one) for one in edges.column("source_id").to_pylist()]
        self._targets = [nodes.setdefault(one, one) for one in edges.column("target_id").to_pylist()]
        self._into, self._out_of = _places(self._targets), _places(self._sources)

    def beyond(self, node: str, direction: Direction) -> Iterator[tuple[int, str]]:
        """The edges at a node and the nodes that they lead to."""
        if direction is Direction.UPSTREAM:
            return ((at, self._sources[at]) for at in self._into.get(node, ()))
        return ((at, self._targets[at]) for at in self._out_of.get(node, ()))

    def edge_ids(self, at: Sequence[int]) -> list[str]:
        return [row["edge_id"] for row in self._rows(at, ["edge_id"])]

    def edges(self, at: Sequence[int]) -> tuple[Edge, ...]:
        """Edges by their places."""
        return tuple(self._edge(*one) for one in zip(at, self._rows(at, self._edges.column_names), strict=True))

    def _edge(self, at: int, row: dict[str, Any]) -> Edge:
        known = self._datasets.get(row["source_id"])
        kind = row["source_kind"] if known is None else known.kind
        return shaped(Edge, row, source_id=self._sources[at], source_kind=kind, target_id=self._targets[at])

    def _rows(self, at: Sequence[int], columns: list[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._edges.select(columns).take(list(at)).to_pylist() if at else []
        return rows


async def graph_of(reader: Reader) -> Graph:
    """The graph of a cut."""

    async def make() -> Graph:
        relation = await reader.relation(LINEAGE_EDGES)
        ends = "coalesce(s.asset_id, source_id) AS source_id, coalesce(t.asset_id, target_id) AS target_id"
        # What people say of a table is said of the identity that it has in the catalog; everybody else finds it by its uuid.
        plain = f"""(SELECT catalog_id, max_by(asset_id, (NOT retired, created_at, asset_id)) AS asset_id
            FROM {await plain_tables(reader)} WHERE catalog_id IS NOT NULL GROUP BY catalog_id)"""
        columns = ", ".join(Edge.__struct_fields__)
        edges = await reader.arrow(
            f"""SELECT {columns} FROM (SELECT e.* REPLACE ({ends}) FROM {relation} e
                LEFT JOIN {plain} s ON s.catalog_id = source_id LEFT JOIN {plain} t ON t.catalog_id = target_id)
                WHERE source_id IS NOT NULL AND target_id IS NOT NULL
                AND (NOT coalesce(removed, false) OR seen_by IS NOT NULL OR recorded_by <> '{BY_HAND}')
                ORDER BY target, source, edge_id"""
        )
        return await reader.aside(Graph, edges, await known_datasets(reader))

    return await reader.once("graph", make)


def _places(nodes: list[str]) -> dict[str, "array[int]"]:
    found: dict[str, array[int]] = {}
    for at, node in enumerate(nodes):
        found.setdefault(node, array("I")).append(at)
    return found


@dataclass(frozen=True, slots=True)
class Reach:
    """Nodes with their distance, nearest first, and the places of the edges gone along."""

    depths: dict[str, int]
    edges: list[int]
    truncated: bool


def reach(graph: Graph, start: str, direction: Direction, *, depth: int = LINEAGE_DEPTH_MAX, nodes_max: int) -> Reach:
    """Everything within so many edges of a node."""
    depths, gone, frontier = {start: 0}, list[int](), [start]
    for level in range(1, depth + 1):
        here, frontier = frontier, []
        for node in here:
            for at, other in graph.beyond(node, direction):
                if other not in depths:
                    if len(depths) >= nodes_max:
                        return Reach(depths, gone, truncated=True)
                    depths[other] = level
                    frontier.append(other)
                gone.append(at)
        if not frontier:
            break
    return Reach(depths, gone, truncated=False)


async def walked(
    reader: Reader, start: str, direction: Direction, *, depth: int, nodes_max: int = LINEAGE_NODES_MAX
) -> Walk:
    """Everything within so many edges of a node, with the edges themselves."""
    if not 1 <= depth <= LINEAGE_DEPTH_MAX:
        raise InvalidInput(f"depth={depth} is not between 1 and {LINEAGE_DEPTH_MAX}")
    graph = await graph_of(reader)
    found = reach(graph, start, direction, depth=depth, nodes_max=nodes_max)
    return Walk(found.depths, graph.edges(found.edges), found.truncated)
