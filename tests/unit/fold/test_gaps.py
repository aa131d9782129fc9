"""Gaps: numbers that must have been stored and are not there."""

import pytest

from arco.fold.gaps import gaps_of, still_open
from arco.fold.manifests import Gap
from arco.fold.notifying import notify
from arco.kernel.ids import WriterId
from arco.ledger.segment_numbers import holes, ranges_of, united
from arco_sim.scenarios.fold_work import SCOPE
from unit.fold.ground import HEAD, Ground, story


@pytest.mark.parametrize(
    ("numbers", "ranges", "missing"),
    [
        ([], (), ()),
        ([1, 2, 3], ((1, 3),), ()),
        ([3], ((3, 3),), ((1, 2),)),
        ([5, 1, 2, 8, 2], ((1, 2), (5, 5), (8, 8)), ((3, 4), (6, 7))),
    ],
)
def test_holes_are_what_is_missing_below_the_highest(numbers, ranges, missing):
    assert ranges_of(numbers) == ranges
    assert holes(ranges) == missing


def test_ranges_that_touch_become_one():
    assert united([((1, 2), (7, 9)), ((3, 4),), ((8, 12),)]) == ((1, 4), (7, 12))


def test_of_a_gap_what_turned_up_is_taken_away_and_nothing_added():
    gap = Gap(writer_id="w", first=2, last=6)
    known = {"w": ranges_of([1, 4, 7, 9]), "x": ranges_of([5])}
    assert still_open([gap], known) == [Gap(writer_id="w", first=2, last=3), Gap(writer_id="w", first=5, last=6)]
    assert len(gaps_of(known)) == 4


def test_a_gap_is_reported_and_cleared_when_the_segment_turns_up():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        late = WriterId(ground.ulids.next())
        await ground.append("a2", writer=late, number=3)
        first = (await folding.round(HEAD)).standing.manifest
        assert first.gaps == (Gap(writer_id=str(late), first=1, last=2),)
        await ground.append("a1", writer=late, number=1)
        assert (await folding.round(HEAD)).standing.manifest.gaps == (Gap(writer_id=str(late), first=2, last=2),)
        await ground.append("a0", writer=late, number=2)
        assert (await folding.round(HEAD)).standing.manifest.gaps == ()

    story(play)


def test_a_notified_segment_alone_is_no_gap():
    async def play(ground: Ground) -> None:
        late = WriterId(ground.ulids.next())
        await ground.append("a1", writer=late, number=1)
        second = await ground.append("a2", writer=late, number=2)
        await notify(ground.store, SCOPE, [second], ground.clock, ground.entropy)
        assert (await ground.folding(listing=False).round(HEAD)).standing.manifest.gaps == ()

    story(play)


def test_a_listing_reports_the_gap_that_a_notification_could_not_see():
    async def play(ground: Ground) -> None:
        late = WriterId(ground.ulids.next())
        second = await ground.append("a2", writer=late, number=2)
        await notify(ground.store, SCOPE, [second], ground.clock, ground.entropy)
        await ground.folding(listing=False).round(HEAD)
        done = await ground.folding(2).round(HEAD)
        assert done.segments == 0
        assert done.standing.manifest.gaps == (Gap(writer_id=str(late), first=1, last=1),)

    story(play)
