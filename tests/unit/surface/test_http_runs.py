"""Runs asked for over HTTP: the server writes a request down, whoever has the project starts it, anybody sees what came of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arco import asset, daily
from arco.catalog.catalog import Catalog
from arco.catalog.policy import LocationPolicy
from arco.fold.spark_session import SparkSettings
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.ledger.asked_runs import AskedRun, AskedRuns, AskedVerdict, Decided, request_id
from arco.ledger.outstanding import run_ids
from arco.ledger.run_entries import RunFinished, RunStatus, TaskCancelled
from arco.ledger.run_log import write_plan
from arco.servo.execute.asking import start_asked
from arco.servo.execute.pipeline import Pipeline
from arco.servo.plan.planner import PlanRequest
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.schedule.open_runs import OpenRunsNote
from arco.servo.sdk.project import assembled
from arco.storage.memory import MemoryStore
from arco.surface.http.app import App
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from stand_ins.asgi import Answer, ask

TRIGGER = "/api/v1/runs/trigger"
ORDERS = {"project": "shop", "assets": ["orders"]}


@asset
def orders(run):
    return run.spark.range(3)


@asset(partitions=daily("date", start="2999-01-01"))
def tomorrow(run):
    return run.spark.range(4)


class Place:
    """A server without the project, and a process that has it, on one store."""

    def __init__(self, folder: Path) -> None:
        self.clock = SystemClock()
        self.store = MemoryStore(self.clock)
        entropy = SeededEntropy(1)
        self.server = ServerState(self.store, "memory://", ForClients(), LocationPolicy(), self.clock, entropy)
        self.app = App(self.server, UlidSource(self.clock, entropy))
        catalog = Catalog.open(self.store, "memory://", Scope.of(), self.clock, SeededEntropy(2))
        project = assembled([orders.written, tomorrow.written], folder=folder, name="shop", namespace="shop")
        self.pipeline = Pipeline(
            catalog=catalog, project=project, root="memory://", options={}, spark=SparkSettings(), by="ann"
        )

    async def deploy(self) -> None:
        await self.pipeline.deployments.deploy(self.pipeline.project, by="ann")

    async def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return await ask(self.app, "POST", path, b"" if body is None else json.dumps(body).encode(), **headers)

    async def get(self, path: str) -> Answer:
        return await ask(self.app, "GET", f"/api/v1/{path}")

    async def asked(self, body: Any, **headers: str) -> str:
        answer = await self.post(TRIGGER, body, **headers)
        assert answer.status == 202, answer.json
        request: str = answer.json["request"]
        assert answer.headers["location"] == f"/api/v1/run-requests/{request}"
        return request

    async def state(self, request: str) -> Any:
        answer = await self.get(f"run-requests/{request}")
        assert answer.status == 200, answer.json
        return answer.json


@pytest.fixture
def told(tmp_path: Path) -> Callable[[Callable[[Place], Awaitable[None]]], None]:
    def run(story: Callable[[Place], Awaitable[None]]) -> None:
        async def main() -> None:
            place = Place(tmp_path)
            await place.deploy()
            try:
                await story(place)
            finally:
                place.server.libraries.close()

        asyncio.run(main())

    return run


def test_a_request_is_written_down_and_started_once_by_whoever_has_the_project(told) -> None:
    async def story(place: Place) -> None:
        request = await place.asked(ORDERS | {"mode": "force", "parallelism": 2})
        before = await place.state(request)
        assert (before["state"], before["run"], before["mode"]) == ("asked", None, "force")
        assert await run_ids(place.store, Scope.of()) == []

        (started,) = await start_asked(place.pipeline)
        after = await place.state(request)
        assert (after["state"], after["run"]) == ("started", str(started.log.run))
        assert after["decided_by"] == "ann"
        created = started.log.state.run.created
        assert created is not None
        assert (created.trigger.value, created.max_parallelism) == ("event", 2)

        assert await start_asked(place.pipeline) == []
        assert await run_ids(place.store, Scope.of()) == [started.log.run]

    told(story)


def test_a_run_is_shown_as_its_log_has_it_before_anything_is_folded(told) -> None:
    async def story(place: Place) -> None:
        await place.asked(ORDERS)
        (started,) = await start_asked(place.pipeline)
        answer = await place.get(f"runs/{started.log.run}")
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        page = answer.json
        assert (page["live"], page["snapshot"]) == (True, "")
        assert (page["run"]["state"], page["run"]["project"], page["run"]["tasks_planned"]) == ("pending", "shop", 1)
        assert [(one["asset"], one["state"]) for one in page["tasks"]] == [("shop.orders", "ready")]
        assert (await place.get("runs/01JZ3V5Q0E8Y7M2K4T6B9N1D3F")).status == 404

    told(story)


def test_the_same_key_and_body_have_the_same_answer_and_one_run(told) -> None:
    async def story(place: Place) -> None:
        first = await place.post(TRIGGER, ORDERS, Idempotency_Key="release 17")
        await start_asked(place.pipeline)
        again = await place.post(TRIGGER, ORDERS | {"idempotency_key": "release 17"})
        assert (again.status, again.body) == (first.status, first.body)
        await upkeep_pass(Setting(place.pipeline.catalog.parts), jobs_named(("asked",)))
        swept = await place.post(TRIGGER, ORDERS, Idempotency_Key="release 17")
        assert (swept.status, swept.body) == (first.status, first.body)
        assert await start_asked(place.pipeline) == []
        assert len(await run_ids(place.store, Scope.of())) == 1

        other = await place.post(TRIGGER, ORDERS | {"mode": "force"}, Idempotency_Key="release 17")
        assert (other.status, other.json["code"]) == (409, "key_reused")
        both = await place.post(TRIGGER, ORDERS | {"idempotency_key": "a"}, Idempotency_Key="b")
        assert both.status == 400

    told(story)


def test_what_cannot_be_made_is_refused_with_the_reason_and_what_is_well_is_nothing_to_do(told) -> None:
    async def story(place: Place) -> None:
        unknown = await place.asked({"project": "shop", "assets": ["ordres"]})
        nothing = await place.asked({"project": "shop", "assets": ["tomorrow"]})
        good = await place.asked(ORDERS)
        assert len(await start_asked(place.pipeline)) == 1
        refused = await place.state(unknown)
        assert refused["state"] == "refused"
        assert "ordres" in refused["message"]
        assert (await place.state(nothing))["state"] == "nothing_to_do"
        assert (await place.state(good))["state"] == "started"

    told(story)


def test_numbers_that_no_run_may_have_are_refused_whoever_wrote_the_request(told) -> None:
    async def story(place: Place) -> None:
        request = request_id("by hand")
        wrong = AskedRun(id=request, project="shop", make=("orders",), timeout_s=1e306, asked_ms=place.clock.now_ms())
        await AskedRuns(place.store, Scope.of(), place.clock, SeededEntropy(3)).ask(wrong)
        good = await place.asked(ORDERS)
        assert len(await start_asked(place.pipeline)) == 1
        refused = await place.state(request)
        assert (refused["state"], refused["run"]) == ("refused", None)
        assert "1e+306 s" in refused["message"]
        assert (await place.state(good))["state"] == "started"

    told(story)


def test_with_a_key_only_what_a_server_with_the_key_wrote_down_is_started(told) -> None:
    async def story(place: Place) -> None:
        keys = EnvelopeKeys((Secret("k" * 32),))
        place.pipeline = replace(place.pipeline, keys=keys)
        without = await place.asked(ORDERS)
        place.server.task_keys = keys
        sealed = await place.asked(ORDERS, Idempotency_Key="release 17")
        assert (await place.post(TRIGGER, ORDERS, Idempotency_Key="release 17")).status == 202
        (started,) = await start_asked(place.pipeline)
        assert (await place.state(sealed))["run"] == str(started.log.run)
        assert started.log.state.run.created.seal is not None
        refused = await place.state(without)
        assert (refused["state"], refused["run"]) == ("refused", None)
        assert "nobody with the signing key" in refused["message"]

    told(story)


def test_with_a_key_no_verdict_that_somebody_wrote_starts_a_run(told) -> None:
    async def story(place: Place) -> None:
        place.pipeline = replace(place.pipeline, keys=EnvelopeKeys((Secret("k" * 32),)))
        requests = AskedRuns(place.store, Scope.of(), place.clock, SeededEntropy(3))
        wrong = AskedRun(id=request_id("by hand"), project="shop", make=("orders",), asked_ms=place.clock.now_ms())
        await requests.ask(wrong)
        plan = (await place.pipeline.prepare(PlanRequest())).plan.encode()
        await write_plan(place.store, Scope.of(), wrong.run, plan, place.clock, SeededEntropy(4))
        verdict = AskedVerdict(asked=wrong, decided=Decided.STARTED, by="eve", at_ms=0, run=str(wrong.run))
        await requests.decide(verdict)
        assert (await place.state(wrong.id))["message"] == ""
        assert await start_asked(place.pipeline) == []
        assert await OpenRunsNote(place.store, Scope.of(), place.clock, SeededEntropy(5)).read() == ()
        kept = await place.state(wrong.id)
        assert (kept["state"], kept["run"]) == ("started", str(wrong.run))
        assert "nobody with the signing key" in kept["message"], "whoever asks hears what keeps it"
        assert len(await start_asked(replace(place.pipeline, keys=None))) == 1
        assert (await place.state(wrong.id))["message"] == "", "it has begun"

    told(story)


def test_a_request_for_another_project_is_left_to_it(told) -> None:
    async def story(place: Place) -> None:
        other = assembled([orders.written], folder=place.pipeline.project.folder, name="other", namespace="other")
        await place.pipeline.deployments.deploy(other, by="ann")
        request = await place.asked({"project": "other"})
        assert await start_asked(place.pipeline) == []
        assert (await place.state(request))["state"] == "asked"

    told(story)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"assets": ["orders"]}, 400, "project"),
        (ORDERS | {"asset": "x"}, 400, "asset"),
        (ORDERS | {"mode": "sometimes"}, 400, "mode"),
        (ORDERS | {"parallelism": 0}, 400, "parallelism"),
        (ORDERS | {"timeout_s": -1}, 400, "timeout_s"),
        (ORDERS | {"timeout_s": 1e306}, 400, "31622400"),
        (ORDERS | {"parallelism": 1001}, 400, "1000"),
        (ORDERS | {"project": "../x"}, 400, "word"),
        (ORDERS | {"project": "shoop"}, 404, "no project 'shoop' is deployed"),
        ([ORDERS], 400, "object"),
    ],
)
def test_what_is_wrong_with_a_request_is_said_and_nothing_is_written(told, body: Any, status: int, says: str) -> None:
    async def story(place: Place) -> None:
        answer = await place.post(TRIGGER, body)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
        assert says in answer.json["detail"]
        assert await start_asked(place.pipeline) == []

    told(story)


def test_a_request_can_be_taken_back_until_somebody_has_begun(told) -> None:
    async def story(place: Place) -> None:
        early, late = await place.asked(ORDERS), await place.asked(ORDERS)
        for _ in range(2):
            answer = await place.post(f"/api/v1/run-requests/{early}/withdraw")
            assert (answer.status, answer.json["state"]) == (200, "withdrawn")
        (started,) = await start_asked(place.pipeline)
        refused = await place.post(f"/api/v1/run-requests/{late}/withdraw")
        assert (refused.status, refused.json["code"]) == (409, "conflict")
        assert (await place.state(late))["run"] == str(started.log.run)
        assert (await place.get(f"run-requests/{'0' * 64}")).status == 404
        assert (await place.get("run-requests/nothing")).status == 404

    told(story)


def test_a_run_is_cancelled_wherever_it_is_driven(told) -> None:
    async def story(place: Place) -> None:
        await place.asked(ORDERS)
        (started,) = await start_asked(place.pipeline)
        path = f"/api/v1/runs/{started.log.run}/cancel"
        first = await place.post(path, {"reason": "wrong month"})
        assert (first.status, first.json["reason"]) == (202, "wrong month")
        again = await place.post(path)
        assert (again.status, again.json) == (202, first.json)
        assert (await started.log.catch_up()).run.cancel is not None

        assert (await place.post("/api/v1/runs/01JZ3V5Q0E8Y7M2K4T6B9N1D3F/cancel")).status == 404
        assert (await place.post("/api/v1/runs/of-others/cancel")).status == 404
        assert (await place.post(path, {"why": "x"})).status == 400

    told(story)


def test_a_run_is_paused_and_goes_on(told) -> None:
    async def story(place: Place) -> None:
        await place.asked(ORDERS)
        (started,) = await start_asked(place.pipeline)
        path = f"/api/v1/runs/{started.log.run}"
        paused = await place.post(f"{path}/pause", {"why": "the source is moved"})
        assert (paused.status, paused.json["paused"], paused.json["why"]) == (202, True, "the source is moved")
        assert (await place.get(f"runs/{started.log.run}")).json["paused"] == "the source is moved"
        resumed = await place.post(f"{path}/resume")
        assert (resumed.status, resumed.json["paused"]) == (202, False)
        assert (await place.post(f"{path}/resume")).status == 409
        await place.post(f"{path}/cancel")
        assert (await place.post(f"{path}/pause")).status == 409

    told(story)


def test_a_run_that_has_ended_is_not_cancelled_and_one_that_ended_so_is(told) -> None:
    async def story(place: Place) -> None:
        one, two = await place.asked(ORDERS), await place.asked(ORDERS)
        ended, cancelled = await start_asked(place.pipeline)
        assert {(await place.state(request))["run"] for request in (one, two)} == {ended.log.run, cancelled.log.run}
        (task,) = ended.log.state.tasks
        await ended.log.append([TaskCancelled(task=task, attempt=0, reason="x"), RunFinished(status=RunStatus.SUCCEEDED)])
        refused = await place.post(f"/api/v1/runs/{ended.log.run}/cancel")
        assert (refused.status, refused.json["code"]) == (409, "conflict")

        path = f"/api/v1/runs/{cancelled.log.run}/cancel"
        assert (await place.post(path)).status == 202
        state = await place.pipeline.drive(await place.pipeline.open(cancelled.log.run))
        assert state.run.status is RunStatus.CANCELLED
        assert (await place.get(f"runs/{cancelled.log.run}")).json["run"]["state"] == "cancelled"
        assert (await place.post(path)).status == 202, "it was asked for, and it is so"

    told(story)


def test_a_run_whose_starter_died_is_found_by_the_next(told, monkeypatch) -> None:
    async def story(place: Place) -> None:
        await place.asked(ORDERS)
        (started,) = await start_asked(place.pipeline)
        assert await start_asked(place.pipeline) == [], "whoever began it may be at it"
        later = place.clock.now_ms() + 60_000
        monkeypatch.setattr(type(place.clock), "now_ms", lambda _: later)
        (found,) = await start_asked(place.pipeline)
        assert (found.log.run, found.is_new) == (started.log.run, False)

    told(story)
