"""The platform API as a plain HTTP client sees it, on a running server."""

import json
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7

from .arco_server import arco_server

ROWS = pa.table({"id": [1, 2], "at": [{"lat": 1.0, "lon": 2.0}] * 2})
HOSTILE = ["...", "a/b", "a.b", "a?b#c&d=e", "100%", "ü", "u\u0308", " x ", "%2F", "'\"`", "名前", "\u202eabc"]


def key() -> str:
    return new_uuid7(SystemClock(), SystemEntropy())


class Platform:
    """One namespace of one server."""

    def __init__(self, address: str) -> None:
        self.root = address.removesuffix("/iceberg")
        self.iceberg = RestCatalog("arco", uri=address)
        self.namespace = f"ns{uuid.uuid4().hex}"
        self.iceberg.create_namespace(self.namespace)

    def ask(
        self, method: str, path: str, body: Any = None, idempotency: str | None = None, **query: str
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {} if idempotency is None else {"Idempotency-Key": idempotency}
        address = f"{self.root}/api/v1/{path}?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}"
        request = urllib.request.Request(address, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def place(self, name: str) -> dict[str, str]:
        return {"namespace": self.namespace, "name": name}

    def one(self, name: str) -> tuple[int, Any]:
        return self.ask("GET", "tables", **self.place(name))

    def need(self, name: str) -> Any:
        status, answer = self.one(name)
        assert status == 200, answer
        return answer

    def register(self, name: str, idempotency: str | None = None, **more: Any) -> tuple[int, Any]:
        place = f"s3://elsewhere/{self.namespace}/{name.encode().hex()}/"
        body = {"namespace": [self.namespace], "name": name, "format": "DELTA", "location": place} | more
        return self.ask("POST", "tables", body, idempotency)

    def describe(self, name: str, idempotency: str | None = None, **fields: Any) -> tuple[int, Any]:
        return self.ask("PATCH", "tables", fields, idempotency, **self.place(name))

    def drop(self, name: str, idempotency: str | None = None, **query: str) -> tuple[int, Any]:
        return self.ask("DELETE", "tables", None, idempotency, **self.place(name), **query)

    def identifier(self, name: str) -> dict[str, Any]:
        return {"namespace": [self.namespace], "name": name}

    def table(self, name: str) -> None:
        """An Iceberg table with two rows."""
        self.iceberg.create_table((self.namespace, name), schema=ROWS.schema).append(ROWS)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with arco_server(Path(tmp_path_factory.mktemp("lake"))) as found:
        yield found


@pytest.fixture
def platform(address: str) -> Platform:
    return Platform(address)


# One table


def test_a_table_of_another_format_is_registered_with_what_is_said_of_it(platform: Platform) -> None:
    said = {
        "owner": "ann", "description": "All\nof them.", "tags": ["gold"], "sensitivity": "CONFIDENTIAL",
        "pii_columns": {"mail": "email"}, "row_count": 12, "size_bytes": 99, "last_modified_ms": 1_750_000_000_000,
        "properties": {"a": "1"},
    }  # fmt: skip
    columns = [{"name": "mail", "type": "string", "nullable": False, "description": "who"}, {"name": "n", "type": "int"}]
    status, answer = platform.register("events", **said, columns=columns)
    assert status == 200
    found = platform.need("events")
    assert answer == {"namespace": [platform.namespace], "name": "events", "uuid": found["uuid"]}
    assert {field: found[field] for field in said} == said
    assert found["location"] == f"s3://elsewhere/{platform.namespace}/{b'events'.hex()}"
    assert (found["kind"], found["format"], found["binding"], found["iceberg"]) == ("table", "DELTA", 1, None)
    assert [(one["name"], one["type"], one["nullable"], one["description"]) for one in found["columns"]] == [
        ("mail", "string", False, "who"),
        ("n", "int", True, None),
    ]


def test_other_formats_do_not_answer_icebergs_routes(platform: Platform) -> None:
    platform.register("events")
    assert platform.iceberg.list_tables(platform.namespace) == []
    assert not platform.iceberg.table_exists((platform.namespace, "events"))


def test_an_iceberg_table_shows_its_columns_and_its_snapshot(platform: Platform) -> None:
    platform.table("orders")
    loaded = platform.iceberg.load_table((platform.namespace, "orders"))
    found = platform.need("orders")
    assert found["uuid"] == str(loaded.metadata.table_uuid)
    assert found["location"] == loaded.location()
    assert [(one["path"], one["type"]) for one in found["columns"]] == [
        ("id", "long"),
        ("at", "struct<lat: double, lon: double>"),
        ("at.lat", "double"),
        ("at.lon", "double"),
    ]
    snapshot = loaded.current_snapshot()
    assert snapshot is not None
    iceberg = found["iceberg"]
    assert iceberg["metadata_location"] == loaded.metadata_location
    assert (iceberg["snapshot_id"], iceberg["row_count"], iceberg["commit_number"]) == (snapshot.snapshot_id, 2, 1)
    assert iceberg["size_bytes"] > 0
    with loaded.update_schema() as update:
        update.rename_column("id", "number")
    assert platform.need("orders")["columns"][0]["name"] == "number"


def test_a_view_is_shown_described_and_dropped_alike(platform: Platform) -> None:
    version = {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 1_750_000_000_000, "summary": {}, "default-namespace": ["x"],
        "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
    }  # fmt: skip
    schema = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": True}]}
    body = {"name": "v", "schema": schema, "view-version": version, "properties": {"k": "w"}}
    path = f"{platform.root}/iceberg/v1/default.default/namespaces/{platform.namespace}/views"
    with urllib.request.urlopen(urllib.request.Request(path, json.dumps(body).encode()), timeout=30) as answer:
        assert answer.status == 200
    assert platform.describe("v", owner="ann")[0] == 204
    found = platform.need("v")
    assert (found["kind"], found["format"], found["owner"], found["properties"]) == ("view", "ICEBERG", "ann", {"k": "w"})
    assert found["iceberg"]["representations"] == [{"dialect": "spark", "sql": "select 1 as a"}]
    assert [(one["path"], one["nullable"]) for one in found["columns"]] == [("a", False)]
    assert platform.drop("v")[0] == 204
    assert platform.ask("POST", "tables/undrop", {"source": platform.identifier("v")})[0] == 200
    assert platform.need("v")["kind"] == "view"


def test_only_what_is_given_changes_and_null_clears(platform: Platform) -> None:
    platform.table("orders")
    assert platform.describe("orders", owner="ann", tags=["a", "b"], sensitivity="PUBLIC")[0] == 204
    assert platform.describe("orders", description="x", row_count=5)[0] == 204
    found = platform.need("orders")
    assert (found["owner"], found["tags"], found["description"], found["row_count"]) == ("ann", ["a", "b"], "x", 5)
    assert platform.describe("orders", owner=None, tags=None, row_count=None)[0] == 204
    found = platform.need("orders")
    assert (found["owner"], found["tags"], found["row_count"], found["sensitivity"]) == (None, [], None, "PUBLIC")


def test_properties_change_one_by_one(platform: Platform) -> None:
    platform.register("events", properties={"a": "1", "b": "2"})
    assert platform.describe("events", properties={"b": None, "c": "3"})[0] == 204
    assert platform.need("events")["properties"] == {"a": "1", "c": "3"}
    platform.table("orders")
    status, answer = platform.describe("orders", properties={"a": "1"})
    assert status == 400
    assert "properties" in answer["detail"]


def test_the_columns_of_other_formats_change_as_a_whole(platform: Platform) -> None:
    platform.register("events", columns=[{"name": "n", "type": "int"}], owner="ann", properties={"a": "1"})
    before = platform.need("events")
    wanted = [{"name": "n", "type": "bigint", "nullable": False, "description": "how many"}, {"name": "at", "type": "date"}]
    assert platform.describe("events", columns=wanted)[0] == 204
    found = platform.need("events")
    assert [(one["name"], one["type"], one["nullable"], one["description"]) for one in found["columns"]] == [
        ("n", "bigint", False, "how many"),
        ("at", "date", True, None),
    ]
    kept = ("uuid", "asset_id", "owner", "properties", "location", "format")
    assert [found[field] for field in kept] == [before[field] for field in kept]
    assert platform.describe("events", owner="bob")[0] == 204
    assert platform.need("events")["columns"] == found["columns"]
    assert platform.describe("events", columns=None)[0] == 204
    assert platform.need("events")["columns"] == []


def test_the_columns_of_an_iceberg_table_are_left_to_its_clients(platform: Platform) -> None:
    platform.table("orders")
    before = platform.need("orders")
    for columns in ([{"name": "a", "type": "int"}], [], None):
        status, answer = platform.describe("orders", columns=columns, owner="ann")
        assert (status, "columns: those of an Iceberg table" in answer["detail"]) == (400, True)
    assert platform.need("orders") == before


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_can_be_asked_for_changed_and_dropped(platform: Platform, name: str) -> None:
    assert platform.register(name)[0] == 200
    assert platform.describe(name, owner="ann")[0] == 204
    assert platform.need(name)["owner"] == "ann"
    assert [one["name"] for one in platform.ask("GET", "tables", namespace=platform.namespace)[1]["tables"]] == [name]
    assert platform.drop(name)[0] == 204
    assert platform.one(name)[0] == 404


def test_levels_of_a_namespace_are_joined_by_the_unit_separator(platform: Platform) -> None:
    platform.iceberg.create_namespace((platform.namespace, "a.b"))
    levels = [platform.namespace, "a.b"]
    body = {"namespace": levels, "name": "t", "format": "CSV", "location": "/data/t.csv"}
    assert platform.ask("POST", "tables", body)[0] == 200
    assert platform.ask("GET", "tables", namespace="\x1f".join(levels), name="t")[1]["namespace"] == levels


# Listing


def test_tables_are_listed_and_filtered(platform: Platform) -> None:
    platform.table("orders")
    platform.register("events")
    platform.register("log", format="JSON")

    def names(**query: str) -> list[str]:
        status, answer = platform.ask("GET", "tables", namespace=platform.namespace, **query)
        assert status == 200
        return [one["name"] for one in answer["tables"]]

    assert names() == ["events", "log", "orders"]
    assert names(format="JSON") == ["log"]
    assert names(format="ICEBERG", kind="table") == ["orders"]
    assert names(kind="view") == []


def test_pages_hold_every_table_once(platform: Platform) -> None:
    for number in range(7):
        platform.register(f"t{number}")
    names: list[str] = []
    token = ""
    while token is not None:
        page = platform.ask("GET", "tables", namespace=platform.namespace, pageToken=token, pageSize="3")[1]
        assert len(page["tables"]) <= 3
        names += [one["name"] for one in page["tables"]]
        token = page["next-page-token"]
    assert names == [f"t{number}" for number in range(7)]


def test_each_workspace_has_its_own_tables(platform: Platform) -> None:
    platform.register("events")
    status, answer = platform.ask("GET", "tables", warehouse="default/another")
    assert (status, answer) == (200, {"tables": []})
    assert platform.ask("GET", "tables", warehouse="default/default", **platform.place("events"))[0] == 200
    assert platform.ask("GET", "tables", warehouse="default/another", **platform.place("events"))[0] == 404
    assert platform.ask("GET", "tables", warehouse="nonsense")[0] == 400


# Dropping, restoring, renaming


def dropped(platform: Platform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = platform.ask("GET", "dropped", namespace=platform.namespace)[1]["dropped"]
    return found


def test_a_dropped_table_is_listed_and_restored_with_its_rows(platform: Platform) -> None:
    platform.table("orders")
    assert platform.drop("orders")[0] == 204
    assert platform.one("orders")[1]["code"] == "no_such_table"
    (lost,) = dropped(platform)
    assert (lost["name"], lost["purge"], lost["dropped_by"]) == ("orders", False, "anonymous")
    assert platform.ask("POST", "tables/undrop", {"source": platform.identifier("orders")}) == (
        200,
        platform.identifier("orders"),
    )
    assert platform.iceberg.load_table((platform.namespace, "orders")).scan().to_arrow().num_rows == 2
    assert platform.need("orders")["binding"] == 2
    assert dropped(platform) == []


def test_a_drop_is_restored_by_its_id_under_another_name(platform: Platform) -> None:
    for _ in range(2):
        platform.table("orders")
        platform.drop("orders")
    first = min(dropped(platform), key=lambda one: one["dropped_ms"])
    body = {"drop_id": first["drop_id"], "destination": platform.identifier("older")}
    assert platform.ask("POST", "tables/undrop", body) == (200, platform.identifier("older"))
    found = platform.need("older")
    assert found["uuid"] == first["uuid"]
    assert [one["name"] for one in found["former_names"]] == ["orders"]


def test_the_purge_flag_is_kept_for_upkeep(platform: Platform) -> None:
    platform.table("orders")
    assert platform.drop("orders", purge="true")[0] == 204
    assert [one["purge"] for one in dropped(platform)] == [True]
    platform.register("events")
    status, answer = platform.drop("events", purge="true")
    assert status == 400
    assert "not Arco's to purge" in answer["detail"]
    assert platform.one("events")[0] == 200


def test_a_table_is_renamed_and_remembers_its_name(platform: Platform) -> None:
    platform.table("orders")
    body = {"source": platform.identifier("orders"), "destination": platform.identifier("sales")}
    assert platform.ask("POST", "tables/rename", body)[0] == 204
    assert platform.ask("POST", "tables/rename", body)[0] == 404
    found = platform.need("sales")
    assert [one["name"] for one in found["former_names"]] == ["orders"]
    assert platform.iceberg.load_table((platform.namespace, "sales")).scan().to_arrow().num_rows == 2
    platform.register("orders")
    assert platform.ask("POST", "tables/rename", body)[0] == 409


# Keys


def test_every_mutation_with_a_key_is_done_once_and_answered_alike(platform: Platform) -> None:
    own = [key() for _ in range(5)]
    moved = {"source": platform.identifier("t"), "destination": platform.identifier("u")}
    back = {"source": platform.identifier("u"), "destination": platform.identifier("t")}

    def run() -> list[tuple[int, Any]]:
        return [
            platform.register("t", own[0]),
            platform.describe("t", own[1], owner="ann"),
            platform.ask("POST", "tables/rename", moved, own[2]),
            platform.drop("u", own[3]),
            platform.ask("POST", "tables/undrop", back, own[4]),
        ]

    first = run()
    assert [status for status, _ in first] == [200, 204, 204, 204, 200]
    assert run() == first
    assert platform.need("t")["binding"] == 3
    assert dropped(platform) == []


def test_a_key_is_bound_to_the_address_and_the_body(platform: Platform) -> None:
    for name in ("t", "u"):
        platform.register(name)
    own = key()
    assert platform.drop("t", own)[0] == 204
    assert platform.drop("u", own)[0] == 409
    assert platform.one("u")[0] == 200
    own = key()
    assert platform.describe("u", own, owner="ann")[0] == 204
    assert platform.describe("u", own, owner="bob")[0] == 409
    assert platform.need("u")["owner"] == "ann"


def test_a_refusal_with_a_key_is_heard_again(platform: Platform) -> None:
    own = key()
    assert platform.describe("t", own, owner="ann")[0] == 404
    platform.register("t")
    assert platform.describe("t", own, owner="ann")[0] == 404
    assert platform.need("t")["owner"] is None


# What bad input gets

GOOD = {"name": "t", "format": "CSV", "location": "/data/t.csv"}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"mood": 1}, "mood"),
        ({"governance": {"owner": "x"}}, "governance"),
        ({"name": 5}, "name"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"name": "a\u0000b"}, "name"),
        ({"namespace": "shop"}, "namespace"),
        ({"namespace": []}, "namespace"),
        ({"format": "XML"}, "format"),
        ({"format": "ICEBERG"}, "Iceberg"),
        ({"location": ""}, "location"),
        ({"location": 1}, "location"),
        ({"properties": {"a": 1}}, "properties"),
        ({"properties": {"arco.x": "1"}}, "arco.x"),
        ({"columns": "a"}, "columns"),
        ({"columns": [{"name": "a"}]}, "columns[0]"),
        ({"columns": [{"name": "a", "type": "int", "size": 1}]}, "columns[0]"),
        ({"columns": [{"name": "a", "type": "int", "nullable": "no"}]}, "columns[0].nullable"),
        ({"owner": ["x"]}, "owner"),
        ({"tags": {"x": "y"}}, "tags"),
        ({"tags": ["x" * 129]}, "tags"),
        ({"sensitivity": "SECRET"}, "sensitivity"),
        ({"pii_columns": {"m": 1}}, "pii_columns"),
        ({"row_count": -1}, "row_count"),
        ({"last_modified_ms": "now"}, "last_modified_ms"),
    ],
)
def test_a_wrong_registration_is_refused_by_the_name_of_the_field(platform: Platform, change: Any, names: str) -> None:
    status, answer = platform.ask("POST", "tables", {"namespace": [platform.namespace], **GOOD} | change)
    assert status == 400, answer
    assert answer["status"] == 400
    assert names in answer["detail"]
    assert platform.ask("GET", "tables", namespace=platform.namespace)[1] == {"tables": []}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, "no field"),
        ({"name": "u"}, "name"),
        ({"format": "CSV"}, "format"),
        ({"uuid": "x"}, "uuid"),
        ({"columns": {}}, "columns"),
        ({"columns": [{"name": "a"}]}, "columns[0]"),
        ({"columns": [{"name": "a", "type": "int", "id": 1}]}, "columns[0]"),
        ({"columns": [{"name": "a", "type": ""}]}, "columns[0].type"),
        ({"columns": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}, "columns[1].name"),
        ({"columns": [{"name": "a", "type": "int", "nullable": None}]}, "columns[0].nullable"),
        ({"owner": 1}, "owner"),
        ({"properties": None}, "properties"),
        ({"properties": {"a": 1}}, "properties"),
        ({"properties": {"ARCO.x": None}}, "ARCO.x"),
    ],
)
def test_a_wrong_description_is_refused_by_the_name_of_the_field(platform: Platform, fields: Any, names: str) -> None:
    platform.register("t")
    before = platform.need("t")
    status, answer = platform.ask("PATCH", "tables", fields, **platform.place("t"))
    assert status == 400, answer
    assert names in answer["detail"]
    assert platform.need("t") == before


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "status"),
    [
        ("POST", "tables", b"{", {}, 400),
        ("POST", "tables", b"[]", {}, 400),
        ("POST", "tables", b'{"name":"a","name":"b"}', {}, 400),
        ("GET", "tables", None, {"name": "t"}, 400),
        ("GET", "tables", None, {"nmae": "t"}, 400),
        ("GET", "tables", None, {"format": "delta?"}, 400),
        ("GET", "tables", None, {"kind": "index"}, 400),
        ("GET", "tables", None, {"pageSize": "0"}, 400),
        ("GET", "tables", None, {"pageToken": "zz"}, 400),
        ("GET", "tables", None, {"namespace": "nowhere"}, 404),
        ("GET", "tables", None, {"namespace": "nowhere", "name": "t"}, 404),
        ("PATCH", "tables", {"owner": "x"}, {"namespace": "nowhere", "name": "t"}, 404),
        ("PATCH", "tables", {"owner": "x"}, {"name": "t"}, 400),
        ("DELETE", "tables", None, {"namespace": "nowhere", "name": "t"}, 404),
        ("DELETE", "tables", None, {"namespace": "nowhere", "name": "t", "purge": "maybe"}, 400),
        ("DELETE", "tables", None, {"namespace": "nowhere", "name": "t", "purgeRequested": "true"}, 400),
        ("DELETE", "tables", None, {}, 400),
        ("POST", "tables/undrop", {}, {}, 400),
        ("POST", "tables/undrop", {"drop_id": "nothing"}, {}, 404),
        ("POST", "tables/undrop", {"drop_id": 5}, {}, 400),
        ("POST", "tables/undrop", {"source": {"namespace": ["a"]}}, {}, 400),
        ("POST", "tables/rename", {"source": {"namespace": ["a"], "name": "b"}}, {}, 400),
        ("PUT", "tables", {}, {}, 405),
        ("GET", "nowhere", None, {}, 404),
    ],
)
def test_bad_input_gets_a_precise_refusal(
    platform: Platform, method: str, path: str, body: Any, query: dict[str, str], status: int
) -> None:
    found, answer = platform.ask(method, path, body, **query)
    assert found == status, answer
    assert answer["status"] == status
    assert "Traceback" not in answer["detail"]


def test_a_row_that_is_too_large_is_refused_and_harms_nobody(platform: Platform) -> None:
    assert platform.register("big", properties={"a": "x" * 200_000})[0] == 413
    assert platform.register("small")[0] == 200
