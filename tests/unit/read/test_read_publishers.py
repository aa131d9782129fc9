"""What others say they published counts where nothing gainsays it: the catalog knows the snapshots of its tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arco.fold import tables as t
from arco.kernel.retention import PARTITION_VERSIONS_MIN
from arco.read.agreement import Truths, disagreements
from arco.read.assets import asset, health
from arco.read.health import Status
from arco.read.partitions import partitions, versions
from arco.read.version_snapshots import versions_by_snapshot
from fixtures.state.shop_story import PRICES_NEW, told
from fixtures.state.state_world import NOW_MS, Publish, World, day_key, opened
from unit.read.ground import Ground

ASSET = "shop.prices"
DAYS = [day_key(0), day_key(1)]
ELSEWHERE = "0192e1d0-0000-7000-8000-0000000000ff"
FORGED = 9_000_000_000


@pytest.fixture
def world() -> World:
    return told()


@pytest.fixture
def open_world(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def play(world: World) -> Ground:
        ground = Ground(world, opened(world, tmp_path))
        ground.__enter__()
        request.addfinalizer(ground.__exit__)
        return ground

    return play


def claim(world: World, first: int, end: int, **said: Any) -> Publish:
    """A publish that another system posts, as the fold keeps it: below everything that Servo says."""
    mine = [one for one in world.publishes if one.asset == ASSET][-1]
    number = said.pop("number", FORGED)
    words = {"materialization_id": f"forged {first} {number}", "sequence_number": number, "published_ms": NOW_MS + 9_000}
    one = replace(mine, first=first, end=end, **(words | said))
    before = {table.name: len(world.rows[table.name]) for table in (t.PARTITIONS, t.MATERIALIZATIONS)}
    world.deliver(one)
    for name, count in before.items():
        for row in world.rows[name][count:]:
            row["told_by"] = "evil"
            for group, prefix in (("current", "-:"), ("begun", "~:"), ("published", "~:")):
                if row.get(f"{group}_order") is not None:
                    row[f"{group}_order"] = prefix + row[f"{group}_order"]
    return one


def shown(ground: Ground) -> list[str]:
    return [one.partition_key for one in ground.ask(partitions, ASSET).items]


def test_a_snapshot_that_the_table_never_had_is_no_publish(world: World, open_world: Any) -> None:
    claim(world, 5, 6)
    ground = open_world(world)
    assert shown(ground) == DAYS
    (version,) = [one for one in ground.ask(versions, ASSET, day_key(5)).versions if one.sequence_number == FORGED]
    assert not version.current, "it is kept, with whose word it is, and is current nowhere"
    (found,) = ground.ask(health, ASSET, NOW_MS).health
    assert found.status is Status.HEALTHY
    assert ground.ask(asset, ASSET, NOW_MS).summary.partitions == len(DAYS)


def test_a_snapshot_that_the_table_has_is_one(world: World, open_world: Any) -> None:
    one = claim(world, 5, 6, number=7)
    key = {"table_uuid": PRICES_NEW, "commit_key": "k"}
    world.add(t.ICEBERG_COMMITS, key, "committed", snapshot_id=one.sequence_number * 1000, source="external")
    assert shown(open_world(world)) == [*DAYS, day_key(5)]


def test_a_table_that_others_name_does_not_take_the_place_of_the_asset_s_own(world: World, open_world: Any) -> None:
    claim(world, 0, 6, table_uuid=ELSEWHERE)
    ground = open_world(world)
    assert shown(ground) == DAYS
    page = ground.ask(asset, ASSET, NOW_MS)
    assert (page.table.table_uuid if page.table else None, page.summary.partitions) == (PRICES_NEW, len(DAYS))


def test_what_the_catalog_knows_nothing_of_is_as_others_say(world: World, open_world: Any) -> None:
    world.asset("shop.elsewhere")
    one = replace(claim(world, 0, 1), asset="shop.elsewhere", table_uuid=ELSEWHERE)
    world.deliver(one)
    for row in (*world.rows["partitions"][-2:], world.rows["materializations"][-1]):
        row["told_by"] = "airflow"
    found = open_world(world).ask(partitions, "shop.elsewhere").items
    assert [(part.partition_key, part.materialization_id) for part in found] == [(day_key(0), one.materialization_id)]


def test_the_current_version_is_servo_s_and_the_state_agrees_with_itself(world: World, open_world: Any) -> None:
    mine = [one for one in world.publishes if one.asset == ASSET][-1]
    claim(world, mine.first, mine.end)
    ground = open_world(world)
    for key in mine.keys:
        current = [one.materialization_id for one in ground.ask(versions, ASSET, key).versions if one.current]
        assert current == [mine.materialization_id]
    assert [one for one in ground.ask(disagreements, Truths()) if one.about == "partition"] == []


def test_what_others_claim_pushes_no_version_of_servo_s_out(world: World, open_world: Any) -> None:
    before = open_world(world).ask(versions_by_snapshot, PRICES_NEW, NOW_MS)
    for number in range(PARTITION_VERSIONS_MIN + 200):
        claim(world, 0, 2, number=FORGED + number)
    after = open_world(world).ask(versions_by_snapshot, PRICES_NEW, NOW_MS)
    assert {one: after[one].kept for one in before} == {one: found.kept for one, found in before.items()}
