"""What `make contract` lets pass and what it refuses: additions pass, what somebody relies on may not go."""

import copy
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arco.ledger.event_types import json_schemas
from contract_breaks import api_breaks, event_breaks
from contracts import CONTRACTS, Contract, complaints, last_tag, openapi_now, written

API: dict[str, Any] = {
    "paths": {
        "/things": {
            "get": {
                "parameters": [
                    {"name": "limit", "in": "query", "required": False, "schema": {"type": "integer"}},
                    {"name": "order", "in": "query", "required": False, "schema": {"enum": ["up", "down"]}},
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Things"}}}},
                    "default": {},
                },
            },
            "post": {
                "parameters": [],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/New"}}}},
                "responses": {"204": {}},
            },
        }
    },
    "components": {
        "schemas": {
            "Things": {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
                    "next": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                "required": ["items", "next"],
            },
            "Thing": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "inner": {"anyOf": [{"$ref": "#/components/schemas/Thing"}, {"type": "null"}]},
                    "anything": {},
                },
                "required": ["name"],
            },
            "New": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "kind": {"enum": ["a", "b"]}, "size": {"type": "integer"}},
                "required": ["name"],
            },
        }
    },
}
SCHEMAS = ("components", "schemas")
GET, POST = ("paths", "/things", "get"), ("paths", "/things", "post")
GONE = object()


def changed(*changes: tuple[tuple[Any, ...], Any], of: dict[str, Any] = API) -> dict[str, Any]:
    """A description with other things at some places."""
    found = copy.deepcopy(of)
    for place, value in changes:
        inside: Any = found
        for part in place[:-1]:
            inside = inside[part]
        if value is GONE:
            del inside[place[-1]]
        else:
            inside[place[-1]] = value
    return found


