"""Events and lineage from other systems and from people: all taken or none, and sent twice they are one."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from arco.catalog.telling import Teller
from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.passes import fold_pass
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import EventId, new_uuid7
from arco.kernel.limits import EVENT_LEAD_MS_MAX, JSON_DEPTH_MAX, LEDGER_EVENT_BYTES_MAX, POSTED_EVENTS_MAX
from arco.kernel.scope import Scope
from arco.ledger import reading
from arco.ledger.envelope import Event
from arco.ledger.event_types import SetAside, read_data
from arco.storage.keys import Domain
from arco.storage.memory import MemoryStore
from arco.storage.port import Condition, Outcome
from arco.surface.http.app import App
from fixtures.state.arrow_work import ArrowWork
from stand_ins.asgi import Answer, ask, make_app
from stand_ins.troubled_store import Mood, TroubledStore

EVENTS, LINEAGE = "/api/v1/events", "/api/v1/lineage"
BATCH, ONE = "application/cloudevents-batch+json", "application/cloudevents+json"
ENDED = {"run_id": "r1", "state": "succeeded", "tasks": {}, "started_ms": 1, "ended_ms": 2}
ULID = "01K7A5V6M8YQ4Z3B2N1C0D9E8F"


def task_ended(**said: Any) -> dict[str, Any]:
    about = {"run_id": "r1", "task_id": "t1", "asset": "shop.daily", "asset_id": ULID}
    data = {**about, "state": "succeeded", "attempts": 1, "started_ms": 1, "ended_ms": 2, **said}
    return {"type": "execution.task_ended.v1", "source": "airflow", "data": data}


def made(**said: Any) -> dict[str, Any]:
    about = {"run_id": "r1", "task_id": "t1", "asset": "shop.daily", "asset_id": ULID, "materialization_id": "m1"}
    what = {"table_uuid": "u", "partitions": [{"date": ["2025-01-01", "2025-01-02"]}], "grain": {"date": "daily"}}
    made_of = {"code": "c", "code_version": "v", "plan_fingerprint": "p", "inputs": {}, "input_snapshots": {}}
    size = {"attempt": 1, "snapshot_id": 5, "rows": 1, "bytes": 1, "files": 1, "schema_id": 0}
    data = {**about, **what, **made_of, **size, "started_ms": 1, "published_ms": 2, **said}
    return {"type": "execution.materialization_completed.v1", "source": "airflow", "data": data}


def completed(**more: Any) -> dict[str, Any]:
    return {"type": "execution.run_completed.v1", "source": "airflow", "data": ENDED} | more


def checked() -> dict[str, Any]:
    data = {
        "check_id": "c", "run_id": "r1", "task_id": "t", "materialization_id": "m", "asset": "a.b", "asset_id": "x",
        "partitions": [{}], "result": {"check": "c", "kind": "sql", "severity": "warning", "passed": False}, "action": "warn",
    }  # fmt: skip
    return {"type": "quality.check_executed.v1", "source": "soda", "data": data}


class Server:
    """An application on a store of its own, and what its ledger says."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore(SystemClock())
        self.app: App = make_app(store=self.store)
        self.runner = asyncio.Runner()

    def post(self, body: Any, path: str = EVENTS, method: str = "POST", **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.runner.run(ask(self.app, method, path, data, **headers))

    def events(self, domain: Domain = Domain.EXECUTION, scope: Scope | None = None) -> list[Event]:
        return self.runner.run(reading.events(self.store, scope or Scope.of(), domain))

    def everything(self) -> list[Event]:
        return [event for domain in Domain for event in self.events(domain)]

    def segments(self, domain: Domain) -> list[str]:
        async def listed() -> list[str]:
            return [str(key) async for key in reading.segments(self.store, Scope.of(), domain)]

        return self.runner.run(listed())

    def fold(self) -> None:
        clock, entropy, scope = SystemClock(), SystemEntropy(), Scope.of()
        tell = Teller(self.store, scope, clock, entropy).tell
        folding = Folding(Heads(self.store, scope, clock, entropy), ArrowWork(self.store, scope), tell=tell)
        assert not self.runner.run(fold_pass(folding)).failed


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.app._state.libraries.close()
    made.runner.close()


def problem(answer: Answer) -> dict[str, Any]:
    """A problem, checked: its media type and what every problem says."""
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json
    assert said["status"] == answer.status
    assert said["type"] == f"urn:arco:error:{said['code']}"
    assert said["instance"] == f"urn:arco:request:{answer.headers['x-request-id']}"
    assert said["title"]
    assert said["detail"]
    return said


# What is taken


@pytest.mark.parametrize(
    ("body", "media"),
    [
        ([completed()], "application/json"),
        (completed(), "application/json"),
        ([completed(specversion="1.0", id="a-1")], BATCH),
        (completed(specversion="1.0", id="a-1"), ONE),
        (
            completed(
                specversion="1.0", id="a-1", datacontenttype="application/json", time="2025-10-11T11:08:07.065+02:00"
            ),
            ONE,
        ),
    ],
)
def test_an_event_is_durable_when_it_is_answered(server: Server, body: Any, media: str) -> None:
    answer = server.post(body, Content_Type=media)
    assert answer.status == 202, answer.json
    (event,) = server.events()
    assert answer.json == {
        "accepted": 1,
        "events": [{"index": 0, "id": event.id, "type": event.type, "position": event.position}],
        "segments": server.segments(Domain.EXECUTION),
    }
    assert (event.source, event.data) == ("airflow", ENDED)
    if isinstance(body, dict) and "time" in body:
        assert event.time == "2025-10-11T09:08:07.065Z"


def test_an_event_may_have_its_attributes_in_headers(server: Server) -> None:
    answer = server.post(
        ENDED,
        ce_specversion="1.0",
        ce_id="a%201",
        ce_type="execution.run_completed.v1",
        ce_source="airflow",
        ce_region="eu",
    )
    assert answer.status == 202, answer.json
    (event,) = server.events()
    assert (event.data, event.extensions) == (ENDED, {"region": "eu"})


def test_an_attribute_in_a_header_that_is_no_text_is_refused(server: Server) -> None:
    answer = server.post(
        ENDED, ce_specversion="1.0", ce_id="1", ce_type="execution.run_completed.v1", ce_source="airflow", ce_subject="%FF"
    )
    assert problem(answer)["status"] == 400
    assert "ce-subject" in answer.json["detail"]


def test_everything_that_a_sender_says_is_kept(server: Server) -> None:
    said = completed(
        id=ULID, subject="größe", streamid="r1", sequence=7, correlationid="c-1", causationid=ULID, region="eu",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", time_ms=1_760_173_687_065,
        data=ENDED | {"added later": [1]},
    )  # fmt: skip
    assert server.post([said]).status == 202
    (event,) = server.events()
    assert (event.id, event.subject, event.streamid, event.sequence) == (ULID, "größe", "r1", "0000000007")
    assert (event.correlationid, event.causationid, event.extensions) == ("c-1", ULID, {"region": "eu"})
    assert event.time == "2025-10-11T09:08:07.065Z"
    assert event.data["added later"] == [1]


def test_a_batch_of_several_domains_is_taken_whole(server: Server) -> None:
    answer = server.post([completed(), checked(), completed(id=ULID)])
    assert [(one["index"], one["type"]) for one in answer.json["events"]] == [
        (0, "execution.run_completed.v1"),
        (1, "quality.check_executed.v1"),
        (2, "execution.run_completed.v1"),
    ]
    assert [len(server.events(domain)) for domain in (Domain.EXECUTION, Domain.QUALITY)] == [2, 1]


def test_events_go_to_the_workspace_that_is_asked_for(server: Server) -> None:
    assert server.post([completed()], f"{EVENTS}?warehouse=acme/eu").status == 202
    assert server.events() == []
    assert len(server.events(scope=Scope.of("acme", "eu"))) == 1


# Sent again


@pytest.mark.parametrize(
    "named",
    [
        {"id": ULID},
        {"id": "not a ulid", "specversion": "1.0"},
        {"id": "r1/end", "specversion": "1.0"},
        {"idempotencykey": "k"},
    ],
)
def test_an_event_that_has_a_name_is_one_event_however_often_it_is_sent(server: Server, named: dict[str, str]) -> None:
    answers = [server.post([completed(**named), completed(**named)]) for _ in range(3)]
    assert len({one["id"] for answer in answers for one in answer.json["events"]}) == 1
    (event,) = server.events()
    assert event.position == answers[0].json["events"][0]["position"]


def test_a_request_that_has_a_key_is_one_however_often_it_is_sent(server: Server) -> None:
    for _ in range(3):
        assert server.post([completed(), completed(), checked()], Idempotency_Key="batch-1").status == 202
    assert len(server.everything()) == 3


@pytest.mark.parametrize("named", [{"id": ULID}, {"idempotencykey": "k"}, {}], ids=["id", "key", "header"])
def test_a_word_that_may_be_sent_again_says_when_it_was_said(server: Server, named: dict[str, str]) -> None:
    """The time of each delivery would be another one, and a second delivery would stand above what was said since."""
    words = {"asset": "a.b", "asset_id": "x", "partitions": [{}], "who": "ann", "why": "odd"}
    word = {"type": "quality.partition_quarantined.v1", "source": "ops", "data": words} | named
    header = {} if named else {"idempotency_key": "k"}
    answer = server.post(word, **header)
    assert (answer.status, b"time is missing" in answer.body) == (400, True)
    for _ in range(2):
        assert server.post({**word, "time": "2025-10-11T09:08:07Z"}, **header).status == 202
    assert len({event.id for event in server.events(Domain.QUALITY)}) == 1
    if not named:
        assert server.post(word).status == 202  # it is a new one each time, and was said when it came


def test_an_event_without_a_name_is_a_new_one_each_time(server: Server) -> None:
    server.post([completed(), completed()])
    server.post([completed()])
    assert len(server.events()) == 3


def test_one_key_for_two_things_hides_neither(server: Server) -> None:
    server.post([completed(idempotencykey="k")])
    server.post([completed(idempotencykey="k", data=ENDED | {"state": "failed"})])
    assert {event.data["state"] for event in server.events()} == {"succeeded", "failed"}


def test_what_is_right_of_runs_tasks_and_publishes_is_taken(server: Server) -> None:
    assert server.post([task_ended(), made(), made(partitions=[{}], grain=None), completed()]).status == 202


# What is refused


WRONG: list[tuple[Any, str]] = [
    (7, "an event is a JSON object"),
    ([], "an event is a JSON object"),
    ({}, "type is missing"),
    (completed(type=7), "type is not text"),
    (completed(type="execution.run_completed"), "not an event type"),
    (completed(type="execution.run_completed.v9"), "no event type execution.run_completed.v9"),
    (completed(type="weather.rained.v1"), "no event type weather.rained.v1"),
    (completed(type="audit.action_recorded.v1"), "said by Arco alone"),
    (completed(type="catalog.asset_deployed.v1"), "said by Arco alone"),
    (completed(type="iceberg.table_committed.v1"), "said by Arco alone"),
    (completed(source=None), "source is missing"),
    (completed(source="arco/servo"), "Arco's own"),
    (completed(source="ARCO/servo"), "Arco's own"),
    (completed(source="two words"), "not an event source"),
    (completed(data=None), "data is missing"),
    (completed(data="text"), "not a JSON object"),
    (completed(data=ENDED | {"run_id": 7}), "Expected str, got int - at $.run_id"),
    (completed(data={"run_id": "r"}), "missing required field"),
    (completed(data=ENDED | {"state": "zonk"}), "there is no state 'zonk'"),
    (completed(data=ENDED | {"state": "running"}), "one of succeeded, failed, cancelled"),
    (completed(data=ENDED | {"tasks": {"zonk": 1}}), "tasks: there is no state 'zonk'"),
    (completed(data=ENDED | {"tasks": {"failed": -1}}), "not below zero"),
    (completed(data=ENDED | {"ended_ms": -2}), "ended_ms is -2"),
    (task_ended(state="zonk"), "one of succeeded, failed, blocked, quarantined, skipped, cancelled"),
    (task_ended(attempts=-1), "attempts is -1"),
    (made(grain=None), "its ranges have no grain"),
    (made(rows=-1), "rows is -1"),
    (made(partitions=[{"date": "2025-01-02"}]), "date"),
    (made(sequence_number=2**63), "orders nothing"),
    (completed(specversion="1.0"), "id is missing"),
    (completed(specversion="0.3", id="a"), "specversion is not 1.0"),
    (completed(datacontenttype="text/xml"), "datacontenttype"),
    (completed(data_base64="AAAA"), "data_base64 cannot be sent"),
    (completed(position=ULID), "the ledger gives positions"),
    (completed(tenantid="acme"), "tenantid is not default"),
    (completed(time="yesterday"), "not RFC 3339"),
    (completed(time="2025-02-30T00:00:00Z"), "not a moment"),
    (completed(time_ms="1"), "time_ms"),
    (completed(time_ms=10**18), "outside the years"),
    (completed(time="2999-01-01T00:00:00Z"), "time 2999-01-01T00:00:00.000Z lies"),
    (completed(sequence="one"), "sequence"),
    (completed(sequence=2**31), "greater than any sequence"),
    (completed(causationid="x"), "not an event id"),
    (completed(streamid="no spaces"), "stream id"),
    (completed(idempotencykey="k" * 201), "idempotency key"),
    (completed(two_words="x"), "not the name of an attribute"),
    (completed(region={"eu": 1}), "no boolean, text or integer"),
    (completed(data=ENDED | {"message": "x" * LEDGER_EVENT_BYTES_MAX}), "an event has at most"),
]


@pytest.mark.parametrize(("item", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_is_wrong_is_said_by_its_place_and_nothing_is_taken(server: Server, item: Any, said: str) -> None:
    answer = server.post([completed(), item, checked(), item])
    found = problem(answer)
    assert (answer.status, found["code"]) == (400, "invalid_items")
    assert found["detail"] == "2 of 4 events are wrong; none was taken"
    assert [error["index"] for error in found["errors"]] == [1, 3]
    assert all(said in error["detail"] for error in found["errors"]), found["errors"]
    assert server.everything() == []


def test_a_time_may_be_as_far_ahead_as_clocks_differ(server: Server) -> None:
    now_ms = SystemClock().now_ms()
    assert server.post([completed(time_ms=now_ms + EVENT_LEAD_MS_MAX - 1000)]).status == 202
    (error,) = problem(server.post([completed(time_ms=now_ms + EVENT_LEAD_MS_MAX + 60_000)]))["errors"]
    assert "at most 600 s are taken" in error["detail"]
    assert len(server.everything()) == 1


def test_each_item_has_its_own_reason(server: Server) -> None:
    errors = problem(server.post([item for item, _ in WRONG]))["errors"]
    assert [error["index"] for error in errors] == list(range(len(WRONG)))
    assert [said for (_, said), error in zip(WRONG, errors, strict=True) if said not in error["detail"]] == []


def test_a_batch_has_a_limit(server: Server) -> None:
    assert server.post([completed(id=ULID)] * POSTED_EVENTS_MAX).status == 202
    too_many = problem(server.post([completed()] * (POSTED_EVENTS_MAX + 1)))
    assert (too_many["status"], too_many["code"]) == (413, "too_large")
    assert str(POSTED_EVENTS_MAX) in too_many["hint"]
    assert len(server.events()) == 1


def test_a_batch_that_does_not_fit_into_a_segment_is_refused_whole(server: Server) -> None:
    large = completed(data=ENDED | {"message": "x" * 900_000})
    assert problem(server.post([checked(), *[large] * 10]))["code"] == "too_large"
    assert server.everything() == []


def test_a_body_has_a_depth(server: Server) -> None:
    deep = b"[" * (JSON_DEPTH_MAX + 1) + b"]" * (JSON_DEPTH_MAX + 1)
    assert problem(server.post(deep))["status"] in {400, 413}


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"a":1,"a":2}', "application/json", 400),
        (json.dumps([completed(specversion="1.0", id="a")]).encode(), ONE, 400),
        (json.dumps(completed(specversion="1.0", id="a")).encode(), BATCH, 400),
        (b"<event/>", "text/xml", 415),
    ],
)
def test_a_body_that_is_none_is_a_problem(server: Server, body: bytes, media: str, status: int) -> None:
    assert problem(server.post(body, Content_Type=media))["status"] == status
    assert server.everything() == []


