"""A timer that is started with every request fires once, as long after the last start as it was told."""

import asyncio

from arco.surface.http.timers import LazyTimer

SECONDS = 0.05


def test_it_counts_from_the_last_start() -> None:
    async def run() -> list[float]:
        loop, told = asyncio.get_running_loop(), []
        timer = LazyTimer(loop, SECONDS, lambda: told.append(loop.time()))
        for _ in range(4):
            timer.start()
            last_s = loop.time()
            await asyncio.sleep(SECONDS / 2)
        await asyncio.sleep(3 * SECONDS)
        return [at_s - last_s for at_s in told]

    (after_s,) = asyncio.run(run())
    assert after_s >= SECONDS - 0.002


def test_one_that_was_stopped_does_nothing_and_may_be_started_again() -> None:
    async def run() -> list[str]:
        told: list[str] = []
        timer = LazyTimer(asyncio.get_running_loop(), SECONDS, lambda: told.append("fired"))
        timer.start()
        timer.stop()
        await asyncio.sleep(3 * SECONDS)
        told.append("nothing yet")
        timer.start()
        await asyncio.sleep(3 * SECONDS)
        timer.start()
        timer.end()
        await asyncio.sleep(3 * SECONDS)
        return told

    assert asyncio.run(run()) == ["nothing yet", "fired"]
