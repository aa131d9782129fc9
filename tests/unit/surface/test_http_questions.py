"""`GET /api/v1`: every question over HTTP says what the room behind it says, of one snapshot, in the shape that is described."""

from collections.abc import Iterator
from typing import Any

import pytest

from fixtures.state.shop_story import FAILED_RUN
from fixtures.state.state_world import DAY_MS, NOW_MS, day_key
from unit.surface.http_ground import HttpGround

ORDERS = "assets/shop.orders"


@pytest.fixture(scope="module")
def ground() -> Iterator[HttpGround]:
    made = HttpGround()
    yield made
    made.close()


# What there is to ask


def test_the_snapshot_is_shown_with_its_heads_and_tables(ground: HttpGround) -> None:
    found = ground.told("catalog/snapshot")
    assert (found["snapshot"], found["fresh"], found["warning"], found["ingestion"]) == (ground.snapshot, False, None, None)
    assert found["published_at"] == "2025-03-21T06:00:00Z"
    assert {one["head"] for one in found["heads"]} == {"assets", "execution", "iceberg", "lineage", "quality", "search"}
    tables = {one["table"]: one for one in found["tables"]}
    assert (tables["assets"]["rows"], tables["assets"]["files"], tables["assets"]["layers"]) == (15, 2, 1)
    assert tables["assets"]["bytes"] > 0


def test_the_snapshot_has_every_asset_with_its_last_materialization_and_its_schema(ground: HttpGround) -> None:
    found = ground.told("catalog/snapshot", limit=1000)
    assert [one["asset"] for one in found["assets"]] == sorted(name for name in ground.world.ids if name != "ops.old")
    by_name = {one["asset"]: one for one in found["assets"]}
    orders, made = by_name["shop.orders"], by_name["shop.orders"]["materialization"]
    assert orders["partitions"] == len(ground.told(f"{ORDERS}/partitions", limit=1000)["items"])
    last = ground.told(ORDERS)["last_publish"]
    assert (made["materialization_id"], made["run_id"], made["published_at"]) == (
        last["materialization_id"], last["run_id"], last["published_at"],
    )  # fmt: skip
    version = ground.told(f"{ORDERS}/versions", partition=made["partition_key"])["versions"][0]
    assert {name: made[name] for name in ("rows", "bytes", "files", "snapshot_id", "schema_id", "quality")} == {
        name: version[name] for name in ("rows", "bytes", "files", "snapshot_id", "schema_id", "quality")
    }
    assert (orders["schema"]["schema_id"], orders["schema"]["table_uuid"]) == (1, made["table_uuid"])
    for name in ("shop.orders", "shop.customers", "ops.new", "shop.raw_orders"):
        columns = ground.told(f"assets/{name}/columns")["columns"]
        assert (by_name[name]["schema"] or {"columns": []})["columns"] == columns
    assert (by_name["ops.new"]["materialization"], by_name["ops.new"]["partitions"]) == (None, 0)


def test_the_snapshot_is_paged_and_asked_for_some_assets_by_their_ids(ground: HttpGround) -> None:
    whole = ground.told("catalog/snapshot", limit=1000)["assets"]
    paged, cursor = list[Any](), None
    while cursor is not None or not paged:
        page = ground.told("catalog/snapshot", limit=4, **({} if cursor is None else {"cursor": cursor}))
        assert page["snapshot"] == ground.snapshot
        paged += page["assets"]
        cursor = page["next_cursor"]
    assert paged == whole
    ids = [ground.world.ids[name] for name in ("shop.orders", "ops.old")]
    some = ground.told("catalog/snapshot", asset_ids=",".join([*ids, "01JCW4ZZZZ0000000000009999"]))
    assert [(one["asset"], one["retired"]) for one in some["assets"]] == [("ops.old", True), ("shop.orders", False)]
    assert some["assets"][1] == next(one for one in whole if one["asset"] == "shop.orders")
    assert "asset_ids" in ground.problem("catalog/snapshot", asset_ids=",")["detail"]
    assert "asset_ids" in ground.problem("catalog/snapshot", asset_ids=",".join(map(str, range(1001))))["detail"]


