"""One timer for all requests: each is late at its own time, once, and not at all if it has ended."""

import asyncio

from arco.surface.http.deadlines import Deadlines

SECONDS = 0.05


def test_each_is_late_at_its_own_time_and_once() -> None:
    async def run() -> list[tuple[str, float]]:
        loop, told = asyncio.get_running_loop(), []
        deadlines: Deadlines[str] = Deadlines(SECONDS, lambda one: told.append((one, loop.time())))
        began = {}
        for name in "abc":
            began[name] = loop.time()
            deadlines.begin(name)
            await asyncio.sleep(SECONDS / 3)
        await asyncio.sleep(3 * SECONDS)
        return [(name, at_s - began[name]) for name, at_s in told]

    told = asyncio.run(run())
    assert [name for name, _ in told] == ["a", "b", "c"]
    assert all(after_s >= SECONDS - 0.002 for _, after_s in told)


def test_what_has_ended_is_not_late_and_others_are() -> None:
    async def run() -> list[str]:
        told: list[str] = []
        deadlines = Deadlines(SECONDS, told.append)
        for name in "abc":
            deadlines.begin(name)
        deadlines.end("a")
        deadlines.end("c")
        deadlines.end("c")
        await asyncio.sleep(3 * SECONDS)
        deadlines.begin("d")  # after a time with nothing under way
        await asyncio.sleep(3 * SECONDS)
        return told

    assert asyncio.run(run()) == ["b", "d"]


def test_a_loop_that_ended_took_its_timer_with_it() -> None:
    told: list[str] = []
    deadlines = Deadlines(SECONDS, told.append)

    async def begin(name: str, wait_s: float) -> None:
        deadlines.begin(name)
        await asyncio.sleep(wait_s)
        deadlines.end(name)

    asyncio.run(begin("a", 0))
    asyncio.run(begin("b", 3 * SECONDS))
    assert told == ["b"]
