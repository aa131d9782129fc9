"""`POST /api/v1/fold/notify`: what is said is kept for whoever folds, and a fold in the server is woken."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from arco.catalog.policy import LocationPolicy
from arco.catalog.telling import Teller
from arco.fold.folding import Folding, Settings
from arco.fold.heads import Heads
from arco.fold.notifying import hinted
from arco.fold.passes import fold_pass
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import UlidSource
from arco.kernel.scope import Scope
from arco.storage.keys import Domain, Head
from arco.storage.memory import MemoryStore
from arco.surface.http.app import App
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from arco.surface.receipts import receipts_of
from fixtures.state.arrow_work import ArrowWork
from stand_ins.asgi import Answer, ask, make_app

NOTIFY = "/api/v1/fold/notify"
SEGMENT = "default/default/_catalog/ledger/execution/2025-01-01/01JGFJJZZ83G2X71WQR7QPNZ64.jsonl"

RECEIPT = f"default/default/_catalog/events/2025-01-01/iceberg/committed/{'a' * 64}.json"


def post(store: MemoryStore, body: Any, path: str = NOTIFY) -> Answer:
    return asyncio.run(ask(make_app(store=store), "POST", path, json.dumps(body).encode()))


def told(store: MemoryStore, scope: Scope | None = None) -> tuple[str, ...]:
    return asyncio.run(hinted(store, scope or Scope.of(), Domain.EXECUTION, SystemClock(), SystemEntropy()))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(SystemClock())


def test_segments_are_kept_for_the_fold_and_saying_them_twice_is_once(store: MemoryStore) -> None:
    for _ in range(2):
        answer = post(store, {"segments": [SEGMENT]})
        assert (answer.status, answer.json) == (202, {"notified": 1})
    assert told(store) == (SEGMENT,)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "segments"),
        ({"segments": []}, "segments"),
        ({"segments": [SEGMENT], "other": 1}, "other"),
        ({"segments": ["default/default/_catalog/core/commits/x.json"]}, "is not the name of an object"),
        ({"segments": [SEGMENT.replace("default/default", "default/other")]}, "no segment of default/default"),
        ({"segments": ["../../etc/passwd"]}, "has a segment"),
        ({"segments": [RECEIPT.replace("/committed/", "/pending/")]}, "no segment of default/default"),
        ([SEGMENT], "object"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(store: MemoryStore, body: Any, says: str) -> None:
    answer = post(store, body)
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert says in answer.json["detail"]
    assert "keys.py" not in str(answer.json), "who sends a request has no source to look into"
    assert told(store) == ()


def test_another_workspace_has_its_own(store: MemoryStore) -> None:
    name = SEGMENT.replace("default/default", "acme/prod")
    assert post(store, {"segments": [name]}, f"{NOTIFY}?warehouse=acme/prod").status == 202
    assert told(store) == ()
    assert told(store, Scope.of("acme", "prod")) == (name,)


SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
EVENT = {
    "type": "execution.run_completed.v1", "source": "airflow",
    "data": {"run_id": "r1", "state": "succeeded", "tasks": {}, "started_ms": 1, "ended_ms": 2},
}  # fmt: skip
EDGE = {"upstream": {"external": "s3://landing"}, "downstream": {"namespace": ["shop"], "name": "orders"}}


class Told:
    """A server whose fold does not list, and such a fold. `woken` counts how often it was told that there is something."""

    def __init__(self, *, lists: bool = False) -> None:
        clock, entropy = SystemClock(), SystemEntropy()
        self.store = MemoryStore(clock)
        self.state = ServerState(self.store, "memory://", ForClients(), LocationPolicy(), clock, entropy)
        self.state.fold_lists = lists
        self.woken: list[Scope] = []
        self.state.wake_fold = self.woken.append
        self.app = App(self.state, UlidSource(clock, entropy))
        heads = Heads(self.store, Scope.of(), clock, entropy)
        receipts = receipts_of(self.state.catalog(Scope.of()).parts)
        settings, work = Settings(listing=False), ArrowWork(self.store, Scope.of())
        tell = Teller(self.store, Scope.of(), clock, entropy).tell
        self.folding = Folding(heads, work, settings, receipts=receipts, tell=tell)

    async def post(self, path: str, body: Any) -> Answer:
        answer = await ask(self.app, "POST", path, json.dumps(body).encode())
        assert answer.status < 300, answer.json
        return answer

    async def fold(self) -> dict[Head, int]:
        done = await fold_pass(self.folding)
        assert not done.failed
        return {head: one.events for head, one in done.rounds.items() if one.events}


def play(test: Callable[[Told], Awaitable[None]], **how: bool) -> None:
    async def go() -> None:
        ground = Told(**how)
        await test(ground)
        await ground.state.settle()

    asyncio.run(go())


def test_what_is_posted_is_folded_by_a_fold_that_never_lists() -> None:
    async def test(ground: Told) -> None:
        await ground.post("/iceberg/v1/default.default/namespaces", {"namespace": ["shop"]})
        await ground.post("/iceberg/v1/default.default/namespaces/shop/tables", {"name": "orders", "schema": SCHEMA})
        await ground.post("/api/v1/events", [EVENT])
        await ground.post("/api/v1/lineage", EDGE)
        await ground.state.settle()
        folded = await ground.fold()
        assert (folded[Head.EXECUTION], folded[Head.LINEAGE]) == (1, 1)
        assert folded[Head.ICEBERG] == 1, "the commit that made the table"
        assert folded[Head.SEARCH] >= 2, "its name, and its columns as the other head announced them"
        assert await ground.fold() == {}

    play(test)


def test_a_server_whose_fold_lists_writes_no_hints() -> None:
    async def test(ground: Told) -> None:
        await ground.post("/api/v1/events", [EVENT])
        await ground.state.settle()
        assert ground.woken == [Scope.of()]
        assert await hinted(ground.store, Scope.of(), Domain.EXECUTION, SystemClock(), SystemEntropy()) == ()

    play(test, lists=True)


def test_the_segments_of_an_answer_can_be_notified() -> None:
    async def test(ground: Told) -> None:
        answer = await ground.post("/api/v1/events", [EVENT])
        await ground.state.settle()
        assert await ground.fold() == {}
        await ground.post(NOTIFY, {"segments": answer.json["segments"]})
        assert await ground.fold() == {Head.EXECUTION: 1}

    play(test, lists=True)


def test_lineage_wakes_the_fold() -> None:
    async def test(ground: Told) -> None:
        await ground.post("/iceberg/v1/default.default/namespaces", {"namespace": ["shop"]})
        await ground.post("/iceberg/v1/default.default/namespaces/shop/tables", {"name": "orders", "schema": SCHEMA})
        assert ground.woken == []
        said = await ground.post("/api/v1/lineage", EDGE)
        openlineage = {"eventTime": "2025-10-11T09:08:07Z", "dataset": {"namespace": "a", "name": "b"}}
        await ground.post("/api/v1/lineage", openlineage)
        await ask(ground.app, "DELETE", f"/api/v1/lineage?edge_id={said.json['edge_id']}")
        assert ground.woken == [Scope.of()] * 3

    play(test, lists=True)
