"""Questions as a plain HTTP client asks them, of a running server on a folder with published state."""

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from arco.fold.heads import Heads
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.storage.local import LocalStore
from fixtures.state.published_state import publish_world
from fixtures.state.shop_story import told
from fixtures.state.state_world import World
from unit.surface.http_ground import template_of, validate

from .arco_server import arco_server

API_PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def publish(root: Path, world: World) -> str:
    async def go() -> str:
        store = LocalStore(str(root), SystemClock(), SystemEntropy())
        try:
            return await publish_world(Heads(store, Scope.of(), SystemClock(), SystemEntropy()), world)
        finally:
            await store.close()

    return asyncio.run(go())


class Client:
    def __init__(self, address: str) -> None:
        self.root = address.removesuffix("/iceberg")

    def get(self, path: str, **headers: str) -> tuple[int, Message, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{self.root}{path}", headers=named), timeout=30) as answer:
                return answer.status, answer.headers, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, error.headers, json.loads(error.read() or b"null")


class Running:
    """A server on a folder, and the world that is published there."""

    def __init__(self, root: Path, address: str, snapshot: str) -> None:
        self.root, self.client, self.snapshot = root, Client(address), snapshot


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    root = Path(tmp_path_factory.mktemp("lake"))
    snapshot = publish(root, told())
    with arco_server(root) as address:
        yield Running(root, address, snapshot)


def test_the_examples_of_the_documentation_are_answered_as_described(running: Running) -> None:
    questions = API_PAGE.read_text().partition("## Questions")[2].partition("### Which state")[0]
    examples = re.findall(r"^curl '?http://127\.0\.0\.1:8181(/[^'\s]+)", questions, re.MULTILINE)
    assert len(examples) >= 5
    status, _, description = running.client.get("/api/v1/openapi.json")
    assert status == 200
    for example in examples:
        status, headers, answer = running.client.get(example)
        assert status == 200, (example, answer)
        assert headers["Content-Type"] == "application/json"
        assert answer["snapshot"] == running.snapshot
        path = template_of(description, example.removeprefix("/api/v1/").partition("?")[0])
        schema = description["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        validate(description, schema, answer)


def test_a_server_that_answers_questions_is_ready_and_serves_iceberg(running: Running) -> None:
    assert running.client.get("/api/v1/assets")[0] == 200
    assert running.client.get("/ready")[0] == 200
    assert running.client.get("/iceberg/v1/config")[0] == 200


def test_what_is_published_meanwhile_is_answered_and_what_was_stays(running: Running) -> None:
    status, headers, before = running.client.get("/api/v1/assets?namespace=later")
    assert (status, before["items"]) == (200, [])
    etag = headers["ETag"]
    assert running.client.get("/api/v1/assets?namespace=later", If_None_Match=etag)[0] == 304
    world = told()
    world.asset("later.asset")
    snapshot = publish(running.root, world)
    status, headers, after = running.client.get("/api/v1/assets?namespace=later", If_None_Match=etag)
    assert (status, after["snapshot"], [one["asset"] for one in after["items"]]) == (200, snapshot, ["later.asset"])
    old = f"/api/v1/assets?namespace=later&snapshot={before['snapshot']}"
    assert running.client.get(old)[2] == before
    assert running.client.get(old, If_None_Match=etag)[0] == 304
    running.snapshot = snapshot


def test_what_is_wrong_is_a_problem(running: Running) -> None:
    status, headers, problem = running.client.get("/api/v1/assets?as_of=2001-01-01T00:00:00Z")
    assert (status, headers["Content-Type"], problem["code"]) == (410, "application/problem+json", "beyond_reach")
    oldest = problem["oldest"].replace("+", "%2B")
    assert running.client.get(f"/api/v1/assets?as_of={oldest}")[0] == 200
    status, headers, problem = running.client.get("/api/v1/runs?as_of_run=01JCW4ZZZZ0000000000000001")
    assert (status, headers["Retry-After"], problem["code"]) == (404, "5", "pending_ingestion")
    assert running.client.get("/api/v1/nowhere")[2]["type"] == "urn:arco:error:not_found"


def test_a_file_that_is_damaged_is_said_without_the_inside(tmp_path: Path) -> None:
    publish(tmp_path, told())
    [*files] = tmp_path.glob("default/default/_catalog/state/assets/assets/*.parquet")
    assert files
    for file in files:
        file.write_bytes(b"not what was written")
    with arco_server(tmp_path) as address:
        status, _, problem = Client(address).get("/api/v1/assets")
        assert (status, problem["code"]) == (500, "corrupt_object")
        assert "parquet" not in json.dumps(problem)
        assert Client(address).get("/ready")[0] == 200
