"""The list of assets and the page of one, held against the story they were made from."""

import msgspec
import pytest

from arco.kernel.errors import InvalidInput, NotFound
from arco.read.assets import Filter, asset, assets
from arco.read.pages import Window, snapshot_of
from fixtures.state.shop_story import FOREIGN, ORDERS_TABLE
from fixtures.state.state_world import NOW_MS, day_key
from unit.read.ground import Ground

LIVE = [
    *("ops.events", "ops.features", "ops.model", "ops.new", "ops.ping", "ops.pong", "ops.sessions"),
    *("shop.customers", "shop.dashboard", "shop.orders", "shop.prices", "shop.raw_orders", "shop.report", "shop.revenue"),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), LIVE),
        (Filter(retired=True), sorted([*LIVE, "ops.old"])),
        (Filter(namespace="ops"), [one for one in LIVE if one.startswith("ops.")]),
        (Filter(namespace="op"), []),
        (Filter(tag="core"), ["shop.customers", "shop.orders"]),
        (Filter(owner="bob@example.com"), ["shop.customers", "shop.dashboard"]),
        (Filter(kind="source"), ["ops.events", "shop.raw_orders"]),
        (Filter(project="ops", kind="source"), ["ops.events"]),
    ],
)
def test_a_filter_lets_through_what_it_names(ground: Ground, wanted: Filter, expected: list[str]) -> None:
    assert [one.asset for one in ground.ask(assets, wanted).items] == expected


def test_pages_neither_repeat_nor_skip(ground: Ground) -> None:
    found, cursor = [], None
    for _ in range(len(LIVE)):
        page = ground.ask(assets, window=Window(3, cursor))
        found += [one.asset for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert snapshot_of(cursor) == page.snapshot_id == ground.reader.cut.snapshot_id
    assert found == LIVE
    assert cursor is None


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "eyJhIjoxfQ"])
def test_what_is_no_cursor_is_refused(ground: Ground, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="not a cursor"):
        ground.ask(assets, window=Window(3, cursor))


def test_a_cursor_is_good_for_its_question_alone(ground: Ground) -> None:
    cursor = ground.ask(assets, window=Window(3)).next_cursor
    with pytest.raises(InvalidInput, match="another question"):
        ground.ask(assets, Filter(project="shop"), Window(3, cursor))


@pytest.mark.parametrize("limit", [0, -1, 100_000])
def test_a_page_has_a_size(ground: Ground, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        ground.ask(assets, window=Window(limit))


def test_the_page_of_an_asset_says_what_its_current_partitions_come_to(ground: Ground) -> None:
    page = ground.ask(asset, "shop.orders", NOW_MS)
    current: dict[str, tuple[int, int, str, int]] = {}
    for one in [made for made in ground.world.publishes if made.asset == "shop.orders"]:
        for key in one.keys:
            rank = (one.sequence_number, one.published_ms, one.materialization_id, one.rows)
            current[key] = max(current.get(key, rank), rank)
    assert page.summary.partitions == len(current)
    assert page.summary.rows == sum(rank[3] for rank in current.values())
    assert page.summary.marked == sum(1 for rank in current.values() if rank[0] < FOREIGN)
    assert (page.summary.first_key, page.summary.last_key) == (min(current), max(current))
    newest = max(current.values(), key=lambda rank: rank[1])
    assert page.last_publish is not None
    assert page.last_publish.materialization_id == newest[2]
    assert page.table is not None
    assert (page.table.table_uuid, page.table.schema_id, page.table.external_sequence_number) == (ORDERS_TABLE, 1, FOREIGN)
    assert page.asset.owners == ("ann@example.com",)
    assert page.definition["compatibility"] == "backward"
    assert {one.check_name: one.passed for one in page.checks} == {"not_null(order_id)": True, "unique(order_id)": False}
    assert page.freshness.fresh_within_s == 86_400
    assert day_key(0) in current


def test_an_old_name_finds_the_asset_and_is_called_an_alias(ground: Ground) -> None:
    page = ground.ask(asset, "shop.sales", NOW_MS)
    assert (page.asset.asset, page.alias) == ("shop.orders", "shop.sales")
    assert ground.ask(asset, page.asset.asset_id, NOW_MS).alias is None


@pytest.mark.parametrize(
    ("asked", "near"), [("shop.ordrs", "shop.orders"), ("reveneu", "shop.revenue"), ("OPS.Modle", "ops.model")]
)
def test_what_is_not_there_is_answered_with_what_is_near(ground: Ground, asked: str, near: str) -> None:
    with pytest.raises(NotFound) as refused:
        ground.ask(asset, asked, NOW_MS)
    assert near in refused.value.hint


def test_a_name_without_its_namespace_finds_the_one_that_has_it(ground: Ground) -> None:
    assert ground.ask(asset, "revenue", NOW_MS).asset.asset == "shop.revenue"


def test_an_asset_that_never_ran_has_a_page(ground: Ground) -> None:
    page = ground.ask(asset, "ops.new", NOW_MS)
    assert (page.table, page.last_publish, page.summary.partitions, page.status) == (None, None, 0, "unknown")


def test_an_asset_whose_table_was_made_again_has_the_new_one(ground: Ground) -> None:
    page = ground.ask(asset, "shop.prices", NOW_MS)
    assert page.table is not None
    assert page.table.table_uuid == "0" * 31 + "c"
    assert page.summary.partitions == 2


def test_every_answer_can_be_said_in_json_and_read_back(ground: Ground) -> None:
    page = ground.ask(asset, "shop.orders", NOW_MS)
    assert msgspec.json.decode(msgspec.json.encode(page), type=type(page)) == page
