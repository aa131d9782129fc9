"""Ticking: each tick is carried out once and in order, and stays written down until its run has ended."""

import asyncio

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Unavailable
from arco.kernel.scope import Scope
from arco.servo.schedule.schedule_state import Tick
from arco.servo.schedule.ticking import Carried, Elsewhere, NothingToDo, Ran, Refused, Schedules, nothing
from arco.storage.memory import MemoryStore
from stand_ins.hand_clock import HandClock

from .test_tick_decisions import HOUR_MS, hourly


class Runs:
    """Does what it is told to, and remembers the keys."""

    def __init__(self, *endings: Carried | BaseException) -> None:
        self.endings = list(endings)
        self.keys: list[str] = []

    async def carry_out(self, schedule: str, tick: Tick, key: str) -> Carried:
        self.keys.append(key)
        ending = self.endings.pop(0) if self.endings else Ran("r", "succeeded")
        if isinstance(ending, BaseException):
            raise ending
        return ending


@pytest.fixture
def clock() -> HandClock:
    return HandClock(3 * HOUR_MS)


@pytest.fixture
def schedules(clock: HandClock) -> Schedules:
    return Schedules(MemoryStore(clock), Scope.of(), "shop", clock, SeededEntropy("ticks"))


def tick(schedules: Schedules, runs: Runs, catch_up: str = "all") -> list[Carried]:
    return [carried for _, carried in asyncio.run(schedules.tick(hourly(catch_up), nothing, runs))]


def open_ids(schedules: Schedules) -> list[int]:
    state = asyncio.run(schedules.state("nightly"))
    return [] if state is None else [int(one.id) // HOUR_MS for one in state.open]


def test_ticks_are_carried_out_in_order_and_struck_off(schedules: Schedules) -> None:
    runs = Runs(Ran("r1", "succeeded"), NothingToDo(), Refused("no such asset"))
    assert tick(schedules, runs) == [Ran("r1", "succeeded"), NothingToDo(), Refused("no such asset")]
    assert runs.keys == [f"schedule shop nightly v1 {hour * HOUR_MS}" for hour in (1, 2, 3)]
    state = asyncio.run(schedules.state("nightly"))
    assert state is not None
    assert [(one.outcome, one.run, one.message) for one in state.ended] == [
        ("refused", None, "no such asset"), ("nothing", None, ""), ("ran", "r1", "succeeded"),
    ]  # fmt: skip
    assert tick(schedules, Runs()) == []


def test_what_somebody_else_is_at_is_left_and_nothing_overtakes_it(schedules: Schedules) -> None:
    assert tick(schedules, Runs(Ran("r1", "succeeded"), Elsewhere("r2"))) == [Ran("r1", "succeeded"), Elsewhere("r2")]
    assert open_ids(schedules) == [2, 3]


@pytest.mark.parametrize("trouble", [asyncio.CancelledError(), Unavailable("Spark did not start")])
def test_a_tick_that_was_interrupted_waits_for_the_next_who_ticks(schedules: Schedules, trouble: BaseException) -> None:
    with pytest.raises(type(trouble)):
        tick(schedules, Runs(trouble))
    assert open_ids(schedules) == [1, 2, 3]
    runs = Runs()
    tick(schedules, runs)
    assert len(runs.keys) == 3
    assert open_ids(schedules) == []


def test_nothing_begins_while_it_is_paused(schedules: Schedules, clock: HandClock) -> None:
    assert asyncio.run(schedules.pause(hourly("all"), "ann", "to look at it"))
    assert not asyncio.run(schedules.pause(hourly("all"), "bob", "me too"))
    clock.at_ms += 5 * HOUR_MS
    runs = Runs()
    assert tick(schedules, runs) == []
    assert open_ids(schedules) == [1, 2, 3]  # what was due before the pause
    assert asyncio.run(schedules.resume("nightly"))
    assert not asyncio.run(schedules.resume("nightly"))
    clock.at_ms += HOUR_MS
    assert len(tick(schedules, runs)) == 4  # those and the one after it


def test_what_was_never_due_leaves_nothing_behind(schedules: Schedules, clock: HandClock) -> None:
    clock.at_ms = 1
    assert tick(schedules, Runs()) == []
    assert asyncio.run(schedules.state("nightly")) is None
    assert not asyncio.run(schedules.resume("nightly"))