def test_everything_under_these_paths_is_said_as_a_problem(server: Server) -> None:
    assert problem(server.post(None, method="GET"))["status"] == 405
    assert problem(server.post([completed()], f"{EVENTS}?dry_run=true"))["detail"].startswith("query parameter 'dry_run'")
    assert problem(server.post([completed()], f"{EVENTS}?warehouse=../x"))["status"] == 400
    assert problem(server.post(None, f"{EVENTS}/more"))["status"] == 404


class HalfMute(TroubledStore):
    """Does not answer what is written to the domain `quality`, while its mood lasts."""

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        return await (super() if "/ledger/quality/" in key else super(TroubledStore, self)).put(key, data, condition)


@pytest.mark.parametrize("mood", [Mood.MUTE, Mood.DEAF])
def test_a_batch_of_which_a_part_is_unknown_is_unknown_and_may_be_sent_again(mood: Mood) -> None:
    store = HalfMute(SystemClock())
    server = Server(store)
    batch = [completed(idempotencykey="a"), checked() | {"idempotencykey": "b"}]
    store.mood = mood
    unknown = problem(server.post(batch))
    assert (unknown["status"], unknown["code"]) == (504, "outcome_unknown")
    store.mood = Mood.FINE
    assert server.post(batch).status == 202
    assert [len(server.events(domain)) for domain in (Domain.EXECUTION, Domain.QUALITY)] == [1, 1]
    server.runner.close()


