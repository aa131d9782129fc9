"""Which workspaces a root holds, and what it costs to find out."""

import asyncio
from collections import Counter

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.storage.local import LocalStore
from arco.storage.memory import MemoryStore
from arco.storage.port import Always, ObjectStore
from arco.storage.profile import INSTANT, ProfiledStore
from arco.storage.workspaces import is_in_use, workspaces

HELD = (
    "_arco_doctor/x/probe",
    "a file at the top",
    "acme/dev/_catalog/manifests/catalog.manifest.json",
    "acme/dev-2/data/one",
    "acme/dev-2/data/two",
    "acme/dev/data/three",
    "acme/loose",
    "acme/Prod/data/four",
    "acme-eu/dev/data/five",
    "default/default/_catalog/manifests/catalog.manifest.json",
    "default/default/data/six",
    "Strangers/things/seven",
)
OURS = ["acme-eu/dev", "acme/dev-2", "acme/dev", "default/default"]


async def found_in(store: ObjectStore, keys: tuple[str, ...], requests_max: int = 100) -> tuple[list[str], Counter[str]]:
    """The workspaces of a store that holds these keys, and what was asked to find them."""
    counted = ProfiledStore(store, INSTANT, SystemClock())
    for key in keys:
        await store.put(key, b"x", Always())
    try:
        return [scope.warehouse for scope in await workspaces(counted, requests_max)], counted.total.requests
    finally:
        await store.close()


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path) -> ObjectStore:
    clock = SystemClock()
    return MemoryStore(clock) if request.param == "memory" else LocalStore(str(tmp_path / "lake"), clock, SystemEntropy())


def test_every_workspace_is_found_and_nothing_that_is_none(store: ObjectStore) -> None:
    assert asyncio.run(found_in(store, HELD))[0] == OURS


def test_a_workspace_costs_one_request_however_much_is_in_it(store: ObjectStore) -> None:
    many = tuple(f"acme/dev/data/{number}" for number in range(200))
    assert asyncio.run(found_in(store, many)) == (["acme/dev"], {"list": 2})


def test_no_more_is_asked_than_was_allowed(store: ObjectStore) -> None:
    found, requests = asyncio.run(found_in(store, HELD, requests_max=3))
    assert set(found) < set(OURS)
    assert requests == {"list": 3}


REFUSED = (
    "acme/dev/_catalog/iceberg_idempotency/ab/key.json",
    "acme/dev/_catalog/iceberg_pointers/one.json",
    "acme/dev/_catalog/iceberg_transactions/2025-01-01/one.json",
    "acme/dev/_catalog/iceberg_transactions/2025-01-01/two.json",
    "acme/dev/data/orders-1/metadata/one",
)


@pytest.mark.parametrize(
    ("more", "used"),
    [
        ((), False),
        (("acme/dev/_catalog/core/commits/one.json",), True),
        (("acme/dev/_catalog/ledger/catalog/one.jsonl",), True),
        (("acme/dev/_catalog/workspace.json",), True),
        (("acme/dev-2/_catalog/workspace.json",), False),
    ],
)
def test_refused_requests_make_no_workspace(store: ObjectStore, more: tuple[str, ...], used: bool) -> None:
    async def story() -> bool:
        for key in (*REFUSED, *more):
            await store.put(key, b"x", Always())
        try:
            return await is_in_use(store, Scope.of("acme", "dev"))
        finally:
            await store.close()

    assert asyncio.run(story()) is used
