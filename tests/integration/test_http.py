"""The server as a plain HTTP client sees it: views, idempotency keys, refusals."""

import gzip
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7

from .arco_server import arco_server

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


class Client:
    def __init__(self, address: str) -> None:
        self._base = f"{address}/v1/default.default"
        self.namespace = f"ns{uuid.uuid4().hex}"
        assert self.ask("POST", "/namespaces", {"namespace": [self.namespace]})[0] == 200

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"{self._base}{path}", data=data, method=method, headers=names)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def load(self, query: str, known: str = "") -> tuple[int, str]:
        """The status of a load and its tag, for who knows another."""
        address = f"{self._base}/namespaces/{self.namespace}/tables/t{query}"
        request = urllib.request.Request(address, headers={"If-None-Match": known} if known else {})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers["etag"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["etag"]

    def create_table(self, name: str = "t", **headers: str) -> tuple[int, Any]:
        return self.ask("POST", f"/namespaces/{self.namespace}/tables", {"name": name, "schema": SCHEMA}, **headers)

    def set_property(self, value: str, **headers: str) -> tuple[int, Any]:
        update = {"action": "set-properties", "updates": {"x": value}}
        path = f"/namespaces/{self.namespace}/tables/t"
        return self.ask("POST", path, {"requirements": [], "updates": [update]}, **headers)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with arco_server(Path(tmp_path_factory.mktemp("lake"))) as found:
        yield found


@pytest.fixture
def client(address: str) -> Client:
    return Client(address)


def key() -> str:
    return new_uuid7(SystemClock(), SystemEntropy())


def test_a_view_is_created_replaced_renamed_and_dropped(client: Client) -> None:
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1_750_000_000_000,
        "summary": {},
        "default-namespace": [client.namespace],
        "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
    }
    body = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    status, created = client.ask("POST", f"/namespaces/{client.namespace}/views", body)
    assert status == 200
    newer = version | {"version-id": 2, "representations": [{"type": "sql", "sql": "select 2 as a", "dialect": "spark"}]}
    change = {
        "requirements": [{"type": "assert-view-uuid", "uuid": created["metadata"]["view-uuid"]}],
        "updates": [
            {"action": "add-view-version", "view-version": newer},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }
    path = f"/namespaces/{client.namespace}/views"
    assert client.ask("POST", f"{path}/v", change)[0] == 200
    loaded = client.ask("GET", f"{path}/v")[1]["metadata"]
    assert loaded["current-version-id"] == 2
    rename = {
        "source": {"namespace": [client.namespace], "name": "v"},
        "destination": {"namespace": [client.namespace], "name": "w"},
    }
    assert client.ask("POST", "/views/rename", rename)[0] == 204
    assert [one["name"] for one in client.ask("GET", path)[1]["identifiers"]] == ["w"]
    assert client.ask("DELETE", f"{path}/w")[0] == 204
    assert client.ask("GET", f"{path}/w")[1]["error"]["type"] == "NoSuchViewException"


def test_a_table_and_a_view_share_one_space_of_names(client: Client) -> None:
    client.create_table("both")
    version = {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": [client.namespace],
        "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
    }  # fmt: skip
    body = {"name": "both", "schema": SCHEMA, "view-version": version, "properties": {}}
    status, answer = client.ask("POST", f"/namespaces/{client.namespace}/views", body)
    assert status == 409
    assert answer["error"]["message"].startswith("Table with same name already exists")


def test_a_request_with_a_key_is_done_once_and_answered_alike(client: Client) -> None:
    own = key()
    first, second = client.create_table(Idempotency_Key=own), client.create_table(Idempotency_Key=own)
    assert first == second
    assert first[0] == 200
    own = key()
    assert client.set_property("1", Idempotency_Key=own) == client.set_property("1", Idempotency_Key=own)
    log = client.ask("GET", f"/namespaces/{client.namespace}/tables/t")[1]["metadata"]["metadata-log"]
    assert len(log) == 1


def test_a_key_is_bound_to_its_request(client: Client) -> None:
    own = key()
    client.create_table()
    assert client.set_property("1", Idempotency_Key=own)[0] == 200
    status, answer = client.set_property("2", Idempotency_Key=own)
    assert (status, answer["error"]["type"]) == (409, "CommitFailedException")


def test_a_refusal_with_a_key_is_heard_again_after_the_reason_is_gone(client: Client) -> None:
    client.create_table()
    own = key()
    assert client.create_table(Idempotency_Key=own)[0] == 409
    client.ask("DELETE", f"/namespaces/{client.namespace}/tables/t")
    assert client.create_table(Idempotency_Key=own)[0] == 409


@pytest.mark.parametrize("bad", ["x", "0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40", "01890000-0000-7000-8000-000000000000"])
def test_a_key_that_is_none_or_too_old_is_refused(client: Client, bad: str) -> None:
    assert client.create_table(Idempotency_Key=bad)[0] == 400


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/namespaces", b"{", 400),
        ("POST", "/namespaces", b'{"namespace":["a"],"namespace":["b"]}', 400),
        ("POST", "/namespaces", {"namespace": "a"}, 400),
        ("POST", "/namespaces", {"namespace": []}, 400),
        ("POST", "/namespaces", {"namespace": ["a\x00b"]}, 400),
        ("GET", "/namespaces/none", None, 404),
        ("GET", "/namespaces/none/tables", None, 404),
        ("POST", "/namespaces/none/tables", {"name": "t", "schema": SCHEMA}, 404),
        ("PUT", "/namespaces", None, 405),
        ("GET", "/nowhere", None, 404),
        ("GET", "/namespaces?pageToken=zz", None, 400),
        ("GET", "/namespaces?pageSize=0", None, 400),
    ],
)
def test_bad_input_gets_a_precise_refusal(client: Client, method: str, path: str, body: Any, status: int) -> None:
    found, answer = client.ask(method, path, body)
    assert found == status
    assert answer["error"]["code"] == status
    assert "Traceback" not in answer["error"]["message"]


