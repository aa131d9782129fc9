"""Every change under /iceberg, sent twice under one key: done once, and answered byte for byte as the first time.

Also when the reason is gone, and also what was refused. A route that takes changes and has no case here is found.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7
from arco.kernel.scope import Scope
from stand_ins.asgi import Answer, ask, make_app

PREFIX = "/iceberg/v1/default.default"
TABLES = f"{PREFIX}/namespaces/ns/tables"
VIEWS = f"{PREFIX}/namespaces/ns/views"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
VERSION = {
    "version-id": 1,
    "schema-id": 0,
    "timestamp-ms": 1_750_000_000_000,
    "summary": {},
    "default-namespace": ["ns"],
    "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
}
ONCE_PER_REQUEST = {"x-request-id"}


class Served:
    """One server on an empty store, with a namespace, a table and a view in it."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._app = make_app()
        self.done("POST", f"{PREFIX}/namespaces", {"namespace": ["ns"]})
        self.table = self.done("POST", TABLES, {"name": "t", "schema": SCHEMA}).json
        self.view = self.done("POST", VIEWS, {"name": "v", "schema": SCHEMA, "view-version": VERSION}).json

    @property
    def mutating(self) -> set[str]:
        """Every route that changes something. Who asks for events sends a filter, and changes nothing."""
        changing = {
            f"{one.method} {one.template.removeprefix('/iceberg/v1/{prefix}')}"
            for one in self._app.routes
            if one.template.startswith("/iceberg/v1/{prefix}") and one.method in {"POST", "DELETE"}
        }
        return changing - {"POST /events"}

    def send(self, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
        data = b"" if body is None else json.dumps(body).encode()
        headers = {} if key is None else {"Idempotency_Key": key}
        return self._runner.run(ask(self._app, method, path, data, **headers))

    def done(self, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
        answer = self.send(method, path, body, key)
        assert answer.status in {200, 204}, answer.body
        return answer

    def at_rest(self) -> None:
        """Let what the answers left to do be done."""
        self._runner.run(self._app._state.catalog(Scope.of()).parts.afterwards.settle())

    def end(self) -> None:
        self._runner.run(self._app._state.settle())
        self._runner.close()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.end()


@dataclass(frozen=True)
class Case:
    """A change, and what comes between it and its repetition: the world in which it would not be possible any more."""

    route: str
    request: Callable[[Served], tuple[str, str, Any]]
    meanwhile: Callable[[Served], object] = lambda _: None


def renamed(kind: str, old: str, new: str) -> tuple[str, str, Any]:
    ends = {"source": {"namespace": ["ns"], "name": old}, "destination": {"namespace": ["ns"], "name": new}}
    return "POST", f"{PREFIX}/{kind}/rename", ends


def set_x(value: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": value}}]}


def dropped(served: Served, path: str) -> None:
    served.done("DELETE", path)


def registered_table(served: Served) -> tuple[str, str, Any]:
    served.send("POST", f"{TABLES}/t/unregister", {})
    location = served.table["metadata-location"]
    return "POST", f"{PREFIX}/namespaces/ns/register", {"name": "r", "metadata-location": location}


def registered_view(served: Served) -> tuple[str, str, Any]:
    served.send("DELETE", f"{VIEWS}/v")
    location = served.view["metadata-location"]
    return "POST", f"{PREFIX}/namespaces/ns/register-view", {"name": "r", "metadata-location": location}


def both(served: Served) -> tuple[str, str, Any]:
    if served.send("GET", f"{TABLES}/u").status == 404:
        served.done("POST", TABLES, {"name": "u", "schema": SCHEMA})
    changes = [{"identifier": {"namespace": ["ns"], "name": name}, **set_x("1")} for name in ("t", "u")]
    return "POST", f"{PREFIX}/transactions/commit", {"table-changes": changes}


NAMESPACE = "/namespaces/{namespace}"
CASES = [
    Case(
        "POST /namespaces",
        lambda _: ("POST", f"{PREFIX}/namespaces", {"namespace": ["new"]}),
        lambda served: dropped(served, f"{PREFIX}/namespaces/new"),
    ),
    Case(
        f"DELETE {NAMESPACE}",
        lambda served: (
            served.send("POST", f"{PREFIX}/namespaces", {"namespace": ["old"]})
            and ("DELETE", f"{PREFIX}/namespaces/old", None)
        ),
    ),
    Case(
        f"POST {NAMESPACE}/properties",
        lambda _: ("POST", f"{PREFIX}/namespaces/ns/properties", {"removals": ["b"], "updates": {"a": "1"}}),
        lambda served: served.done("POST", f"{PREFIX}/namespaces/ns/properties", {"updates": {"b": "2"}}),
    ),
    Case(
        f"POST {NAMESPACE}/tables",
        lambda _: ("POST", TABLES, {"name": "n", "schema": SCHEMA}),
        lambda served: dropped(served, f"{TABLES}/n"),
    ),
    Case(
        f"POST {NAMESPACE}/tables",
        lambda _: ("POST", TABLES, {"name": "n", "schema": SCHEMA, "stage-create": True}),
        lambda served: served.done("POST", TABLES, {"name": "n", "schema": SCHEMA}),
    ),
    Case(
        f"POST {NAMESPACE}/tables/{{table}}",
        lambda _: ("POST", f"{TABLES}/t", set_x("1")),
        lambda served: served.done("POST", f"{TABLES}/t", set_x("2")),
    ),
    Case(f"DELETE {NAMESPACE}/tables/{{table}}", lambda _: ("DELETE", f"{TABLES}/t", None)),
    Case(f"POST {NAMESPACE}/tables/{{table}}/unregister", lambda _: ("POST", f"{TABLES}/t/unregister", None)),
    Case(
        f"POST {NAMESPACE}/tables/{{table}}/metrics",
        lambda _: ("POST", f"{TABLES}/t/metrics", {"report-type": "scan-report"}),
    ),
    Case(
        f"POST {NAMESPACE}/register",
        registered_table,
        lambda served: dropped(served, f"{TABLES}/r"),
    ),
    Case(
        "POST /tables/rename",
        lambda _: renamed("tables", "t", "w"),
        lambda served: served.done(*renamed("tables", "w", "x")),
    ),
    Case(
        f"POST {NAMESPACE}/views",
        lambda _: ("POST", VIEWS, {"name": "n", "schema": SCHEMA, "view-version": VERSION}),
        lambda served: dropped(served, f"{VIEWS}/n"),
    ),
    Case(
        f"POST {NAMESPACE}/views/{{view}}",
        lambda _: ("POST", f"{VIEWS}/v", set_x("1")),
        lambda served: served.done("POST", f"{VIEWS}/v", set_x("2")),
    ),
    Case(f"DELETE {NAMESPACE}/views/{{view}}", lambda _: ("DELETE", f"{VIEWS}/v", None)),
    Case(
        "POST /views/rename",
        lambda _: renamed("views", "v", "w"),
        lambda served: served.done(*renamed("views", "w", "x")),
    ),
    Case(
        f"POST {NAMESPACE}/register-view",
        registered_view,
        lambda served: dropped(served, f"{VIEWS}/r"),
    ),
    Case(
        "POST /transactions/commit",
        both,
        lambda served: served.done("POST", f"{TABLES}/t", set_x("2")),
    ),
]
REFUSED = [
    Case(
        f"POST {NAMESPACE}/tables",
        lambda _: ("POST", TABLES, {"name": "n", "schema": SCHEMA, "location": "memory://elsewhere"}),
    ),
    Case(
        f"POST {NAMESPACE}/tables",
        lambda _: ("POST", TABLES, {"name": "t", "schema": SCHEMA}),
        lambda served: dropped(served, f"{TABLES}/t"),
    ),
    Case(
        f"POST {NAMESPACE}/tables/{{table}}",
        lambda _: (
            "POST",
            f"{TABLES}/t",
            {"requirements": [], "updates": [{"action": "set-location", "location": "x:/y"}]},
        ),
    ),
    Case(
        f"DELETE {NAMESPACE}/tables/{{table}}",
        lambda _: ("DELETE", f"{TABLES}/n", None),
        lambda served: served.done("POST", TABLES, {"name": "n", "schema": SCHEMA}),
    ),
    Case(
        "POST /tables/rename",
        lambda _: (
            "POST",
            f"{PREFIX}/tables/rename",
            {"source": {"namespace": ["ns"], "name": "t"}, "destination": {"namespace": ["arco", "ns"], "name": "u"}},
        ),
        lambda served: [
            served.done("POST", f"{PREFIX}/namespaces", {"namespace": one}) for one in (["arco"], ["arco", "ns"])
        ],
    ),
    Case(
        "POST /transactions/commit",
        lambda _: (
            "POST",
            f"{PREFIX}/transactions/commit",
            {"table-changes": [{"identifier": {"namespace": ["ns"], "name": "n"}, **set_x("1")}]},
        ),
        lambda served: served.done("POST", TABLES, {"name": "n", "schema": SCHEMA}),
    ),
]


def key() -> str:
    return new_uuid7(SystemClock(), SystemEntropy())


def sent_twice(served: Served, case: Case) -> tuple[Answer, Answer]:
    method, path, body = case.request(served)
    own = key()
    first = served.send(method, path, body, own)
    served.at_rest()
    case.meanwhile(served)
    return first, served.send(method, path, body, own)


def alike(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    return answer.status, {name: text for name, text in answer.headers.items() if name not in ONCE_PER_REQUEST}, answer.body


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.route)
def test_a_change_that_is_sent_twice_is_answered_byte_for_byte(served: Served, case: Case):
    first, second = sent_twice(served, case)
    assert first.status in {200, 204}, first.body
    assert alike(second) == alike(first)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.route)
def test_a_refusal_is_heard_again_byte_for_byte_with_its_way_out(served: Served, case: Case):
    first, second = sent_twice(served, case)
    assert 400 <= first.status < 500, first.body
    assert alike(second) == alike(first)


def test_every_route_that_takes_changes_has_a_case(served: Served):
    assert {case.route for case in CASES} == served.mutating


def test_a_new_name_with_the_catalog_before_it_is_told_what_to_write(served: Served):
    answer = served.send(*REFUSED[4].request(served))
    assert answer.error == (404, "NoSuchNamespaceException")
    assert answer.json["error"]["message"] == (
        "Namespace does not exist: arco.ns: write the new name as ns.u, without the catalog"
    )


def test_a_new_name_in_no_namespace_is_told_nothing_more(served: Served):
    ends = {"source": {"namespace": ["ns"], "name": "t"}, "destination": {"namespace": ["no", "where"], "name": "u"}}
    answer = served.send("POST", f"{PREFIX}/tables/rename", ends)
    assert answer.json["error"]["message"] == "Namespace does not exist: no.where"


def test_a_metadata_file_of_a_table_that_is_there_is_refused_with_that_tables_name(served: Served):
    wanted = {"name": "r", "metadata-location": served.table["metadata-location"]}
    answer = served.send("POST", f"{PREFIX}/namespaces/ns/register", wanted)
    assert answer.error == (409, "AlreadyExistsException")
    assert answer.json["error"]["message"].endswith("same identity: ns.t")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", {"namespace": ["n"], "properties": {"Arco.x": "1"}}),
        ("/ns/properties", {"updates": {"ARCO.x": "1"}}),
        ("/ns/properties", {"removals": ["arco.x"]}),
    ],
)
def test_what_begins_with_arco_is_reserved_in_namespaces_too(served: Served, path: str, body: Any):
    answer = served.send("POST", f"{PREFIX}/namespaces{path}", body)
    assert answer.error == (400, "BadRequestException")
    assert answer.json["error"]["message"].lower().startswith("reserved properties: arco.x")