# OpenLineage


RUN = "0199d2f1-5f99-7000-8000-000000000001"
BASE = {
    "eventTime": "2025-10-11T09:08:07.065Z",
    "producer": "https://example.com/airflow/2.9",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
}
JOB = {"namespace": "airflow", "name": "load.orders", "facets": {}}
ORDERS = {"namespace": "postgres://db:5432", "name": "shop.public.orders"}
DAILY = {
    "namespace": "s3://lake",
    "name": "warehouse/daily",
    "facets": {
        "symlinks": {"identifiers": [{"namespace": "arco", "name": "shop.daily", "type": "TABLE"}]},
        "columnLineage": {
            "fields": {
                "total": {
                    "inputFields": [
                        {**ORDERS, "field": "price", "transformations": [{"type": "DIRECT", "subtype": "AGGREGATION"}]},
                        {**ORDERS, "field": "quantity"},
                    ]
                },
                "rate": {"inputFields": [{"namespace": "file", "name": "/rates.csv", "field": "rate"}]},
            }
        },
    },
}


def ran(state: str | None, **more: Any) -> dict[str, Any]:
    run = {"runId": RUN, "facets": {"parent": {"run": {"runId": "parent-1"}, "job": {"namespace": "a", "name": "b"}}}}
    typed = {} if state is None else {"eventType": state}
    return {**BASE, **typed, "run": run, "job": JOB, "inputs": [ORDERS], "outputs": [DAILY]} | more


