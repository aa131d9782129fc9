"""Tables and views that no project made: in the columns of assets, so that whoever lists or finds assets has them too.

Such a table goes by its uuid where an asset goes by its id. It is a project's if an asset has its identity in the catalog, if
Servo committed to it for one, or if an asset that stands is called so: a source that others write is that asset, not another
line beside it. A dropped table is as a retired asset is.
"""

from collections.abc import Collection

from arco.fold.tables import ASSETS, CATALOG_TABLES, ICEBERG_TABLES
from arco.read.reader import Reader, Rows
from arco.read.views import text


async def plain_tables(reader: Reader) -> str:
    """All of them as a relation with the columns of assets; beside them `catalog_id` is the identity that tier 1 gave it."""

    async def select() -> str:
        assets, commits = await reader.relation(ASSETS), await reader.relation(ICEBERG_TABLES)
        return f"""WITH known AS (
                SELECT asset_id, CASE WHEN NOT coalesce(retired, false) THEN asset END AS name FROM {assets}),
            theirs AS (SELECT table_uuid FROM {commits} WHERE asset_id IS NOT NULL)
            SELECT table_uuid AS asset_id, asset_id AS catalog_id, "table" AS asset, namespace, kind,
                NULL::VARCHAR AS project, NULL::VARCHAR AS deployment, NULL::VARCHAR AS code_version,
                NULL::VARCHAR AS fingerprint, description, CASE WHEN owner IS NULL THEN [] ELSE [owner] END AS owners,
                coalesce(tags, []) AS tags, []::VARCHAR[] AS former_names, []::VARCHAR[] AS inputs,
                []::VARCHAR[] AS checks, '[]' AS partitioning, NULL::BIGINT AS fresh_within_s, '{{}}' AS definition,
                NULL::TIMESTAMP AS deployed_at, NULL::VARCHAR AS deployed_by, NULL::TIMESTAMP AS first_deployed_at,
                coalesce(dropped, false) AS retired, created_at
            FROM {await reader.relation(CATALOG_TABLES)} WHERE "table" IS NOT NULL
            AND coalesce(asset_id, '') NOT IN (SELECT asset_id FROM known)
            AND table_uuid NOT IN (SELECT table_uuid FROM theirs)
            AND (coalesce(dropped, false) OR "table" NOT IN (SELECT name FROM known WHERE name IS NOT NULL))"""

    return await reader.kept("plain_tables", select)


async def plain_rows(reader: Reader, ids: Collection[str]) -> Rows:
    """Those of some ids."""
    listed = ", ".join(map(text, ids)) or "NULL"
    return await reader.rows(f"SELECT * FROM {await plain_tables(reader)} WHERE asset_id IN ({listed})")
