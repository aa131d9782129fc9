"""The tables that a project's assets have by now, for its columns to be tied to."""

import asyncio

from arco.catalog.catalog import Catalog
from arco.kernel.errors import NotFound
from arco.servo.deploy.columns import TableColumns
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.project import Project
from arco.servo.sdk.tables import table_of


async def columns_of_tables(catalog: Catalog, project: Project) -> dict[str, TableColumns]:
    """The tables of the assets that declare columns, by their keys, as far as there are any."""
    declared = [one for one in project.assets.values() if one.schema is not None]
    found = await asyncio.gather(*(_columns(catalog, one) for one in declared))
    return {str(one.key): table for one, table in zip(declared, found, strict=True) if table is not None}


async def _columns(catalog: Catalog, asset: AssetDefinition) -> TableColumns | None:
    try:
        _, found = await catalog.tables.load(*table_of(asset))
    except NotFound:
        return None
    return TableColumns.of(found.metadata)