def by_type(server: Server) -> dict[str, Event]:
    return {event.type.split(".")[1]: event for event in server.everything()}


@pytest.mark.parametrize("path", [LINEAGE, EVENTS])
def test_a_run_of_openlineage_is_a_run_with_lineage(server: Server, path: str) -> None:
    answer = server.post(ran("COMPLETE"), path, Content_Type="application/json")
    assert answer.status == 202, answer.json
    found = by_type(server)
    assert set(found) == {"openlineage_received", "run_completed", "lineage_recorded"}
    assert [one["type"].split(".")[1] for one in answer.json["events"]] == [
        "openlineage_received",
        "run_completed",
        "lineage_recorded",
    ]
    assert found["openlineage_received"].data["event"] == ran("COMPLETE")
    assert found["run_completed"].data == {
        "run_id": RUN, "state": "succeeded", "tasks": {"succeeded": 1}, "started_ms": None,
        "ended_ms": 1_760_173_687_065, "message": None,
    }  # fmt: skip
    lineage = read_data(found["lineage_recorded"])
    assert not isinstance(lineage, SetAside)
    rates, orders = sorted(lineage.edges, key=lambda edge: edge.upstream)  # type: ignore[attr-defined]
    assert (orders.upstream_namespace, orders.upstream) == ("postgres://db:5432", "shop.public.orders")
    assert (orders.downstream_namespace, orders.downstream) == ("s3://lake", "warehouse/daily")
    assert [(one.namespace, one.name) for one in orders.downstream_symlinks] == [("arco", "shop.daily")]
    (total,) = orders.columns.mappings
    assert (total.column, [one.column for one in total.sources], total.transform) == (
        "total", ["price", "quantity"], "aggregation",
    )  # fmt: skip
    assert (rates.upstream, [one.column for one in rates.columns.mappings]) == ("/rates.csv", ["rate"])
    assert all(event.streamid == RUN and event.correlationid == "parent-1" for event in found.values())
    assert all(event.time == "2025-10-11T09:08:07.065Z" for event in found.values())
    assert found["run_completed"].causationid == found["openlineage_received"].id


