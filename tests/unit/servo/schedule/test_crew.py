"""Processes with runs in hand: they find what is open, share it, take over what died, and let go of what has ended."""

import asyncio

from arco.kernel.limits import TASK_LEASE_S
from arco.ledger.run_state import RunState
from arco.servo.schedule.crew import Crew, Refused, Ways
from arco.servo.schedule.driver import Driver
from arco.servo.schedule.hand_over import Looking
from arco.servo.schedule.interventions import request_cancel, request_pause, request_resume
from arco.servo.schedule.open_runs import OpenRun, OpenRunsNote
from arco.servo.schedule.slots import Slots
from arco.servo.schedule.starting import Started
from arco.storage.keys import OpenRunsKey
from unit.servo.schedule.ground import SCOPE, Place, log_of
from unit.servo.schedule.test_driver import told


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def took(self, run: str, tasks: int) -> None:
        self.lines.append(f"took {tasks}")

    def refused(self, run: str, why: str) -> None:
        self.lines.append(f"refused: {why}")

    def ended(self, run: str, state: RunState) -> None:
        self.lines.append(state.run.status.value)

    def troubled(self, what: str, error: Exception) -> None:
        self.lines.append(f"{what}: {error}")


def crew(place: Place, name: str, heard: Heard, slots=None, *, project: str = "shop", **words) -> Crew:
    env = place.env(name)
    shared = Slots(2) if slots is None else slots

    async def take(note: OpenRun, started: Started) -> Driver | Refused:
        if started.plan.spec.code_version != "c":
            return Refused("it is of other code")
        return place.driver(started, name, slots=shared)

    ways = Ways(
        store=env.store, scope=SCOPE, project=project, clock=env.clock, entropy=env.entropy,
        hand_over=Looking(5.0), told=heard, **words,
    )  # fmt: skip
    return Crew(ways, take)


async def noted(place: Place) -> list[str]:
    env = place.env("reader")
    return [one.run for one in await OpenRunsNote(env.store, SCOPE, env.clock, env.entropy).read()]


@told
async def test_what_is_open_is_found_driven_and_struck_off(place: Place) -> None:
    runs = [await place.started({"a": "", "b": "a"}, project="shop") for _ in range(3)]
    assert await noted(place) == [str(one.log.run) for one in runs]
    heard = Heard()
    await crew(place, "worker", heard).serve(once=True)
    assert sorted(place.script.ran) == ["a1", "a1", "a1", "b1", "b1", "b1"]
    assert heard.lines.count("succeeded") == 3
    assert await noted(place) == []


@told
async def test_a_process_has_no_more_tasks_at_once_than_slots_whatever_is_open(place: Place) -> None:
    running, most = 0, 0

    async def busy(task, attempt):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await place.env().clock.sleep(3.0)
        running -= 1
        return await place.script.publish(task, attempt)

    place.script.steps = dict.fromkeys("abcd", busy)
    for _ in range(4):
        await place.started(dict.fromkeys("abcd", ""), project="shop")
    await crew(place, "worker", Heard(), Slots(3)).serve(once=True)
    assert most == 3
    assert len(place.script.ran) == 16


@told
async def test_runs_of_others_are_left_alone_and_refused_ones_are_said_once(place: Place) -> None:
    await place.started({"a": ""}, project="other")
    heard = Heard()
    await crew(place, "worker", heard).serve(once=True)
    assert place.script.ran == []
    assert heard.lines == []


@told
async def test_a_worker_that_is_told_to_stop_hands_back_what_does_not_end_in_time(place: Place) -> None:
    async def for_ever(task, attempt):
        if attempt.number == 1:
            await place.env().clock.sleep(10_000.0)
        return await place.script.publish(task, attempt)

    place.script.steps = {"a": for_ever}
    started = await place.started({"a": ""}, project="shop")
    first = crew(place, "first", Heard(), stop_s=20.0)
    serving = place.world.loop.create_task(first.serve())
    await place.env().clock.sleep(2.0)
    first.stop()
    await serving
    log = await log_of(place, started.log.run)
    assert place.script.ran == ["a1"]
    assert not log.state.active
    before_s = place.world.loop.now_s
    await crew(place, "second", Heard()).serve(once=True)
    assert place.script.ran == ["a1", "a2"]
    assert place.world.loop.now_s - before_s < 10.0


@told
async def test_two_workers_share_a_run_and_nothing_is_made_twice(place: Place) -> None:
    async def busy(task, attempt):
        await place.env().clock.sleep(7.0)
        return await place.script.publish(task, attempt)

    place.script.steps = dict.fromkeys("abcdef", busy)
    await place.started(dict.fromkeys("abcdef", ""), project="shop", max_parallelism=6)
    await asyncio.gather(*(crew(place, name, Heard(), Slots(1)).serve(once=True) for name in ("one", "two")))
    assert sorted(place.script.ran) == ["a1", "b1", "c1", "d1", "e1", "f1"]


