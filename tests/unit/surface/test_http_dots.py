"""Names that a tidied URL has no more: nobody gets one, and what has one of old can still be loaded, renamed and dropped."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.iceberg.requests import CreateTable
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7
from arco.kernel.scope import Scope
from arco.ledger.receipts import Source
from stand_ins.asgi import Answer, ask, make_app

PREFIX = "/iceberg/v1/default.default"
NAMESPACES = f"{PREFIX}/namespaces"
NS = f"{NAMESPACES}/ns"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
VERSION = {
    "version-id": 1,
    "schema-id": 0,
    "timestamp-ms": 1_750_000_000_000,
    "summary": {},
    "default-namespace": ["ns"],
    "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
}


class Served:
    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.app = make_app()
        self.catalog = self.app._state.catalog(Scope.of())
        assert self.send("POST", NAMESPACES, {"namespace": ["ns"]}).status == 200
        self.table = self.send("POST", f"{NS}/tables", {"name": "t", "schema": SCHEMA}).json

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        data = b"" if body is None else json.dumps(body).encode()
        return self.runner.run(ask(self.app, method, path, data, **headers))

    def of_old(self, levels: tuple[str, ...], name: str) -> None:
        """A table with a name that was taken when anything was."""
        key = RequestKey(f"old {levels} {name}", "createTable", name, durable=False)
        wanted = CreateTable(name=name, schema=SCHEMA)
        self.runner.run(self.catalog.tables.create(levels, wanted, key, Source()))

    def end(self) -> None:
        self.runner.run(self.app._state.settle())
        self.runner.close()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.end()


def creating(uuid: str, location: str) -> dict[str, Any]:
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": uuid},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": SCHEMA, "last-column-id": 1},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": location},
        ],
    }


@pytest.mark.parametrize("name", [".", ".."])
def test_nobody_gets_a_name_of_dots(served: Served, name: str) -> None:
    def rename(kind: str) -> tuple[str, dict[str, Any]]:
        source, to = {"namespace": ["ns"], "name": "t"}, {"namespace": ["ns"], "name": name}
        return f"{PREFIX}/{kind}/rename", {"source": source, "destination": to}

    staged = served.send("POST", f"{NS}/tables", {"name": "s", "schema": SCHEMA, "stage-create": True}).json["metadata"]
    by_commit = creating(staged["table-uuid"], staged["location"])
    identified = {**by_commit, "identifier": {"namespace": ["ns"], "name": name}}
    other = {"namespace": ["ns"], "name": name, "format": "CSV", "location": "s3://elsewhere/x"}
    asked = (
        (NAMESPACES, {"namespace": [name]}),
        (NAMESPACES, {"namespace": ["ns", name]}),
        (f"{NS}/tables", {"name": name, "schema": SCHEMA}),
        (f"{NS}/tables", {"name": name, "schema": SCHEMA, "stage-create": True}),
        (f"{NS}/views", {"name": name, "schema": SCHEMA, "view-version": VERSION}),
        (f"{NS}/register", {"name": name, "metadata-location": served.table["metadata-location"]}),
        (f"{NS}/register-view", {"name": name, "metadata-location": served.table["metadata-location"]}),
        rename("tables"),
        rename("views"),
        (f"{NS}/tables/{name.replace('.', '%2E')}", by_commit),
        (f"{PREFIX}/transactions/commit", {"table-changes": [identified]}),
        ("/api/v1/tables", other),
        ("/api/v1/tables/rename", rename("tables")[1]),
    )
    before = served.runner.run(served.catalog.parts.tier1.current()).names.entries.copy()
    for path, body in asked:
        key = new_uuid7(SystemClock(), SystemEntropy())
        answer = served.send("POST", path, body, Idempotency_Key=key)
        assert answer.status == 400, (path, body, answer.body)
        assert b"choose another name" in answer.body, (path, answer.body)
    assert served.runner.run(served.catalog.parts.tier1.current()).names.entries == before


@pytest.mark.parametrize("name", [".", ".."])
def test_what_has_such_a_name_of_old_can_be_loaded_committed_to_renamed_and_dropped(served: Served, name: str) -> None:
    served.of_old(("ns",), name)
    path = f"{NS}/tables/{name.replace('.', '%2E')}"
    assert served.send("GET", path).status == 200
    updates = [{"action": "set-properties", "updates": {"a": "b"}}]
    assert served.send("POST", path, {"requirements": [], "updates": updates}).status == 200
    to = {"source": {"namespace": ["ns"], "name": name}, "destination": {"namespace": ["ns"], "name": "plain"}}
    assert served.send("POST", f"{PREFIX}/tables/rename", to).status == 204
    assert served.send("GET", f"{NS}/tables/plain").status == 200
    served.of_old(("ns",), name)
    assert served.send("DELETE", path).status == 204
    assert served.send("POST", "/api/v1/tables/undrop", {"source": {"namespace": ["ns"], "name": name}}).status == 200


def test_a_namespace_of_old_can_be_emptied_and_dropped(served: Served) -> None:
    key = RequestKey("old", "createNamespace", "0", durable=False)
    served.runner.run(create_namespace(served.catalog.parts, ("..",), {}, key, Author()))
    served.of_old(("..",), "t")
    old = f"{NAMESPACES}/%2E%2E"
    assert served.send("GET", old).status == 200
    assert served.send("POST", f"{old}/tables", {"name": "u", "schema": SCHEMA}).status == 200
    within = {"source": {"namespace": [".."], "name": "u"}, "destination": {"namespace": [".."], "name": "w"}}
    assert served.send("POST", f"{PREFIX}/tables/rename", within).status == 204
    for name in ("t", "w"):
        assert served.send("DELETE", f"{old}/tables/{name}").status == 204
    assert served.send("DELETE", old).status == 204