def test_what_openlineage_says_of_a_table_is_in_its_lineage_and_impact(server: Server) -> None:
    """Posted over HTTP, asked over HTTP: before a fold, and after it."""
    _create(server, "orders")
    _create(server, "daily")
    daily = DAILY | {"namespace": "arco", "name": "shop.daily", "facets": {}}
    for inputs, outputs in (([ORDERS], [daily]), ([daily], [{"namespace": "looker://bi", "name": "sales"}])):
        sent = ran("COMPLETE", inputs=inputs, outputs=outputs)
        assert server.post(sent, LINEAGE, Content_Type="application/json").status == 202

    def beyond(direction: str, **query: str) -> list[tuple[str, str]]:
        asked = "&".join(f"{name}={value}" for name, value in {"direction": direction, **query}.items())
        found = server.post(None, f"/api/v1/assets/shop.daily/lineage?{asked}", "GET").json
        return [(one["name"], one["kind"]) for one in found["nodes"] if one["depth"]]

    assert beyond("upstream", fresh="true") == [("shop.public.orders", "external")]
    assert beyond("downstream", fresh="true") == [("sales", "external")]
    server.fold()
    assert beyond("upstream") == [("shop.public.orders", "external")]
    assert beyond("downstream") == [("sales", "external")]
    hit = server.post(None, "/api/v1/assets/shop.daily/impact", "GET").json["affected"]
    assert [(one["asset"], one["kind"], one["depth"]) for one in hit] == [("sales", "external", 1)]


def _create(server: Server, name: str) -> None:
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
    server.post({"namespace": ["shop"]}, "/iceberg/v1/default.default/namespaces")
    made = server.post({"name": name, "schema": schema}, "/iceberg/v1/default.default/namespaces/shop/tables")
    assert made.status == 200, made.json


