"""What people hold back by hand is seen in health, in explanations and in the partitions, until somebody lets it go."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arco.fold import tables as t
from arco.fold.arrow_joins import joined
from arco.fold.arrow_rows import arrow_table, conformed
from arco.read.assets import health
from arco.read.causes import CauseKind
from arco.read.explain import explain
from arco.read.health import Status
from arco.read.partitions import partitions
from fixtures.state.shop_story import told
from fixtures.state.state_world import DAY_MS, NOW_MS, World, day_key, days, opened
from unit.read.ground import Ground

ASSET = "shop.prices"  # it is well but for what is said here; its table was made again, and has two days now
FIRST, END = 0, 2
WHY = "prices of the old list"


def say(world: World, first: int, end: int, at_ms: int, *, quarantined: bool, version: str | None = "") -> None:
    ranges = json.dumps(days(first, end))
    key = {"asset_id": world.ids[ASSET], "partitions": ranges, "materialization_id": version}
    world.add(t.QUARANTINES, key, "said", asset=ASSET, quarantined=quarantined, who="ann", why=WHY, said_at=at_ms)


@pytest.fixture(params=["base", "tail"])
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    layout: dict[str, Any] = {"base": {}, "tail": {"layers": 2, "tail": True}}[request.param]

    def play(world: World) -> Ground:
        ground = Ground(world, opened(world, tmp_path, **layout))
        ground.__enter__()
        request.addfinalizer(ground.__exit__)
        return ground

    return play


def quarantined(ground: Ground) -> list[str]:
    return [one.partition_key for one in ground.ask(partitions, ASSET).items if one.quarantined]


def test_what_is_held_back_by_hand_makes_an_asset_unhealthy_and_explains_it(story: Any) -> None:
    world = told()
    say(world, FIRST, END + 5, NOW_MS - DAY_MS, quarantined=True)
    ground = story(world)
    (found,) = ground.ask(health, ASSET, NOW_MS).health
    assert (found.status, found.quality.quarantined) == (Status.UNHEALTHY, 2)
    assert "2 partitions are held back by ann" in found.reasons
    explained = ground.ask(explain, ASSET, NOW_MS)
    cause = explained.causes[0]
    assert (cause.kind, cause.who, cause.message) == (CauseKind.QUARANTINED, "ann", WHY)
    assert list(cause.held) == [day_key(one) for one in range(FIRST, END)] == quarantined(ground)
    assert cause.since is not None
    assert "ask ann" in explained.recommendations[0].action


def test_the_last_word_counts_partition_by_partition(story: Any) -> None:
    world = told()
    say(world, FIRST, END, NOW_MS - 3_000, quarantined=True)
    say(world, FIRST, FIRST + 1, NOW_MS - 2_000, quarantined=False)
    ground = story(world)
    assert quarantined(ground) == [day_key(END - 1)]
    (found,) = ground.ask(health, ASSET, NOW_MS).health
    assert found.quality.quarantined == 1


def test_what_was_let_go_is_well_again(story: Any) -> None:
    world = told()
    before = story(world).ask(health, ASSET, NOW_MS).health[0].status
    say(world, FIRST, FIRST + 1, NOW_MS - 3_000, quarantined=True)
    say(world, FIRST - 1, END, NOW_MS - 2_000, quarantined=False)
    ground = story(world)
    assert quarantined(ground) == []
    assert ground.ask(health, ASSET, NOW_MS).health[0].status is before is Status.HEALTHY


def test_a_word_about_one_version_ends_with_it(story: Any) -> None:
    world = told()
    current = [one for one in world.publishes if one.asset == ASSET][-1]
    say(world, END - 1, END, NOW_MS - 3_000, quarantined=True, version=current.materialization_id)
    say(world, FIRST, FIRST + 1, NOW_MS - 3_000, quarantined=True, version="an older one")
    assert quarantined(story(world)) == [day_key(END - 1)]


def test_a_word_about_one_version_leaves_what_was_said_of_all(story: Any) -> None:
    world = told()
    current = [one for one in world.publishes if one.asset == ASSET][-1]
    say(world, FIRST, END, NOW_MS - 4_000, quarantined=True)
    say(world, FIRST, END, NOW_MS - 3_000, quarantined=False, version="one that nobody has")
    assert quarantined(story(world)) == [day_key(one) for one in range(FIRST, END)]
    say(world, FIRST, END, NOW_MS - 2_000, quarantined=False, version=current.materialization_id)
    let_go = set(current.keys)
    assert quarantined(story(world)) == [day_key(one) for one in range(FIRST, END) if day_key(one) not in let_go]
    say(world, FIRST, END, NOW_MS - 1_000, quarantined=True)
    assert quarantined(story(world)) == [day_key(one) for one in range(FIRST, END)]


def test_a_word_of_before_versions_were_kept_apart_is_about_all_of_them(story: Any) -> None:
    """Files of then have no version beside a word about all."""
    world = told()
    say(world, FIRST, END, NOW_MS - 4_000, quarantined=True, version=None)
    assert quarantined(story(world)) == [day_key(one) for one in range(FIRST, END)]


def test_a_word_of_before_is_one_with_what_is_said_of_all_since(tmp_path: Path) -> None:
    world = told()
    say(world, FIRST, END, NOW_MS - 4_000, quarantined=True, version=None)
    say(world, FIRST, END, NOW_MS - 3_000, quarantined=False)
    with Ground(world, opened(world, tmp_path, layers=2, tail=True)) as ground:
        assert quarantined(ground) == []
    files = [conformed(t.QUARANTINES, arrow_table(t.QUARANTINES, [row])) for row in world.rows["quarantines"]]
    assert joined(t.QUARANTINES, pa.concat_tables(files)).column("quarantined").to_pylist() == [False]
