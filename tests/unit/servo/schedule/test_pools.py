"""Pools: no more is held than there is, and what is held is freed by the end of its attempt or by its lease."""

import asyncio
from collections import Counter

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.ledger.run_state import TaskStatus
from arco.servo.schedule.interventions import request_pause
from arco.servo.schedule.pools import Holding, Need, Pools, pool_object
from arco.servo.schedule.slots import Slots
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


def _slowly(place: Place, seconds: float):
    async def slow(task, attempt):
        await place.env().clock.sleep(seconds)
        return await place.script.publish(task, attempt)

    return slow


async def _shares(place: Place) -> list[str]:
    env = place.env("auditor")
    held = await pool_object(env.store, SCOPE, "disk", env.clock, env.entropy).read()
    return [] if held is None else [one.task for one in held.value.holdings]


@told
async def test_a_process_without_a_free_slot_holds_no_share_that_another_could_use(place: Place) -> None:
    place.script.steps = {"a": _slowly(place, 1000.0)}
    needs = {task_id("b"): (Need("disk", 1.0),)}
    long, short = await place.started({"a": ""}), await place.started({"b": ""})
    slots = Slots(1)
    busy = [place.driver(one, "busy", slots=slots, needs=needs) for one in (long, short)]
    first = place.world.loop.create_task(busy[0].drive())
    await place.env().clock.sleep(1.0)
    second = place.world.loop.create_task(busy[1].drive())
    await place.env().clock.sleep(20.0)
    assert place.script.ran == ["a1"]
    assert await _shares(place) == []
    idle = place.driver(await place.opened(short.log.run), "idle", slots=Slots(1), needs=needs)
    before_s = place.world.loop.now_s
    await idle.drive()
    assert place.world.loop.now_s - before_s < 10.0
    assert place.script.ran == ["a1", "b1"]
    await asyncio.gather(first, second)


@told
async def test_a_run_whose_tasks_share_a_pool_has_its_part_of_the_slots_all_the_same(place: Place) -> None:
    place.script.steps = dict.fromkeys("abcdefgh", _slowly(place, 10.0))
    needs = {task_id("x"): (Need("disk", 1.0),)}
    many, pooled = await place.started(dict.fromkeys("abcdefgh", "")), await place.started({"x": ""})
    slots = Slots(2)
    drivers = [place.driver(one, "worker", slots=slots, needs=needs) for one in (many, pooled)]
    first = place.world.loop.create_task(drivers[0].drive())
    await place.env().clock.sleep(1.0)
    await drivers[1].drive()
    assert len(place.script.ran) < 6
    await first


@told
async def test_a_paused_run_gives_back_what_it_took_of_a_pool(place: Place) -> None:
    needs = {task_id(one): (Need("disk", 1.0),) for one in "ab"}
    started, env = await place.started({"a": ""}), place.env("person")
    await request_pause(started.log, "ann", "wait", env.clock, env.entropy)
    resting = place.driver(await place.opened(started.log.run), "resting", slots=Slots(1), needs=needs)
    going = place.world.loop.create_task(resting.drive())
    await env.clock.sleep(20.0)
    assert await _shares(place) == []
    await place.drive({"b": ""}, driving={"needs": needs, "slots": Slots(1)})
    assert place.script.ran == ["b1"]
    going.cancel()
