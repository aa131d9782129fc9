"""A mark that was stored is understood: what was told is not told again, and what is new is told after it."""

import asyncio

from arco.catalog.telling import Teller
from arco.kernel.entropy import SeededEntropy
from arco.storage.port import Absent
from stand_ins.lake import SCOPE, Lake
from tests.compat.told_story import STORED


async def opened() -> Lake:
    lake = Lake("today")
    lake._keys = 100  # those that the story used stand for what was done then
    for path in (one for one in STORED.rglob("*") if one.is_file()):
        await lake.store.put(path.relative_to(STORED).as_posix(), path.read_bytes(), Absent())
    return lake


def test_only_what_is_new_is_told_after_a_stored_mark() -> None:
    async def story() -> None:
        lake = await opened()
        teller = Teller(lake.store, SCOPE, lake.clock, SeededEntropy("today"))
        assert await teller.tell() == ()
        await lake.table(("shop",), "new")
        (segment,) = await teller.tell()
        lines = (await lake.bytes_of(segment)).splitlines()
        assert len(lines) == 2, "a header and one event"
        assert b'"name":"new"' in lines[1]

    asyncio.run(story())