def test_assets_are_listed_filtered_and_shown(ground: HttpGround) -> None:
    def names(**query: Any) -> list[str]:
        return [one["asset"] for one in ground.told("assets", **query)["items"]]

    everything = sorted(name for name in ground.world.ids if name != "ops.old")
    assert names() == everything
    assert names(retired=True) == sorted(ground.world.ids)
    assert names(namespace="shop") == [name for name in everything if name.startswith("shop.")]
    assert names(tag="ml") == names(owner="cy@example.com") == ["ops.features", "ops.model"]
    assert names(kind="source") == ["ops.events", "shop.raw_orders"]
    assert names(project="ops", tag="beta") == ["ops.new"]
    page = ground.told(ORDERS)
    assert page["snapshot"] == ground.snapshot
    assert (page["asset"]["asset"], page["alias"], page["former_names"]) == ("shop.orders", None, ["shop.sales"])
    assert page["table"]["external_principal"] == "spark-sql"
    assert ground.told("assets/shop.sales")["alias"] == "shop.sales"
    assert ground.told(f"assets/{ground.world.ids['shop.orders']}")["asset"] == page["asset"]


def test_schemas_and_their_history_are_shown_and_compared(ground: HttpGround) -> None:
    columns = ground.told(f"{ORDERS}/columns")
    assert (columns["source"], [one["path"] for one in columns["columns"]]) == ("table", ["order_id", "total", "currency"])
    history = ground.told(f"{ORDERS}/schemas")
    assert [(one["schema_id"], one["current"]) for one in history["table"]] == [(1, True), (0, False)]
    assert [one["schema_hash"] for one in history["declared"]] == ["feed01"]
    diff = ground.told(f"{ORDERS}/schemas/diff", before="0", after="1")
    assert (diff["mode"], diff["allowed"]) == ("backward", True)
    assert [(one["kind"], one["column"]) for one in diff["changes"]] == [
        ("drop a column", "memo"),
        ("rename a column", "total"),
        ("widen a type", "total"),
        ("add an optional column", "currency"),
    ]
    strict = ground.told(f"{ORDERS}/schemas/diff", before="0", after="1", mode="full")
    assert (strict["mode"], strict["allowed"]) == ("full", False)


def test_partitions_versions_and_materializations_are_shown_and_compared(ground: HttpGround) -> None:
    keys = [one["partition_key"] for one in ground.told(f"{ORDERS}/partitions")["items"]]
    published = {key for one in ground.world.publishes if one.asset == "shop.orders" for key in one.keys}
    assert keys == sorted(published)
    key = day_key(0)
    made = [one for one in ground.world.publishes if one.asset == "shop.orders" and key in one.keys]
    versions = ground.told(f"{ORDERS}/versions", partition=key)
    assert [one["number"] for one in versions["versions"]] == list(range(len(made), 0, -1))
    by_id = ground.told(f"{ORDERS}/versions", partition=versions["versions"][0]["partition_id"])
    assert by_id == versions
    diff = ground.told(f"{ORDERS}/versions/diff", partition=key, before="1", after=str(len(made)))
    assert diff["rows"] == {"before": made[0].rows, "after": made[-1].rows, "change": made[-1].rows - made[0].rows}
    every = ground.told(f"{ORDERS}/materializations", limit=1000)["items"]
    assert len(every) == sum(len(one.keys) for one in ground.world.publishes if one.asset == "shop.orders")


def test_an_asset_without_partitions_has_one_with_an_empty_key(ground: HttpGround) -> None:
    versions = ground.told("assets/shop.customers/versions", partition="")
    assert (versions["partition_key"], len(versions["versions"])) == ("", 1)


def test_checks_are_shown_with_their_history(ground: HttpGround) -> None:
    latest = ground.told(f"{ORDERS}/checks")["checks"]
    assert [(one["check_name"], one["passed"]) for one in latest] == [
        ("unique(order_id)", False),
        ("not_null(order_id)", True),
    ]
    history = ground.told(f"{ORDERS}/checks/history", check="not_null(order_id)")["items"]
    assert [one["passed"] for one in history] == [True, False, True]


def test_lineage_is_walked_both_ways_with_columns_and_counts(ground: HttpGround) -> None:
    up = ground.told("assets/shop.revenue/lineage", depth=2)
    assert (up["direction"], {one["name"] for one in up["nodes"]}) == (
        "upstream",
        {"shop.revenue", "shop.orders", "shop.customers", "shop.raw_orders"},
    )
    assert (up["columns"], up["executions"]) == ([], None)
    down = ground.told(f"{ORDERS}/lineage", direction="downstream", depth=10, columns=True, executions=True)
    assert [one["name"] for one in down["nodes"]] == ["shop.orders", "shop.revenue", "shop.report", "shop.dashboard"]
    assert [(one["source_column"], one["target_column"]) for one in down["columns"]] == [("total", "revenue")]
    assert set(down["executions"].values()) == {1}
    steps = ground.told("assets/shop.report/lineage/partition", partition=day_key(3), depth=5)["steps"]
    assert {one["source"] for one in steps} >= {"shop.revenue", "shop.orders", "shop.customers"}