@told
async def test_a_cancelled_run_is_heard_by_its_tasks_before_their_next_sign_of_life_and_frees_their_slots(
    place: Place,
) -> None:
    stopped_s: list[float] = []
    env, slots = place.env("person"), Slots(2)

    async def for_ever(task, attempt):
        try:
            await place.env().clock.sleep(1e6)
        except asyncio.CancelledError:
            stopped_s.append(place.world.loop.now_s)  # here an executor ends its Spark jobs
            raise

    place.script.steps = dict.fromkeys("ab", for_ever)
    started = await place.started({"a": "", "b": "", "c": "a"}, project="shop")
    serving = place.world.loop.create_task(crew(place, "worker", heard := Heard(), slots).serve(once=True))
    await env.clock.sleep(100.0)
    assert slots.used == 2
    asked_s, beats = place.world.loop.now_s, len(place.world.labels)
    await request_cancel((await place.opened(started.log.run)).log, "ann", "wrong month", env.clock, env.entropy)
    await serving
    assert len(stopped_s) == 2
    assert max(stopped_s) - asked_s < TASK_LEASE_S / 3
    signs = ["/claims/" in one and " get " not in one for one in place.world.labels]
    assert sum(signs[:beats]) > 10
    assert sum(signs[beats:]) <= 2, "at most one of each task"
    assert (heard.lines[-1], slots.used) == ("cancelled", 0)


@told
async def test_runs_that_rest_make_room_for_others_and_come_back(place: Place) -> None:
    env = place.env("person")
    paused = [await place.started({one: ""}, project="shop") for one in "abc"]
    for one in paused:
        await request_pause(one.log, "ann", "wait", env.clock, env.entropy)
    worker = crew(place, "worker", Heard(), runs_max=2)
    serving = place.world.loop.create_task(worker.serve(once=True))
    await env.clock.sleep(10.0)
    await place.started({"x": ""}, project="shop")
    await env.clock.sleep(20.0)
    assert place.script.ran == ["x1"]
    assert len(worker._driving) == 2
    for one in paused:
        await request_resume(one.log, "ann", env.clock, env.entropy)
    await serving
    assert sorted(place.script.ran) == ["a1", "b1", "c1", "x1"]
    assert await noted(place) == []


@told
async def test_a_scheduler_full_of_runs_that_it_can_do_nothing_for_takes_a_new_one(place: Place) -> None:
    env, heard = place.env("scheduler"), Heard()
    for one in "abc":
        await place.started({one: ""}, project="shop")

    async def take(note: OpenRun, started: Started) -> Driver:
        return place.driver(started, "scheduler", slots=0)

    ways = crew(place, "scheduler", heard, runs_max=2)._ways
    scheduler = Crew(ways, take)
    serving = place.world.loop.create_task(scheduler.serve())
    await env.clock.sleep(10.0)
    last = await place.started({"x": ""}, project="shop")
    await request_cancel(last.log, "ann", "not needed", env.clock, env.entropy)
    await env.clock.sleep(20.0)
    assert "cancelled" in heard.lines
    assert len(scheduler._driving) == 2
    scheduler.stop()
    await serving


@told
async def test_looking_at_nothing_costs_one_request(place: Place) -> None:
    await place.started({"a": ""}, project="shop")
    await crew(place, "first", Heard()).serve(once=True)
    idle = crew(place, "idle", Heard())
    serving = place.world.loop.create_task(idle.serve())
    await place.env().clock.sleep(1.0)
    before = len(place.world.labels)
    await place.env().clock.sleep(100.0)
    asked = place.world.labels[before:]
    idle.stop()
    await serving
    assert set(asked) == {f"idle get {OpenRunsKey(SCOPE)}"}
    assert 19 <= len(asked) <= 21


@told
async def test_a_note_of_a_run_that_never_began_stays_for_a_day(place: Place) -> None:
    env = place.env("starter")
    note = OpenRunsNote(env.store, SCOPE, env.clock, env.entropy)
    run = str((await place.started({"a": ""})).log.run)[:-4] + "0000"
    await note.add(OpenRun(run=run, project="shop", code_version="c", noted_ms=env.clock.now_ms()))
    await crew(place, "worker", Heard()).serve(once=True)
    assert await noted(place) == [run]
    await env.clock.sleep(25 * 3600.0)
    await crew(place, "worker", Heard()).serve(once=True)
    assert await noted(place) == []


def test_no_run_keeps_all_slots_while_another_has_none() -> None:
    slots, woken = Slots(4), []
    slots.join("first", lambda: woken.append("first"))
    slots.join("second", lambda: woken.append("second"))
    slots.adjust("first", busy=0, wants=9, may_shrink=True)
    assert slots.limit("first") == 4
    slots.adjust("second", busy=0, wants=9, may_shrink=True)
    assert (slots.limit("first"), slots.limit("second")) == (2, 0)
    slots.adjust("first", busy=2, wants=9, may_shrink=True)
    assert woken == ["second"]
    slots.adjust("second", busy=0, wants=9, may_shrink=True)
    assert (slots.limit("first"), slots.limit("second"), slots.used) == (2, 2, 4)
    slots.leave("first")
    slots.adjust("second", busy=2, wants=9, may_shrink=True)
    assert slots.limit("second") == 4
