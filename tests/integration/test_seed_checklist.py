"""The compatibility checklist that the catalog was planned with, its first three points, as a plain HTTP client sees them.

1. The configuration tells the lifetime of idempotency keys, the endpoints and the separator of namespaces.
2. Namespaces are decoded with that separator and with `%1F`.
3. Idempotency keys are UUIDs of version 7; a definite refusal is kept, an answer that nobody knows is not.
"""

import json
import re
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from .arco_server import arco_server
from .test_http import SCHEMA, Client, key


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    with arco_server(root) as found:
        yield found


@pytest.fixture
def client(address: str) -> Client:
    return Client(address)


@pytest.fixture(scope="module")
def config(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{address}/v1/config", timeout=30) as answer:
        return json.load(answer)


# 1. The configuration


def test_the_lifetime_of_keys_is_a_duration(config: dict[str, Any]) -> None:
    assert re.fullmatch(r"P(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?", config["idempotency-key-lifetime"])


def test_the_separator_is_told(config: dict[str, Any]) -> None:
    assert (config["defaults"] | config["overrides"])["namespace-separator"]


def test_the_endpoints_are_told_as_the_specification_writes_them(config: dict[str, Any]) -> None:
    told = set(config["endpoints"])
    assert {
        "GET /v1/{prefix}/namespaces",
        "POST /v1/{prefix}/namespaces/{namespace}/tables",
        "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "POST /v1/{prefix}/tables/rename",
        "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
    } <= told
    assert all(re.fullmatch(r"(GET|HEAD|POST|DELETE) /v1/\S+", one) for one in told)


def test_every_endpoint_that_is_told_is_there(config: dict[str, Any], client: Client) -> None:
    missing = []
    for endpoint in config["endpoints"]:
        method, path = endpoint.split(" ")
        inside = path.removeprefix("/v1/{prefix}").format(namespace="nowhere", table="nothing", view="nothing")
        status, answer = client.ask(method, inside, {} if method == "POST" else None)
        kind = (answer or {}).get("error", {}).get("type")
        if status == 405 or kind == "NotFoundException":
            missing.append(endpoint)
    assert missing == []


# 2. Namespaces


def test_levels_are_separated_by_what_the_configuration_says_and_by_1f(config: dict[str, Any], client: Client) -> None:
    levels = [client.namespace, "größe", "with.dot and/slash"]
    for depth in (2, 3):
        assert client.ask("POST", "/namespaces", {"namespace": levels[:depth]})[0] == 200
    separator = unquote((config["defaults"] | config["overrides"])["namespace-separator"])
    for between in (quote(separator, safe=""), "%1F"):
        path = between.join(quote(level, safe="") for level in levels)
        status, found = client.ask("GET", f"/namespaces/{path}")
        assert (status, found.get("namespace")) == (200, levels)
        parent = between.join(quote(level, safe="") for level in levels[:2])
        assert client.ask("GET", f"/namespaces?parent={parent}")[1]["namespaces"] == [levels]


# 3. Keys


def test_a_key_is_a_uuid_of_version_7(client: Client) -> None:
    for wrong in ("", "x", str(uuid.uuid4()), str(uuid.uuid1()), key().replace("-", ""), f"{{{key()}}}"):
        status, answer = client.create_table(Idempotency_Key=wrong)
        assert (status, answer["error"]["type"]) == (400, "BadRequestException"), wrong
    assert client.create_table(Idempotency_Key=key())[0] == 200


def snapshot_commit(client: Client, table: dict[str, Any]) -> dict[str, Any]:
    """A commit as engines send it: its requirements do not hold once it has landed."""
    snapshot = {
        "sequence-number": 1,
        "snapshot-id": 5,
        "timestamp-ms": table["last-updated-ms"],
        "summary": {"operation": "append"},
        "manifest-list": f"{table['location']}/metadata/snap-5.avro",
        "schema-id": 0,
    }
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": table["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5},
        ],
    }


