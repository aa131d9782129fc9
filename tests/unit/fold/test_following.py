"""Folding again and again: on a timer, when woken, and more and more slowly while it fails."""

import asyncio
from collections.abc import Callable

import pytest

from arco.fold.following import Following
from arco.fold.passes import Pass
from arco.kernel.errors import ArcoError, Unavailable
from arco.kernel.limits import FOLD_LEASE_S
from unit.fold.ground import HEAD, Ground, story

Done = list[Pass | ArcoError]


async def followed(ground: Ground, passes: int, meanwhile: Callable[[int, Following], None] | None = None) -> Done:
    """Go on until so many passes were made."""
    done: Done = []
    enough = asyncio.Event()

    def told(one: Pass | ArcoError) -> None:
        done.append(one)
        if meanwhile is not None:
            meanwhile(len(done), following)
        if len(done) == passes:
            enough.set()

    following = Following(ground.folding(), 10, told)
    going = asyncio.create_task(following.go_on())
    try:
        await enough.wait()
    finally:
        going.cancel()
        await asyncio.wait({going})
    return done


def segments(done: Pass | ArcoError | None) -> int:
    assert isinstance(done, Pass)
    return done.rounds[HEAD].segments


def test_what_is_appended_meanwhile_is_folded_by_the_next_pass():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        appended = []

        def more(number: int, _following: Following) -> None:
            if number == 1:
                appended.append(asyncio.ensure_future(ground.append("a2", "b1")))

        done = await followed(ground, 3, more)
        assert appended[0].done()
        assert [segments(one) for one in done] == [1, 1, 0]
        assert [pause for pause in ground.clock.pauses if pause >= 10][:2] == [10, 10]

    story(play)


def test_waking_ends_the_wait():
    async def play(ground: Ground) -> None:
        never = asyncio.Event()

        async def sleep(seconds: float) -> None:
            ground.clock.pauses.append(seconds)
            await never.wait()

        ground.clock.sleep = sleep  # type: ignore[method-assign]
        done = await followed(ground, 3, lambda _number, following: following.wake())
        assert len(done) == 3
        assert len(ground.clock.pauses) >= 2

    story(play)


def test_trouble_makes_it_slower_and_its_end_quick_again():
    async def play(ground: Ground) -> None:
        away = True

        async def before(what: str, _key: str) -> None:
            if away and what == "get":
                raise Unavailable("the store did not answer")

        ground.store.before = before

        def back(number: int, following: Following) -> None:
            nonlocal away
            following.wake()  # in trouble nobody is listened to
            if number == 8:
                away = False

        done = await followed(ground, 10, back)
        assert [isinstance(one, Unavailable) for one in done] == [True] * 8 + [False] * 2
        waits = [pause for pause in ground.clock.pauses if pause >= 10]
        assert waits[:8] == [20, 40, 80, 160, 320, 320, 320, 320]
        assert waits[8] == 10

    story(play)


def test_it_ends_when_it_is_cancelled():
    async def play(ground: Ground) -> None:
        going = asyncio.create_task(Following(ground.folding(), 10, lambda _: None).go_on())
        await asyncio.sleep(0)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going

    story(play)


def test_of_two_who_follow_one_folds_and_the_other_takes_over_when_it_is_gone() -> None:
    async def play(ground: Ground) -> None:
        first, second = (Following(ground.folding(number), 10, lambda _: None) for number in (1, 2))
        await ground.append("a1")
        assert segments(await first.look()) == 1
        await ground.append("a2")
        asked = len(ground.store.requests)
        assert await second.look() is None
        assert len(ground.store.requests) - asked < 10, "who stands by looks whose turn it is, and nothing else"
        assert segments(await first.look()) == 1
        assert (await ground.folding().heads.read(HEAD)).epoch == 1
        # It is stopped by its machine, and another goes on.
        await ground.clock.sleep(FOLD_LEASE_S + 1)
        await ground.append("a3")
        assert segments(await second.look()) == 1
        assert (await ground.folding().heads.read(HEAD)).epoch == 2
        await ground.append("a4")
        assert await first.look() is None
        assert segments(await second.look()) == 1

    story(play)


def test_who_ends_lets_the_next_one_in_at_once() -> None:
    async def play(ground: Ground) -> None:
        await followed(ground, 1)
        other = Following(ground.folding(2), 10, lambda _: None)
        assert isinstance(await other.look(), Pass)

    story(play)


def test_a_turn_outlasts_a_pass_that_is_longer_than_a_lease() -> None:
    async def play(ground: Ground) -> None:
        first, second = (Following(ground.folding(number), 10, lambda _: None) for number in (1, 2))
        await ground.append("a1")
        stood_by = []

        async def slowly(what: str, key: str) -> None:
            if what == "put" and "/state/" in key:
                for _ in range(4):
                    await ground.clock.sleep(FOLD_LEASE_S / 2)
                    await asyncio.sleep(0.01)  # whoever keeps the turn asks the store meanwhile
                stood_by.append(await second.look() is None)

        ground.store.before = slowly
        assert segments(await first.look()) == 1
        assert stood_by == [True] * len(stood_by)
        assert stood_by

    story(play)


def test_a_lease_that_got_lost_keeps_nobody_from_folding() -> None:
    """A bucket that was restored in part: the heads have epochs that the lease has never heard of."""

    async def play(ground: Ground) -> None:
        before = ground.folding()
        before.epoch = 9
        await ground.append("a1")
        await before.round(HEAD)
        await ground.append("a2")
        assert segments(await Following(ground.folding(2), 10, lambda _: None).look()) == 1
        assert (await before.heads.read(HEAD)).epoch == 10

    story(play)
