"""Impact: everything that is made of an asset, or of one of its partitions, with who owns it and until when it must be new.

That is assets, tables that no project made, and places outside. What is made of one partition only runs say: assets.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from arco.fold.tables import ASSETS
from arco.kernel.limits import LINEAGE_DEPTH_MAX
from arco.ledger.lineage_events import is_place_outside
from arco.read.answers import Answer, plain
from arco.read.facts import Published, published
from arco.read.graph import Direction, walked
from arco.read.incarnations import Incarnation
from arco.read.lineage import names_in_edges
from arco.read.naming import found_asset
from arco.read.partition_lineage import Ranges, walked_partitions
from arco.read.partitions import found_partition
from arco.read.plain_tables import plain_rows
from arco.read.reader import Reader


class Affected(msgspec.Struct, frozen=True, kw_only=True):
    """Something downstream. `partitions` are the ranges that were made of the partition that was asked about; unless `exact`, of
    tasks that read more than that, and perhaps not made of it.

    `kind` is asset, table, view or external. A table goes by its uuid, and was last published when it was last committed to.
    """

    asset_id: str
    asset: str
    kind: str
    depth: int
    project: str | None
    owners: tuple[str, ...]
    tags: tuple[str, ...]
    fresh_within_s: int | None
    last_publish: datetime | None
    deadline: datetime | None
    partitions: list[Ranges] | None = None
    exact: bool | None = None


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
    exact: dict[str, bool] = {}
    if partition is None:
        walk = await walked(reader, named.asset_id, Direction.DOWNSTREAM, depth=depth)
        depths, truncated, key = dict(walk.depths), walk.truncated, None
        called = names_in_edges(walk)
    else:
        key = (await found_partition(reader, named, partition)).partition_key
        steps, truncated = await walked_partitions(reader, named.asset_id, key, Direction.DOWNSTREAM, depth=depth)
        depths, ranges, called = {}, {}, {}
        for step in steps:
            exact[step.target_id] = exact.get(step.target_id, True) and step.exact
            depths.setdefault(step.target_id, step.depth)
            there = ranges.setdefault(step.target_id, [])
            if step.target_partitions not in there:
                there.append(step.target_partitions)
    depths.pop(named.asset_id, None)
    found = [
        msgspec.structs.replace(one, exact=exact.get(one.asset_id))
        for one in await _affected(reader, depths, called, ranges)
    ]
    return Impact(
        snapshot_id=reader.cut.snapshot_id,
        asset=named.asset,
        asset_id=named.asset_id,
        partition_key=key,
        affected=tuple(found),
        owners=tuple(sorted({owner for one in found for owner in one.owners})),
        next_deadline=min((one.deadline for one in found if one.deadline is not None), default=None),
        truncated=truncated,
    )


async def _affected(
    reader: Reader, depths: dict[str, int], called: dict[str, tuple[str, str]], ranges: dict[str, list[Ranges]] | None
) -> tuple[Affected, ...]:
    if not depths:
        return ()
    columns = "asset_id, asset, project, owners, tags, fresh_within_s, coalesce(retired, false) AS retired"
    rows = await reader.rows(
        f"SELECT {columns}, 'asset' AS kind FROM {await reader.relation(ASSETS, depths)} WHERE asset IS NOT NULL"
    )
    others = depths.keys() - {row["asset_id"] for row in rows}
    rows += await plain_rows(reader, others) if others else []
    outside = [(one, called[one][0]) for one in others if one in called and is_place_outside(one)]
    tables, current = await published(reader, sorted(depths))
    found = [_one(row, depths, _last_at(row, tables, current), ranges) for row in rows if not row["retired"]] + [
        _outside(one, name, depths[one]) for one, name in outside
    ]
    return tuple(sorted(found, key=lambda one: (one.depth, one.asset, one.asset_id)))


def _last_at(row: dict[str, Any], tables: dict[str, Incarnation], current: dict[str, Published]) -> datetime | None:
    """When there was last something new in it: of a table that no project made, its last commit."""
    table = tables.get(row["asset_id"])
    if row["kind"] == "asset" or table is None or table.row is None:
        return current.get(row["asset_id"], Published()).last_at
    committed: datetime | None = plain(table.row["committed_at"])
    return committed


def _outside(identity: str, name: str, depth: int) -> Affected:
    return Affected(
        asset_id=identity,
        asset=name,
        kind="external",
        depth=depth,
        project=None,
        owners=(),
        tags=(),
        fresh_within_s=None,
        last_publish=None,
        deadline=None,
    )


def _one(
    row: dict[str, Any], depths: dict[str, int], last_at: datetime | None, ranges: dict[str, list[Ranges]] | None
) -> Affected:
    within = row["fresh_within_s"]
    return Affected(
        asset_id=row["asset_id"],
        asset=row["asset"],
        kind=row["kind"],
        depth=depths[row["asset_id"]],
        project=row["project"],
        owners=tuple(row["owners"] or ()),
        tags=tuple(row["tags"] or ()),
        fresh_within_s=within,
        last_publish=last_at,
        deadline=None if within is None or last_at is None else last_at + timedelta(seconds=within),
        partitions=None if ranges is None else ranges[row["asset_id"]],
    )