@pytest.mark.parametrize(
    ("state", "kinds"),
    [
        ("START", {"openlineage_received", "run_created", "lineage_recorded"}),
        ("RUNNING", {"openlineage_received", "lineage_recorded"}),
        ("OTHER", {"openlineage_received", "lineage_recorded"}),
        (None, {"openlineage_received", "lineage_recorded"}),
        ("COMPLETE", {"openlineage_received", "run_completed", "lineage_recorded"}),
        ("ABORT", {"openlineage_received", "run_completed"}),
        ("FAIL", {"openlineage_received", "run_completed"}),
    ],
)
def test_what_follows_from_each_state(server: Server, state: str | None, kinds: set[str]) -> None:
    assert server.post(ran(state), LINEAGE).status == 202
    assert set(by_type(server)) == kinds
    assert all(not isinstance(read_data(event), SetAside) for event in server.everything())


def test_a_failed_run_says_why(server: Server) -> None:
    run = {"runId": RUN, "facets": {"errorMessage": {"message": "no space", "programmingLanguage": "Java"}}}
    server.post(ran("FAIL", run=run), LINEAGE)
    assert by_type(server)["run_completed"].data["message"] == "no space"
    assert by_type(server)["run_completed"].data["state"] == "failed"


def test_jobs_and_datasets_of_openlineage_have_lineage_without_a_run(server: Server) -> None:
    job = {**BASE, "job": JOB, "inputs": [ORDERS], "outputs": [{"namespace": "n", "name": "o"}]}
    dataset = {**BASE, "dataset": DAILY}
    assert server.post([job, dataset], LINEAGE).status == 202
    recorded = [event.data for event in server.events(Domain.LINEAGE) if "lineage_recorded" in event.type]
    assert [one["run_id"] for one in recorded] == [None, None]
    assert sorted(len(one["edges"]) for one in recorded) == [1, 2]
    assert server.events(Domain.EXECUTION) == []


@pytest.mark.parametrize(
    "said",
    [{"inputFields": 5}, {"inputFields": [{**ORDERS, "field": "price", "transformations": 7}]}, {"inputFields": [7]}, 7],
)
def test_columns_that_are_not_as_expected_are_passed_over(server: Server, said: Any) -> None:
    made = {"namespace": "n", "name": "o", "facets": {"columnLineage": {"fields": {"total": said}}}}
    assert server.post(ran("COMPLETE", outputs=[made]), LINEAGE).status == 202
    assert len(by_type(server)["lineage_recorded"].data["edges"]) == 1


def test_a_job_whose_name_has_line_breaks_has_lineage(server: Server) -> None:
    assert server.post(ran("COMPLETE", job={**JOB, "name": "insert\ninto\torders"}), LINEAGE).status == 202
    assert by_type(server)["run_completed"].subject == "airflow insert into orders"
    assert by_type(server)["openlineage_received"].data["event"]["job"]["name"] == "insert\ninto\torders"


def test_openlineage_sent_twice_is_one_and_another_moment_is_another(server: Server) -> None:
    for _ in range(2):
        server.post(ran("START"), LINEAGE)
        server.post([ran("START"), ran("COMPLETE", eventTime="2025-10-11T09:09:00+00:00")], LINEAGE)
    assert len(server.everything()) == 6
    assert len({event.id for event in server.everything()}) == 6


def test_the_same_edge_has_the_same_identity_in_every_event(server: Server) -> None:
    server.post([ran("START"), ran("COMPLETE")], LINEAGE)
    recorded = [event for event in server.events(Domain.LINEAGE) if "lineage_recorded" in event.type]
    identities = [{edge.identity() for edge in read_data(event).edges} for event in recorded]  # type: ignore[union-attr]
    assert identities[0] == identities[1]
    assert len(identities[0]) == 2


WRONG_LINEAGE: list[tuple[Any, str]] = [
    (ran("COMPLETE", eventTime="yesterday"), "not a moment"),
    (ran("COMPLETE", eventTime="2999-01-01T00:00:00Z"), "s ahead of this server's clock"),
    (ran("COMPLETE", eventTime=7), "Expected str, got int - at $.eventTime"),
    (ran("DONE"), "Invalid enum value 'DONE'"),
    (ran("START", run={}), "run.runId is missing"),
    (ran("START", run={"runId": "two words"}), "not a stream id"),
    (ran("START", job=None), "job is missing"),
    (ran("START", job={"name": "x"}), "no namespace or no name"),
    (ran("START", inputs=[{"namespace": "n"}]), "no namespace or no name"),
    (ran("START", inputs="orders"), "got str - at $.inputs"),
    (ran("START", run=None), "run is missing"),
    (ran("START", inputs=[ORDERS] * 100, outputs=[DAILY] * 100), "too many edges"),
    ({"edge": 1}, "not an event of OpenLineage"),
]


