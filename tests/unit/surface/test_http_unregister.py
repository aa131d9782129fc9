"""`unregister` over HTTP: the table is gone from here, and says where it can be registered; Arco's own drop is another thing."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from arco.kernel.scope import Scope
from stand_ins.asgi import Answer, ask, make_app

NAMESPACES = "/iceberg/v1/default.default/namespaces"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


class Served:
    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.app = make_app()
        self.send("POST", NAMESPACES, {"namespace": ["ns"]})
        self.table = self.send("POST", f"{NAMESPACES}/ns/tables", {"name": "t", "schema": SCHEMA}).json

    def send(self, method: str, path: str, body: object = None) -> Answer:
        return self._runner.run(ask(self.app, method, path, b"" if body is None else json.dumps(body).encode()))

    def end(self) -> None:
        self._runner.run(self.app._state.settle())
        self._runner.close()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.end()


def test_an_unregistered_table_is_told_from_a_dropped_one(served: Served) -> None:
    served.send("POST", f"{NAMESPACES}/ns/tables", {"name": "u", "schema": SCHEMA})
    assert served.send("DELETE", f"{NAMESPACES}/ns/tables/u").status == 204
    answer = served.send("POST", f"{NAMESPACES}/ns/tables/t/unregister")
    assert answer.status == 200
    assert answer.json["metadata-location"] == served.table["metadata-location"]
    listed = served.send("GET", "/api/v1/dropped").json["dropped"]
    assert {one["name"]: one["unregistered"] for one in listed} == {"t": True, "u": False}
    assert served.app._state.catalog(Scope.of()).parts.tier1.names.last_dropped(("ns",), "t").unregistered


def test_an_unregistered_table_is_not_restored_but_registered_again(served: Served) -> None:
    served.send("POST", f"{NAMESPACES}/ns/tables/t/unregister")
    source = {"source": {"namespace": ["ns"], "name": "t"}}
    refusal = served.send("POST", "/api/v1/tables/undrop", source)
    assert refusal.status == 409
    assert served.table["metadata-location"] in json.dumps(refusal.json)
    body = {"name": "t", "metadata-location": served.table["metadata-location"]}
    again = served.send("POST", f"{NAMESPACES}/ns/register", body)
    assert again.status == 200
    assert again.json["metadata"]["table-uuid"] == served.table["metadata"]["table-uuid"]
    assert served.send("GET", "/api/v1/dropped").json["dropped"] == []
