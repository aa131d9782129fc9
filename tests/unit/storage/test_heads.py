"""Heads that go to one thread together: each is answered for itself, and trouble with one is nobody else's."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import ArcoError, InvalidInput
from arco.kernel.limits import LOCAL_HEADS_TOGETHER_MAX, LOCAL_LOOK_REST_S, LOCAL_LOOK_S_MAX, LOCAL_LOOKS_SLOW_MAX
from arco.storage.counted import counted, counting
from arco.storage.heads import Heads, Looks
from arco.storage.local import LocalStore
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, ObjectInfo, Version
from stand_ins.hand_clock import HandClock


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
        heads = Heads(threads, look, HandClock())
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
        heads = Heads(threads, look, HandClock())
        found = await asyncio.gather(*(heads.ask(f"k{number}") for number in range(3 * LOCAL_HEADS_TOGETHER_MAX)))
        return sum(one is not None for one in found)

    assert asyncio.run(run()) == 3 * LOCAL_HEADS_TOGETHER_MAX
    assert threads.jobs == 3


def test_who_goes_away_takes_nobody_with_it(threads: CountingThreads) -> None:
    async def run() -> ObjectInfo | None:
        heads = Heads(threads, look, HandClock())
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
            await Heads(threads, look, HandClock()).ask("a")

    asyncio.run(run())


# At once


class SlowDisk:
    """A disk that takes so long for a look as the test says."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.takes_s = 0.0
        self.looks = 0

    def look(self, key: str) -> ObjectInfo | None:
        self.looks += 1
        self.clock.elapsed_s += self.takes_s
        return look(key)


def test_a_fast_disk_is_looked_at_without_a_thread(threads: CountingThreads) -> None:
    disk = SlowDisk()
    found = Heads(threads, disk.look, disk.clock).look(["a", "gone"])
    assert found is not None
    assert [one and one.key for one in found] == ["a", None]
    assert threads.jobs == 0


def test_a_disk_that_is_slow_time_after_time_is_left_to_threads_for_a_while(threads: CountingThreads) -> None:
    disk = SlowDisk()
    heads = Heads(threads, disk.look, disk.clock)
    disk.takes_s = 2 * LOCAL_LOOK_S_MAX
    assert all(heads.look(["a"]) is not None for _ in range(LOCAL_LOOKS_SLOW_MAX))
    assert heads.look(["a"]) is None
    assert disk.looks == LOCAL_LOOKS_SLOW_MAX
    disk.clock.elapsed_s += LOCAL_LOOK_REST_S
    assert heads.look(["a"]) is not None


def test_one_slow_look_among_fast_ones_changes_nothing(threads: CountingThreads) -> None:
    disk = SlowDisk()
    heads = Heads(threads, disk.look, disk.clock)
    for number in range(4 * LOCAL_LOOKS_SLOW_MAX):
        disk.takes_s = 0.0 if number % LOCAL_LOOKS_SLOW_MAX == 0 else 2 * LOCAL_LOOK_S_MAX
        assert heads.look(["a"]) is not None


class Counts:
    def __init__(self) -> None:
        self.kinds: list[str] = []

    def store_requests(self, operation: str, kind: str, count: int, took_s: float) -> None:
        self.kinds += [kind] * count


def test_heads_of_a_folder_are_three_requests_in_one_round_trip(tmp_path: Path) -> None:
    counts = Counts()

    async def run() -> tuple[list[ObjectInfo | None], int]:
        store = counted(LocalStore(str(tmp_path / "lake"), HandClock(), SystemEntropy(), sync=False), counts, HandClock())
        await store.put("a/b", b"x", Absent())
        with counting("load") as trips:
            found = await Looks((store, "a/b"), (store, "a/c"), (store, "a/b")).heads()
        await store.close()
        return found, trips.count

    (b, c, again), trips = asyncio.run(run())
    assert (b and b.size_bytes, c, again) == (1, None, b)
    assert (counts.kinds, trips) == (["put", "head", "head", "head"], 1)


def test_heads_of_two_stores_are_asked_for_side_by_side_and_one_that_fails_is_an_error() -> None:
    class Broken(MemoryStore):
        async def head(self, key: str) -> ObjectInfo | None:
            raise InvalidInput("no")

    async def run() -> None:
        there, broken = MemoryStore(HandClock()), Broken(HandClock())
        await there.put("a", b"x", Absent())
        a, gone = await Looks((there, "a"), (MemoryStore(HandClock()), "a")).heads()
        assert (a and a.size_bytes, gone) == (1, None)
        with pytest.raises(InvalidInput):
            await Looks((there, "a"), (broken, "a")).heads()

    asyncio.run(run())
