"""`/metrics`: read by Prometheus' own parser, counted as it happened, with labels that no client can choose."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from arco.fold.passes import fold_pass
from arco.kernel.errors import Unavailable
from arco.kernel.limits import METRICS_STATE_S, STAGED_INTENT_LIFETIME_S, UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED, RUN_CREATED
from arco.storage.memory import MemoryStore
from arco.storage.port import Page
from arco.surface.cli.folding import pass_document
from arco.surface.fold_process import FoldProcess
from arco.surface.http.access import Access
from arco.surface.http.app import App, Setup
from arco.surface.http.bounds import Bounds
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from integration.catalog_costs import PREFIX, SCHEMA, TABLES, Ground, Server, property_commit
from stand_ins.asgi import ask
from unit.read.test_read_library import created, made
from unit.surface.http_ground import HttpGround
from unit.surface.test_http_bindings import Living

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(body: bytes) -> Samples:
    families = text_string_to_metric_families(body.decode())
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def value(samples: Samples, name: str, **labels: str) -> float:
    """Of all series that have these labels."""
    found = [amount for (named, had), amount in samples.items() if named == name and labels.items() <= dict(had).items()]
    assert found, f"there is no {name} {labels}"
    return sum(found)


LOAD = "GET /iceberg/v1/{prefix}/namespaces/{namespace}/tables/{table}"
COMMIT = "POST /iceberg/v1/{prefix}/namespaces/{namespace}/tables/{table}"


def test_requests_round_trips_commits_and_memory_are_counted() -> None:
    ground = Ground()

    async def run() -> Samples:
        server = ground.server()
        await server.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
        await server.ask("POST", TABLES, {"name": "t", "schema": SCHEMA})
        assert (await server.ask("POST", f"{TABLES}/t", property_commit("1"))).status == 200
        await asyncio.gather(*(server.ask("POST", f"{TABLES}/t", property_commit(f"x{one}")) for one in range(4)))
        for path in ("t", "t", "gone", "gone-as-well"):
            await server.ask("GET", f"{TABLES}/{path}")
        await server.ask("GET", "/no/such/route/whatever")
        await server.settle()
        return parsed((await server.ask("GET", "/metrics")).body)

    found = ground.run(run())
    assert value(found, "arco_http_requests_total", operation=LOAD, status="200") == 2
    assert value(found, "arco_http_requests_total", operation=LOAD, status="404") == 2
    assert value(found, "arco_http_requests_total", operation="none", status="404") == 1
    assert value(found, "arco_http_request_seconds_count", operation=COMMIT) == 5
    # A warm load takes one round trip, a commit two before its answer.
    assert value(found, "arco_store_round_trips_bucket", operation=LOAD, le="1.0") == 4
    assert value(found, "arco_store_round_trips_bucket", operation=COMMIT, le="2.0") >= 4
    assert value(found, "arco_store_requests_total", operation=LOAD, request="head") >= 6
    assert value(found, "arco_store_requests_total", operation=COMMIT, request="put") >= 5 * 4
    assert value(found, "arco_commits_total", outcome="landed") == 5
    assert value(found, "arco_commit_swings_total", outcome="landed") < 5
    assert value(found, "arco_commits_grouped_total") >= 2
    assert value(found, "arco_commit_queue_length") == 0
    assert value(found, "arco_cache_lookups_total", cache="answer", result="hit") == 1
    assert value(found, "arco_cache_lookups_total", cache="table", result="hit") >= 2
    assert value(found, "arco_http_requests_under_way") == 1  # this one


def test_what_the_platform_api_asks_of_the_store_is_counted_like_all_else() -> None:
    """What is asked for, said and read there goes through no catalog, and takes its round trips all the same."""
    ground = HttpGround()
    asked: tuple[tuple[str, str, bytes], ...] = (
        ("POST", "/api/v1/runs/trigger", b'{"project": "nobody_s"}'),
        ("GET", "/api/v1/runs", b""),
        ("POST", "/api/v1/runs/01JZ0000000000000000000000/cancel", b"{}"),
        ("GET", "/ready", b""),
    )
    for method, path, body in asked:
        ground.runner.run(ask(ground.app, method, path, body))
    found = parsed(ground.runner.run(ask(ground.app, "GET", "/metrics")).body)
    for operation in (f"{method} {path.replace('01JZ' + '0' * 22, '{run}')}" for method, path, _ in asked):
        assert value(found, "arco_store_requests_total", operation=operation) >= 1
        assert value(found, "arco_store_round_trips_sum", operation=operation) >= 1
    ground.state.libraries.close()
    ground.close()


class _SilentAtTimes(MemoryStore):
    """Answers no listing while it is silent."""

    is_silent = False

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        if self.is_silent:
            raise Unavailable("the store did not answer")
        return await super().list_page(prefix, after, limit)


def test_while_the_store_refuses_those_who_watch_see_what_was_found_before() -> None:
    ground = HttpGround(store=_SilentAtTimes)
    ground.runner.run(ask(ground.app, "GET", "/metrics"))
    ground.store.is_silent = True
    for _ in range(3):
        ground.clock.elapsed_s += METRICS_STATE_S + 1
        found = parsed(ground.runner.run(ask(ground.app, "GET", "/metrics")).body)
        assert value(found, "servo_tasks_total", asset_namespace="shop", **HOME) > 0
        assert value(found, "arco_asset_freshness_seconds", asset_key="shop.orders", **HOME) > 0
    ground.state.libraries.close()
    ground.close()


def test_conflicts_with_another_server_and_what_was_tried_again_are_counted() -> None:
    ground = Ground()

    async def run() -> tuple[Samples, Samples]:
        one, other = ground.server(), ground.server()
        await one.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
        await one.ask("POST", TABLES, {"name": "t", "schema": SCHEMA})
        for server, said in ((one, "first"), (other, "second")):
            assert (await server.ask("POST", f"{TABLES}/t", property_commit(said))).status == 200
        # What `one` remembers is old by now: its swing is lost, and it lands on the newer state.
        assert (await one.ask("POST", f"{TABLES}/t", property_commit("third"))).status == 200
        await one.settle()
        return parsed((await one.ask("GET", "/metrics")).body), parsed((await other.ask("GET", "/metrics")).body)

    mine, _ = ground.run(run())
    assert value(mine, "arco_commit_swings_total", outcome="lost") == 1
    assert value(mine, "arco_commit_retries_total") == 1
    assert value(mine, "arco_commits_total", outcome="landed") == 2


ENDINGS = ("staged", "created", "abandoned", "refused", "expired")


def endings(found: Samples) -> dict[str, float]:
    return {ending: value(found, "arco_staged_creates_total", ending=ending) for ending in ENDINGS}


async def staged(server: Server, name: str) -> dict[str, Any]:
    """The commit that creates a table which was staged under this name."""
    asked = {"name": name, "schema": SCHEMA, "stage-create": True}
    metadata = json.loads((await server.ask("POST", TABLES, asked)).body)["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


def test_a_staged_create_ends_once_and_refused_commits_are_counted_apart() -> None:
    ground = Ground()

    async def run() -> Samples:
        server = ground.server()
        await server.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
        create, late, _never = [await staged(server, name) for name in ("t", "late", "never")]
        key = server.new_key()
        for _ in range(2):  # a retry hears the same, and creates nothing
            assert (await server.ask("POST", f"{TABLES}/t", create, key=False, idempotency_key=key)).status == 200
        assert (await server.ask("POST", f"{TABLES}/t", create)).status == 409
        await ground.clock.sleep(STAGED_INTENT_LIFETIME_S + 1)
        assert (await server.ask("POST", f"{TABLES}/late", late)).status == 409
        await ground.clock.sleep(UPKEEP_GRACE_S + 3 * UPKEEP_CLOCKS_S)
        setting, jobs = Setting(server.catalog.parts), jobs_named(["staged"])
        await upkeep_pass(replace(setting, dry_run=True), jobs)
        for _ in range(2):
            await upkeep_pass(setting, jobs)
        return parsed((await server.ask("GET", "/metrics")).body)

    found = endings(ground.run(run()))
    assert found == {"staged": 3, "created": 1, "abandoned": 2, "refused": 1, "expired": 1}


def test_a_staged_table_that_a_transaction_creates_is_created() -> None:
    ground = Ground()

    async def run() -> Samples:
        server = ground.server()
        await server.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
        change = await staged(server, "t") | {"identifier": {"namespace": ["db"], "name": "t"}}
        assert (await server.ask("POST", f"{PREFIX}/transactions/commit", {"table-changes": [change]})).status == 204
        await server.settle()
        return parsed((await server.ask("GET", "/metrics")).body)

    assert endings(ground.run(run()))["created"] == 1


# What is folded


@pytest.fixture(scope="module")
def ground() -> Iterator[HttpGround]:
    made = HttpGround()
    yield made
    made.state.libraries.close()
    made.close()


@pytest.fixture(scope="module")
def folded(ground: HttpGround) -> Samples:
    return parsed(ground.runner.run(ask(ground.app, "GET", "/metrics")).body)


HOME = {"tenant_id": "default", "workspace_id": "default"}


def test_runs_tasks_and_checks_that_ended_are_told_from_what_is_folded(ground: HttpGround, folded: Samples) -> None:
    states = [one["state"] for one in ground.told("runs", limit=1000)["items"]]
    for outcome in {state for state in states if state != "running"}:
        assert value(folded, "servo_runs_total", outcome=outcome, **HOME) == states.count(outcome)
    assert value(folded, "servo_run_duration_seconds_count", **HOME) <= len(states)
    assert value(folded, "servo_tasks_total", asset_namespace="shop", **HOME) > 0
    assert value(folded, "servo_task_duration_seconds_bucket", asset_namespace="shop", le="+Inf", **HOME) > 0
    assert value(folded, "servo_checks_total", result="passed", **HOME) > 0
    assert value(folded, "servo_catalog_sync_lag_seconds", **HOME) >= 0
    assert not [labels for (name, labels) in folded if name == "servo_runs_total" and ("outcome", "running") in labels]


def test_each_asset_has_its_age_and_its_pass_rate(folded: Samples) -> None:
    assert value(folded, "arco_asset_freshness_seconds", asset_key="shop.orders", **HOME) > 0
    assert 0 <= value(folded, "arco_asset_quality_pass_rate", asset_key="shop.orders", **HOME) <= 1


SYNC = "servo_catalog_sync_duration_seconds"


def test_how_soon_events_could_be_seen_is_told_by_their_type() -> None:
    """From the moment they were appended: what waited for the fold has waited, however quick its pass was."""
    living = Living()
    told = FoldProcess([], {}, living.clock, living.state.metrics.synced)

    def fold_after(seconds: float) -> None:
        living.clock.at_ms += round(seconds * 1000)
        done = living.runner.run(fold_pass(living.folding))
        told._hear(msgspec.json.encode({"warehouse": Scope.of().warehouse, **pass_document(done)}))

    living.happened(created(tasks=3), made("m1"))
    fold_after(0.7)
    fold_after(60)  # nothing was new: nothing is counted
    for task in ("t2", "t3"):
        living.happened(made(f"m-{task}", task=task))
    fold_after(20)
    found = parsed(living.runner.run(ask(living.app, "GET", "/metrics")).body)
    of_outputs = dict(HOME, event_type=MATERIALIZATION_COMPLETED)
    assert value(found, f"{SYNC}_count", event_type=RUN_CREATED, **HOME) == 1
    assert value(found, f"{SYNC}_count", **of_outputs) == 3
    assert [value(found, f"{SYNC}_bucket", le=le, **of_outputs) for le in ("0.5", "1.0", "15.0", "60.0")] == [0, 1, 1, 3]
    assert value(found, f"{SYNC}_sum", **of_outputs) == pytest.approx(0.7 + 21 + 20, abs=0.2)
    living.close()


# Who may look


def test_metrics_are_for_who_has_the_token_also_when_the_server_is_full() -> None:
    ground = HttpGround(published=False)
    setup = Setup(access=Access(Secret("sesame"), this_machine_only=False), bounds=Bounds(requests_at_once=0))
    app = App(ground.state, ground.app._ulids, setup)
    assert ground.runner.run(ask(app, "GET", "/metrics")).status == 401
    answer = ground.runner.run(ask(app, "GET", "/metrics", Authorization="Bearer sesame"))
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert ground.runner.run(ask(app, "GET", "/iceberg/v1/config", Authorization="Bearer sesame")).status == 503
    found = parsed(ground.runner.run(ask(app, "GET", "/metrics", Authorization="Bearer sesame")).body)
    assert value(found, "arco_http_shed_total", reason="requests") == 1
    ground.state.libraries.close()
    ground.close()
