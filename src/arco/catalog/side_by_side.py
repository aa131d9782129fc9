"""Several tables as they were at one moment.

Each table is loaded on its own, so what is read of two of them may belong to two moments, one before a transaction and one after.
Here all are read, and then read again: where nothing differs, nothing changed in between, and what was read held for all of
them at once. Where something did, the second reading is compared with a third. A set of tables that changes all the time has no
such moment to be found, and that is said.
"""

import asyncio
from collections.abc import Sequence

from arco.catalog.bases import Base
from arco.catalog.catalog import Catalog
from arco.catalog.model import Entry, Kind, Levels, dotted
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import InvalidInput, NoSuchTable, RetryLater
from arco.kernel.limits import SIDE_BY_SIDE_READINGS_MAX

Reading = list[tuple[Entry, Base[TableMetadata]]]


async def side_by_side(catalog: Catalog, places: Sequence[tuple[Levels, str]]) -> Reading:
    """The tables of these names, all as of one moment after this was asked."""
    before = await _read(catalog, places)
    for _ in range(SIDE_BY_SIDE_READINGS_MAX):
        after = await _read(catalog, places)
        if _identity(before) == _identity(after):
            return after
        before = after
    raise RetryLater("these tables changed between any two looks at them", hint="ask again, or for fewer tables")


async def _read(catalog: Catalog, places: Sequence[tuple[Levels, str]]) -> Reading:
    return list(await asyncio.gather(*(_loaded(catalog, levels, name) for levels, name in places)))


async def _loaded(catalog: Catalog, levels: Levels, name: str) -> tuple[Entry, Base[TableMetadata]]:
    try:
        return await catalog.tables.load(levels, name)
    except NoSuchTable:
        if catalog.parts.tier1.names.find(levels, name, Kind.VIEW) is None:
            raise
        raise InvalidInput(f"{dotted(levels, name)} is a view", hint="ask for the tables that it reads") from None


def _identity(reading: Reading) -> list[tuple[str, int, int, str]]:
    """What cannot come back once it has changed: a location may, its number may not."""
    return [(entry.uuid, entry.binding, base.pointer.value.commit_number, base.location) for entry, base in reading]