@pytest.mark.parametrize(("item", "said"), WRONG_LINEAGE, ids=[said for _, said in WRONG_LINEAGE])
def test_openlineage_that_is_wrong_is_refused_by_its_place(server: Server, item: Any, said: str) -> None:
    (error,) = problem(server.post([ran("START"), item], LINEAGE))["errors"]
    assert error["index"] == 1
    assert said in error["detail"]
    assert server.everything() == []


def test_a_plan_that_is_too_large_is_left_out_and_named(server: Server) -> None:
    run = {"runId": RUN, "facets": {"spark.logicalPlan": {"plan": "x" * LEDGER_EVENT_BYTES_MAX}, "small": {"a": 1}}}
    assert server.post(ran("COMPLETE", run=run), LINEAGE).status == 202
    kept = by_type(server)["openlineage_received"].data
    assert kept["omitted"] == ["run.facets.spark.logicalPlan"]
    assert kept["event"]["run"]["facets"] == {"small": {"a": 1}}
    assert len(by_type(server)["lineage_recorded"].data["edges"]) == 2


# By hand


def registered(server: Server, *names: str, columns: tuple[str, ...] = ()) -> None:
    server.post({"namespace": ["shop"]}, "/iceberg/v1/default.default/namespaces")
    for name in names:
        noted = [{"name": column, "type": "int"} for column in columns]
        body = {"namespace": ["shop"], "name": name, "format": "DELTA", "location": f"s3://x/{name}", "columns": noted}
        assert server.post(body, "/api/v1/tables").status == 200


def table(name: str, **more: str) -> dict[str, Any]:
    return {"namespace": ["shop"], "name": name, **more}


def edge(upstream: Any = None, downstream: Any = None, **more: Any) -> dict[str, Any]:
    return {"upstream": upstream or table("orders"), "downstream": downstream or table("daily"), **more}


def key() -> str:
    return new_uuid7(SystemClock(), SystemEntropy())


def test_people_say_what_was_made_of_what(server: Server) -> None:
    registered(server, "orders", "daily", columns=("a", "b"))
    columns = [{"column": "b", "sources": ["a", "b"], "transform": "sum"}]
    answer = server.post(edge(columns=columns, who="ann", why="a nightly export"), LINEAGE)
    assert answer.status == 201, answer.json
    (event,) = server.events(Domain.LINEAGE)
    (segment,) = server.segments(Domain.LINEAGE)
    assert answer.json == {
        "edge_id": event.subject, "event_id": event.id, "position": event.position, "segment": segment,
    }  # fmt: skip
    said = read_data(event)
    assert (said.method, said.who, said.why, said.run_id) == ("hand", "ann", "a nightly export", None)  # type: ignore[union-attr]
    (one,) = said.edges  # type: ignore[union-attr]
    assert (one.upstream, one.downstream, one.kind) == ("shop.orders", "shop.daily", "hand")
    assert one.identity() == one.edge_id == event.subject
    assert one.columns.mappings[0].column == "b"
    tables = {row["name"]: row for row in server.post(None, "/api/v1/tables", "GET").json["tables"]}
    assert (one.upstream_table, one.upstream_id) == (tables["orders"]["uuid"], tables["orders"]["asset_id"])


def test_an_edge_keeps_its_identity_when_a_table_is_renamed(server: Server) -> None:
    registered(server, "orders", "daily")
    first = server.post(edge(), LINEAGE).json["edge_id"]
    assert server.post({"source": table("orders"), "destination": table("sales")}, "/api/v1/tables/rename").status == 204
    assert server.post(edge(table("sales")), LINEAGE).json["edge_id"] == first


def test_what_lies_outside_may_be_an_end(server: Server) -> None:
    registered(server, "orders", "daily")
    outside = {"external": "kafka://broker/orders"}
    assert server.post(edge(outside), LINEAGE).status == 201
    assert server.post(edge(downstream=outside), LINEAGE).status == 201
    assert len({event.subject for event in server.events(Domain.LINEAGE)}) == 2


def test_an_edge_is_taken_back_by_its_ends_or_by_its_id(server: Server) -> None:
    registered(server, "orders", "daily")
    said = server.post(edge(), LINEAGE).json["edge_id"]
    ends = f"{LINEAGE}?upstream=shop%1Forders&downstream=shop%1Fdaily&who=bob&why=gone"
    by_ends, by_id = server.post(None, ends, "DELETE"), server.post(None, f"{LINEAGE}?edge_id={said}", "DELETE")
    assert (by_ends.status, by_id.status) == (200, 200)
    assert by_ends.json["edge_id"] == by_id.json["edge_id"] == said
    removed = [event for event in server.events(Domain.LINEAGE) if "removed" in event.type]
    assert [event.data["edge_ids"] for event in removed] == [[said], [said]]
    assert (removed[0].data["who"], removed[0].data["why"]) == ("bob", "gone")


