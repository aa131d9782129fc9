"""Deploying over HTTP: what a project declares is verified as a loaded one is, and published as `arco deploy` does it."""

import asyncio
import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arco import asset, daily, not_null, schedule, source, static
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.scope import Scope
from arco.servo.deploy.declaration import declared
from arco.servo.deploy.deploying import Deployments
from arco.servo.sdk.project import Project, assembled
from arco.servo.sdk.schedules import collected_schedules, defined, schedule_version
from arco.storage.memory import MemoryStore
from stand_ins.asgi import Answer, ask, make_app

DEPLOYMENTS = "/api/v1/deployments"
COLUMNS = {"order_id": "long not null", "note": "string"}


def project(columns: dict[str, str] | None = None) -> Project:
    raw = source("raw", partitions=daily("date", start="2025-01-01"))

    @asset(
        partitions=[daily("date", start="2025-01-01"), static("region", ["de", "fr"])],
        schema=columns or COLUMNS,
        checks=[not_null("order_id")],
        fresh_within="6h",
        tags="daily",
    )
    def orders(raw): ...

    @asset
    def totals(orders, limit=3): ...

    with collected_schedules() as written:
        schedule("nightly", cron="30 2 * * *", timezone="Europe/Berlin", make="orders+")
        schedule("news", after="raw", make="orders")
        schedule("in_time", keep_fresh="tag:daily")
    parts = [raw.written, orders.written, totals.written]
    made = assembled(parts, folder=Path(), name="shop", namespace="shop")
    return replace(made, schedules={one.name: defined(one, made.graph) for one in written})


class Desk:
    def __init__(self) -> None:
        self.clock = SystemClock()
        self.store = MemoryStore(self.clock)
        self.app = make_app(store=self.store)
        self.deployments = Deployments(self.store, Scope.of(), self.clock, SeededEntropy(5))

    def post(self, body: Any) -> Answer:
        return asyncio.run(ask(self.app, "POST", DEPLOYMENTS, json.dumps(body).encode()))

    def current(self) -> str | None:
        found = asyncio.run(self.deployments.current("shop"))
        return None if found is None else found.id


@pytest.fixture
def desk() -> Desk:
    return Desk()


def form(made: Project, before: str | None = None) -> dict[str, Any]:
    return {"before": before, "declaration": json.loads(msgspec.json.encode(declared(made)))}


def test_what_is_declared_is_deployed_and_the_code_finds_itself_in_it(desk: Desk) -> None:
    answer = desk.post(form(project()))
    assert answer.status == 201, answer.json
    told = answer.json
    assert told["added"] == ["shop.orders", "shop.raw", "shop.totals"]
    assert (told["deployment"], told["before"], told["news"]) == (desk.current(), None, True)
    assert told["schedules"] == ["in_time", "news", "nightly"]

    kept, changes = asyncio.run(desk.deployments.deploy(project(), by="ann"))
    assert (kept.id, bool(changes)) == (told["deployment"], False), "whoever has the code has nothing to deploy"


def test_the_same_declaration_again_changes_nothing_and_says_what_counts(desk: Desk) -> None:
    first = desk.post(form(project())).json
    again = desk.post(form(project()))
    assert (again.status, again.json["deployment"], again.json["news"]) == (200, first["deployment"], False)


def test_a_declaration_for_another_deployment_than_counts_is_refused(desk: Desk) -> None:
    first = desk.post(form(project())).json["deployment"]
    wider = project({**COLUMNS, "extra": "string"})
    late = desk.post(form(wider))
    assert (late.status, late.json["code"]) == (409, "conflict")
    assert desk.post(form(wider, first)).json["changed"] == ["shop.orders"]


def test_what_breaks_readers_is_refused_unless_it_is_meant(desk: Desk) -> None:
    first = desk.post(form(project())).json["deployment"]
    other = form(project(COLUMNS | {"note": "int"}), first)
    refused = desk.post(other)
    assert refused.status == 400
    assert "breaks what is published" in refused.json["detail"]
    assert desk.current() == first
    assert desk.post(other | {"allow_breaking": True}).json["breaking"]


