"""Pools: no more is held than there is, and what is held is freed by the end of its attempt or by its lease."""

import asyncio
from collections import Counter

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.ledger.run_state import TaskStatus
from arco.servo.schedule.pools import Holding, Need, Pools, pool_object
from arco.storage.memory import MemoryStore
from stand_ins.hand_clock import HandClock
from unit.servo.schedule.ground import SCOPE, Place, task_id
from unit.servo.schedule.test_driver import told

DISK = Need("disk", 2.0)


class Room:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        self.over: set[str] = set()

    def pools(self, worker: str, run: str = "r") -> Pools:
        async def is_over(one: Holding) -> bool:
            return one.worker in self.over

        return Pools(self.store, SCOPE, run, worker, 30.0, self.clock, SeededEntropy(worker), is_over)

    async def held(self, pool: str = "disk") -> list[str]:
        found = await pool_object(self.store, SCOPE, pool, self.clock, SeededEntropy(1)).read()
        return [] if found is None else [one.worker for one in found.value.holdings]


def test_no_more_is_taken_than_there_is_and_what_is_given_back_is_free() -> None:
    async def story() -> None:
        room = Room()
        one, two, three = (room.pools(name) for name in ("one", "two", "three"))
        assert await one.take("a", 1, [DISK])
        assert await two.take("b", 1, [DISK])
        assert not await three.take("c", 1, [DISK])
        await two.give_back("b", 1)
        assert await three.take("c", 1, [DISK])
        assert await room.held() == ["one", "three"]

    asyncio.run(story())


def test_a_share_of_one_attempt_is_taken_once() -> None:
    async def story() -> None:
        room = Room()
        one = room.pools("one")
        assert await one.take("a", 1, [DISK])
        assert await one.take("a", 1, [DISK])
        assert await room.held() == ["one"]

    asyncio.run(story())


def test_who_dies_leaks_nothing_the_lease_frees_it() -> None:
    async def story() -> None:
        room = Room()
        assert await room.pools("dead").take("a", 1, [Need("disk", 1.0)])
        last = room.pools("last")
        assert not await last.take("b", 1, [Need("disk", 1.0)])
        room.clock.at_ms += 30_000
        assert await last.take("b", 1, [Need("disk", 1.0)])
        assert await room.held() == ["last"]

    asyncio.run(story())


def test_the_end_of_an_attempt_frees_its_share_at_once_though_nobody_gave_it_back() -> None:
    async def story() -> None:
        room = Room()
        assert await room.pools("forgetful").take("a", 1, [Need("disk", 1.0)])
        room.over.add("forgetful")
        assert await room.pools("last").take("b", 1, [Need("disk", 1.0)])
        assert await room.held() == ["last"]

    asyncio.run(story())


def test_signs_of_life_keep_what_is_held() -> None:
    async def story() -> None:
        room = Room()
        one = room.pools("one")
        assert await one.take("a", 1, [Need("disk", 1.0)])
        for _ in range(5):
            room.clock.at_ms += 20_000
            await one.renew()
            assert not await room.pools("other").take("b", 1, [Need("disk", 1.0)])

    asyncio.run(story())


def test_everything_that_an_attempt_needs_is_taken_or_nothing() -> None:
    async def story() -> None:
        room = Room()
        assert await room.pools("one").take("a", 1, [Need("network", 1.0)])
        two = room.pools("two")
        assert not await two.take("b", 1, [Need("disk", 1.0), Need("network", 1.0)])
        assert await room.held("disk") == []
        assert not two.has("b", 1)

    asyncio.run(story())


def test_units_are_counted() -> None:
    async def story() -> None:
        room = Room()
        assert await room.pools("one").take("a", 1, [Need("disk", 4.0, 3.0)])
        assert not await room.pools("two").take("b", 1, [Need("disk", 4.0, 2.0)])
        assert await room.pools("two").take("b", 1, [Need("disk", 4.0, 1.0)])

    asyncio.run(story())


@told
async def test_tasks_of_several_runs_and_processes_share_a_pool(place: Place) -> None:
    running, most = 0, 0

    async def busy(task, attempt):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await place.env().clock.sleep(10.0)
        running -= 1
        return await place.script.publish(task, attempt)

    place.script.steps = dict.fromkeys("abcd", busy)
    needs = {task_id(letter): (Need("disk", 2.0),) for letter in "abcd"}
    runs = [await place.started(dict.fromkeys("abcd", "")) for _ in range(2)]
    drivers = [place.driver(one, f"driver{place_}", needs=needs) for place_, one in enumerate(runs)]
    drivers.append(place.driver(await place.opened(runs[0].log.run), "third", needs=needs))
    states = await asyncio.gather(*(one.drive() for one in drivers))
    assert most == 2
    assert Counter(place.script.ran) == dict.fromkeys(["a1", "b1", "c1", "d1"], 2)
    assert all(its.status is TaskStatus.SUCCEEDED for state in states for its in state.tasks.values())


@told
async def test_a_full_pool_does_not_hold_up_tasks_that_need_nothing_of_it(place: Place) -> None:
    async def slow(task, attempt):
        await place.env().clock.sleep(100.0)
        return await place.script.publish(task, attempt)

    place.script.steps = {"a": slow, "b": slow}
    needs = {task_id(letter): (Need("disk", 1.0),) for letter in "ab"}
    await place.drive({"a": "", "b": "", "c": ""}, driving={"needs": needs}, max_parallelism=2)
    assert (set(place.script.ran[:2]), place.script.ran[2:]) == ({"a1", "c1"}, ["b1"])


@pytest.mark.parametrize("units", [0.0])
def test_what_asks_for_nothing_is_never_refused(units: float) -> None:
    async def story() -> None:
        room = Room()
        assert await room.pools("one").take("a", 1, [Need("disk", 1.0, 1.0)])
        assert await room.pools("two").take("b", 1, [Need("disk", 1.0, units)])

    asyncio.run(story())
