"""Schedules and decisions that were stored are understood, and those of a version that is not known are refused."""

import asyncio
import json

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import UnknownFormat
from arco.servo.execute.desk_decisions import Stage, decision_object
from arco.servo.schedule.ticking import Schedules
from arco.storage.port import Absent
from stand_ins.lake import SCOPE, Lake
from tests.compat.operations_story import HELD, HOUR_MS, NIGHTLY, STORED


async def opened(version: int = 1) -> tuple[Lake, Schedules]:
    lake = Lake("today")
    lake.clock.at_ms = NIGHTLY.since_ms + 5 * HOUR_MS
    for path in (one for one in STORED.rglob("*") if one.is_file()):
        document = json.loads(path.read_bytes()) | {"format_version": version}
        await lake.store.put(path.relative_to(STORED).as_posix(), json.dumps(document).encode(), Absent())
    return lake, Schedules(lake.store, SCOPE, "shop", lake.clock, SeededEntropy("today"))


def test_a_stored_schedule_goes_on_where_it_was() -> None:
    async def story() -> None:
        _, schedules = await opened()
        paused = await schedules.decide(NIGHTLY)
        assert paused is not None
        assert paused.paused is not None
        assert (paused.paused.who, len(paused.open)) == ("ann", 2)
        assert await schedules.resume("nightly")
        state = await schedules.decide(NIGHTLY)
        assert state is not None
        assert [tick.make for tick in state.open] == [("orders+",)] * 2

    asyncio.run(story())


def test_a_stored_decision_is_known() -> None:
    async def story() -> None:
        lake, _ = await opened()
        found = await decision_object(lake.catalog.parts, HELD, "output").read()
        assert found is not None
        assert (found.value.who, found.value.stage) == ("ann", Stage.OPEN)

    asyncio.run(story())


def test_a_version_that_is_not_known_is_refused() -> None:
    async def story() -> None:
        lake, schedules = await opened(version=99)
        with pytest.raises(UnknownFormat):
            await schedules.state("nightly")
        with pytest.raises(UnknownFormat):
            await decision_object(lake.catalog.parts, HELD, "output").read()

    asyncio.run(story())
