"""What a server has open: every workspace that something is in, and few of those that clients only name."""

import asyncio

from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.catalog.policy import LocationPolicy
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import WORKSPACES_OPEN_MAX
from arco.kernel.scope import Scope
from arco.storage.memory import MemoryStore
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from stand_ins.hand_clock import HandClock


def test_workspaces_that_are_only_named_fill_no_memory_and_those_with_names_stay() -> None:
    async def run() -> None:
        clock, entropy = HandClock(), SystemEntropy()
        state = ServerState(MemoryStore(clock), "file:///lake", ForClients(), LocationPolicy(), clock, entropy)
        kept = state.catalog(Scope.of("acme", "kept"))
        key = kept.parts.markers.request_key(new_uuid7(clock, entropy), "createNamespace", "0" * 64)
        await create_namespace(kept.parts, ("db",), {}, key, Author("tests", None))
        await kept.parts.afterwards.settle()
        for number in range(3 * WORKSPACES_OPEN_MAX):
            state.catalog(Scope.of("acme", f"w{number}"))
            assert len(state._open) <= WORKSPACES_OPEN_MAX
        assert state.catalog(Scope.of("acme", "kept")) is kept
        await state.settle()

    asyncio.run(run())
