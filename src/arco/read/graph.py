"""The graph of lineage: edges that stand, walked breadth first from an asset, a level at a time.

A walk visits a node once, so cycles end; edges that somebody took back are not there. What must never enter: partitions, and
anything about a node but its name.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from arco.fold.tables import LINEAGE_EDGES
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import LINEAGE_DEPTH_MAX, LINEAGE_NODES_MAX
from arco.read.answers import shaped
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


@dataclass(frozen=True, slots=True)
class Walk:
    """What was met: nodes with their distance, in the order they were met, and every edge gone along."""

    depths: dict[str, int]
    edges: tuple[Edge, ...]
    truncated: bool


async def standing_edges(reader: Reader) -> str:
    """The edges that nobody took back, as a relation."""
    relation = await reader.relation(LINEAGE_EDGES)
    columns = ", ".join(Edge.__struct_fields__)
    return await reader.kept(
        "standing_edges",
        f"""SELECT {columns} FROM {relation} WHERE source_id IS NOT NULL AND target_id IS NOT NULL
            AND NOT coalesce(removed, false) ORDER BY edge_id""",
    )


async def edges_of(reader: Reader, nodes: Collection[str], direction: Direction) -> list[Edge]:
    """The edges into some nodes, or out of them."""
    edges = await standing_edges(reader)
    end = "target_id" if direction is Direction.UPSTREAM else "source_id"
    rows = await reader.rows(
        f"SELECT * FROM {edges} WHERE {end} IN (SELECT unnest(?)) ORDER BY target, source, edge_id", [sorted(nodes)]
    )
    return [shaped(Edge, row) for row in rows]


async def walked(
    reader: Reader, start: str, direction: Direction, *, depth: int, nodes_max: int = LINEAGE_NODES_MAX
) -> Walk:
    """Everything within so many edges of a node."""
    if not 1 <= depth <= LINEAGE_DEPTH_MAX:
        raise InvalidInput(f"depth={depth} is not between 1 and {LINEAGE_DEPTH_MAX}")
    depths, edges, frontier = {start: 0}, list[Edge](), [start]
    for level in range(1, depth + 1):
        found = await edges_of(reader, frontier, direction)
        frontier = []
        for edge in found:
            node = edge.source_id if direction is Direction.UPSTREAM else edge.target_id
            if node not in depths:
                if len(depths) >= nodes_max:
                    return Walk(depths, tuple(edges), truncated=True)
                depths[node] = level
                frontier.append(node)
            edges.append(edge)
        if not frontier:
            break
    return Walk(depths, tuple(edges), truncated=False)
