"""The feed over HTTP: everything once, in order, from a cursor on; from any server, after any restart."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from arco.catalog.policy import LocationPolicy
from arco.kernel import limits
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.kernel.scope import Scope
from arco.storage.memory import MemoryStore
from arco.surface.http.app import App
from arco.surface.http.feed import Cursor
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from stand_ins.asgi import Answer, ask
from stand_ins.hand_clock import HandClock

WORKSPACE = "/iceberg/v1/default.default"
NAMESPACES = f"{WORKSPACE}/namespaces"
TABLES = f"{NAMESPACES}/ns/tables"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


class Ground:
    """Servers on one store. The clock goes on with every request."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        self.app, self.state = self.server(1)
        assert self.post(NAMESPACES, {"namespace": ["ns"], "properties": {"a": "1"}}).status == 200

    def server(self, seed: int) -> tuple[App, ServerState]:
        entropy = SeededEntropy(seed)
        state = ServerState(self.store, "memory://", ForClients(), LocationPolicy(), self.clock, entropy)
        return App(state, UlidSource(self.clock, entropy)), state

    def ask(self, method: str, path: str, body: Any = None, app: App | None = None, **headers: str) -> Answer:
        self.clock.at_ms += 1000
        self.clock.elapsed_s += limits.FEED_LIST_S
        data = b"" if body is None else json.dumps(body).encode()
        answer = self.runner.run(ask(app or self.app, method, path, data, **headers))
        self.runner.run(self.state.settle())
        return answer

    def post(self, path: str, body: Any, **more: Any) -> Answer:
        return self.ask("POST", path, body, **more)

    def create(self, name: str) -> str:
        return self.post(TABLES, {"name": name, "schema": SCHEMA}).json["metadata"]["table-uuid"]

    def commit(self, name: str, app: App | None = None, **properties: str) -> None:
        updates = [{"action": "set-properties", "updates": properties}]
        assert self.post(f"{TABLES}/{name}", {"requirements": [], "updates": updates}, app=app).status == 200

    def events(self, token: str | None = None, app: App | None = None, **query: Any) -> dict[str, Any]:
        body = {name.replace("_", "-"): value for name, value in query.items()} | {"continuation-token": token}
        answer = self.post(f"{WORKSPACE}/events", body, app=app)
        assert answer.status == 200, answer.json
        return answer.json

    def kinds(self, **query: Any) -> list[str]:
        return [event["operation"]["operation-type"] for event in self.events(**query)["events"]]


@pytest.fixture
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    made.runner.close()


def test_everything_that_happens_is_told_in_the_words_of_the_draft(ground: Ground) -> None:
    uuid = ground.create("t")
    ground.commit("t", owner="me")
    ground.post(f"{WORKSPACE}/tables/rename", _rename("t", "u"))
    ground.post(f"{NAMESPACES}/ns/properties", {"removals": ["a"], "updates": {"b": "2"}})
    ground.ask("DELETE", f"{TABLES}/u?purgeRequested=true")
    told = [event["operation"] for event in ground.events()["events"]]
    t, u = ({"namespace": ["ns"], "name": name} for name in ("t", "u"))
    assert told == [
        {"operation-type": "create-namespace", "namespace": ["ns"], "properties": {"a": "1"}},
        {"operation-type": "create-table", "identifier": t, "table-uuid": uuid, "updates": []},
        {
            "operation-type": "update-table",
            "identifier": t,
            "table-uuid": uuid,
            "updates": [{"action": "set-properties", "updates": {"owner": "me"}}],
        },
        {"operation-type": "rename-table", "table-uuid": uuid, "source": t, "destination": u},
        {"operation-type": "update-namespace-properties", "namespace": ["ns"], "updated": ["b"], "removed": ["a"]},
        {"operation-type": "drop-table", "identifier": u, "table-uuid": uuid, "purge": True},
    ]


def test_an_event_says_who_and_when_and_of_which_request(ground: Ground) -> None:
    ground.create("t")
    ground.commit("t", a="1")
    (*_, event) = ground.events()["events"]
    assert set(event) == {"event-id", "request-id", "request-event-count", "timestamp-ms", "actor", "operation"}
    assert event["request-event-count"] == 1
    assert event["actor"] == {"principal": "anonymous"}
    assert ground.clock.at_ms - 10_000 < event["timestamp-ms"] <= ground.clock.at_ms


