"""Partitions, versions and outputs of runs, worked out again in plain Python from what was published."""

import pytest

from arco.kernel.errors import InvalidInput, NotFound
from arco.read.diff_versions import version_diff
from arco.read.pages import Window
from arco.read.partitions import materializations, partitions, versions
from arco.read.runs import run, run_outputs, runs
from fixtures.state.shop_story import FAILED_RUN, FOREIGN, ORDERS_TABLE, PRICES_NEW
from fixtures.state.state_world import Publish, World, day_key
from unit.read.ground import Ground


def history(world: World, asset: str, key: str, table_uuid: str) -> list[Publish]:
    """The publishes of one partition in one table, in the order that decides what is current."""
    found = [one for one in world.publishes if one.asset == asset and one.table_uuid == table_uuid and key in one.keys]
    return sorted(found, key=lambda one: (one.sequence_number, one.published_ms, one.materialization_id))


def test_current_is_the_greatest_publish_whatever_came_last(ground: Ground) -> None:
    found = ground.ask(partitions, "shop.orders").items
    keys = {key for one in ground.world.publishes if one.asset == "shop.orders" for key in one.keys}
    assert [one.partition_key for one in found] == sorted(keys)
    for one in found:
        newest = history(ground.world, "shop.orders", one.partition_key, ORDERS_TABLE)[-1]
        assert (one.materialization_id, one.rows) == (newest.materialization_id, newest.rows)
        assert one.marked == (newest.sequence_number < FOREIGN)
    assert {one.marked for one in found} == {True, False}


def test_only_the_newest_table_has_current_partitions(ground: Ground) -> None:
    found = ground.ask(partitions, "shop.prices").items
    assert [(one.partition_key, one.table_uuid) for one in found] == [(day_key(0), PRICES_NEW), (day_key(1), PRICES_NEW)]
    old = ground.ask(versions, "shop.prices", day_key(4)).versions
    assert [one.number for one in old] == [3, 2, 1]
    assert not any(one.current for one in old)


def test_versions_are_counted_in_the_order_that_decides(ground: Ground) -> None:
    key = day_key(0)
    expected = history(ground.world, "shop.orders", key, ORDERS_TABLE)
    found = ground.ask(versions, "shop.orders", key).versions
    assert [one.materialization_id for one in found] == [one.materialization_id for one in reversed(expected)]
    assert [one.number for one in found] == list(range(len(expected), 0, -1))
    assert [one.current for one in found] == [True] + [False] * (len(expected) - 1)


def test_a_partition_of_two_tables_has_one_line_of_versions(ground: Ground) -> None:
    found = ground.ask(versions, "shop.prices", day_key(0)).versions
    assert [(one.number, one.current, one.table_uuid == PRICES_NEW) for one in found] == [
        (4, True, True), (3, False, False), (2, False, False), (1, False, False),
    ]  # fmt: skip


def test_everything_published_is_listed_once_newest_first(ground: Ground) -> None:
    expected = [
        (one.published_ms, one.materialization_id, key)
        for one in ground.world.publishes
        if one.asset == "shop.orders"
        for key in one.keys
    ]
    found, cursor = [], None
    while True:
        page = ground.ask(materializations, "shop.orders", Window(7, cursor))
        found += [(one.materialization_id, one.partition_key) for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(found) == sorted((one, key) for _, one, key in expected)
    times = {one: at for at, one, _ in expected}
    assert [times[one] for one, _ in found] == sorted((times[one] for one, _ in found), reverse=True)


def test_a_partition_that_is_not_there_is_answered_with_a_near_one(ground: Ground) -> None:
    with pytest.raises(NotFound) as refused:
        ground.ask(versions, "shop.orders", "date=d:2025-04-01")
    assert "date=d:2025-03" in refused.value.hint
    with pytest.raises(InvalidInput, match="names no dimension of its partitions"):
        ground.ask(versions, "shop.orders", "yesterday")


def test_two_versions_differ_in_what_was_put_in(ground: Ground) -> None:
    key = day_key(0)
    known = history(ground.world, "shop.orders", key, ORDERS_TABLE)
    first, last = known[0], known[-1]
    found = ground.ask(version_diff, "shop.orders", key, "1", last.materialization_id)
    assert found.rows.change == last.rows - first.rows
    assert found.bytes.change == (last.rows - first.rows) * 10
    assert found.code_changed == (first.code != last.code)
    assert found.schema_changed == (first.schema_id != last.schema_id)
    assert found.inputs["raw"].before == first.inputs["raw"]
    assert found.inputs["raw"].after == last.inputs["raw"]
    assert found.between_s == (last.published_ms - first.published_ms) / 1000
    with pytest.raises(NotFound):
        ground.ask(version_diff, "shop.orders", key, "1", "99")


def test_a_run_has_its_tasks_and_strictly_its_outputs(ground: Ground) -> None:
    page = ground.ask(run, FAILED_RUN)
    assert (page.run.state, page.run.project, page.run.task_states) == ("failed", "shop", {"failed": 4})
    states = {one.asset: one.state for one in page.tasks}
    assert states == {
        "shop.customers": "succeeded", "shop.revenue": "failed", "shop.report": "skipped", "shop.dashboard": "skipped",
    }  # fmt: skip
    outputs = ground.ask(run_outputs, FAILED_RUN)
    assert [(one.asset, one.partition_key) for one in outputs.outputs] == [("shop.customers", "")]
    assert outputs.held == ()


def test_outputs_are_those_of_the_run_even_where_others_are_current(ground: Ground) -> None:
    """The runs of orders were never announced: only their outputs tell of them, so no task can lead there."""
    known = {row["run_id"] for row in ground.world.rows["runs"]}
    made = next(one for one in ground.world.publishes if one.asset == "ops.features")
    assert made.run in known
    outputs = ground.ask(run_outputs, made.run).outputs
    assert {(one.asset, one.partition_key) for one in outputs} == {("ops.features", key) for key in made.keys}


def test_runs_are_listed_newest_first_by_project_and_state(ground: Ground) -> None:
    begun = {row["run_id"]: row["created_at"] for row in ground.world.rows["runs"] if row["created_at"]}
    project = {row["run_id"]: row["project"] for row in ground.world.rows["runs"] if row["project"]}
    found = [one.run_id for one in ground.ask(runs).items]
    assert found == sorted(begun, key=lambda one: (begun[one], one), reverse=True)
    shop = [one.run_id for one in ground.ask(runs, project="shop").items]
    assert shop == [one for one in found if project[one] == "shop"]
    assert [one.run_id for one in ground.ask(runs, state="failed").items] == [FAILED_RUN]


def test_a_run_that_is_not_there_is_answered_with_a_near_one(ground: Ground) -> None:
    with pytest.raises(NotFound) as refused:
        ground.ask(run, FAILED_RUN[:-1] + "U")
    assert FAILED_RUN in refused.value.hint
