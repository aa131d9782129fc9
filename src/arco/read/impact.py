"""Impact: everything that is made of an asset, or of one of its partitions, with who owns it and until when it must be new."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from arco.fold.tables import ASSETS
from arco.kernel.limits import LINEAGE_DEPTH_MAX
from arco.read.answers import Answer
from arco.read.boxes import document_of
from arco.read.facts import Published, published
from arco.read.graph import Direction, walked
from arco.read.naming import found_asset
from arco.read.partition_lineage import Ranges, walked_partitions
from arco.read.partitions import found_partition
from arco.read.reader import Reader


class Affected(msgspec.Struct, frozen=True, kw_only=True):
    """An asset downstream. `partitions` are the ranges that were made of the partition that was asked about."""

    asset_id: str
    asset: str
    depth: int
    project: str | None
    owners: tuple[str, ...]
    tags: tuple[str, ...]
    fresh_within_s: int | None
    last_publish: datetime | None
    deadline: datetime | None
    partitions: list[Ranges] | None = None


class Impact(Answer, frozen=True, kw_only=True):
    """Nearest first. `owners` are everybody who owns something of it, `next_deadline` is the first that would be missed."""

    asset: str
    asset_id: str
    partition_key: str | None
    affected: tuple[Affected, ...]
    owners: tuple[str, ...]
    next_deadline: datetime | None
    truncated: bool = False


async def impact(reader: Reader, asked: str, *, partition: str | None = None, depth: int = LINEAGE_DEPTH_MAX) -> Impact:
    """Everything downstream of an asset, or only what was made of one of its partitions."""
    named = await found_asset(reader, asked)
    ranges: dict[str, list[Ranges]] | None = None
    if partition is None:
        walk = await walked(reader, named.asset_id, Direction.DOWNSTREAM, depth=depth)
        depths, truncated, key = dict(walk.depths), walk.truncated, None
    else:
        key = (await found_partition(reader, named, partition)).partition_key
        steps, truncated = await walked_partitions(
            reader, named.asset_id, document_of(key), Direction.DOWNSTREAM, depth=depth
        )
        depths, ranges = {}, {}
        for step in steps:
            depths.setdefault(step.target_id, step.depth)
            there = ranges.setdefault(step.target_id, [])
            if step.target_partitions not in there:
                there.append(step.target_partitions)
    depths.pop(named.asset_id, None)
    found = await _affected(reader, depths, ranges)
    return Impact(
        snapshot_id=reader.cut.snapshot_id,
        asset=named.asset,
        asset_id=named.asset_id,
        partition_key=key,
        affected=found,
        owners=tuple(sorted({owner for one in found for owner in one.owners})),
        next_deadline=min((one.deadline for one in found if one.deadline is not None), default=None),
        truncated=truncated,
    )


async def _affected(reader: Reader, depths: dict[str, int], ranges: dict[str, list[Ranges]] | None) -> tuple[Affected, ...]:
    if not depths:
        return ()
    relation = await reader.relation(ASSETS, depths)
    rows = await reader.rows(
        f"""SELECT asset_id, asset, project, owners, tags, fresh_within_s FROM {relation}
            WHERE asset IS NOT NULL AND NOT coalesce(retired, false)"""
    )
    _, current = await published(reader, sorted(depths))
    found = [_one(row, depths, current.get(row["asset_id"], Published()), ranges) for row in rows]
    return tuple(sorted(found, key=lambda one: (one.depth, one.asset)))


def _one(
    row: dict[str, Any], depths: dict[str, int], current: Published, ranges: dict[str, list[Ranges]] | None
) -> Affected:
    within = row["fresh_within_s"]
    return Affected(
        asset_id=row["asset_id"],
        asset=row["asset"],
        depth=depths[row["asset_id"]],
        project=row["project"],
        owners=tuple(row["owners"] or ()),
        tags=tuple(row["tags"] or ()),
        fresh_within_s=within,
        last_publish=current.last_at,
        deadline=None if within is None or current.last_at is None else current.last_at + timedelta(seconds=within),
        partitions=None if ranges is None else ranges[row["asset_id"]],
    )
