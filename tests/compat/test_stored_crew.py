"""Open runs and pools that were stored are understood; those of a version that is not known are refused."""

import asyncio
import json

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import UnknownFormat
from arco.servo.schedule.open_runs import OpenRunsNote
from arco.storage.port import Absent
from stand_ins.lake import SCOPE, Lake
from tests.compat.crew_story import AT_MS, NEED, NOTE, STORED, TASK, pools


async def opened(version: int = 1) -> Lake:
    lake = Lake("today")
    lake.clock.at_ms = AT_MS
    for path in (one for one in STORED.rglob("*") if one.is_file()):
        document = json.loads(path.read_bytes()) | {"format_version": version}
        await lake.store.put(path.relative_to(STORED).as_posix(), json.dumps(document).encode(), Absent())
    return lake


def note(lake: Lake) -> OpenRunsNote:
    return OpenRunsNote(lake.store, SCOPE, lake.clock, SeededEntropy("today"))


def test_a_run_that_was_open_is() -> None:
    async def story() -> None:
        assert await note(await opened()).read() == (NOTE,)

    asyncio.run(story())


def test_a_share_that_was_held_is_until_its_lease_ends() -> None:
    async def story() -> None:
        lake = await opened()
        another = pools(lake, "01KA8J3MDW00000000000000W2")
        assert not await another.take(TASK, 2, [NEED])
        lake.clock.at_ms += 31_000
        assert await another.take(TASK, 2, [NEED])

    asyncio.run(story())


def test_versions_that_are_not_known_are_refused() -> None:
    async def story() -> None:
        lake = await opened(version=99)
        with pytest.raises(UnknownFormat):
            await note(lake).read()
        with pytest.raises(UnknownFormat):
            await pools(lake).take(TASK, 1, [NEED])

    asyncio.run(story())
