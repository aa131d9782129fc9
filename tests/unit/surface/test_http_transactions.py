"""`POST /v1/{prefix}/transactions/commit`: what a client sends, and what it hears."""

import asyncio
import json
from typing import Any

import pytest

from arco.kernel.clock import Clock, SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7
from arco.kernel.scope import Scope
from arco.storage.memory import MemoryStore
from arco.storage.port import ObjectStore
from arco.storage.workspaces import is_in_use
from stand_ins.asgi import Answer, ask, make_app
from stand_ins.hand_clock import HandClock
from stand_ins.shared_store import Delayed, Line

BASE = "/iceberg/v1/default.default"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
NEVER = {"type": "assert-current-schema-id", "current-schema-id": 77}
Asked = tuple[int, Any]


def change(table: str, value: str, *requirements: dict[str, Any]) -> dict[str, Any]:
    return {
        "identifier": {"namespace": ["db"], "name": table},
        "requirements": list(requirements),
        "updates": [{"action": "set-properties", "updates": {"p": value}}],
    }


def key(clock: Clock | None = None) -> dict[str, str]:
    return {"Idempotency-Key": new_uuid7(clock or SystemClock(), SystemEntropy())}


class Shop:
    """A server with two tables."""

    def __init__(self, store: ObjectStore | None = None, clock: Clock | None = None, seed: int = 1) -> None:
        self.app = make_app(store=store, clock=clock, seed=seed)

    async def open(self) -> "Shop":
        await self.post("/namespaces", {"namespace": ["db"]})
        for name in ("a", "b"):
            await self.post("/namespaces/db/tables", {"name": name, "schema": SCHEMA})
        return self

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
        return await ask(self.app, "POST", f"{BASE}{path}", json.dumps(body).encode(), **(headers or {}))

    async def transact(self, *changes: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
        return await self.post("/transactions/commit", {"table-changes": list(changes)}, headers)

    async def values(self) -> list[str | None]:
        loads = [await ask(self.app, "GET", f"{BASE}/namespaces/db/tables/{name}") for name in ("a", "b")]
        return [load.json["metadata"]["properties"].get("p") for load in loads]


def tell(story: Any) -> None:
    async def run() -> None:
        await story(await Shop().open())

    asyncio.run(run())


def test_it_is_advertised() -> None:
    answer = asyncio.run(ask(make_app(), "GET", "/iceberg/v1/config"))
    assert "POST /v1/{prefix}/transactions/commit" in answer.json["endpoints"]


def test_success_has_no_content_and_needs_no_key() -> None:
    async def story(shop: Shop) -> None:
        answer = await shop.transact(change("a", "1"), change("b", "1"))
        assert (answer.status, answer.body) == (204, b"")
        assert await shop.values() == ["1", "1"]

    tell(story)


def test_one_for_a_workspace_that_nobody_made_leaves_nothing_that_counts() -> None:
    """Without a key nothing at all; with one what its retry hears, which makes no workspace."""

    async def story() -> None:
        store = MemoryStore(SystemClock())
        shop = Shop(store)
        creation = change("a", "1", {"type": "assert-create"})
        said = [(await shop.transact(one)).json["error"] for one in (change("a", "1"), creation)]
        assert [(one["code"], one["type"]) for one in said] == [
            (404, "NoSuchTableException"),
            (404, "NoSuchNamespaceException"),
        ]
        assert [one.key for one in (await store.list_page("")).entries] == []
        once = key()
        answers = [await shop.transact(change("a", "1"), headers=once) for _ in range(2)]
        assert [answer.status for answer in answers] == [404, 404]
        assert answers[0].json["error"]["message"] == answers[1].json["error"]["message"]
        assert not await is_in_use(store, Scope.of())
        await shop.open()
        assert await is_in_use(store, Scope.of())

    asyncio.run(story())


def test_a_retry_with_its_key_hears_the_same_and_does_nothing() -> None:
    async def story(shop: Shop) -> None:
        once = key()
        assert (await shop.transact(change("a", "1"), change("b", "1"), headers=once)).status == 204
        assert (await shop.transact(change("b", "2"))).status == 204
        assert (await shop.transact(change("a", "1"), change("b", "1"), headers=once)).status == 204
        assert await shop.values() == ["1", "2"]
        reused = await shop.transact(change("a", "3"), headers=once)
        assert reused.status == 409
        assert await shop.values() == ["1", "2"]

    tell(story)


@pytest.mark.parametrize(
    ("changes", "status", "kind", "says"),
    [
        ([change("a", "1"), change("b", "1", NEVER)], 409, "CommitFailedException", "Requirement failed: current schema"),
        ([change("a", "1"), change("nowhere", "1")], 404, "NoSuchTableException", "Table does not exist: db.nowhere"),
        ([], 400, "BadRequestException", "without table changes"),
        ([change(f"t{number}", "1") for number in range(11)], 400, "BadRequestException", "over 11 tables, more than 10"),
        ([change("a", "1") | {"updates": [{"action": "fly"}]}], 400, "BadRequestException", "unknown updates: fly"),
        ([{"requirements": [], "updates": []}], 400, "BadRequestException", "has no identifier"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(changes: Any, status: int, kind: str, says: str) -> None:
    async def story(shop: Shop) -> None:
        answer = await shop.transact(*changes)
        assert answer.error == (status, kind)
        assert says in answer.json["error"]["message"]
        assert await shop.values() == [None, None]

    tell(story)


def test_a_view_is_refused_by_its_name() -> None:
    async def story(shop: Shop) -> None:
        version = {
            "version-id": 1,
            "timestamp-ms": 0,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["db"],
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        }
        view = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
        assert (await shop.post("/namespaces/db/views", view)).status == 200
        answer = await shop.transact(change("a", "1"), change("v", "1"))
        assert answer.error == (400, "BadRequestException")
        assert "db.v is a view" in answer.json["error"]["message"]
        assert await shop.values() == [None, None]

    tell(story)


async def under_way(clock: HandClock) -> tuple[Shop, Shop, dict[str, str], Delayed, "asyncio.Future[Answer]"]:
    """Two servers, and a transaction of the first whose decision is on its way."""
    store = MemoryStore(clock)
    line = Line(store)
    one, two = await Shop(line, clock).open(), Shop(store, clock, seed=2)
    first = key(clock)
    decision = line.delay("put", "/iceberg_transactions/", skip=1)
    working = await decision.holds(one.transact(change("a", "1"), change("b", "1"), headers=first))
    return one, two, first, decision, working


def test_who_comes_second_is_told_to_come_again_and_that_nothing_was_done() -> None:
    async def story() -> None:
        clock = HandClock()
        _, two, _, decision, working = await under_way(clock)
        clock.at_ms += 1
        second = key(clock)
        answer = await two.transact(change("b", "2"), change("a", "2"), headers=second)
        assert answer.error == (503, "ServiceUnavailableException")
        assert answer.headers["retry-after"] == "1"
        assert await two.values() == [None, None]
        await decision.answer()
        assert (await working).status == 204
        assert await two.values() == ["1", "1"]
        assert (await two.transact(change("b", "2"), change("a", "2"), headers=second)).status == 204
        assert await two.values() == ["2", "2"]

    asyncio.run(story())


@pytest.mark.parametrize("keyed", [False, True], ids=["without a key", "with a key"])
def test_a_drop_beside_it_is_told_the_same_as_a_commit(keyed: bool) -> None:
    async def story() -> None:
        clock = HandClock()
        _, two, _, decision, working = await under_way(clock)
        clock.at_ms += 1
        drop = await ask(two.app, "DELETE", f"{BASE}/namespaces/db/tables/a", **(key(clock) if keyed else {}))
        assert drop.error == (503, "ServiceUnavailableException")
        assert drop.headers["retry-after"] == "1"
        await decision.answer()
        assert (await working).status == 204
        assert await two.values() == ["1", "1"]

    asyncio.run(story())


def test_a_duplicate_of_what_is_under_way_is_told_that_nobody_knows() -> None:
    async def story() -> None:
        clock = HandClock()
        _, two, first, decision, working = await under_way(clock)
        answer = await two.transact(change("a", "1"), change("b", "1"), headers=first)
        assert answer.error == (504, "CommitStateUnknownException")
        assert "retry-after" in answer.headers
        await decision.answer()
        assert (await working).status == 204
        assert (await two.transact(change("a", "1"), change("b", "1"), headers=first)).status == 204

    asyncio.run(story())


def test_a_key_without_its_time_is_refused() -> None:
    async def story(shop: Shop) -> None:
        answer = await shop.transact(change("a", "1"), headers={"Idempotency-Key": "2f1f2c55-9dd7-4f0e-8a4a-0d9b7a1f3a77"})
        assert answer.status == 400
        assert await shop.values() == [None, None]

    tell(story)


def test_rule_t7_an_etag_is_of_what_counts() -> None:
    """A client that shows the ETag of a table as it was is not told that nothing changed, though the pointer is as it was."""

    async def story() -> None:
        line = Line(MemoryStore(SystemClock()))
        shop = await Shop(line).open()
        before = await ask(shop.app, "GET", f"{BASE}/namespaces/db/tables/a")
        for _ in ("a", "b"):
            line.delay("put", "/iceberg_pointers/", skip=2)
        assert (await shop.transact(change("a", "1"), change("b", "1"))).status == 204
        shown = {"If-None-Match": before.headers["etag"]}
        after = await ask(shop.app, "GET", f"{BASE}/namespaces/db/tables/a", **shown)
        assert after.status == 200
        assert after.json["metadata"]["properties"] == {"p": "1"}
        known = {"If-None-Match": after.headers["etag"]}
        assert (await ask(shop.app, "GET", f"{BASE}/namespaces/db/tables/a", **known)).status == 304

    asyncio.run(story())


# Several tables at one moment


def test_tables_are_asked_for_together() -> None:
    async def story(shop: Shop) -> None:
        await shop.transact(change("a", "1"), change("b", "1"))
        names = [{"namespace": ["db"], "name": name} for name in ("b", "a", "b")]
        answer = await ask(shop.app, "POST", "/api/v1/tables/together", json.dumps({"tables": names}).encode())
        assert answer.status == 200
        found = answer.json["tables"]
        assert [(one["name"], one["commit_number"], one["snapshot_id"]) for one in found] == [
            ("b", 1, None),
            ("a", 1, None),
        ]
        assert all(one["metadata_location"].endswith(".metadata.json") for one in found)

    tell(story)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"tables": []}, 400),
        ({"tables": [{"namespace": ["db"], "name": "a"}] * 101}, 400),
        ({"tables": [{"namespace": ["db"], "name": "nowhere"}]}, 404),
        ({"tables": [{"namespace": [], "name": "a"}]}, 400),
        ({"table": []}, 400),
    ],
)
def test_a_wrong_list_of_tables_is_refused(body: Any, status: int) -> None:
    async def story(shop: Shop) -> None:
        answer = await ask(shop.app, "POST", "/api/v1/tables/together", json.dumps(body).encode())
        assert answer.status == status

    tell(story)


@pytest.mark.parametrize("body", [["shop.a"], {"tables": ["shop.a"]}, {"table": []}])
def test_who_spells_tables_wrong_is_told_how_they_are_spelled(body: Any) -> None:
    async def story(shop: Shop) -> None:
        answer = await ask(shop.app, "POST", "/api/v1/tables/together", json.dumps(body).encode())
        assert answer.status == 400
        assert '{"tables": [{"namespace": ["shop"], "name": "orders"}]}' in answer.body.decode().replace('\\"', '"')

    tell(story)


def test_a_view_among_tables_is_said_to_be_one() -> None:
    async def story(shop: Shop) -> None:
        version = {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": 1,
            "summary": {},
            "default-namespace": ["db"],
            "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        }
        schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
        made = await shop.post(
            "/namespaces/db/views", {"name": "v", "schema": schema, "view-version": version, "properties": {}}
        )
        assert made.status == 200
        body = {"tables": [{"namespace": ["db"], "name": "a"}, {"namespace": ["db"], "name": "v"}]}
        answer = await ask(shop.app, "POST", "/api/v1/tables/together", json.dumps(body).encode())
        assert answer.status == 400
        assert "db.v is a view" in answer.body.decode()

    tell(story)
