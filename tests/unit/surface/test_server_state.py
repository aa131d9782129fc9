"""What a server has open: every workspace that something is in, and few of those that clients only name."""

import asyncio
import json

from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.catalog.policy import LocationPolicy
from arco.fold import hinting
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import WORKSPACES_OPEN_MAX
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.storage.keys import Domain
from arco.storage.memory import MemoryStore
from arco.surface.http import server_state
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from stand_ins.asgi import ask, make_app
from stand_ins.hand_clock import HandClock

COMPLETED = "execution.run_completed.v1"
DATA = {"run_id": "r1", "state": "succeeded", "tasks": {}, "started_ms": 1, "ended_ms": 2}


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


def test_workspaces_that_only_events_are_posted_to_fill_no_memory_either(monkeypatch) -> None:
    monkeypatch.setattr(server_state, "WORKSPACES_OPEN_MAX", 10)
    monkeypatch.setattr(hinting, "WORKSPACES_OPEN_MAX", 10)
    event = {"type": COMPLETED, "source": "airflow", "data": DATA}

    async def run() -> None:
        app = make_app()
        app._state.fold_lists = False
        for number in range(100):
            answer = await ask(app, "POST", f"/api/v1/events?warehouse=acme/w{number}", json.dumps([event]).encode())
            assert answer.status == 202
            assert len(app._state._appenders) <= 10
            await app._state._hints.settle()
            assert len(app._state._hints._notifiers) <= 11
        await app._state.settle()

    asyncio.run(run())


def test_an_appender_with_something_to_do_is_not_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(server_state, "WORKSPACES_OPEN_MAX", 1)

    async def run() -> None:
        state = make_app()._state
        busy = state.appender(Scope.of("acme", "busy"))
        storing = asyncio.ensure_future(
            busy.append(Domain.EXECUTION, [Draft(type=EventType(COMPLETED), source="airflow", data=DATA)])
        )
        await asyncio.sleep(0)
        state.appender(Scope.of("acme", "other"))
        assert state.appender(Scope.of("acme", "busy")) is busy
        await storing
        state.appender(Scope.of("acme", "third"))
        assert state.appender(Scope.of("acme", "busy")) is not busy
        await state.settle()

    asyncio.run(run())