def test_a_partition_is_named_as_people_or_as_the_state_spell_it(ground: HttpGround) -> None:
    short = day_key(3).replace("d:", "")
    for path in ("versions", "lineage/partition", "impact"):
        assert ground.told(f"{ORDERS}/{path}", partition=short) == ground.told(f"{ORDERS}/{path}", partition=day_key(3))


def test_who_is_hit_is_told_of_an_asset_and_of_a_partition(ground: HttpGround) -> None:
    hit = ground.told(f"{ORDERS}/impact")
    assert [one["asset"] for one in hit["affected"]] == ["shop.revenue", "shop.report", "shop.dashboard"]
    assert hit["owners"] == ["ann@example.com", "bob@example.com"]
    assert [one["asset"] for one in ground.told(f"{ORDERS}/impact", depth=1)["affected"]] == ["shop.revenue"]
    of_one = ground.told("assets/shop.revenue/impact", partition=day_key(3))
    assert [one["asset"] for one in of_one["affected"]] == ["shop.report", "shop.dashboard"]
    assert of_one["affected"][0]["partitions"]


def test_health_is_computed_for_the_time_of_asking(ground: HttpGround) -> None:
    found = ground.told("health")
    assert found["computed_at"] == "2025-03-21T06:00:00Z"
    status = {one["asset"]: one["status"] for one in found["health"]}
    assert (status["shop.dashboard"], status["ops.features"], status["ops.new"]) == ("unhealthy", "unhealthy", "unknown")
    assert [one["asset"] for one in ground.told("health", tag="ml")["health"]] == ["ops.features", "ops.model"]
    (one,) = ground.told("assets/shop.dashboard/health")["health"]
    assert one["status"] == "unhealthy"


def test_promises_are_shown_with_whether_they_are_kept(ground: HttpGround) -> None:
    found = {one["asset"]: one for one in ground.told("sla")["sla"]}
    promised = {"shop.orders", "shop.dashboard", "ops.sessions", "ops.model"}
    assert found.keys() == promised
    assert (found["ops.sessions"]["state"], found["ops.model"]["state"]) == ("missed", "met")
    # Published two days ago, and to be fresh within two hours.
    assert found["ops.sessions"]["late_s"] == 2 * 86_400 - 7200
    assert found["ops.model"]["late_s"] is None
    (one,) = ground.told("assets/shop.report/sla")["sla"]
    assert (one["state"], one["late_s"], one["freshness"]["fresh_within_s"]) == ("none", None, None)


def test_an_explanation_leads_to_where_it_begins(ground: HttpGround) -> None:
    found = ground.told("assets/shop.dashboard/explain")
    assert [(one["kind"], one["asset"]) for one in found["causes"]] == [
        ("failed_task", "shop.revenue"),
        ("missing_partitions", "shop.dashboard"),
    ]
    assert found["recommendations"][0]["action"].startswith("correct the code")


def test_runs_are_shown_with_their_tasks_and_exactly_what_they_published(ground: HttpGround) -> None:
    runs = ground.told("runs")["items"]
    assert [one["created_at"] for one in runs] == sorted((one["created_at"] for one in runs), reverse=True)
    assert [one["run_id"] for one in ground.told("runs", state="failed", project="shop")["items"]] == [FAILED_RUN]
    page = ground.told(f"runs/{FAILED_RUN}")
    assert (page["run"]["state"], len(page["tasks"])) == ("failed", 4)
    tasks = ground.told(f"runs/{FAILED_RUN}/tasks")["items"]
    assert [one["asset"] for one in tasks] == ["shop.customers", "shop.dashboard", "shop.report", "shop.revenue"]
    assert [one["asset"] for one in ground.told(f"runs/{FAILED_RUN}/tasks", state="failed")["items"]] == ["shop.revenue"]
    outputs = ground.told(f"runs/{FAILED_RUN}/outputs")
    assert [(one["asset"], one["partition_key"]) for one in outputs["outputs"]] == [("shop.customers", "")]


def test_search_finds_beginnings_and_words_that_are_nearly_right(ground: HttpGround) -> None:
    assert [one["name"] for one in ground.told("search", q="dashb")["hits"]] == ["shop.dashboard"]
    found = ground.told("search", q="revenu daschboard", namespace="shop", limit=3)
    assert {one["name"] for one in found["hits"]} >= {"shop.dashboard", "shop.revenue"}
    assert found["corrected"] == {"daschboard": ["dashboard"]}


# Pages


def test_the_pages_of_a_list_hold_everything_once(ground: HttpGround) -> None:
    for path in ("assets", f"{ORDERS}/materializations", "runs", f"runs/{FAILED_RUN}/tasks"):
        whole = ground.told(path, limit=1000)
        assert whole["next_cursor"] is None
        items, cursor = [], None
        while True:
            page = ground.told(path, limit=3, **({} if cursor is None else {"cursor": cursor}))
            items += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
            assert len(page["items"]) == 3
        assert items == whole["items"]
    pages = ground.told("health", limit=2), ground.told("sla", limit=2)
    assert all(page["next_cursor"] for page in pages)


