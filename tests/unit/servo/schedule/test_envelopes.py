"""Envelopes: a worker with a key runs exactly what a scheduler with the same key signed, until it expires."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.ledger.run_entries import TaskClaimed, TaskDispatched
from arco.servo.schedule.envelopes import EnvelopeKeys, Signer
from arco.servo.schedule.interventions import request_pause, request_resume
from arco.servo.schedule.pools import Need
from arco.servo.schedule.slots import Slots
from unit.servo.schedule.ground import SCOPE, Place, log_of, task_id
from unit.servo.schedule.test_driver import told

KEY, OTHER = Secret("a" * 32), Secret("b" * 32)
NOW_MS = 1_000_000


def signer(**words) -> Signer:
    said = {"keys": EnvelopeKeys((KEY,)), "scope": SCOPE, "run": "r", "plan_id": "plan_1", "code_version": "code_1"}
    return Signer(**(said | words))


def test_what_was_signed_is_run_until_it_expires() -> None:
    made = signer().sign("a", 1, NOW_MS)
    assert signer().refusal(made, "a", 1, NOW_MS) is None
    assert signer().refusal(made, "a", 1, made.expires_ms - 1) is None
    assert signer().refusal(made, "a", 1, made.expires_ms) == "it has expired"


def test_nothing_that_nobody_signed_is_run() -> None:
    assert signer().refusal(None, "a", 1, NOW_MS) == "no scheduler has signed it"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tenant", "other"),
        ("workspace", "other"),
        ("run", "s"),
        ("task", "b"),
        ("attempt", 2),
        ("plan_id", "plan_2"),
        ("code_version", "code_2"),
        ("expires_ms", NOW_MS * 100),
        ("key_id", "0" * 16),
        ("signature", "0" * 64),
    ],
)
def test_an_envelope_whose_words_were_changed_is_refused(field: str, value: object) -> None:
    made = msgspec.structs.replace(signer().sign("a", 1, NOW_MS), **{field: value})
    attempt = made.attempt if field == "attempt" else 1
    assert signer().refusal(made, made.task, attempt, NOW_MS) is not None


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"scope": Scope.of("other", "w")},
        {"scope": Scope.of("t", "other")},
        {"run": "s"},
        {"plan_id": "plan_2"},
        {"code_version": "code_2"},
        {"keys": EnvelopeKeys((OTHER,))},
    ],
)
def test_an_envelope_is_worth_nothing_elsewhere(elsewhere: dict) -> None:
    assert signer(**elsewhere).refusal(signer().sign("a", 1, NOW_MS), "a", 1, NOW_MS) is not None


@pytest.mark.parametrize(("task", "attempt"), [("b", 1), ("a", 2)])
def test_an_envelope_is_of_one_attempt_and_no_other(task: str, attempt: int) -> None:
    assert signer().refusal(signer().sign("a", 1, NOW_MS), task, attempt, NOW_MS) is not None


def test_a_new_key_is_brought_in_beside_the_old_one() -> None:
    both = EnvelopeKeys((OTHER, KEY))
    assert signer(keys=both).refusal(signer().sign("a", 1, NOW_MS), "a", 1, NOW_MS) is None
    assert signer().refusal(signer(keys=both).sign("a", 1, NOW_MS), "a", 1, NOW_MS) is not None


def test_a_key_that_can_be_guessed_is_refused_and_not_said() -> None:
    with pytest.raises(InvalidInput) as refused:
        EnvelopeKeys((Secret("swordfish"),))
    assert "swordfish" not in str(refused.value)
    assert "a" * 32 not in repr(EnvelopeKeys((KEY,)))


def of_run(started) -> Signer:
    return signer(run=str(started.log.run), plan_id=started.plan.fingerprint, code_version="c")


@told
async def test_a_worker_with_a_key_waits_for_a_scheduler_and_then_runs_everything(place: Place) -> None:
    started = await place.started({"a": "", "b": "a"})
    mine = of_run(started)
    worker = place.driver(started, "worker", asks_for=mine)
    working = place.world.loop.create_task(worker.drive())
    await place.env().clock.sleep(20.0)
    assert place.script.ran == []
    theirs = await place.opened(started.log.run, "scheduler")
    await place.driver(theirs, "scheduler", slots=0, hands_out=mine).drive()
    await working
    assert place.script.ran == ["a1", "b1"]
    log = await log_of(place, started.log.run)
    assert not log.state.ignored
    assert {type(one) for one in place.seen} >= {TaskDispatched, TaskClaimed}


@told
async def test_a_worker_without_a_key_runs_what_is_signed_and_what_is_not(place: Place) -> None:
    started = await place.started({"a": ""})
    await place.driver(started, "worker", slots=Slots(2), hands_out=of_run(started)).drive()
    assert place.script.ran == ["a1"]


@told
async def test_what_nobody_took_in_time_is_signed_again(place: Place) -> None:
    started = await place.started({"a": ""})
    mine = replace(of_run(started), lives_s=10.0)
    scheduler = place.world.loop.create_task(place.driver(started, "scheduler", slots=0, hands_out=mine).drive())
    await place.env().clock.sleep(60.0)
    theirs = await place.opened(started.log.run, "worker")
    assert theirs.log.state.sequence > 3
    await place.driver(theirs, "worker", asks_for=mine).drive()
    await scheduler
    assert place.script.ran == ["a1"]
    assert theirs.log.state.task(task_id("a")).attempt == 1


@told
async def test_what_expires_between_the_claim_and_the_first_line_is_not_begun(place: Place) -> None:
    started = await place.started({"a": ""})
    mine = of_run(started)
    await _handed_out(place, started, mine)
    theirs = await place.opened(started.log.run, "worker")
    worker = place.driver(theirs, "worker", asks_for=mine, slots=1)
    slept = []

    def told_of(_run: str) -> None:
        if not slept:
            slept.append(True)
            theirs.log._clock._incarnation.clock_offset_s += 10_000.0  # the machine was asleep

    worker._options = replace(worker._options, tell=told_of)
    worker._clock = theirs.log._clock
    going = place.world.loop.create_task(worker.drive())
    await place.env().clock.sleep(20.0)
    going.cancel()
    log = await log_of(place, started.log.run)
    assert slept
    assert place.script.ran == []
    assert log.state.task(task_id("a")).lost_leases == 1


async def _handed_out(place: Place, started, mine: Signer) -> None:
    scheduler = place.driver(await place.opened(started.log.run, "scheduler"), "scheduler", slots=0, hands_out=mine)
    going = place.world.loop.create_task(scheduler.drive())
    await place.env().clock.sleep(5.0)
    going.cancel()


def _dispatched(place: Place) -> list[str]:
    return [chr(int(one.task[5:], 16)) for one in place.seen if isinstance(one, TaskDispatched)]


@told
async def test_tasks_that_wait_for_a_pool_keep_no_other_task_unsigned(place: Place) -> None:
    letters = "abcdefghij"
    needs = {task_id(one): (Need("disk", 1.0),) for one in letters}
    elsewhere = await place.started({"z": ""})
    await place.driver(elsewhere, "other")._reserving.pools.take(task_id("z"), 1, [Need("disk", 1.0)])
    started = await place.started(dict.fromkeys([*letters, "x"], ""), max_parallelism=2)
    mine = of_run(started)
    worker = place.driver(started, "worker", slots=Slots(2), asks_for=mine, needs=needs)
    working = place.world.loop.create_task(worker.drive())
    theirs = await place.opened(started.log.run, "scheduler")
    scheduling = place.world.loop.create_task(
        place.driver(theirs, "scheduler", slots=0, hands_out=mine, needs=needs).drive()
    )
    await place.env().clock.sleep(20.0)
    assert place.script.ran == ["x1"]
    await asyncio.gather(working, scheduling)
    assert sorted(place.script.ran) == sorted([f"{one}1" for one in [*letters, "x"]])


@told
async def test_nothing_of_a_paused_run_is_signed_however_long_it_rests(place: Place) -> None:
    started, env = await place.started({"a": ""}), place.env("person")
    mine = replace(of_run(started), lives_s=10.0)
    await request_pause(started.log, "ann", "wait", env.clock, env.entropy)
    scheduler = place.driver(await place.opened(started.log.run), "scheduler", slots=0, hands_out=mine)
    scheduling = place.world.loop.create_task(scheduler.drive())
    await env.clock.sleep(100.0)
    assert _dispatched(place) == []
    await request_resume(started.log, "ann", env.clock, env.entropy)
    await env.clock.sleep(5.0)
    assert _dispatched(place) == ["a"]
    scheduling.cancel()
