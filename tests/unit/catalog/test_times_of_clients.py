"""A receipt lies under the day of its commit, and that day follows from the metadata: no time that a client says may shut a
table or view in."""

import json
from typing import Any

import pytest

from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import InvalidInput, InvalidMetadata
from arco.kernel.limits import SNAPSHOT_LEAD_MS_MAX
from arco.ledger.receipts import Published, Source
from arco.storage.port import Absent, Always
from unit.catalog.ground import FIELD, NAMESPACE, POINTER, Ground, Server, story

MICROSECONDS = 10**15
"""A time of our days in the wrong unit: as milliseconds it is the year 33658."""
SCHEMA = {"type": "struct", "fields": [FIELD]}


def view(name: str, at_ms: int) -> dict[str, Any]:
    version = {
        "version-id": 1,
        "timestamp-ms": at_ms,
        "schema-id": 0,
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    return {"name": name, "schema": SCHEMA, "view-version": version, "properties": {}}


async def create_view(server: Server, body: dict[str, Any]) -> str:
    key = RequestKey(f"create {body['name']}", "createView", request_hash(body))
    _, location = await server.catalog.views.create(NAMESPACE, requests.parse_create_view(body), key, Source())
    await server.settle()
    return location


async def change_view(server: Server, name: str, *updates: dict[str, Any]) -> None:
    body = {"requirements": [], "updates": list(updates)}
    key = RequestKey(f"change {name} {request_hash(body)}", "updateView", request_hash(body))
    await server.catalog.view_commits.commit(NAMESPACE, name, requests.parse_commit_view(body), key, Source())
    await server.settle()


SET = {"action": "set-properties", "updates": {"a": "b"}}


@story
async def test_a_version_of_a_view_may_run_ahead_of_the_server_by_a_day_and_no_more():
    ground = Ground()
    server = ground.server()
    await server.found()
    edge = ground.clock.at_ms + SNAPSHOT_LEAD_MS_MAX
    with pytest.raises(InvalidMetadata, match="more than a day ahead"):
        await create_view(server, view("late", edge + 1))
    await create_view(server, view("v", edge))
    ahead = {**view("v", edge + 1)["view-version"], "version-id": 2, "schema-id": 0}
    with pytest.raises(InvalidMetadata, match="more than a day ahead"):
        await change_view(server, "v", {"action": "add-view-version", "view-version": ahead})
    await change_view(server, "v", SET)


@pytest.mark.parametrize("at_ms", [MICROSECONDS, -1])
def test_a_file_of_an_impossible_time_is_not_registered(at_ms):
    @story
    async def told() -> None:
        ground = Ground()
        server = ground.server()
        await server.found("a")
        pointer = await server.ws.pointers.read((await server.load("a")).uuid)
        location = pointer.value.metadata_location
        await server.drop("a", "drop")
        data = json.loads(await server.ws.files.read(location))
        copied = location.replace("00000-", "00007-")
        key = server.ws.locations.key(copied)
        await ground.store.put(key, json.dumps(data | {"last-updated-ms": at_ms}).encode(), Absent())
        with pytest.raises(InvalidInput, match="last change"):
            await server.register("b", copied, "register")

    told()


@story
async def test_a_view_file_without_the_time_of_its_version_is_not_registered():
    ground = Ground()
    server = ground.server()
    await server.found()
    location = await create_view(server, view("v", ground.clock.at_ms))
    data = json.loads(await server.ws.files.read(location))
    del data["versions"][0]["timestamp-ms"]
    copied = location.replace("00000-", "00007-")
    await ground.store.put(
        server.ws.locations.key(copied),
        json.dumps(data | {"view-uuid": "11111111-2222-4333-8444-555555555555"}).encode(),
        Absent(),
    )
    key = RequestKey("register", "registerView", copied)
    with pytest.raises(InvalidInput, match="a part of it has no timestamp-ms"):
        await server.catalog.registering_views.register(NAMESPACE, "w", copied, overwrite=False, key=key, author=Author())


@story
async def test_what_a_lake_holds_already_can_still_be_committed_to_and_dropped():
    """As an earlier server left it: the pointer and the file of a view that says the year 33658."""
    ground = Ground()
    server = ground.server()
    await server.found()
    await create_view(server, view("v", ground.clock.at_ms))
    for key in [entry.key for entry in (await ground.store.list_page("")).entries]:
        if POINTER in key or key.endswith(".metadata.json"):
            found = await ground.store.get(key)
            data = found.data.replace(str(ground.clock.at_ms).encode(), str(MICROSECONDS).encode())
            await ground.store.put(key, data, Always())
        elif "/events/" in key:
            await ground.store.delete(key)
    later = ground.server()
    await change_view(later, "v", SET)
    await change_view(later, "v", {**SET, "updates": {"a": "c"}})
    await later.catalog.views.drop(NAMESPACE, "v", purge=False, key=RequestKey("drop", "drop", "v"), author=Author())
    await later.settle()
    found = await ground.audit()
    assert found.gaps == []


def test_a_commit_is_told_within_the_years_that_there_are():
    assert Published("e", 0, "l", None, None, MICROSECONDS, Source()).at_ms == 253_402_300_799_999
    assert Published("e", 0, "l", None, None, -(10**15), Source()).at_ms == -62_135_596_800_000
    assert Published("e", 0, "l", None, None, 5, Source()).at_ms == 5
