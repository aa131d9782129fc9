"""What others write to the table of an asset is seen in its health and explained, until it is made again."""

from pathlib import Path
from typing import Any

import pytest

from arco.fold import tables as t
from arco.read.assets import health
from arco.read.causes import CauseKind
from arco.read.explain import explain
from arco.read.health import Status
from fixtures.state.shop_story import PRICES_NEW, told
from fixtures.state.state_world import NOW_MS, World, opened
from unit.read.ground import Ground

ASSET = "shop.prices"
AT_MS = NOW_MS - 5_000


@pytest.fixture
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def play(world: World) -> Ground:
        ground = Ground(world, opened(world, tmp_path))
        ground.__enter__()
        request.addfinalizer(ground.__exit__)
        return ground

    return play


def commit(world: World, number: int, source: str = "external", operation: str = "append") -> None:
    outside = {"external_sequence_number": number, "external_commit_at": AT_MS, "external_principal": "bo"}
    world.add(t.ICEBERG_TABLES, {"table_uuid": PRICES_NEW}, "outside", **outside)
    words = {"commit_number": 9, "snapshot_id": 77, "source": source, "operation": operation, "added_rows": 3}
    key = {"table_uuid": PRICES_NEW, "commit_key": "k"}
    world.add(t.ICEBERG_COMMITS, key, "committed", committed_at=AT_MS, principal="bo", **words)


def test_an_append_from_outside_is_a_warning_with_the_commit_and_what_to_type(story: Any) -> None:
    world = told()
    commit(world, 2)
    ground = story(world)
    (found,) = ground.ask(health, ASSET, NOW_MS).health
    assert found.status is Status.WARNING
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith("2 partitions changed from outside, unchecked, by bo at ")
    assert found.reasons[0].endswith("(append, 3 rows added, snapshot 77)")
    explained = ground.ask(explain, ASSET, NOW_MS)
    cause = explained.causes[-1]
    assert (cause.kind, cause.who, cause.asset) == (CauseKind.EXTERNAL_COMMIT, "bo", ASSET)
    assert "snapshot 77" in cause.summary
    assert "not checked" in cause.summary
    todo = explained.recommendations[-1]
    assert todo.command == f"arco run {ASSET} --force"
    assert "arco history" in todo.action


def test_what_is_published_after_it_is_well_again(story: Any) -> None:
    world = told()
    commit(world, 1)
    assert story(world).ask(health, ASSET, NOW_MS).health[0].status is Status.HEALTHY


def test_upkeep_changes_no_rows(story: Any) -> None:
    """State of before has its rewrites among the changes of others."""
    world = told()
    commit(world, 2, source="admin", operation="replace")
    assert story(world).ask(health, ASSET, NOW_MS).health[0].status is Status.HEALTHY
