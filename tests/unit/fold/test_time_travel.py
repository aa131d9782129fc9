"""The past: the manifest that counted at a moment, found in few reads, and what lies beyond."""

import pytest

from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.passes import fold_pass
from arco.fold.time_travel import cut_as_of, manifest_as_of
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import BeyondReach
from arco.kernel.limits import AS_OF_REACH_S
from arco_sim.scenarios.fold_work import SCOPE
from unit.fold.ground import HEAD, Ground, story

DAY_MS = 24 * 3600 * 1000


def fresh(ground: Ground) -> Heads:
    return Heads(ground.store, SCOPE, ground.clock, SeededEntropy("fresh"))


async def history(ground: Ground, count: int, step_ms: int) -> list[int]:
    """Publish again and again; when each was published."""
    folding, times = ground.folding(), []
    for number in range(count):
        ground.clock.at_ms += step_ms
        await ground.append(f"a{number}")
        times.append((await folding.round(HEAD)).standing.manifest.published_ms)
    return times


def test_every_moment_has_the_manifest_that_counted_then():
    async def play(ground: Ground) -> None:
        times = await history(ground, 20, 1000)
        for number, at_ms in enumerate(times, start=1):
            assert (await manifest_as_of(fresh(ground), HEAD, at_ms)).sequence == number
            assert (await manifest_as_of(fresh(ground), HEAD, at_ms + 999)).sequence == number
        assert (await manifest_as_of(fresh(ground), HEAD, times[-1] + DAY_MS)).sequence == 20

    story(play)


def test_the_way_back_is_short():
    async def play(ground: Ground) -> None:
        times = await history(ground, 200, 1000)
        ground.store.requests.clear()
        assert (await manifest_as_of(fresh(ground), HEAD, times[2])).sequence == 3
        assert len(ground.store.requests) <= 18

    story(play)


def test_a_moment_before_the_first_manifest_is_beyond_reach():
    async def play(ground: Ground) -> None:
        with pytest.raises(BeyondReach):
            await manifest_as_of(fresh(ground), HEAD, 0)
        times = await history(ground, 3, 1000)
        with pytest.raises(BeyondReach) as caught:
            await manifest_as_of(fresh(ground), HEAD, times[0] - 1)
        assert caught.value.oldest_ms == times[0]
        assert caught.value.status == 410

    story(play)


def test_a_moment_beyond_the_reach_is_refused_with_the_oldest_there_is():
    async def play(ground: Ground) -> None:
        times = await history(ground, 40, DAY_MS)
        oldest_ms = ground.clock.now_ms() - AS_OF_REACH_S * 1000
        with pytest.raises(BeyondReach) as caught:
            await manifest_as_of(fresh(ground), HEAD, times[3])
        assert caught.value.oldest_ms == oldest_ms
        assert (await manifest_as_of(fresh(ground), HEAD, oldest_ms)).published_ms <= oldest_ms

    story(play)


def test_what_has_not_changed_for_long_is_still_there():
    async def play(ground: Ground) -> None:
        (at_ms,) = await history(ground, 1, 1000)
        ground.clock.at_ms += 90 * DAY_MS
        assert (await manifest_as_of(fresh(ground), HEAD, at_ms + DAY_MS)).sequence == 1

    story(play)


def test_a_manifest_that_was_collected_is_beyond_reach():
    async def play(ground: Ground) -> None:
        times = await history(ground, 3, 1000)
        heads = fresh(ground)
        first = await manifest_as_of(heads, HEAD, times[0])
        await ground.store.delete(heads.manifest_key(HEAD, first.snapshot))
        with pytest.raises(BeyondReach) as caught:
            await manifest_as_of(fresh(ground), HEAD, times[0])
        assert caught.value.oldest_ms == times[1]

    story(play)


def test_a_clock_that_goes_back_does_not_turn_the_chain_around():
    async def play(ground: Ground) -> None:
        first, second = await history(ground, 2, -5000)
        assert second == first

    story(play)


def test_cuts_have_a_past_too():
    async def play(ground: Ground) -> None:
        folding, cuts = ground.folding(), []
        for number in range(5):
            ground.clock.at_ms += 1000
            await ground.append(f"a{number}")
            await folding.round(HEAD)
            cuts.append((await folding.heads.publish_cut()).manifest)
        for cut in cuts:
            assert await cut_as_of(fresh(ground), cut.published_ms) == cut

    story(play)


def test_the_policy_says_how_far_back_the_past_reaches():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        folding = ground.folding()
        heads = Heads(ground.store, SCOPE, ground.clock, ground.entropy, reach_s=2 * DAY_MS // 1000)
        await fold_pass(Folding(heads, folding.work))
        began_ms = ground.clock.now_ms()
        ground.clock.at_ms += 3 * DAY_MS
        await ground.append("a2")
        await fold_pass(Folding(heads, folding.work))
        assert (await cut_as_of(heads, ground.clock.now_ms())).sequence == 2
        with pytest.raises(BeyondReach) as refused:
            await cut_as_of(heads, began_ms)
        assert refused.value.oldest_ms == ground.clock.now_ms() - 2 * DAY_MS

    story(play)
