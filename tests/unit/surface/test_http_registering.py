"""What cannot be registered is refused in words for whoever asked: which field, what is wrong with it, and the way out."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from arco.kernel.scope import Scope
from arco.storage.port import Absent
from stand_ins.asgi import Answer, ask, make_app

NAMESPACES = "/iceberg/v1/default.default/namespaces"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
VERSION = {
    "version-id": 1,
    "schema-id": 0,
    "timestamp-ms": 1_750_000_000_000,
    "summary": {},
    "default-namespace": ["ns"],
    "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
}
INNER = ("storage/", ".py", "KeyError", "StopIteration", "TypeError", "ValueError", "object name", "segment")


class Served:
    """A server, and files of others in its root that are to be registered."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.app = make_app()
        self.catalog = self.app._state.catalog(Scope.of())
        self.send("POST", NAMESPACES, {"namespace": ["ns"]})
        made = self.send("POST", f"{NAMESPACES}/ns/tables", {"name": "t", "schema": SCHEMA})
        self.table = made.json["metadata"]
        body = {"name": "v", "schema": SCHEMA, "view-version": VERSION}
        self.view = self.send("POST", f"{NAMESPACES}/ns/views", body).json["metadata"]
        self._files = 0

    def send(self, method: str, path: str, body: object = None) -> Answer:
        return self._runner.run(ask(self.app, method, path, b"" if body is None else json.dumps(body).encode()))

    def file(self, document: object, folder: str = "data") -> str:
        """The location of a metadata file with this in it."""
        self._files += 1
        key = f"default/default/{folder}/theirs/metadata/0000{self._files}-theirs.metadata.json"
        store = self.catalog.parts.tier1.store
        self._runner.run(store.put(key, json.dumps(document).encode(), Absent()))
        return self.catalog.parts.locations.uri(key)

    def register(self, location: str, route: str = "register") -> Answer:
        return self.send("POST", f"{NAMESPACES}/ns/{route}", {"name": "mine", "metadata-location": location})

    def refused(self, location: str, route: str = "register") -> str:
        before = self._runner.run(self.catalog.parts.tier1.current()).names.entries.copy()
        answer = self.register(location, route)
        assert answer.status == 400, answer.json
        assert self._runner.run(self.catalog.parts.tier1.current()).names.entries == before
        message = str(answer.json["error"]["message"])
        assert not any(word in message for word in INNER), message
        assert message.count(location) <= 1, message
        return message

    def end(self) -> None:
        self._runner.run(self.app._state.settle())
        self._runner.close()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.end()


def test_a_table_of_an_unknown_format_version_is_refused_with_those_that_are_known(served: Served) -> None:
    message = served.refused(served.file({**served.table, "format-version": 9}))
    assert "format version 9 is not supported" in message
    assert "1 to 3" in message


def test_a_view_of_an_unknown_format_version_is_refused_with_the_one_that_is_known(served: Served) -> None:
    message = served.refused(served.file({**served.view, "format-version": 2}, "views"), "register-view")
    assert "format version 2 is not supported, 1 is" in message


def test_a_file_that_is_too_large_is_refused_with_the_limit(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    location = served.file(served.table)
    monkeypatch.setattr("arco.iceberg.metadata_file.METADATA_BYTES_MAX", 100)
    assert "over the limit of 100 bytes" in served.refused(location)


def without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


WRONG_TABLES = (
    ("it has no table-uuid", lambda table: without(table, "table-uuid")),
    ("it has no location", lambda table: without(table, "location")),
    ("its current-schema-id 7 is not among its schemas", lambda table: {**table, "current-schema-id": 7}),
    ("its default-spec-id 4 is not among its partition-specs", lambda table: {**table, "default-spec-id": 4}),
    ("its schemas is not what", lambda table: {**table, "schemas": 5}),
    (
        "a part of it has no schema-id",
        lambda table: {**table, "schemas": [{"type": "struct", "fields": []}], "schema-id": 1},
    ),
    ("of another type", lambda table: {**table, "refs": {"main": 4}}),
    ("format-version is missing or not a number", lambda table: {**table, "format-version": "two"}),
    ("not a JSON object", lambda _: [1]),
)


@pytest.mark.parametrize(("words", "made"), WRONG_TABLES, ids=[words for words, _ in WRONG_TABLES])
def test_what_is_wrong_with_a_table_is_said_in_words(served: Served, words: str, made: Any) -> None:
    assert words in served.refused(served.file(made(served.table)))


WRONG_VIEWS = (
    ("it has no view-uuid", lambda view: without(view, "view-uuid")),
    ("its current-version-id 7 is not among its versions", lambda view: {**view, "current-version-id": 7}),
    ("its current version's schema-id 0 is not among its schemas", lambda view: {**view, "schemas": []}),
)


@pytest.mark.parametrize(("words", "made"), WRONG_VIEWS, ids=[words for words, _ in WRONG_VIEWS])
def test_what_is_wrong_with_a_view_is_said_in_words(served: Served, words: str, made: Any) -> None:
    assert words in served.refused(served.file(made(served.view), "views"), "register-view")


@pytest.mark.parametrize("odd", ["../x", "./x", "a//x", "a\\x", "s" * 300])
def test_odd_locations_are_refused_by_the_name_of_their_field(served: Served, odd: str) -> None:
    base = served.catalog.parts.locations.uri("default/default/data")
    for route in ("register", "register-view"):
        assert "metadata-location" in served.refused(f"{base}/{odd}/metadata/00000-a.metadata.json", route)
    elsewhere = {**served.table, "location": f"{base}/{odd}"}
    assert "location" in served.refused(served.file(elsewhere))


@pytest.mark.parametrize("odd", ["../x", "s" * 300])
def test_an_odd_place_for_metadata_is_refused_by_the_name_of_its_property(served: Served, odd: str) -> None:
    path = f"{served.table['location']}/{odd}"
    updates = [{"action": "set-properties", "updates": {"write.metadata.path": path}}]
    answer = served.send("POST", f"{NAMESPACES}/ns/tables/t", {"requirements": [], "updates": updates})
    message = answer.json["error"]["message"]
    assert answer.status == 400
    assert "write.metadata.path" in message
    assert not any(word in message for word in INNER), message


def test_an_early_table_without_a_uuid_gets_one_that_follows_from_its_place(served: Served) -> None:
    place = served.catalog.parts.locations.uri("default/default/data/early")
    early = {
        "format-version": 1,
        "location": place,
        "last-updated-ms": 1_600_000_000_000,
        "last-column-id": 1,
        "schema": SCHEMA,
        "partition-spec": [],
        "properties": {},
        "current-snapshot-id": -1,
        "snapshots": [],
    }
    location = served.file(early)
    registered = served.register(location)
    assert registered.status == 200, registered.json
    uuid = registered.json["metadata"]["table-uuid"]
    path = f"{NAMESPACES}/ns/tables/mine"
    assert served.send("GET", path).json["metadata"]["table-uuid"] == uuid
    updates = [{"action": "set-properties", "updates": {"a": "b"}}]
    asserted = [{"type": "assert-table-uuid", "uuid": uuid}]
    done = served.send("POST", path, {"requirements": asserted, "updates": updates})
    assert done.status == 200, done.json
    assert done.json["metadata"]["table-uuid"] == uuid
    again = served.send("POST", f"{NAMESPACES}/ns/register", {"name": "other", "metadata-location": location})
    assert again.status == 409, "it is the same table"
