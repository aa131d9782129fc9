"""`POST /api/v1/fold/notify`: what is said is kept for whoever folds, and a fold in the server is woken."""

import asyncio
import json
from typing import Any

import pytest

from arco.fold.notifying import hinted
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.storage.keys import Domain
from arco.storage.memory import MemoryStore
from stand_ins.asgi import Answer, ask, make_app

NOTIFY = "/api/v1/fold/notify"
SEGMENT = "default/default/_catalog/ledger/execution/2025-01-01/01JGFJJZZ83G2X71WQR7QPNZ64.jsonl"


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
        ([SEGMENT], "object"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(store: MemoryStore, body: Any, says: str) -> None:
    answer = post(store, body)
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert says in answer.json["detail"]
    assert told(store) == ()


def test_another_workspace_has_its_own(store: MemoryStore) -> None:
    name = SEGMENT.replace("default/default", "acme/prod")
    assert post(store, {"segments": [name]}, f"{NOTIFY}?warehouse=acme/prod").status == 202
    assert told(store) == ()
    assert told(store, Scope.of("acme", "prod")) == (name,)