def parameter(name: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": {"type": "string"}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([(("paths", "/things"), GONE)], ["GET /things is gone", "POST /things is gone"]),
        ([(POST, GONE)], ["POST /things is gone"]),
        ([((*GET, "parameters", 0), GONE)], ["GET /things: parameter limit (query) is gone"]),
        (
            [((*GET, "parameters", 0, "required"), True)],
            ["GET /things: parameter limit (query) is required now"],
        ),
        (
            [((*GET, "parameters", 0, "schema"), {"type": "boolean"})],
            ["GET /things: parameter limit (query) may not be integer any more"],
        ),
        (
            [((*GET, "parameters", 1, "schema"), {"enum": ["up"]})],
            ["GET /things: parameter order (query) may not be down any more"],
        ),
        (
            [((*POST, "parameters"), [parameter("key", required=True)])],
            ["POST /things: parameter key (query) is new and required"],
        ),
        ([((*GET, "responses", "200"), GONE)], ["GET /things: answer 200 is gone"]),
        ([((*SCHEMAS, "Thing", "properties", "name"), GONE)], ["GET /things: answer 200 items[].name is gone"]),
        ([((*SCHEMAS, "Things", "properties", "items"), GONE)], ["GET /things: answer 200 items is gone"]),
        ([((*SCHEMAS, "Thing", "required"), [])], ["GET /things: answer 200 items[].name may be missing now"]),
        (
            [((*SCHEMAS, "Thing", "properties", "name"), {"type": "integer"})],
            ["GET /things: answer 200 items[].name may be integer now, not only string"],
        ),
        (
            [((*SCHEMAS, "Thing", "properties", "name"), {})],
            ["GET /things: answer 200 items[].name may be anything now, not only string"],
        ),
        ([((*SCHEMAS, "New", "properties", "size"), GONE)], ["POST /things: body size is gone"]),
        ([((*SCHEMAS, "New", "required"), ["name", "size"])], ["POST /things: body size is required now"]),
        (
            [((*SCHEMAS, "New", "properties", "owner"), {"type": "string"}), ((*SCHEMAS, "New", "required"), ["name", "owner"])],
            ["POST /things: body owner is new and required"],
        ),
        ([((*SCHEMAS, "New", "properties", "kind"), {"enum": ["a"]})], ["POST /things: body kind may not be b any more"]),
        ([((*POST, "requestBody"), GONE)], ["POST /things: it takes no body any more"]),
        (
            [((*GET, "requestBody"), API["paths"]["/things"]["post"]["requestBody"])],
            ["GET /things: it needs a body"],
        ),
    ],
)  # fmt: skip
def test_what_somebody_relies_on_may_not_go(changes: list[tuple[tuple[Any, ...], Any]], says: list[str]) -> None:
    assert api_breaks(API, changed(*changes)) == says


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [(("paths", "/more"), {"get": {"parameters": [], "responses": {}}})],
        [((*POST, "parameters"), [parameter("dry", required=False)])],
        [((*GET, "parameters", 1, "schema"), {"enum": ["up", "down", "both"]})],
        [((*SCHEMAS, "Thing", "properties", "size"), {"type": "integer"})],
        [((*SCHEMAS, "Thing", "required"), ["name", "inner"])],
        [((*SCHEMAS, "Things", "properties", "next"), {"type": "string"})],
        [((*SCHEMAS, "Thing", "properties", "anything"), {"type": "string"})],
        [((*SCHEMAS, "New", "properties", "owner"), {"type": "string"})],
        [((*SCHEMAS, "New", "properties", "size"), {"anyOf": [{"type": "integer"}, {"type": "null"}]})],
        [((*SCHEMAS, "New", "required"), [])],
        [((*GET, "responses", "304"), {})],
    ],
)
def test_additions_pass(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    assert api_breaks(API, changed(*changes)) == []


def test_a_type_may_be_called_otherwise() -> None:
    other = msgspec.json.decode(msgspec.json.encode(API).replace(b'schemas/Thing"', b'schemas/Item"'))
    other["components"]["schemas"]["Item"] = other["components"]["schemas"].pop("Thing")
    assert api_breaks(API, other) == []


EVENT = "execution.run_completed.v1"


def event(change: Any) -> dict[str, Any]:
    """Our own events, with one of them changed."""
    found = copy.deepcopy(json_schemas())
    (definition,) = [one for name, one in found[EVENT]["$defs"].items() if found[EVENT]["$ref"].endswith(f"/{name}")]
    change(definition)
    return found


def test_an_event_keeps_its_fields_and_needs_no_new_ones() -> None:
    before = json_schemas()
    assert event_breaks(before, before) == []
    without = {name: one for name, one in before.items() if name != EVENT}
    assert event_breaks(before, without) == [f"event {EVENT} is gone"]
    assert event_breaks(without, before) == []
    assert event_breaks(before, event(lambda one: one["properties"].pop("state"))) == [f"event {EVENT}: state is gone"]
    added = event(lambda one: one["properties"].update(mood={"type": "string"}))
    assert event_breaks(before, added) == []
    needed = event(lambda one: (one["properties"].update(mood={"type": "string"}), one["required"].append("mood")))
    assert event_breaks(before, needed) == [f"event {EVENT}: mood is new and required"]
    other = event(lambda one: one["properties"].update(run_id={"type": "integer"}))
    assert event_breaks(before, other) == [
        f"event {EVENT}: run_id may not be string any more",
        f"event {EVENT}: run_id may be integer now, not only string",
    ]


def test_our_own_description_breaks_if_a_route_goes() -> None:
    now = openapi_now()
    assert api_breaks(now, now) == []
    assert api_breaks(now, changed((("paths", "/api/v1/assets"), GONE), of=now)) == ["GET /api/v1/assets is gone"]
    lines = api_breaks(now, changed((("components", "schemas", "AssetLine", "properties", "owners"), GONE), of=now))
    assert lines == [
        "GET /api/v1/assets: answer 200 items[].owners is gone",
        "GET /api/v1/assets/{asset}: answer 200 asset.owners is gone",
    ]


# The last release


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def contract(now: dict[str, Any]) -> Contract:
    return Contract("contracts/openapi.json", lambda: now, api_breaks)


def store(folder: Path, now: dict[str, Any]) -> None:
    (folder / "contracts").mkdir(exist_ok=True)
    (folder / "contracts/openapi.json").write_bytes(written(now))


def test_without_a_release_what_is_committed_stands_for_it(tmp_path: Path) -> None:
    smaller = changed((POST, GONE))
    (missing,) = complaints(tmp_path, contract(API))
    assert "--write" in missing
    store(tmp_path, API)
    assert last_tag(tmp_path) is None
    assert list(complaints(tmp_path, contract(API))) == []
    gone, stale = complaints(tmp_path, contract(smaller))
    assert gone == "contracts/openapi.json: POST /things is gone (since it was written)"
    assert "--write" in stale


def test_an_addition_passes_once_it_is_written_down(tmp_path: Path) -> None:
    more = changed((("paths", "/more"), {"get": {"parameters": [], "responses": {}}}))
    store(tmp_path, API)
    (stale,) = complaints(tmp_path, contract(more))
    assert "--write" in stale
    store(tmp_path, more)
    assert list(complaints(tmp_path, contract(more))) == []


def test_a_release_is_held_to_whatever_was_written_since(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    store(tmp_path, API)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "tag", "v1")
    smaller = changed((POST, GONE))
    store(tmp_path, smaller)
    git(tmp_path, "commit", "-qam", "second")
    assert last_tag(tmp_path) == "v1"
    assert list(complaints(tmp_path, contract(smaller))) == ["contracts/openapi.json: POST /things is gone (since v1)"]


def test_a_release_without_a_description_binds_nobody(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "first", "--allow-empty")
    git(tmp_path, "tag", "v0")
    store(tmp_path, API)
    assert list(complaints(tmp_path, contract(API))) == []


def test_what_is_committed_is_what_the_code_says() -> None:
    root = Path(__file__).resolve().parents[3]
    assert [line for one in CONTRACTS for line in complaints(root, one)] == []
