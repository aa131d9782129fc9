"""Lineage and impact, compared with walks over the plain list of edges."""

import json

import pytest

from arco.kernel.errors import InvalidInput
from arco.read.boxes import overlaps
from arco.read.graph import Direction, walked
from arco.read.impact import impact
from arco.read.lineage import Extras, lineage
from arco.read.partition_lineage import partition_lineage
from fixtures.state.state_world import DAYS, World, day_key, days
from unit.read.ground import Ground

UP, DOWN = Direction.UPSTREAM, Direction.DOWNSTREAM


def reached(world: World, start: str, direction: Direction, depth: int) -> dict[str, int]:
    found = {start: 0}
    for level in range(1, depth + 1):
        for edge_id, source, target in world.edges:
            here, there = (target, source) if direction is UP else (source, target)
            if edge_id not in world.removed and found.get(here) == level - 1 and there not in found:
                found[there] = level
    return found


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("depth", [1, 2, 10])
@pytest.mark.parametrize("asset", ["shop.dashboard", "shop.orders", "shop.customers", "ops.ping", "ops.new"])
def test_a_walk_meets_what_a_plain_walk_meets(ground: Ground, asset: str, direction: Direction, depth: int) -> None:
    found = ground.ask(lineage, asset, direction, depth=depth)
    expected = reached(ground.world, asset, direction, depth)
    assert {one.name: one.depth for one in found.nodes} == expected
    assert [one.depth for one in found.nodes] == sorted(one.depth for one in found.nodes)
    within = {
        edge_id
        for edge_id, source, target in ground.world.edges
        if edge_id not in ground.world.removed
        and expected.get(target if direction is UP else source, depth) < depth
        and source in expected
        and target in expected
    }
    assert {one.edge_id for one in found.edges} == within
    assert len(found.edges) == len(within)


def test_places_outside_are_called_what_they_are(ground: Ground) -> None:
    found = ground.ask(lineage, "shop.raw_orders", UP)
    assert [(one.name, one.kind) for one in found.nodes[1:]] == [("s3://landing/orders", "files")]


def test_executions_are_counted_by_distinct_rows(ground: Ground) -> None:
    found = ground.ask(lineage, "shop.revenue", UP, depth=3, extras=Extras(columns=True, executions=True))
    assert found.executions is not None
    for edge_id, times in found.executions.items():
        same = {(one["run_id"], one["task_id"]) for one in ground.world.executions if one["edge_id"] == edge_id}
        assert times == len(same)
    assert max(found.executions.values()) == DAYS
    assert [(one.source_column, one.target_column, one.transform) for one in found.columns] == [("total", "revenue", "sum")]


def test_a_walk_that_is_cut_off_says_so(ground: Ground) -> None:
    async def short(reader: object) -> object:
        return await walked(ground.reader, ground.world.ids["shop.dashboard"], UP, depth=10, nodes_max=3)

    found = ground.ask(short)
    assert found.truncated  # type: ignore[attr-defined]
    assert len(found.depths) == 3  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="depth"):
        ground.ask(lineage, "shop.orders", UP, depth=0)


def test_a_partition_is_made_of_what_its_current_publish_read(ground: Ground) -> None:
    key = day_key(3)
    found = ground.ask(partition_lineage, "shop.orders", key, UP).steps
    made = max(
        (one for one in ground.world.publishes if one.asset == "shop.orders" and key in one.keys),
        key=lambda one: (one.sequence_number, one.published_ms, one.materialization_id),
    )
    assert [(one.source, one.materialization_id, one.source_partitions) for one in found] == [
        ("shop.raw_orders", made.materialization_id, days(made.first, made.end))
    ]


def test_lineage_of_a_partition_goes_on_upstream(ground: Ground) -> None:
    steps = ground.ask(partition_lineage, "shop.dashboard", day_key(3), UP, depth=10).steps
    assert [one.depth for one in steps] == sorted(one.depth for one in steps)
    assert {(one.depth, one.source, one.target) for one in steps} == {
        (1, "shop.report", "shop.dashboard"), (2, "shop.revenue", "shop.report"), (3, "shop.orders", "shop.revenue"),
        (3, "shop.customers", "shop.revenue"), (4, "shop.raw_orders", "shop.orders"),
    }  # fmt: skip
    current = {
        max(
            (one for one in ground.world.publishes if one.asset == "shop.orders" and day_key(day) in one.keys),
            key=lambda one: (one.sequence_number, one.published_ms, one.materialization_id),
        ).materialization_id
        for day in range(DAYS - 1)
        if any(one.asset == "shop.orders" and day_key(day) in one.keys for one in ground.world.publishes)
    }
    assert {one.materialization_id for one in steps if one.depth == 4} == current


def test_lineage_of_a_partition_goes_downstream_by_ranges_that_meet(ground: Ground) -> None:
    steps = ground.ask(partition_lineage, "shop.orders", day_key(2), DOWN, depth=10).steps
    assert [(one.depth, one.target) for one in steps] == [(1, "shop.revenue"), (2, "shop.report"), (3, "shop.dashboard")]
    read = json.loads(
        next(one["source_partitions"] for one in ground.world.executions if one["edge_id"] == steps[0].edge_id)
    )
    assert overlaps(read, days(2, 3))
    assert ground.ask(partition_lineage, "shop.orders", day_key(DAYS - 1), DOWN).steps == ()


def test_impact_names_owners_and_deadlines(ground: Ground) -> None:
    found = ground.ask(impact, "shop.orders")
    assert [(one.asset, one.depth) for one in found.affected] == [
        ("shop.revenue", 1), ("shop.report", 2), ("shop.dashboard", 3),
    ]  # fmt: skip
    assert found.owners == ("ann@example.com", "bob@example.com")
    last = next(one for one in ground.world.publishes if one.asset == "shop.dashboard")
    assert found.next_deadline is not None
    assert found.next_deadline.timestamp() * 1000 == last.published_ms + 43_200_000
    assert ground.ask(impact, "shop.dashboard").affected == ()


def test_impact_of_a_partition_is_what_was_made_of_it(ground: Ground) -> None:
    found = ground.ask(impact, "shop.orders", partition=day_key(2))
    assert [(one.asset, one.partitions) for one in found.affected] == [
        (asset, [days(0, DAYS - 1)]) for asset in ("shop.revenue", "shop.report", "shop.dashboard")
    ]
    assert ground.ask(impact, "shop.orders", partition=day_key(DAYS - 1)).affected == ()


def test_the_impact_of_a_cycle_ends(ground: Ground) -> None:
    assert [one.asset for one in ground.ask(impact, "ops.ping").affected] == ["ops.pong"]