def test_unknown_updates_and_requirements_are_listed_together(client: Client) -> None:
    client.create_table()
    body = {"requirements": [{"type": "assert-mood"}], "updates": [{"action": "paint"}, {"action": "sing"}]}
    status, answer = client.ask("POST", f"/namespaces/{client.namespace}/tables/t", body)
    assert status == 400
    assert all(word in answer["error"]["message"] for word in ("assert-mood", "paint", "sing"))


def test_pages_hold_every_name_once(client: Client) -> None:
    for number in range(7):
        client.create_table(f"t{number}")
    names: list[str] = []
    token = ""
    while True:
        page = client.ask("GET", f"/namespaces/{client.namespace}/tables?pageToken={token}&pageSize=3")[1]
        names += [one["name"] for one in page["identifiers"]]
        token = page.get("next-page-token")
        if token is None:
            break
    assert names == [f"t{number}" for number in range(7)]


def test_a_tag_is_of_one_state_and_of_one_choice_of_snapshots(client: Client) -> None:
    client.create_table()
    status, everything = client.load("?snapshots=all")
    assert (status, client.load("")[1]) == (200, everything)
    _, branches = client.load("?snapshots=refs")
    assert branches != everything
    assert client.load("?snapshots=all", everything) == (304, everything)
    assert client.load("", everything) == (304, everything)
    assert client.load("?snapshots=refs", everything) == (200, branches)
    assert client.load("?snapshots=refs", f"{everything}, {branches}") == (304, branches)
    assert client.set_property("new")[0] == 200
    status, changed = client.load("?snapshots=all", everything)
    assert status == 200
    assert changed not in {everything, branches}


def test_metadata_is_compressed_and_placed_as_the_table_says(client: Client) -> None:
    """`write.metadata.compression-codec` from the first file on, and `write.metadata.path` inside the table's own place."""
    properties = {"write.metadata.compression-codec": "gzip"}
    body = {"name": "t", "schema": SCHEMA, "properties": properties}
    status, made = client.ask("POST", f"/namespaces/{client.namespace}/tables", body)
    assert status == 200
    first = Path(made["metadata-location"].removeprefix("file://"))
    assert first.name.endswith(".gz.metadata.json")
    assert json.loads(gzip.decompress(first.read_bytes())) == made["metadata"]
    update = {"action": "set-properties", "updates": {"write.metadata.path": f"{made['metadata']['location']}/elsewhere"}}
    status, changed = client.ask(
        "POST", f"/namespaces/{client.namespace}/tables/t", {"requirements": [], "updates": [update]}
    )
    assert status == 200
    assert "/elsewhere/00001-" in changed["metadata-location"]
    status, loaded = client.ask("GET", f"/namespaces/{client.namespace}/tables/t")
    assert (status, loaded["metadata"]) == (200, changed["metadata"])
    outside = {"action": "set-properties", "updates": {"write.metadata.path": "file:///elsewhere"}}
    status, refused = client.ask(
        "POST", f"/namespaces/{client.namespace}/tables/t", {"requirements": [], "updates": [outside]}
    )
    assert (status, refused["error"]["type"]) == (400, "BadRequestException")