def test_what_a_client_says_of_itself_is_kept_to_200_characters(ground: Ground) -> None:
    said = "client " + "v" * 60_000
    ground.post(NAMESPACES, {"namespace": ["other"]}, X_Client_Version=said)
    ground.post(TABLES, {"name": "t", "schema": SCHEMA}, X_Client_Version=said)
    updates = [{"action": "set-properties", "updates": {"a": "1"}}]
    assert ground.post(f"{TABLES}/t", {"requirements": [], "updates": updates}, X_Client_Version=said).status == 200
    assert {key for key, one in ground.store._objects.items() if said[:201].encode() in one.data} == set()
    actors = [one["actor"] for one in ground.events()["events"][1:]]
    assert [one["client"] for one in actors] == [f"{said[:200]}…"] * 3
    ground.post(TABLES, {"name": "u", "schema": SCHEMA}, X_Client_Version=said[:200])
    assert ground.events()["events"][-1]["actor"]["client"] == said[:200]


def test_views_and_registered_tables_are_told_by_their_kinds(ground: Ground) -> None:
    location = ground.post(TABLES, {"name": "t", "schema": SCHEMA}).json["metadata-location"]
    ground.ask("DELETE", f"{TABLES}/t")
    ground.post(f"{NAMESPACES}/ns/register", {"name": "again", "metadata-location": location})
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": ["ns"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    body = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    assert ground.post(f"{NAMESPACES}/ns/views", body).status == 200
    updates = [{"action": "set-properties", "updates": {"k": "v"}}]
    ground.post(f"{NAMESPACES}/ns/views/v", {"requirements": [], "updates": updates})
    ground.ask("DELETE", f"{NAMESPACES}/ns/views/v")
    assert ground.kinds()[1:] == [
        "create-table",
        "drop-table",
        "register-table",
        "create-view",
        "update-view",
        "drop-view",
    ]


def called(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["operation"]["operation-type"], one["operation"]["identifier"]["name"]) for one in events]


@pytest.mark.parametrize("read_between", [False, True], ids=["at once", "the beginning before"])
def test_every_event_has_the_name_of_its_time_though_the_table_was_registered_under_another(
    ground: Ground, read_between: bool
) -> None:
    token = ground.events()["continuation-token"]
    ground.create("r0")
    ground.commit("r0", a="1")
    location = ground.ask("GET", f"{TABLES}/r0").json["metadata-location"]
    beginning = []
    if read_between:
        told = ground.events(token)
        beginning, token = told["events"], told["continuation-token"]
    ground.commit("r0", a="2")
    ground.ask("DELETE", f"{TABLES}/r0")
    assert ground.post(f"{NAMESPACES}/ns/register", {"name": "r1", "metadata-location": location}).status == 200
    ground.commit("r1", a="3")
    ground.ask("DELETE", f"{TABLES}/r1")
    assert ground.post(f"{NAMESPACES}/ns/register", {"name": "r2", "metadata-location": location}).status == 200
    assert called([*beginning, *ground.events(token)["events"]]) == [
        ("create-table", "r0"),
        ("update-table", "r0"),
        ("update-table", "r0"),
        ("drop-table", "r0"),
        ("register-table", "r1"),
        ("update-table", "r1"),
        ("drop-table", "r1"),
        ("register-table", "r2"),
    ]


def test_a_table_that_took_the_name_of_another_is_told_by_its_own_name_before(ground: Ground) -> None:
    """Registered over another it inherits what is said of the name, and not what it was called itself."""
    token = ground.events()["continuation-token"]
    ground.create("mine")
    location = ground.ask("GET", f"{TABLES}/mine").json["metadata-location"]
    ground.ask("DELETE", f"{TABLES}/mine")
    ground.create("before")
    ground.post(f"{WORKSPACE}/tables/rename", _rename("before", "theirs"))
    over = {"name": "theirs", "metadata-location": location, "overwrite": True}
    assert ground.post(f"{NAMESPACES}/ns/register", over).status == 200
    told = [one for one in ground.events(token)["events"] if "identifier" in one["operation"]]
    assert called(told) == [
        ("create-table", "mine"),
        ("drop-table", "mine"),
        ("create-table", "before"),
        ("drop-table", "theirs"),
        ("register-table", "theirs"),
    ]