def staged_commit(table: dict[str, Any]) -> dict[str, Any]:
    """The commit that makes a staged table."""
    updates = [
        {"action": "assign-uuid", "uuid": table["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": table["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": table["location"]},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


Mutation = Callable[[Client, str], tuple[int, Any]]


def _create_namespace(client: Client, own: str) -> tuple[int, Any]:
    return client.ask("POST", "/namespaces", {"namespace": [client.namespace, "n"]}, Idempotency_Key=own)


def _drop_namespace(client: Client, own: str) -> tuple[int, Any]:
    return client.ask("DELETE", f"/namespaces/{client.namespace}", Idempotency_Key=own)


def _set_properties(client: Client, own: str) -> tuple[int, Any]:
    body = {"removals": [], "updates": {"x": "y"}}
    return client.ask("POST", f"/namespaces/{client.namespace}/properties", body, Idempotency_Key=own)


def _create_table(client: Client, own: str) -> tuple[int, Any]:
    return client.create_table("new", Idempotency_Key=own)


def _stage_table(client: Client, own: str) -> tuple[int, Any]:
    body = {"name": "staged", "schema": SCHEMA, "stage-create": True}
    return client.ask("POST", f"/namespaces/{client.namespace}/tables", body, Idempotency_Key=own)


def _rename_table(client: Client, own: str) -> tuple[int, Any]:
    ends = {
        "source": {"namespace": [client.namespace], "name": "t"},
        "destination": {"namespace": [client.namespace], "name": "u"},
    }
    return client.ask("POST", "/tables/rename", ends, Idempotency_Key=own)


def _drop_table(client: Client, own: str) -> tuple[int, Any]:
    return client.ask("DELETE", f"/namespaces/{client.namespace}/tables/t", Idempotency_Key=own)


@pytest.mark.parametrize(
    "mutation", [_create_namespace, _set_properties, _create_table, _stage_table, _rename_table, _drop_table]
)
def test_a_mutation_that_is_sent_twice_is_answered_alike(client: Client, mutation: Mutation) -> None:
    client.create_table()
    own = key()
    first = mutation(client, own)
    assert first[0] in {200, 204}
    assert mutation(client, own) == first


def test_a_namespace_that_is_dropped_twice_is_answered_alike(client: Client) -> None:
    own = key()
    assert [_drop_namespace(client, own), _drop_namespace(client, own)] == [(204, None), (204, None)]


def test_a_commit_that_is_sent_twice_is_answered_alike(client: Client) -> None:
    table = client.create_table()[1]["metadata"]
    body, own = snapshot_commit(client, table), key()
    path = f"/namespaces/{client.namespace}/tables/t"
    first = client.ask("POST", path, body, Idempotency_Key=own)
    assert first[0] == 200
    assert client.ask("POST", path, body, Idempotency_Key=own) == first
    # Also when others have committed since, and when the table has another name or none.
    client.set_property("later")
    assert client.ask("POST", path, body, Idempotency_Key=own) == first
    _rename_table(client, key())
    assert client.ask("POST", path, body, Idempotency_Key=own) == first
    # The same request with a key of its own is another one, and comes too late.
    again = f"/namespaces/{client.namespace}/tables/u"
    assert client.ask("POST", again, body, Idempotency_Key=key())[1]["error"]["type"] == "CommitFailedException"


def test_the_commit_of_a_staged_table_is_answered_alike(client: Client) -> None:
    table = _stage_table(client, key())[1]["metadata"]
    body, own = staged_commit(table), key()
    path = f"/namespaces/{client.namespace}/tables/staged"
    first = client.ask("POST", path, body, Idempotency_Key=own)
    assert first[0] == 200
    assert client.ask("POST", path, body, Idempotency_Key=own) == first
    assert client.ask("POST", path, body, Idempotency_Key=key())[0] == 409


def test_a_definite_refusal_stays_after_its_reason_is_gone(client: Client) -> None:
    drop, rename, own = key(), key(), key()
    assert (_drop_table(client, drop)[0], _rename_table(client, rename)[0]) == (404, 404)
    table = client.create_table()[1]["metadata"]
    assert (_drop_table(client, drop)[0], _rename_table(client, rename)[0]) == (404, 404)
    path = f"/namespaces/{client.namespace}/tables/t"
    wrong = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5}],
        "updates": [{"action": "set-properties", "updates": {"a": "b"}}],
    }
    refused = client.ask("POST", path, wrong, Idempotency_Key=own)
    assert refused[0] == 409
    assert client.ask("POST", path, snapshot_commit(client, table))[0] == 200
    assert client.ask("POST", path, wrong, Idempotency_Key=own) == refused


def test_an_answer_that_nobody_knows_is_not_kept(client: Client, root: Path) -> None:
    table = client.create_table()[1]["metadata"]
    body, own = snapshot_commit(client, table), key()
    path = f"/namespaces/{client.namespace}/tables/t"
    catalog = root / "default" / "default" / "_catalog"
    aside = catalog.with_name("aside")
    # The disk fails: what was a folder leads to itself.
    catalog.rename(aside)
    catalog.symlink_to(catalog)
    failed = client.ask("POST", path, body, Idempotency_Key=own)
    assert failed[0] >= 500
    catalog.unlink()
    aside.rename(catalog)
    done = client.ask("POST", path, body, Idempotency_Key=own)
    assert done[0] == 200
    assert [one["snapshot-id"] for one in done[1]["metadata"]["snapshots"]] == [5]
