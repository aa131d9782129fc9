"""Lineage of partitions: which partitions of the sources a partition was made of, and what was made of it.

A task covers ranges and its executions say ranges. Where an input maps partitions by identity they are narrowed to what was
asked for (`identity_edges.py`); elsewhere an answer is as fine as the tasks were, and says so. Only what is current counts: the
publish that a partition has now, and what that publish read.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from arco.fold.tables import LINEAGE_EXECUTIONS, PARTITIONS
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import LINEAGE_DEPTH_MAX, LINEAGE_NODES_MAX
from arco.read.answers import Answer, document, shaped
from arco.read.boxes import count, document_of, holds, overlaps, shared
from arco.read.graph import Direction, Graph, graph_of
from arco.read.identity_edges import NOT_DEPLOYED, Deployed, codes, deployed, maps_by_identity
from arco.read.incarnations import incarnations, newest
from arco.read.naming import found_asset, names_of
from arco.read.partitions import found_partition
from arco.read.publishers import counted
from arco.read.reader import Reader, Rows
from arco.read.views import text

Ranges = list[dict[str, Any]]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One execution along one edge: from which partitions which were made. `depth` counts from what was asked for.

    `exact`: these are the partitions that were asked for and what they were made of, or what was made of them. Otherwise they are
    the ranges of the whole task, or come of such ranges: one partition may have read, or made, less of them.
    """

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
    exact: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """Some partitions of an asset that a walk came to, and whether it came to all of them."""

    ranges: Ranges
    exact: bool


_Frontier = dict[str, list[_Part]]


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
    steps, truncated = await walked_partitions(reader, named.asset_id, partition.partition_key, direction, depth=depth)
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
    reader: Reader, start: str, key: str, direction: Direction, *, depth: int
) -> tuple[tuple[Step, ...], bool]:
    """Executions from one partition of an asset on, a level at a time; each is gone along once from the same partitions."""
    graph = await graph_of(reader)
    kinds = (await deployed(reader, [start])).get(start, NOT_DEPLOYED).kinds
    frontier: _Frontier = {start: [_Part(document_of(key, kinds), exact=True)]}
    found: dict[tuple[str, ...], tuple[int, dict[str, Any]]] = {}
    end = "source" if direction is Direction.UPSTREAM else "target"
    for level in range(1, depth + 1):
        rows = await (_read_by if direction is Direction.UPSTREAM else _made_of)(reader, graph, frontier)
        frontier = {}
        for row in rows:
            mark = (row["edge_id"], row["run_id"], row["task_id"], str(row[f"{end}_partitions"]))
            if mark in found:
                continue
            if len(found) >= LINEAGE_NODES_MAX:
                return await _steps(reader, found.values()), True
            found[mark] = (level, row)
            there, part = frontier.setdefault(row[f"{end}_id"], []), _Part(row[f"{end}_partitions"], row["exact"])
            if part not in there:
                there.append(part)
        if not frontier:
            break
    return await _steps(reader, found.values()), False


async def _read_by(reader: Reader, graph: Graph, frontier: _Frontier) -> Rows:
    """What the current publishes of some partitions read."""
    made: dict[str, list[str]] = defaultdict(list)
    for row in await _current(reader, frontier):
        if any(overlaps(part.ranges, document_of(row["partition_key"])) for part in frontier[row["asset_id"]]):
            made[row["materialization_id"]].append(row["partition_key"])
    standing = {at for node in frontier for at, _ in graph.beyond(node, Direction.UPSTREAM)}
    rows = await _executions(reader, frontier, graph, standing, made)
    return await _narrowed(reader, rows, frontier, made, Direction.UPSTREAM)


async def _made_of(reader: Reader, graph: Graph, frontier: _Frontier) -> Rows:
    """The current publishes that read some partitions."""
    standing = {at for node in frontier for at, _ in graph.beyond(node, Direction.DOWNSTREAM)}
    targets = {target for node in frontier for _, target in graph.beyond(node, Direction.DOWNSTREAM)}
    made: dict[str, list[str]] = defaultdict(list)
    for row in await _current(reader, targets):
        made[row["materialization_id"]].append(row["partition_key"])
    rows = await _executions(reader, targets, graph, standing, made)
    met = [
        row
        for row in rows
        if any(overlaps(part.ranges, row["source_partitions"]) for part in frontier.get(row["source_id"], ()))
    ]
    return await _narrowed(reader, met, frontier, made, Direction.DOWNSTREAM)


async def _narrowed(
    reader: Reader, rows: Rows, frontier: _Frontier, made: Mapping[str, list[str]], direction: Direction
) -> Rows:
    """Executions with the partitions that a walk goes along, as far as that is known; less those that it does not meet."""
    assets = await deployed(reader, {row[end] for row in rows for end in ("source_id", "target_id")})
    plain = {
        row["materialization_id"]
        for row in rows
        if maps_by_identity(assets.get(row["source_id"], NOT_DEPLOYED), assets.get(row["target_id"], NOT_DEPLOYED))
    }
    code = await codes(reader, {row["target_id"] for row in rows}, plain)
    found: Rows = []
    for row in rows:
        source, target = (assets.get(row[end], NOT_DEPLOYED) for end in ("source_id", "target_id"))
        is_same = code.get(row["materialization_id"]) == target.fingerprint is not None
        identity = is_same and maps_by_identity(source, target)
        near = frontier.get(row["target_id" if direction is Direction.UPSTREAM else "source_id"], [])
        one = _along(row, near, made[row["materialization_id"]], target, direction, by_identity=identity)
        found += [] if one is None else [one]
    return found


def _along(
    row: dict[str, Any],
    parts: list[_Part],
    current: list[str],
    target: Deployed,
    direction: Direction,
    *,
    by_identity: bool,
) -> dict[str, Any] | None:
    near, far = ("target", "source") if direction is Direction.UPSTREAM else ("source", "target")
    near, far = f"{near}_partitions", f"{far}_partitions"
    met = [part for part in parts if overlaps(part.ranges, row[near])]
    here = shared(row[near], [box for part in met for box in part.ranges])
    ends = {near: here, far: shared(row[far], here)} if by_identity else {near: row[near], far: row[far]}
    made = ends["target_partitions"]
    standing = sum(holds(made, key) for key in current)
    if by_identity and not (standing and ends[far]):
        return None  # others have published since what it made of these
    size = count(made, target.kinds) if all(name in target.kinds for box in made for name in box) else None
    # A task whose partitions were all asked for, or that made only one, says exactly what was read.
    is_whole = by_identity or here == row[near] or size == 1
    return row | ends | {"exact": is_whole and standing == size and all(part.exact for part in met)}


async def _current(reader: Reader, assets: Collection[str]) -> Rows:
    """The current partitions of some assets, in the tables that count."""
    tables = await incarnations(reader, assets)
    counting = [table.table_uuid for some in tables.values() if (table := newest(some)) is not None]
    relation = await counted(reader, PARTITIONS, assets)
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
