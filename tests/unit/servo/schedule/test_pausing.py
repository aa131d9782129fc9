"""Pausing a run: what runs finishes, nothing more is claimed by anybody, and it goes on when it is resumed."""

import asyncio

from arco.ledger.run_entries import RunStatus, TaskClaimed
from arco.servo.schedule.interventions import request_cancel, request_pause, request_resume
from unit.servo.schedule.ground import Place, in_a_calm_world


def told(story):
    def test() -> None:
        in_a_calm_world(story)

    test.__name__ = story.__name__
    return test


async def _slow(place: Place, task, attempt):
    await place.env().clock.sleep(10.0)
    return await place.script.publish(task, attempt)


@told
async def test_a_pause_lets_what_runs_finish_and_claims_nothing_until_it_is_resumed(place: Place) -> None:
    place.script.steps = dict.fromkeys("abc", lambda task, attempt: _slow(place, task, attempt))
    started = await place.started({"a": "", "b": "", "c": ""}, max_parallelism=1)
    first = asyncio.create_task(place.driver(started).drive())
    other = await place.opened(started.log.run, "two")
    second = asyncio.create_task(place.driver(other, "two").drive())
    env = place.env("somebody")
    await env.clock.sleep(5.0)
    log = (await place.opened(started.log.run)).log
    assert await request_pause(log, "ann", "the source is moved", env.clock, env.entropy)
    assert await request_pause(log, "bob", "as well", env.clock, env.entropy), "it is paused, by the first"

    await env.clock.sleep(500.0)
    state = await log.catch_up()
    assert place.statuses(state) == {"a": "succeeded", "b": "ready", "c": "ready"}
    assert state.run.paused is not None
    assert (state.run.paused.who, state.run.status) == ("ann", RunStatus.RUNNING)

    assert await request_resume(log, "ann", env.clock, env.entropy)
    assert not await request_resume(log, "bob", env.clock, env.entropy), "it is not paused any more"
    assert (await first).run.status is RunStatus.SUCCEEDED
    await second
    assert sorted(place.script.ran) == ["a1", "b1", "c1"]
    assert len({one.task for one in place.seen if isinstance(one, TaskClaimed)}) == 3


@told
async def test_whoever_opens_a_paused_run_waits_too(place: Place) -> None:
    started = await place.started({"a": ""})
    env = place.env("somebody")
    assert await request_pause(started.log, "ann", "not yet", env.clock, env.entropy)
    driving = asyncio.create_task(place.driver(await place.opened(started.log.run), "later").drive())
    await env.clock.sleep(100.0)
    assert place.script.ran == []
    await request_resume(started.log, "ann", env.clock, env.entropy)
    assert (await driving).run.status is RunStatus.SUCCEEDED


@told
async def test_a_paused_run_can_be_cancelled_and_one_that_ends_cannot_be_paused(place: Place) -> None:
    started = await place.started({"a": ""})
    env = place.env("somebody")
    assert await request_pause(started.log, "ann", "not yet", env.clock, env.entropy)
    assert await request_cancel(started.log, "ann", "never", env.clock, env.entropy)
    assert not await request_resume(started.log, "ann", env.clock, env.entropy)
    state = await place.driver(await place.opened(started.log.run)).drive()
    assert (state.run.status, place.script.ran) == (RunStatus.CANCELLED, [])
    assert not await request_pause(started.log, "ann", "too late", env.clock, env.entropy)