Change = Callable[[dict[str, Any]], Any]


def of(asset_key: str, change: Change) -> Change:
    return lambda document: change(document["assets"][asset_key])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda it: it.update(format="other"), "version 1"),
        (lambda it: it.update(project="../shop"), "not a word"),
        (lambda it: it.update(code_version="code_0123456789abcdef"), "is not that of these assets"),
        (lambda it: it.update(more=1), "more"),
        (lambda it: it["assets"].update({"Bad Key": it["assets"]["shop.raw"]}), "asset"),
        (lambda it: it["assets"].pop("shop.raw"), "reads 'shop.raw', which is no asset"),
        (of("shop.orders", lambda it: it.update(fingerprint="x")), "fingerprint"),
        (of("shop.orders", lambda it: it.update(kind="magic")), "kind of shop.orders"),
        (of("shop.orders", lambda it: it["definition"].pop("gate")), "gate"),
        (of("shop.orders", lambda it: it["definition"].update(hidden=1)), "hidden"),
        (of("shop.orders", lambda it: it["definition"]["gate"].update(error="explode")), "explode"),
        (of("shop.orders", lambda it: it["definition"]["partitions"][0].update(kind="sometimes")), "sometimes"),
        (of("shop.orders", lambda it: it["definition"]["partitions"][0].update(start="soon")), "soon"),
        (of("shop.orders", lambda it: it["definition"]["partitions"][1].update(name="date")), "dimension twice"),
        (of("shop.orders", lambda it: it.update(columns=None)), "columns say otherwise"),
        (of("shop.orders", lambda it: it["columns"][0].update(type="number")), "number"),
        (of("shop.orders", lambda it: it["columns"][1].update(path=["order_id"], id="b")), "two columns"),
        (of("shop.orders", lambda it: it["definition"]["inputs"][0].update(asset="shop.totals")), "need each other"),
        (of("shop.orders", lambda it: it["definition"]["inputs"][0].update(kind="changes")), "would replace what was made"),
        (of("shop.totals", lambda it: it["definition"].update(table="shop.orders")), "publish to one table"),
        (of("shop.raw", lambda it: it["definition"].update(table="shop.orders")), "publishes its table"),
        (of("shop.totals", lambda it: it.update(renamed_from=["nowhere"])), "asset key"),
        (lambda it: it["schedules"]["nightly"].update(version="0" * 16), "does what another does"),
        (lambda it: it["schedules"].update(X=it["schedules"]["nightly"]), "schedule name"),
    ],
)
def test_whatever_is_wrong_with_a_declaration_is_said_and_nothing_is_written(desk: Desk, change: Change, says: str) -> None:
    body = form(project())
    body["declaration"] = copy.deepcopy(body["declaration"])
    change(body["declaration"])
    answer = desk.post(body)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert says in answer.json["detail"]
    assert desk.current() is None


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ({"kind": "cron", "cron": "61 * * * *", "timezone": "UTC", "catch_up": "latest"}, "61"),
        ({"kind": "cron", "cron": "1 * * * *", "timezone": "Mars/Base", "catch_up": "latest"}, "Mars/Base"),
        ({"kind": "source", "sources": ["shop.orders"]}, "no source"),
        ({"kind": "freshness", "assets": ["shop.totals"]}, "no fresh_within"),
        ({"kind": "moon"}, "moon"),
    ],
)
def test_a_schedule_that_never_fires_is_refused(desk: Desk, when: dict[str, Any], says: str) -> None:
    body = form(project())
    nightly = body["declaration"]["schedules"]["nightly"]
    nightly["definition"]["when"] = when
    nightly["version"] = schedule_version("nightly", nightly["definition"])
    answer = desk.post(body)
    assert (answer.status, says in answer.json["detail"]) == (400, True), answer.json


def test_a_body_that_is_no_form_is_refused(desk: Desk) -> None:
    assert desk.post({"declaration": form(project())["declaration"]}).status == 400, "before is to be said"
    assert desk.post([]).status == 400