def test_a_drop_is_told_though_the_table_was_purged_before_anybody_asked(ground: Ground) -> None:
    token = ground.events()["continuation-token"]
    ground.create("t")
    ground.commit("t", a="1")
    ground.ask("DELETE", f"{TABLES}/t?purgeRequested=true")
    ground.clock.at_ms += 8 * 86_400_000
    parts = ground.state.catalog(Scope.of("default", "default")).parts
    reports = ground.runner.run(upkeep_pass(Setting(parts), jobs_named(("dropped",))))
    assert reports[0].changed == 1
    assert called(ground.events(token)["events"]) == [("create-table", "t"), ("update-table", "t"), ("drop-table", "t")]


def test_a_transaction_is_told_as_one_request(ground: Ground) -> None:
    names = ["a", "b", "c"]
    for name in names:
        ground.create(name)
    token = ground.events()["continuation-token"]
    updates = [{"action": "set-properties", "updates": {"x": "1"}}]
    changes = [
        {"identifier": {"namespace": ["ns"], "name": name}, "requirements": [], "updates": updates} for name in names
    ]
    assert ground.post(f"{WORKSPACE}/transactions/commit", {"table-changes": changes}).status == 204
    ground.commit("a", y="2")
    events = ground.events(token)["events"]
    assert [one["request-event-count"] for one in events] == [3, 3, 3, 1]
    assert len({one["request-id"] for one in events[:3]}) == 1
    assert {one["operation"]["identifier"]["name"] for one in events[:3]} == set(names)
    # Two at a time it does not fit, and comes alone; one at a time it comes in pieces.
    assert len(ground.events(token, page_size=3)["events"]) == 3
    assert len(ground.events(token, page_size=2)["events"]) == 2


def told_of(events: list[dict[str, Any]]) -> list[str]:
    """Which tables were changed, in order."""
    said = [one["operation"] for one in events]
    return [one["identifier"]["name"] for one in said if one["operation-type"] == "update-table"]


@pytest.mark.parametrize("damaged", ["/iceberg_transactions/", "/iceberg_pointers/"])
def test_what_is_damaged_of_one_table_holds_up_no_other(ground: Ground, damaged: str) -> None:
    """As a receipt that cannot be read: who follows a workspace is not left without all of its news."""
    uuids = {name: ground.create(name) for name in ("a", "b", "c")}
    updates = [{"action": "set-properties", "updates": {"x": "1"}}]
    changes = [{"identifier": {"namespace": ["ns"], "name": name}, "requirements": [], "updates": updates} for name in "ab"]
    assert ground.post(f"{WORKSPACE}/transactions/commit", {"table-changes": changes}).status == 204
    # The pointer is only asked where a receipt is missing.
    missing = [
        key
        for key, one in ground.store._objects.items()
        if "/iceberg/committed/" in key and uuids["b"].encode() in one.data and b'"commit_number":1' in one.data
    ]
    taken = {key: ground.store._objects.pop(key) for key in missing if "pointers" in damaged}
    found = [key for key in ground.store._objects if damaged in key and ("pointers" not in damaged or uuids["b"] in key)]
    whole = {key: ground.store._objects[key] for key in found}
    assert whole
    for key in whole:
        ground.store._store(key, b"{")
    ground.commit("c", y="2")
    other, _ = ground.server(2)
    first = ground.events(app=other)
    assert told_of(first["events"]) == ["c"]
    ground.store._objects.update(whole | taken)
    assert told_of(ground.events(first["continuation-token"], app=other)["events"]) == ["a", "b"]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_pages_add_up_to_the_whole(ground: Ground, size: int) -> None:
    for number in range(4):
        ground.create(f"t{number}")
        ground.commit(f"t{number}", a="1")
    whole = ground.events(page_size=1000)["events"]
    shown, token = [], None
    while True:
        answer = ground.events(token, page_size=size)
        assert len(answer["events"]) <= size
        if not answer["events"]:
            assert answer["continuation-token"] == token
            break
        shown += answer["events"]
        token = answer["continuation-token"]
    assert shown == whole
    assert len(whole) == 9


