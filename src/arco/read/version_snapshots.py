"""Which snapshots of a table hold versions of partitions that are to be kept, for those who let snapshots expire.

A version is kept while it is among the newest few of its partition, or young enough and among the newest many; a young one in any
case. The numbers are those of its asset, and the defaults of the house where an asset says none. Versions are counted in the
order that decides what is current.
"""

from collections.abc import Collection
from dataclasses import dataclass

from arco.fold.tables import ASSETS, HELD_OUTPUTS, MATERIALIZATIONS
from arco.kernel.retention import (
    PARTITION_VERSION_DAYS,
    PARTITION_VERSION_GRACE_S,
    PARTITION_VERSIONS_MAX,
    PARTITION_VERSIONS_MIN,
)
from arco.read.publishers import BY_SERVO
from arco.read.reader import Reader

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class VersionsInSnapshot:
    """What one snapshot published. `kept` counts its versions that are to be kept; the rest speaks of the newest of those."""

    snapshot_id: int
    versions: int
    kept: int
    asset: str | None
    partition_key: str | None
    age_days: int | None


async def versions_by_snapshot(reader: Reader, table_uuid: str, now_ms: int) -> dict[int, VersionsInSnapshot]:
    """Every snapshot of a table that a run published, as far as it is known."""
    rows = await reader.rows(
        f"""WITH said AS (SELECT asset_id,
                coalesce(CAST(definition->>'$.retention.days' AS BIGINT), {PARTITION_VERSION_DAYS}) AS days,
                coalesce(CAST(definition->>'$.retention.versions_min' AS BIGINT), {PARTITION_VERSIONS_MIN}) AS at_least,
                coalesce(CAST(definition->>'$.retention.versions_max' AS BIGINT), {PARTITION_VERSIONS_MAX}) AS at_most
            FROM {await reader.relation(ASSETS)}),
        counted AS (SELECT m.*, epoch_ms(published_at) AS at_ms, row_number() OVER (
                PARTITION BY m.asset_id, partition_id
                ORDER BY {BY_SERVO} DESC, sequence_number DESC NULLS LAST, position DESC) AS place
            FROM {await reader.relation(MATERIALIZATIONS)} m WHERE table_uuid = $table),
        judged AS (SELECT counted.*, place <= coalesce(at_least, {PARTITION_VERSIONS_MIN})
                OR $now - coalesce(at_ms, $now) <= {PARTITION_VERSION_GRACE_S * 1000}
                OR (place <= coalesce(at_most, {PARTITION_VERSIONS_MAX})
                    AND $now - coalesce(at_ms, $now) <= coalesce(days, {PARTITION_VERSION_DAYS}) * {_DAY_MS}) AS is_kept
            FROM counted LEFT JOIN said ON said.asset_id = counted.asset_id)
        SELECT snapshot_id, count(*) AS versions, count(*) FILTER (is_kept) AS kept,
            arg_max(asset, at_ms) FILTER (is_kept) AS asset, arg_max(partition_key, at_ms) FILTER (is_kept) AS partition_key,
            CAST(($now - max(at_ms) FILTER (is_kept)) // {_DAY_MS} AS BIGINT) AS age_days
        FROM judged WHERE snapshot_id IS NOT NULL GROUP BY snapshot_id""",
        {"table": table_uuid, "now": now_ms},
    )
    return {row["snapshot_id"]: VersionsInSnapshot(**row) for row in rows}


async def known_materializations(reader: Reader, ids: Collection[str]) -> set[str]:
    """Of some outputs, those whose end is known: published as versions of partitions, or held back."""
    wanted = {"ids": sorted(ids)}
    found = [
        await reader.rows(
            f"SELECT DISTINCT materialization_id AS id FROM {await reader.relation(table)}"
            f" WHERE list_contains($ids, materialization_id) AND {BY_SERVO}",
            wanted,
        )
        for table in (MATERIALIZATIONS, HELD_OUTPUTS)
    ]
    return {row["id"] for rows in found for row in rows}
