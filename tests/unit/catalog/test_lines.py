"""Standing in line for a table: in order, past the dead and the stuck, and never for ever. Time is virtual."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from arco.catalog import lines as module
from arco.catalog.lines import Lines
from arco.kernel.limits import LINE_HEAD_S_MAX
from arco_sim.loop import SimLoop

from .ground import MARKER, POINTER, RECEIPT, Ground, story

Story = Callable[[SimLoop], Coroutine[Any, Any, None]]


def in_virtual_time(test: Story) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        def jump() -> bool:
            when = loop.next_timer_s()
            if when is not None:
                loop.now_s = when
            return when is not None

        loop = SimLoop(jump)

        async def whole() -> bool:
            await test(loop)
            return True

        assert loop.run(whole()), "everybody waits for something that never comes"

    # The parameter is not a fixture.
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


class Table:
    """A line, and the order in which its head was reached."""

    def __init__(self, loop: SimLoop) -> None:
        self.lines = Lines()
        self.loop = loop
        self.reached: list[tuple[str, float]] = []

    def come(self, name: str, takes_s: float = 1.0, table: str = "t") -> "asyncio.Task[None]":
        return self.loop.create_task(self._stand(name, takes_s, table))

    async def _stand(self, name: str, takes_s: float, table: str) -> None:
        async with self.lines.at_the_head(table):
            self.reached.append((name, self.loop.now_s))
            await asyncio.sleep(takes_s)

    @property
    def order(self) -> list[str]:
        return [name for name, _ in self.reached]


@in_virtual_time
async def test_everybody_has_a_turn_in_the_order_they_came(loop: SimLoop) -> None:
    table = Table(loop)
    await asyncio.gather(*(table.come(str(number)) for number in range(5)))
    assert table.reached == [(str(number), float(number)) for number in range(5)]


@in_virtual_time
async def test_tables_have_lines_of_their_own(loop: SimLoop) -> None:
    table = Table(loop)
    await asyncio.gather(table.come("a", table="t"), table.come("b", table="u"))
    assert table.reached == [("a", 0.0), ("b", 0.0)]


@in_virtual_time
async def test_who_goes_away_while_waiting_holds_nobody_up(loop: SimLoop) -> None:
    table = Table(loop)
    first, second, third = (table.come(name) for name in "abc")
    await asyncio.sleep(0.5)
    second.cancel()
    await asyncio.gather(first, third)
    assert table.reached == [("a", 0.0), ("c", 1.0)]


@in_virtual_time
async def test_who_goes_away_in_the_moment_of_its_turn_gives_it_to_the_next(loop: SimLoop) -> None:
    table = Table(loop)
    lines = table.lines

    async def leaves_and_cancels() -> None:
        async with lines.at_the_head("t"):
            await asyncio.sleep(1)
        # Its turn has come, and it has not run since.
        second.cancel()

    first = loop.create_task(leaves_and_cancels())
    await asyncio.sleep(0)
    second, third = table.come("b"), table.come("c")
    await asyncio.gather(first, third)
    assert table.reached == [("c", 1.0)]


@in_virtual_time
async def test_who_fails_at_the_head_leaves_it(loop: SimLoop) -> None:
    table = Table(loop)

    async def fails() -> None:
        async with table.lines.at_the_head("t"):
            await asyncio.sleep(1)
            raise ValueError("on purpose")

    failing = loop.create_task(fails())
    await asyncio.sleep(0)
    await table.come("b")
    with pytest.raises(ValueError, match="on purpose"):
        await failing
    assert table.reached == [("b", 1.0)]


@in_virtual_time
async def test_who_is_stuck_at_the_head_is_passed_by(loop: SimLoop) -> None:
    table = Table(loop)
    stuck = table.come("stuck", takes_s=100 * LINE_HEAD_S_MAX)
    await asyncio.sleep(0)
    await asyncio.gather(table.come("b"), table.come("c"))
    assert table.reached == [("stuck", 0.0), ("b", LINE_HEAD_S_MAX), ("c", LINE_HEAD_S_MAX + 1)]
    # Its own end, long after, lets nobody past who is not at the head.
    late = [table.come(name, takes_s=3) for name in "de"]
    await asyncio.sleep(0)
    stuck.cancel()
    await asyncio.gather(*late)
    assert table.reached[-2:] == [("d", LINE_HEAD_S_MAX + 2), ("e", LINE_HEAD_S_MAX + 5)]


@in_virtual_time
async def test_who_leaves_early_is_not_waited_for(loop: SimLoop) -> None:
    table = Table(loop)

    async def leaves() -> None:
        async with table.lines.at_the_head("t") as place:
            place.leave()
            place.leave()
            await asyncio.sleep(3)

    leaving = loop.create_task(leaves())
    await asyncio.sleep(0)
    await asyncio.gather(table.come("b"), table.come("c"))
    await leaving
    assert table.reached == [("b", 0.0), ("c", 1.0)]


def test_a_line_that_is_too_long_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_WAITING_MAX", 2)

    @in_virtual_time
    async def told(loop: SimLoop) -> None:
        table = Table(loop)
        await asyncio.gather(*(table.come(name) for name in "abcd"))
        assert table.reached == [("a", 0.0), ("d", 0.0), ("b", 1.0), ("c", 2.0)]

    told()


@in_virtual_time
async def test_nothing_is_kept_of_a_line_that_is_empty(loop: SimLoop) -> None:
    table = Table(loop)
    await asyncio.gather(*(table.come(name) for name in "abc"))
    assert table.lines._lines == {}
    assert loop.next_timer_s() is None


# Commits


@story
async def test_committers_of_one_process_do_not_race_for_a_table() -> None:
    ground = Ground()
    one = ground.server()
    await one.found("a")
    await one.commit("a", "first")
    await one.settle()
    one.line.asked.clear()
    keys = [f"K{number}" for number in range(20)]
    await asyncio.gather(*(one.commit("a", key) for key in keys))
    await one.settle()
    swings = [asked for asked in one.line.asked if asked.startswith("put") and POINTER in asked]
    reads = [asked for asked in one.line.asked if asked.startswith("get")]
    # The first by itself, the others while it is at work.
    assert (len(swings), reads) == (2, [])
    # Of each the claim, the file, two receipts and the marker's answer; of each swing a look at the names, and itself.
    assert len(one.line.asked) == 5 * len(keys) + 2 * len(swings)
    found = await ground.audit()
    assert not found.gaps
    assert [[number for _, number in found.landings(one.file_of(key))] for key in keys] == [[n + 2] for n in range(20)]


@story
async def test_committers_of_two_processes_race_and_each_lands_once() -> None:
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    keys = {server: [f"{name} {number}" for number in range(10)] for name, server in (("one", one), ("two", two))}
    await asyncio.gather(*(server.commit("a", key) for server, own in keys.items() for key in own))
    await asyncio.gather(one.settle(), two.settle())
    found = await ground.audit()
    assert not found.gaps
    assert all(len(found.landings(server.file_of(key))) == 1 for server, own in keys.items() for key in own)


@story
async def test_a_commit_goes_on_while_a_duplicate_of_the_one_before_waits_for_it() -> None:
    """The duplicate has nothing to do until its first attempt is finished: it keeps nobody from the table."""
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await one.load("a")
    stalled = two.line.delay("put", POINTER)
    first = await stalled.holds(two.commit("a", "K"))
    claim = one.line.reached("put", MARKER)
    duplicate = asyncio.ensure_future(one.commit("a", "K"))
    await claim.wait()
    await one.commit("a", "other")
    assert not duplicate.done()
    await stalled.answer()
    await first
    await duplicate
    await asyncio.gather(one.settle(), two.settle())
    found = await ground.audit()
    assert [len(found.landings(one.file_of(key))) for key in ("K", "other")] == [1, 1]


@story
async def test_the_receipt_of_the_last_commit_is_written_once_by_one_process() -> None:
    ground = Ground()
    one = ground.server()
    await one.found("a")
    await one.commit("a", "first")
    await one.settle()
    one.line.asked.clear()
    slow = one.line.delay("put", RECEIPT)
    await one.commit("a", "K")
    second = asyncio.ensure_future(one.commit("a", "second"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not second.done()
    assert len([asked for asked in one.line.asked if RECEIPT in asked]) == 1
    await slow.answer()
    await second
    await one.settle()
    assert len([asked for asked in one.line.asked if RECEIPT in asked]) == 2
    assert not (await ground.audit()).gaps
