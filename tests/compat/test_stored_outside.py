"""Requests for runs and marks of workspaces that were stored are understood; those of a version that is not known are refused."""

import asyncio
import json

import pytest

from arco.catalog.workspaces import Workspaces
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Conflict, UnknownFormat
from arco.kernel.ids import KeyHash
from arco.ledger.asked_runs import AskedRuns, Decided
from arco.ledger.asked_troubles import AskedTroubles
from arco.storage.port import Absent
from stand_ins.lake import SCOPE, Lake
from tests.compat.outside_story import KEPT_BY, OPEN, STORED, TAKEN_BACK


async def opened(version: int = 1) -> tuple[AskedRuns, Workspaces]:
    lake = Lake("today")
    for path in (one for one in STORED.rglob("*") if one.is_file()):
        document = json.loads(path.read_bytes()) | {"format_version": version}
        await lake.store.put(path.relative_to(STORED).as_posix(), json.dumps(document).encode(), Absent())
    entropy = SeededEntropy("today")
    return AskedRuns(lake.store, SCOPE, lake.clock, entropy), Workspaces(lake.store, lake.clock, entropy)


def troubles_of(requests: AskedRuns) -> AskedTroubles:
    return AskedTroubles(requests.store, requests.scope, requests.clock, requests.entropy)


def test_what_was_asked_for_is_what_it_was_and_stands_for_the_same_run() -> None:
    async def story() -> None:
        requests, _ = await opened()
        assert await requests.find(KeyHash(OPEN.id)) == (OPEN, None)
        asked, verdict = await requests.find(KeyHash(TAKEN_BACK.id))
        assert asked == TAKEN_BACK
        assert verdict is not None
        assert (verdict.decided, verdict.by) == (Decided.WITHDRAWN, "ann")
        assert str(OPEN.run) == "01K798E09WTYYYHNMNVRGW81NM"

    asyncio.run(story())


def test_what_keeps_a_request_is_still_said() -> None:
    async def story() -> None:
        requests, _ = await opened()
        found = await troubles_of(requests).read(KeyHash(OPEN.id))
        assert found is not None
        assert (found.message, found.by, found.at_ms) == (KEPT_BY, "ann", OPEN.asked_ms)

    asyncio.run(story())


def test_a_workspace_that_was_given_up_still_is() -> None:
    async def story() -> None:
        _, workspaces = await opened()
        with pytest.raises(Conflict, match="given up by ann: merged"):
            await workspaces.need_in_use(SCOPE)

    asyncio.run(story())


def test_versions_that_are_not_known_are_refused() -> None:
    async def story() -> None:
        requests, workspaces = await opened(version=99)
        for one in (OPEN, TAKEN_BACK):
            with pytest.raises(UnknownFormat):
                await requests.find(KeyHash(one.id))
        with pytest.raises(UnknownFormat):
            await troubles_of(requests).read(KeyHash(OPEN.id))
        with pytest.raises(UnknownFormat):
            await workspaces.read(SCOPE)

    asyncio.run(story())
