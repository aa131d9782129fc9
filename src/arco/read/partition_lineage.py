"""Lineage of partitions: which partitions of the sources a partition was made of, and what was made of it.

A task covers ranges and its executions say ranges, so an answer is as fine as the tasks were. Only what is current counts: the
publish that a partition has now, and what that publish read.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec

from arco.fold.tables import LINEAGE_EXECUTIONS, PARTITIONS
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import LINEAGE_DEPTH_MAX, LINEAGE_NODES_MAX
from arco.read.answers import Answer, document, shaped
from arco.read.boxes import document_of, overlaps
from arco.read.graph import Direction, Graph, graph_of
from arco.read.incarnations import incarnations, newest
from arco.read.naming import found_asset, names_of
from arco.read.partitions import found_partition
from arco.read.reader import Reader, Rows
from arco.read.views import text

Ranges = list[dict[str, Any]]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One execution along one edge: from which partitions which were made. `depth` counts from what was asked for."""

    depth: int
    edge_id: str
    source: str
    source_id: str
    source_partitions: Ranges
    source_snapshot_id: int | None
    target: str
    target_id: str
    target_partitions: Ranges
    materialization_id: str | None
    run_id: str
    task_id: str
    at: datetime | None


class PartitionLineage(Answer, frozen=True, kw_only=True):
    asset: str
    asset_id: str
    partition_key: str
    direction: Direction
    steps: tuple[Step, ...]
    truncated: bool = False


async def partition_lineage(
    reader: Reader, asked: str, key: str, direction: Direction, *, depth: int = 1
) -> PartitionLineage:
    """What one partition was made of, or what was made of it, range by range."""
    if not 1 <= depth <= LINEAGE_DEPTH_MAX:
        raise InvalidInput(f"depth={depth} is not between 1 and {LINEAGE_DEPTH_MAX}")
    named = await found_asset(reader, asked)
    partition = await found_partition(reader, named, key)
    steps, truncated = await walked_partitions(
        reader, named.asset_id, document_of(partition.partition_key), direction, depth=depth
    )
    return PartitionLineage(
        snapshot_id=reader.cut.snapshot_id,
        asset=named.asset,
        asset_id=named.asset_id,
        partition_key=partition.partition_key,
        direction=direction,
        steps=steps,
        truncated=truncated,
    )


async def walked_partitions(
    reader: Reader, start: str, ranges: Ranges, direction: Direction, *, depth: int
) -> tuple[tuple[Step, ...], bool]:
    """Executions from some partitions of an asset on, a level at a time; each is gone along once."""
    graph = await graph_of(reader)
    frontier: dict[str, list[Ranges]] = {start: [ranges]}
    found: dict[tuple[str, str, str], tuple[int, dict[str, Any]]] = {}
    for level in range(1, depth + 1):
        rows = await (_read_by if direction is Direction.UPSTREAM else _made_of)(reader, graph, frontier)
        frontier = {}
        for row in rows:
            mark = (row["edge_id"], row["run_id"], row["task_id"])
            if mark in found:
                continue
            if len(found) >= LINEAGE_NODES_MAX:
                return await _steps(reader, found.values()), True
            found[mark] = (level, row)
            end = "source" if direction is Direction.UPSTREAM else "target"
            there = frontier.setdefault(row[f"{end}_id"], [])
            if row[f"{end}_partitions"] not in there:
                there.append(row[f"{end}_partitions"])
        if not frontier:
            break
    return await _steps(reader, found.values()), False


async def _read_by(reader: Reader, graph: Graph, frontier: dict[str, list[Ranges]]) -> Rows:
    """What the current publishes of some partitions read."""
    made = await _current(reader, frontier)
    wanted = {
        row["materialization_id"]
        for row in made
        if any(overlaps(ranges, document_of(row["partition_key"])) for ranges in frontier[row["asset_id"]])
    }
    standing = {at for node in frontier for at, _ in graph.beyond(node, Direction.UPSTREAM)}
    return await _executions(reader, frontier, graph, standing, wanted)


async def _made_of(reader: Reader, graph: Graph, frontier: dict[str, list[Ranges]]) -> Rows:
    """The current publishes that read some partitions."""
    standing = {at for node in frontier for at, _ in graph.beyond(node, Direction.DOWNSTREAM)}
    targets = {target for node in frontier for _, target in graph.beyond(node, Direction.DOWNSTREAM)}
    current = {row["materialization_id"] for row in await _current(reader, targets)}
    rows = await _executions(reader, targets, graph, standing, current)
    return [
        row
        for row in rows
        if any(overlaps(ranges, row["source_partitions"]) for ranges in frontier.get(row["source_id"], ()))
    ]


async def _current(reader: Reader, assets: Collection[str]) -> Rows:
    """The current partitions of some assets, in the tables that count."""
    tables = await incarnations(reader, assets)
    counting = [table.table_uuid for some in tables.values() if (table := newest(some)) is not None]
    relation = await reader.relation(PARTITIONS, assets)
    listed = ", ".join(map(text, counting)) or "NULL"
    return await reader.rows(
        f"SELECT asset_id, partition_key, materialization_id FROM {relation} WHERE table_uuid IN ({listed})"
    )


async def _executions(
    reader: Reader, targets: Collection[str], graph: Graph, standing: Collection[int], made: Collection[str]
) -> Rows:
    edges = graph.edge_ids(sorted(standing))
    if not edges or not made:
        return []
    relation = await reader.relation(LINEAGE_EXECUTIONS, targets)
    rows = await reader.rows(
        f"""SELECT target_id, edge_id, run_id, task_id, source_id, materialization_id, source_snapshot_id, source_partitions,
            target_partitions, "at" FROM {relation} WHERE edge_id IN ({", ".join(map(text, edges))})
            AND materialization_id IN ({", ".join(map(text, sorted(made)))})
            ORDER BY target_id, source_id, "at", edge_id, run_id, task_id"""
    )
    for row in rows:
        row["source_partitions"] = document(row["source_partitions"]) or [{}]
        row["target_partitions"] = document(row["target_partitions"]) or [{}]
    return rows


async def _steps(reader: Reader, found: Collection[tuple[int, dict[str, Any]]]) -> tuple[Step, ...]:
    ends = {row[end] for _, row in found for end in ("source_id", "target_id")}
    names = await names_of(reader, ends)
    steps: Sequence[Step] = [
        shaped(
            Step,
            row,
            depth=depth,
            source_partitions=row["source_partitions"],
            target_partitions=row["target_partitions"],
            source=names.get(row["source_id"], row["source_id"]),
            target=names.get(row["target_id"], row["target_id"]),
        )
        for depth, row in found
    ]
    return tuple(steps)