# What is wrong with a question


@pytest.mark.parametrize(
    ("path", "query", "status", "says"),
    [
        ("assets/shop.order", {}, 404, "no asset"),
        ("assets/", {}, 404, "no asset"),
        (f"{ORDERS}/versions", {"partition": "date=d:1999-01-01"}, 404, "no partition"),
        (f"{ORDERS}/versions", {"partition": "nonsense"}, 400, "partition"),
        (f"{ORDERS}/versions", {}, 400, "query parameter partition is missing"),
        (f"{ORDERS}/versions/diff", {"partition": day_key(0), "before": "1", "after": "99"}, 404, "99"),
        (f"{ORDERS}/schemas/diff", {"before": "0", "after": "7"}, 404, "7"),
        (f"{ORDERS}/schemas/diff", {"before": "0", "after": "feed01"}, 400, "differently"),
        (f"{ORDERS}/schemas/diff", {"before": "0", "after": "1", "mode": "lax"}, 400, "mode='lax' is not known"),
        (f"{ORDERS}/lineage", {"direction": "sideways"}, 400, "one of upstream, downstream"),
        (f"{ORDERS}/lineage", {"depth": "0"}, 400, "depth='0'"),
        (f"{ORDERS}/lineage", {"depth": "deep"}, 400, "depth='deep'"),
        (f"{ORDERS}/lineage", {"columns": "perhaps"}, 400, "columns='perhaps'"),
        ("assets", {"limit": "1001"}, 400, "limit='1001'"),
        ("assets", {"cursor": "zz"}, 400, "not a cursor"),
        ("assets", {"colour": "red"}, 400, "query parameter 'colour' is not known here; it takes"),
        ("assets", {"as_of": "yesterday"}, 400, "no moment"),
        ("assets", {"as_of": "2025-03-21T06:00:00 02:00"}, 400, "no moment"),
        ("assets", {"as_of": "9" * 20}, 400, "9999"),
        ("assets", {"snapshot": "../../secrets"}, 400, "snapshot id"),
        ("assets", {"snapshot": "01JCW4ZZZZ0000000000000001"}, 404, "no snapshot"),
        ("assets", {"snapshot": "01JCW4ZZZZ0000000000000001", "fresh": "true"}, 400, "one state"),
        ("assets", {"warehouse": "nonsense"}, 400, "warehouse"),
        ("assets", {"namespace": "a\0b"}, 400, "control character"),
        ("runs/nothing", {}, 404, "no run"),
        ("runs/nothing'; DROP TABLE x; --", {}, 404, "no run"),
        ("search", {"q": ""}, 400, "no word"),
        ("search", {}, 400, "query parameter q is missing"),
        ("search", {"q": "x" * 1001}, 400, "q="),
        ("catalog/diff", {"before": "01JCW4ZZZZ0000000000000001"}, 404, "no snapshot"),
        ("catalog/diff", {}, 400, "query parameter before is missing"),
    ],
)
def test_a_wrong_question_gets_a_precise_refusal(
    ground: HttpGround, path: str, query: dict[str, str], status: int, says: str
) -> None:
    found = ground.problem(path, **query)
    assert (found["status"], says in found["detail"]) == (status, True), found


def test_what_is_not_there_is_answered_with_what_is_near(ground: HttpGround) -> None:
    assert "shop.orders" in ground.problem("assets/shop.order")["hint"]
    assert FAILED_RUN in ground.problem(f"runs/{FAILED_RUN[:-1]}X")["hint"]


def test_each_workspace_has_its_own_state(ground: HttpGround) -> None:
    found = ground.told("assets", warehouse="default/another")
    assert (found["snapshot"], found["items"]) == ("", [])
    assert ground.problem(ORDERS, warehouse="default/another")["status"] == 404


def test_the_past_is_judged_by_its_own_time(ground: HttpGround) -> None:
    now = {one["asset"]: one["state"] for one in ground.told("sla", as_of=str(NOW_MS + 1))["sla"]}
    ground.clock.at_ms = NOW_MS + 30 * DAY_MS
    try:
        late = {one["asset"]: one["state"] for one in ground.told("sla")["sla"]}
        then = {one["asset"]: one["state"] for one in ground.told("sla", snapshot=ground.snapshot)["sla"]}
    finally:
        ground.clock.at_ms = NOW_MS
    assert set(late.values()) == {"missed"}
    assert then == now != late