def test_lineage_that_is_sent_twice_under_a_key_is_said_once(server: Server) -> None:
    registered(server, "orders", "daily")
    one, other = key(), key()
    answers = [server.post(edge(), LINEAGE, Idempotency_Key=one) for _ in range(3)]
    assert {answer.body for answer in answers} == {answers[0].body}
    ends = f"{LINEAGE}?upstream=shop%1Forders&downstream=shop%1Fdaily"
    gone = [server.post(None, ends, "DELETE", Idempotency_Key=other) for _ in range(2)]
    assert gone[0].body == gone[1].body
    # Another attempt of the same request says the same time: it is that of the id, which the request's marker keeps.
    assert [event.time.time_ms for event in server.events(Domain.LINEAGE)] == [
        EventId(answer.json["event_id"]).time_ms for answer in (answers[0], gone[0])
    ]
    reused = problem(server.post(edge(why="another"), LINEAGE, Idempotency_Key=one))
    assert (reused["status"], reused["code"]) == (409, "key_reused")


def test_a_refusal_under_a_key_is_said_again(server: Server) -> None:
    one = key()
    registered(server, "daily")
    refused = [problem(server.post(edge(), LINEAGE, Idempotency_Key=one)) for _ in range(2)]
    registered(server, "orders")
    refused.append(problem(server.post(edge(), LINEAGE, Idempotency_Key=one)))
    assert {answer["code"] for answer in refused} == {"no_such_table"}
    assert server.post(edge(), LINEAGE).status == 201


REFUSED: list[tuple[dict[str, Any], int, str, str]] = [
    (edge(table("nowhere")), 404, "no_such_table", "shop.nowhere"),
    (edge(downstream={"namespace": ["no"], "name": "x"}), 404, "no_such_table", "no.x"),
    (edge(table("orders", uuid="c0ffee00-1234-4abc-8def-0123456789ab")), 409, "conflict", "is another table now"),
    (edge(table("daily")), 400, "invalid_input", "is both ends"),
    (edge({"external": "a"}, {"external": "b"}), 400, "invalid_input", "neither end is a table"),
    (edge({"external": "a", "name": "b"}), 400, "invalid_input", "not both"),
    (edge({"name": "orders"}), 400, "invalid_input", "no namespace or no name"),
    (edge(columns=[{"column": "zz", "sources": ["a"]}]), 400, "invalid_input", "shop.daily has no column 'zz'"),
    (edge(columns=[{"column": "a", "sources": ["zz"]}]), 400, "invalid_input", "shop.orders has no column 'zz'"),
    (edge(columns=[{"column": "a", "sources": []}]), 400, "invalid_input", "columns[0].sources"),
    (edge(because="typo"), 400, "invalid_input", "because"),
    (edge(why=7), 400, "invalid_input", "why"),
    (edge(why="x" * 2001), 400, "invalid_input", "why"),
    ({"upstream": table("orders")}, 400, "invalid_input", "downstream"),
]


@pytest.mark.parametrize(("body", "status", "code", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_lineage_by_hand_is_refused_precisely(
    server: Server, body: dict[str, Any], status: int, code: str, said: str
) -> None:
    registered(server, "orders", "daily", columns=("a", "b"))
    found = problem(server.post(body, LINEAGE))
    assert (found["status"], found["code"]) == (status, code), found
    assert said in found["detail"]
    assert server.events(Domain.LINEAGE) == []


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("", 400, "name upstream or upstream_external"),
        ("edge_id=edge_1", 400, "not an edge id"),
        ("edge_id=edge_294daca7f00059e9&upstream=shop%1Forders", 400, "not by both"),
        ("upstream=orders&downstream=shop%1Fdaily", 400, "upstream has no namespace"),
        ("upstream=shop%1Fnowhere&downstream=shop%1Fdaily", 404, "shop.nowhere"),
        ("upstream=shop%1Forders", 400, "name downstream or downstream_external"),
        ("upstream=shop%1Forders&downstream=shop%1Fdaily&purge=true", 400, "'purge' is not known"),
    ],
)
def test_taking_back_is_refused_precisely(server: Server, query: str, status: int, said: str) -> None:
    registered(server, "orders", "daily")
    found = problem(server.post(None, f"{LINEAGE}?{query}", "DELETE"))
    assert found["status"] == status
    assert said in found["detail"]
    assert server.events(Domain.LINEAGE) == []
