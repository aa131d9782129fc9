"""States that there are not: asked for, they are refused with the list; said by others, they are counted together."""

from pathlib import Path

import pytest

from arco.fold import tables as t
from arco.kernel.errors import InvalidInput
from arco.read.measures import measures
from arco.read.runs import run_tasks, runs
from fixtures.state.shop_story import told
from fixtures.state.state_world import NOW_MS, opened
from unit.read.ground import Ground


def test_a_state_that_there_is_not_is_refused_with_the_list(ground: Ground) -> None:
    with pytest.raises(InvalidInput, match="no state 'bogus'") as refused:
        ground.ask(runs, state="bogus")
    assert refused.value.hint == "one of pending, running, succeeded, failed, cancelled"
    with pytest.raises(InvalidInput, match="no state 'zonk'"):
        ground.ask(run_tasks, ground.world.publishes[0].run, state="zonk")


def test_words_of_others_are_no_labels(tmp_path: Path) -> None:
    world = told()
    for number in range(20):
        run_id = world.run(f"forged {number}", "shop", NOW_MS, f"zonk {number}", 1)
        key = {"run_id": run_id, "task_id": "t"}
        ended = {"state": f"zonk {number}", "started_at": NOW_MS, "ended_at": NOW_MS + 1}
        world.add(t.TASKS, key, "about", asset=f"made_up_{number}.name", asset_id="x")
        world.add(t.TASKS, key, "state", **ended)
        world.check("shop.orders", f"kind_{number}(x)", f"m{number}", NOW_MS, passed=True)
    with Ground(world, opened(world, tmp_path)) as ground:
        found = ground.ask(measures)
    assert found.runs["other"] == 20
    assert not any("zonk" in outcome for outcome in found.runs)
    assert found.tasks["other", "other"] == 20
    assert {namespace for namespace, _ in found.tasks} == {"shop", "ops", "other"} >= found.task_seconds.keys()
    assert found.checks["other", "passed"] == 20
