"""Upkeep beside a server: it works on every workspace, outlives a store that is away, and ends when it is told to."""

import asyncio
import logging

import pytest

from arco.catalog.policy import LocationPolicy
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Unavailable
from arco.kernel.ids import KeyHash
from arco.kernel.limits import READY_WORKSPACES_MAX
from arco.kernel.retention import Retention
from arco.kernel.scope import Scope
from arco.storage.keys import MarkerKey
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Page
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from arco.surface.upkeeps import ServerUpkeep
from stand_ins.hand_clock import HandClock


def marker_of(workspace: str) -> str:
    return str(MarkerKey(Scope.of("t", workspace), KeyHash("ab" * 32)))


MARKERS = [marker_of("w"), marker_of("x")]


class Away(MemoryStore):
    """A store that cannot be listed the first time."""

    asked = 0

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        self.asked += 1
        if self.asked == 1:
            raise Unavailable("the store is away")
        return await super().list_page(prefix, after, limit)


class Told(logging.Handler):
    """Waits for a line of the log."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self.heard = asyncio.Event()
        self._part = part

    def emit(self, record: logging.LogRecord) -> None:
        if self._part in record.getMessage():
            self.heard.set()


def test_every_workspace_is_looked_after_until_the_server_stops(caplog: pytest.LogCaptureFixture) -> None:
    async def tell() -> None:
        clock = HandClock()
        store = Away(clock)
        for marker in MARKERS:
            await store.put(marker, b"{}", Absent())
        clock.at_ms += 30 * 3600 * 1000
        state = ServerState(store, "memory://", ForClients(), LocationPolicy(), clock, SeededEntropy(1))
        upkeep = ServerUpkeep(state, Retention(), 900)
        told = Told("t/x: markers, 1 deleted")
        logging.getLogger("arco.upkeep").addHandler(told)
        upkeep.start()
        await told.heard.wait()
        await upkeep.stop()
        logging.getLogger("arco.upkeep").removeHandler(told)
        assert not any([await store.head(marker) for marker in MARKERS])

    with caplog.at_level(logging.INFO, "arco.upkeep"):
        asyncio.run(tell())
    assert "the store is away" in caplog.text
    assert "upkeep of t/w: markers, 1 deleted" in caplog.text


class Odd(MemoryStore):
    """A store of which one folder breaks whoever lists it, in a way that nobody foresaw."""

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        if prefix.startswith("t/w000/_catalog/iceberg_idempotency"):
            raise ValueError("nobody foresaw this")
        return await super().list_page(prefix, after, limit)


def test_one_workspace_keeps_no_other_from_its_upkeep_however_many_there_are(caplog: pytest.LogCaptureFixture) -> None:
    async def tell() -> None:
        clock = HandClock()
        store = Odd(clock)
        markers = [marker_of(f"w{number:03}") for number in range(READY_WORKSPACES_MAX + 6)]
        for marker in markers:
            await store.put(marker, b"{}", Absent())
        clock.at_ms += 30 * 3600 * 1000
        state = ServerState(store, "memory://", ForClients(), LocationPolicy(), clock, SeededEntropy(1))
        upkeep = ServerUpkeep(state, Retention(), 900)
        told = Told("t/w069: markers, 1 deleted")
        logging.getLogger("arco.upkeep").addHandler(told)
        upkeep.start()
        await asyncio.wait_for(told.heard.wait(), 30)
        await upkeep.stop()
        logging.getLogger("arco.upkeep").removeHandler(told)
        assert [await store.head(marker) is None for marker in markers] == [False] + [True] * (len(markers) - 1)

    with caplog.at_level(logging.INFO, "arco.upkeep"):
        asyncio.run(tell())
    assert "upkeep of t/w000 breaks" in caplog.text
    assert "ValueError: nobody foresaw this" in caplog.text