def test_an_answer_ends_before_it_is_too_large_and_its_cursor_goes_on(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arco.surface.http.feed.FEED_ANSWER_BYTES_MAX", 5_000)
    ground.create("t")
    for number in range(6):
        ground.commit("t", a=str(number) * 2_000)
    ground.commit("t", a="x" * 20_000)
    ground.commit("t", a="last")
    shown, token, sizes = [], None, []
    while (answer := ground.events(token, page_size=1000))["events"]:
        shown += answer["events"]
        token = answer["continuation-token"]
        sizes.append(len(json.dumps(answer["events"])))
    assert [size for size in sizes if size > 6_000] == [max(sizes)], "what is too large comes alone"
    assert [one["operation"]["updates"][0]["updates"]["a"][0] for one in shown[2:]] == [*"012345xl"]
    monkeypatch.undo()
    assert ground.events(page_size=1000)["events"] == shown


def test_stored_pages_and_those_that_are_remembered_are_bounded_in_bytes(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arco.catalog.feed.FEED_PAGE_BYTES_MAX", 5_000)
    monkeypatch.setattr("arco.catalog.feed.FEED_PAGES_REMEMBERED_BYTES_MAX", 12_000)
    _, state = ground.server(2)
    app = App(state, UlidSource(ground.clock, SeededEntropy(3)))
    ground.create("t")
    for number in range(12):
        ground.commit("t", a=str(number) * 1_000)
    whole = ground.events(page_size=1000, app=app)["events"]
    assert len(whole) == 14
    pages = [len(one.data) for key, one in ground.store._objects.items() if "/feed/pages/" in key]
    assert len(pages) > 3
    assert max(pages) < 5_000 + 3_000
    (feed,) = state._feeds.values()
    assert 0 < feed._remembered.size_bytes <= 12_000


def test_a_transaction_tells_its_changes_up_to_a_size(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arco.catalog.feed.FEED_REQUEST_UPDATES_BYTES_MAX", 5_000)
    names = ["a", "b", "c"]
    for name in names:
        ground.create(name)
    token = ground.events()["continuation-token"]
    updates = [{"action": "set-properties", "updates": {"x": "1" * 2_000}}]
    changes = [
        {"identifier": {"namespace": ["ns"], "name": name}, "requirements": [], "updates": updates} for name in names
    ]
    assert ground.post(f"{WORKSPACE}/transactions/commit", {"table-changes": changes}).status == 204
    events = ground.events(token)["events"]
    assert [one["operation"]["updates"] for one in events] == [updates, updates, []]


def test_a_cursor_goes_on_at_another_server_and_shows_only_what_is_new(ground: Ground) -> None:
    ground.create("t")
    token = ground.events()["continuation-token"]
    ground.commit("t", a="1")
    other, _ = ground.server(2)
    (event,) = ground.events(token, app=other)["events"]
    assert event["operation"]["operation-type"] == "update-table"
    # The first server reads what the other wrote, and writes nothing of it again.
    assert ground.events(token)["events"] == [event]
    third, _ = ground.server(3)
    assert ground.events(app=third) == ground.events()


def test_a_receipt_that_comes_late_is_told_late(ground: Ground) -> None:
    uuid = ground.create("t")
    ground.commit("t", a="1")
    late = {
        key: one
        for key, one in ground.store._objects.items()
        if "/iceberg/committed/" in key and b'"commit_number":1' in one.data
    }
    assert len(late) == 1
    for key in late:
        del ground.store._objects[key]
    first = ground.events()
    assert [one["operation"]["operation-type"] for one in first["events"]] == ["create-namespace", "create-table"]
    ground.store._objects.update(late)
    (event,) = ground.events(first["continuation-token"])["events"]
    assert (event["operation"]["operation-type"], event["operation"]["table-uuid"]) == ("update-table", uuid)


def test_the_receipt_of_another_day_is_found_when_all_days_are_looked_at(ground: Ground) -> None:
    ground.create("t")
    ground.commit("t", a="1")
    other, _ = ground.server(2)
    token = ground.events(app=other)["continuation-token"]
    ground.commit("t", b="2")
    ground.clock.at_ms += 3 * 86_400_000
    assert ground.events(token, app=other)["events"] == []
    ground.clock.elapsed_s += limits.FEED_FULL_LOOK_S
    assert len(ground.events(token, app=other)["events"]) == 1


def test_polls_do_not_list_old_receipts_again_and_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask, receipts are listed once in a while; what a server committed itself it shows at once."""
    ground.create("t")
    for number in range(20):
        ground.commit("t", a=str(number))
    other, _ = ground.server(2)
    monkeypatch.setattr(limits, "FEED_LIST_S", 0)  # the clock stands still from here on
    tokens = {app: ground.events(app=app)["continuation-token"] for app in (None, other)}
    listed: list[str] = []
    list_page = ground.store.list_page

    async def counted(prefix: str, after: str = "", limit: int = 1000) -> Any:
        listed.append(prefix)
        return await list_page(prefix, after, limit)

    monkeypatch.setattr(ground.store, "list_page", counted)
    ground.commit("t", b="1")
    assert len(ground.events(tokens[None])["events"]) == 1
    for app, token in tokens.items():
        for _ in range(10):
            ground.events(token, app=app)
    assert listed == []
    assert ground.events(tokens[other], app=other)["events"] == ground.events(tokens[None])["events"], "the page is there"
    ground.commit("t", b="2")
    ground.clock.elapsed_s += 2
    assert len(ground.events(tokens[other], app=other)["events"]) == 2
    assert 1 <= len(listed) <= 4


def test_an_event_whose_receipt_was_collected_and_written_again_is_told_once(ground: Ground) -> None:
    """A server that loaded the table long ago makes sure of the receipt of what it loaded."""
    old, _ = ground.server(2)
    ground.create("t")
    ground.commit("t", a="1")
    assert ground.ask("GET", f"{TABLES}/t", app=old).status == 200
    ground.commit("t", a="2")
    ground.commit("t", a="3")
    told = ground.events()
    # Another server has read what is in the feed, and after the pass sees that the names of receipts are gone.
    other, _ = ground.server(3)
    ground.events(app=other)
    assert receipts(ground) == [0, 1, 2, 3]
    collect(ground, 91)
    assert receipts(ground) == [3]
    ground.clock.elapsed_s += limits.FEED_FULL_LOOK_S
    assert ground.events(told["continuation-token"], app=other)["events"] == []
    ground.commit("t", app=old, a="4")
    assert receipts(ground) == [1, 3, 4], "written again"
    ground.clock.elapsed_s += limits.FEED_FULL_LOOK_S
    (event,) = ground.events(told["continuation-token"], app=other)["events"]
    assert event["operation"]["updates"] == [{"action": "set-properties", "updates": {"a": "4"}}]
    assert ground.events(app=ground.server(4)[0])["events"] == [*told["events"], event]
    collect(ground, 91)
    assert receipts(ground) == [4], "collected again"


def receipts(ground: Ground) -> list[int]:
    """The numbers of commits that have a receipt."""
    found = [one.data for key, one in ground.store._objects.items() if "/iceberg/committed/" in key]
    return sorted(json.loads(data)["commit"]["commit_number"] for data in found)


def collect(ground: Ground, days: int) -> None:
    ground.clock.at_ms += days * 86_400_000
    parts = ground.server(5)[1].catalog(Scope.of("default", "default")).parts
    (report,) = ground.runner.run(upkeep_pass(Setting(parts), jobs_named(("receipts",))))
    assert not report.failed


# Filters


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ({"operation_types": ["create-table", "drop-view"]}, ["create-table", "create-table"]),
        ({"operation_types": []}, []),
        ({"object_types": ["namespace"]}, ["create-namespace"]),
        ({"object_types": ["table"]}, ["create-table", "create-table", "update-table", "rename-table"]),
        ({"catalog_objects_by_name": [["ns", "b"]]}, ["create-table"]),
        ({"catalog_objects_by_name": [["ns", "c"]]}, ["rename-table"]),
        (
            {"catalog_objects_by_name": [["ns"]]},
            ["create-namespace", "create-table", "create-table", "update-table", "rename-table"],
        ),
        ({"catalog_objects_by_name": [["n"]]}, []),
        ({"object_types": ["table"], "operation_types": ["update-table"]}, ["update-table"]),
    ],
)
def test_filters_leave_out_and_the_cursor_passes_over(ground: Ground, query: dict[str, Any], kinds: list[str]) -> None:
    ground.create("a")
    ground.create("b")
    ground.commit("a", x="1")
    ground.post(f"{WORKSPACE}/tables/rename", _rename("a", "c"))
    answer = ground.events(**query)
    assert [event["operation"]["operation-type"] for event in answer["events"]] == kinds
    assert answer["continuation-token"] == ground.events()["continuation-token"]
    assert answer["highest-processed-timestamp-ms"] == ground.events()["events"][-1]["timestamp-ms"]


def test_filters_by_identity_and_time(ground: Ground) -> None:
    uuid = ground.create("a")
    ground.create("b")
    ground.commit("a", x="1")
    events = ground.events()["events"]
    by_id = ground.events(catalog_objects_by_id=[{"uuid": uuid, "type": "table"}])["events"]
    assert by_id == [events[1], events[3]]
    assert ground.events(catalog_objects_by_id=[{"uuid": uuid, "type": "view"}])["events"] == []
    assert ground.events(after_timestamp_ms=events[2]["timestamp-ms"])["events"] == events[2:]


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"page-size": 0},
        {"page-size": "1"},
        {"after-timestamp-ms": "x"},
        {"operation-types": "x"},
        {"object-types": [1]},
        {"catalog-objects-by-name": ["ns"]},
        {"catalog-objects-by-id": [{"uuid": "x", "type": "schema"}]},
        {"custom-filters": {"x": 1}},
        {"continuation-token": ""},
        {"continuation-token": "x"},
        {"continuation-token": "ÿ"},
        {"continuation-token": "MS4xLjE"},
        {"continuation-token": 1},
    ],
)
def test_what_is_no_question_is_refused(ground: Ground, body: Any) -> None:
    assert ground.post(f"{WORKSPACE}/events", body).error == (400, "BadRequestException")


def test_a_cursor_of_another_workspace_or_from_nowhere_is_refused(ground: Ground) -> None:
    ground.create("t")
    token = ground.events()["continuation-token"]
    answer = ground.post("/iceberg/v1/other.default/events", {"continuation-token": token})
    assert answer.error == (400, "BadRequestException")
    for page, place in ((99, 0), (1, 99), (2, 1)):
        made_up = Cursor(page, place).token(Scope.of())
        assert ground.post(f"{WORKSPACE}/events", {"continuation-token": made_up}).status == 400


def test_the_route_is_advertised(ground: Ground) -> None:
    assert "POST /v1/{prefix}/events" in ground.ask("GET", "/iceberg/v1/config").json["endpoints"]


def test_an_empty_feed_has_a_cursor(ground: Ground) -> None:
    empty = ground.post("/iceberg/v1/other.default/events", {})
    assert empty.json["events"] == []
    assert empty.json["highest-processed-timestamp-ms"] == 0
    ground.post("/iceberg/v1/other.default/namespaces", {"namespace": ["x"]})
    body = {"continuation-token": empty.json["continuation-token"]}
    assert len(ground.post("/iceberg/v1/other.default/events", body).json["events"]) == 1


def test_a_checkpoint_saves_reading_all_pages(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arco.catalog.feed.FEED_CHECKPOINT_PAGES_MAX", 3)
    ground.create("t")
    for number in range(5):
        ground.commit("t", a=str(number))
        ground.events()
    assert any("/feed/checkpoints/000000000003.json" in key for key in ground.store._objects)
    whole = ground.events(page_size=1000)["events"]
    pages = [key for key in ground.store._objects if "/feed/pages/" in key]
    other, _ = ground.server(4)
    ground.commit("t", a="last")
    token = ground.events(page_size=1000)["continuation-token"]
    assert ground.events(page_size=1000, app=other)["events"][:-1] == whole
    assert ground.events(token, app=other)["events"] == []
    assert len([key for key in ground.store._objects if "/feed/pages/" in key]) == len(pages) + 1


def _rename(source: str, destination: str) -> dict[str, Any]:
    return {
        "source": {"namespace": ["ns"], "name": source},
        "destination": {"namespace": ["ns"], "name": destination},
    }
