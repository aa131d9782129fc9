"""Heads that go to one thread together: each is answered for itself, and trouble with one is nobody else's."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from arco.kernel.errors import ArcoError, InvalidInput
from arco.kernel.limits import LOCAL_HEADS_TOGETHER_MAX
from arco.storage.heads import Heads
from arco.storage.port import ObjectInfo, Version


class CountingThreads(ThreadPoolExecutor):
    """Threads that know how often they were given something."""

    jobs = 0

    def submit(self, *given: Any, **named: Any) -> "Future[Any]":
        self.jobs += 1
        return super().submit(*given, **named)


@pytest.fixture
def threads() -> Iterator[CountingThreads]:
    with CountingThreads(4) as made:
        yield made


def look(key: str) -> ObjectInfo | None:
    if key == "bad":
        raise InvalidInput("no name for an object")
    if key == "broken":
        raise PermissionError(13, "not allowed")
    return None if key == "gone" else ObjectInfo(key, len(key), Version(key), 0)


def test_what_is_asked_for_in_one_turn_goes_together_and_each_gets_its_own(threads: CountingThreads) -> None:
    async def run() -> list[ObjectInfo | ArcoError | OSError | None]:
        heads = Heads(threads, look)
        keys = ("a", "bad", "gone", "broken", "bc")
        return await asyncio.gather(*(heads.ask(key) for key in keys), return_exceptions=True)  # type: ignore[return-value]

    a, bad, gone, broken, bc = asyncio.run(run())
    assert isinstance(a, ObjectInfo)
    assert isinstance(bc, ObjectInfo)
    assert (a.key, bc.key, gone) == ("a", "bc", None)
    assert isinstance(bad, InvalidInput)
    assert isinstance(broken, PermissionError)
    assert threads.jobs == 1


def test_a_crowd_is_shared_out_among_threads(threads: CountingThreads) -> None:
    async def run() -> int:
        heads = Heads(threads, look)
        found = await asyncio.gather(*(heads.ask(f"k{number}") for number in range(3 * LOCAL_HEADS_TOGETHER_MAX)))
        return sum(one is not None for one in found)

    assert asyncio.run(run()) == 3 * LOCAL_HEADS_TOGETHER_MAX
    assert threads.jobs == 3


def test_who_goes_away_takes_nobody_with_it(threads: CountingThreads) -> None:
    async def run() -> ObjectInfo | None:
        heads = Heads(threads, look)
        first, second = heads.ask("a"), heads.ask("b")
        first.cancel()
        return await second

    found = asyncio.run(run())
    assert found is not None
    assert found.key == "b"


def test_threads_that_are_closed_are_an_error_and_not_a_wait() -> None:
    async def run() -> None:
        threads = CountingThreads(1)
        threads.shutdown()
        with pytest.raises(RuntimeError):
            await Heads(threads, look).ask("a")

    asyncio.run(run())
