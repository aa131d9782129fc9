"""The description of the platform API: it has every route that is served, and what is sent and answered is as it says."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis

from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7
from arco.kernel.secret import Secret
from arco.surface.http.access import Access
from arco.surface.http.app import Setup
from stand_ins.asgi import Answer, ask, make_app
from unit.surface.http_ground import HttpGround, template_of, validate

ORDERS = {"namespace": ["shop"], "name": "orders"}
NAMESPACES = "/iceberg/v1/default.default/namespaces"


@pytest.fixture(scope="module")
def ground() -> Iterator[HttpGround]:
    made = HttpGround()
    yield made
    made.close()


def test_every_route_that_is_served_is_described_and_the_other_way_round(ground: HttpGround) -> None:
    ours = [one for one in ground.app.routes if one.template.startswith("/api/") and one.method != "OPTIONS"]
    served = {(one.method, one.template) for one in ours}
    described = {(method.upper(), path) for path, methods in ground.description["paths"].items() for method in methods}
    assert served == described
    assert len(served) == len(ours)


def test_the_description_is_served(ground: HttpGround) -> None:
    answer = ground.get("openapi.json")
    assert (answer.status, answer.json) == (200, ground.description)
    assert ground.get("openapi.json", known=answer.headers["etag"]).status == 304


def test_the_description_is_one(ground: HttpGround) -> None:
    """Whoever reads OpenAPI reads it: every operation, every reference and every schema."""
    document = ground.description
    assert document["openapi"].startswith("3.1")
    operations = [result.ok() for result in schemathesis.openapi.from_dict(document).get_all_operations()]
    assert len(operations) == sum(len(methods) for methods in document["paths"].values())
    ids = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(set(ids)) == len(ids)
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        assert re.fullmatch(r"[A-Z]\w*", name), f"{name} is no name for others"
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert references <= set(schemas)
    assert set(schemas) <= references


def test_a_parameter_says_what_it_takes(ground: HttpGround) -> None:
    operation = ground.description["paths"]["/api/v1/assets/{asset}/lineage"]["get"]
    said = {one["name"]: one for one in operation["parameters"]}
    assert (said["asset"]["in"], said["asset"]["required"]) == ("path", True)
    assert said["depth"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 1}
    assert said["direction"]["schema"]["$ref"].endswith("/Direction")
    assert {"as_of", "as_of_run", "snapshot", "fresh", "warehouse"} <= said.keys()
    assert all(one["description"] for one in said.values())


# What is sent and answered


class Catalog(HttpGround):
    """Requests that change something, held against the description on their way in and out."""

    def send(self, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
        operation = self.description["paths"][template_of(self.description, path.partition("?")[0])][method.lower()]
        if body is not None:
            validate(self.description, operation["requestBody"]["content"]["application/json"]["schema"], body)
        data = b"" if body is None else json.dumps(body).encode()
        headers = {} if key is None else {"Idempotency_Key": key}
        answer = self.runner.run(ask(self.app, method, f"/api/v1/{path}", data, **headers))
        responses = operation["responses"]
        response = responses[str(answer.status)] if answer.status < 400 else responses["default"]
        if answer.status == 204:
            assert "content" not in response
            return 204, None
        (content,) = response["content"].values()
        validate(self.description, content["schema"], answer.json)
        return answer.status, answer.json

    def raw(self, method: str, path: str, body: Any) -> Answer:
        return self.runner.run(ask(self.app, method, path, json.dumps(body).encode()))


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    made = Catalog(published=False)
    made.raw("POST", NAMESPACES, {"namespace": ["shop"]})
    yield made
    made.close()


def test_tables_are_as_described(catalog: Catalog) -> None:
    new = {
        **ORDERS, "format": "DELTA", "location": "s3://elsewhere/t", "owner": "ann", "tags": ["gold"], "properties": {"a": "1"},
        "columns": [{"name": "mail", "type": "string"}], "sensitivity": "CONFIDENTIAL", "pii_columns": {"mail": "email"},
    }  # fmt: skip
    status, answer = catalog.send("POST", "tables", new)
    assert (status, answer["name"]) == (200, "orders")
    assert catalog.send("PATCH", "tables?namespace=shop&name=orders", {"owner": None, "row_count": 3}) == (204, None)
    assert catalog.send("GET", "tables?namespace=shop&name=orders")[1]["row_count"] == 3
    assert "next-page-token" not in catalog.send("GET", "tables")[1]
    assert catalog.send("GET", "tables?pageSize=5&pageToken=")[1]["next-page-token"] is None
    renamed = {"source": ORDERS, "destination": ORDERS | {"name": "sales"}}
    assert catalog.send("POST", "tables/rename", renamed) == (204, None)
    assert catalog.send("DELETE", "tables?namespace=shop&name=sales") == (204, None)
    (lost,) = catalog.send("GET", "dropped?namespace=shop")[1]["dropped"]
    assert catalog.send("POST", "tables/undrop", {"drop_id": lost["drop_id"]})[1] == ORDERS | {"name": "sales"}


def test_iceberg_tables_and_views_are_as_described(catalog: Catalog) -> None:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": True}]}
    version = {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 1_735_000_000_000, "summary": {}, "default-namespace": ["shop"],
        "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
    }  # fmt: skip
    assert catalog.raw("POST", f"{NAMESPACES}/shop/tables", {"name": "t", "schema": schema}).status == 200
    body = {"name": "v", "schema": schema, "view-version": version, "properties": {}}
    assert catalog.raw("POST", f"{NAMESPACES}/shop/views", body).status == 200
    assert catalog.send("GET", "tables?namespace=shop&name=t")[1]["iceberg"]["schema_id"] == 0
    assert catalog.send("GET", "tables?namespace=shop&name=v")[1]["iceberg"]["version_id"] == 1


def test_events_and_lineage_are_as_described(catalog: Catalog) -> None:
    ended = {"run_id": "r1", "state": "succeeded", "tasks": {}, "started_ms": 1, "ended_ms": 2}
    event = {"type": "execution.run_completed.v1", "source": "airflow", "data": ended}
    assert catalog.send("POST", "events", [event, event])[1]["accepted"] == 2
    assert catalog.send("POST", "events", [event, {"type": "nonsense"}])[1]["errors"][0]["index"] == 1
    catalog.send("POST", "tables", {**ORDERS, "format": "CSV", "location": "/data/t.csv"})
    edge = {"upstream": ORDERS, "downstream": {"external": "https://bi.example.com/sales"}, "why": "the weekly report"}
    status, said = catalog.send("POST", "lineage", edge, key=new_uuid7(catalog.clock, SystemEntropy()))
    assert status == 201
    assert catalog.send("DELETE", f"lineage?edge_id={said['edge_id']}&why=over")[0] == 200
    assert catalog.send("DELETE", f"lineage?edge_id={said['edge_id']}&upstream=shop%1Forders")[0] == 400
    catalog.runner.run(catalog.state.settle())


@pytest.fixture
def full() -> Iterator[Catalog]:
    made = Catalog()
    yield made
    made.close()


def test_links_and_what_they_lead_to_are_as_described(full: Catalog) -> None:
    status, links = full.send("POST", "catalog/signed-urls", {"tables": ["assets"], "via": "server"})
    assert (status, links["snapshot"], len(links["files"])) == (200, full.snapshot, 2)
    path = "/" + links["files"][0]["url"].partition("//")[2].partition("/")[2]
    answer = full.runner.run(ask(full.app, "GET", path))
    described = full.description["paths"]["/api/v1/catalog/files/{token}"]["get"]["responses"]["200"]
    assert (answer.status, [answer.headers["content-type"]]) == (200, list(described["content"]))


# Errors


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "nowhere", 404),
        ("GET", "assets/a/b/c/d/e", 404),
        ("PUT", "tables", 405),
        ("POST", "assets", 405),
        ("GET", "tables?nmae=t", 400),
        ("GET", "tables?kind=index", 400),
        ("GET", "tables?namespace=shop&name=t&kind=table", 400),
        ("GET", "tables?name=t", 400),
        ("GET", "tables?namespace=shop&name=t", 404),
        ("DELETE", "tables", 400),
        ("DELETE", "tables?namespace=shop&name=t&purge=maybe", 400),
        ("GET", "dropped?name=t", 400),
        ("GET", "openapi.json?pretty=1", 400),
    ],
)
def test_every_error_of_the_api_is_a_problem(catalog: Catalog, method: str, path: str, status: int) -> None:
    answer = catalog.runner.run(ask(catalog.app, method, f"/api/v1/{path}"))
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    validate(catalog.description, {"$ref": "#/components/schemas/Problem"}, answer.json)
    assert answer.json["type"] == f"urn:arco:error:{answer.json['code']}"
    assert answer.headers.get("allow") is not None or status != 405


def test_whoever_has_no_token_gets_a_problem_too(ground: HttpGround) -> None:
    app = make_app(Setup(access=Access(Secret("secret"))))
    answer = ground.runner.run(ask(app, "GET", "/api/v1/assets"))
    assert (answer.status, answer.json["code"]) == (401, "access_denied")
    assert "www-authenticate" in answer.headers
    assert ground.runner.run(ask(app, "GET", "/api/v1/openapi.json")).status == 401
    told = ground.runner.run(ask(app, "GET", "/api/v1/openapi.json", Authorization="Bearer secret"))
    assert told.status == 200


def test_icebergs_own_paths_keep_icebergs_errors(catalog: Catalog) -> None:
    answer = catalog.runner.run(ask(catalog.app, "GET", f"{NAMESPACES}/nowhere"))
    assert answer.error == (404, "NoSuchNamespaceException")
