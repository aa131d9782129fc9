"""Driving a run: order, retries, timeouts, gates, cancelling, resuming, and what is written down of it all."""

import asyncio
from collections import Counter

import pytest

from arco.kernel.errors import CorruptObject, Fenced, InvalidInput, NotFound, OutcomeUnknown, PartitionsTouched, Unavailable
from arco.kernel.ids import TimedIdempotencyKey
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.failure_kinds import Category
from arco.ledger.run_entries import (
    EventsAppended,
    Failure,
    OnFailure,
    OutputStaged,
    RunFinished,
    RunStatus,
    TaskCancelled,
    TaskClaimed,
    TaskPublished,
    TaskRetried,
    Trigger,
)
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import LOST_LEASE, RunState
from arco.quality.gates import EFFECTS, Action, Downstream, exit_code
from arco.servo.schedule.executor import Done, Failed, TaskPolicy
from arco.servo.schedule.interventions import pay_what_is_owed, request_cancel
from arco.servo.schedule.starting import RunRequest
from arco.servo.sdk.definitions import Retry
from arco.storage.keys import RunClaimKey
from unit.servo.schedule.ground import MADE, SCOPE, Place, in_a_calm_world, log_of, task_id

TRANSIENT = Failure(kind="storage", message="no answer", transient=True)
FINAL = Failure(kind="transform", message="division by zero")


def told(story):
    """A test that is a story in a calm world."""

    def test() -> None:
        in_a_calm_world(story)

    test.__name__ = story.__name__
    return test


def policies(*letters: str, **words) -> dict:
    return {"policies": {task_id(letter): TaskPolicy(**words) for letter in letters}}


# Order


@told
async def test_tasks_run_after_what_they_read(place: Place) -> None:
    state = await place.drive({"a": "", "b": "a", "c": "a", "d": "bc"})
    assert state.run.status is RunStatus.SUCCEEDED
    order = place.script.ran
    assert order[0] == "a1"
    assert set(order[1:3]) == {"b1", "c1"}
    assert order[3] == "d1"


@told
async def test_no_more_tasks_run_at_once_than_the_run_and_the_process_allow(place: Place) -> None:
    running, most = 0, Counter()

    async def slow(task, attempt):
        nonlocal running
        running += 1
        most["at once"] = max(most["at once"], running)
        await place.env().clock.sleep(5.0)
        running -= 1
        return await place.script.publish(task, attempt)

    place.script.steps = dict.fromkeys("abcdef", slow)
    await place.drive(dict.fromkeys("abcdef", ""), max_parallelism=3)
    assert most["at once"] == 3
    most.clear()
    place.script.ran.clear()
    await place.drive(dict.fromkeys("abcdef", ""), max_parallelism=3, driving={"slots": 2})
    assert most["at once"] == 2


@told
async def test_an_empty_plan_is_a_run_that_succeeded(place: Place) -> None:
    assert (await place.drive({})).run.status is RunStatus.SUCCEEDED


@told
async def test_a_task_costs_two_objects_of_the_log_or_less(place: Place) -> None:
    state = await place.drive(dict.fromkeys("abcdefghij", ""), max_parallelism=1)
    assert state.sequence <= 2 * 10 + 3
    state = await place.drive(dict.fromkeys("abcdefghij", ""), max_parallelism=10)
    assert state.sequence <= 8


# Retries


@told
async def test_a_failure_that_may_pass_is_tried_again_after_growing_pauses(place: Place) -> None:
    async def fails(task, attempt):
        if attempt.number <= 3:
            return Failed(TRANSIENT)
        return await place.script.publish(task, attempt)

    place.script.steps = {"a": fails}
    state = await place.drive({"a": ""}, driving=policies("a", retry=Retry(attempts=3, pause_s=8.0, pause_s_max=20.0)))
    assert state.run.status is RunStatus.SUCCEEDED
    assert place.script.ran == ["a1", "a2", "a3", "a4"]
    log = [entry for entry in place.seen if isinstance(entry, TaskRetried)]
    assert [entry.failure for entry in log] == [TRANSIENT] * 3
    claims = [entry for entry in place.seen if isinstance(entry, TaskClaimed)]
    assert len(claims) == 4


@told
async def test_a_task_is_tried_again_so_often_and_no_more(place: Place) -> None:
    async def fails(task, attempt):
        return Failed(TRANSIENT)

    place.script.steps = {"a": fails}
    state = await place.drive({"a": "", "b": "a"}, driving=policies("a", retry=Retry(attempts=2, pause_s=1.0)))
    assert place.script.ran == ["a1", "a2", "a3"]
    assert place.statuses(state) == {"a": "failed", "b": "skipped"}
    assert state.task(task_id("a")).failure == TRANSIENT
    assert state.run.status is RunStatus.FAILED


@told
async def test_a_failure_that_will_not_pass_is_not_tried_again(place: Place) -> None:
    async def fails(task, attempt):
        return Failed(FINAL)

    place.script.steps = {"a": fails}
    state = await place.drive({"a": ""})
    assert place.script.ran == ["a1"]
    assert place.statuses(state) == {"a": "failed"}


@told
async def test_what_user_code_raises_is_how_the_attempt_ended(place: Place) -> None:
    async def raises(task, attempt):
        raise ZeroDivisionError("division by zero")

    async def refused(task, attempt):
        raise InvalidInput("no such column", hint="look at the schema")

    place.script.steps = {"a": raises, "b": refused}
    state = await place.drive({"a": "", "b": ""})
    failure = state.task(task_id("a")).failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("transform", "ZeroDivisionError: division by zero")
    other = state.task(task_id("b")).failure
    assert other is not None
    assert (other.kind, other.hint, other.transient) == ("configuration", "look at the schema", False)


@told
async def test_an_attempt_that_a_dead_worker_settled_is_tried_again(place: Place) -> None:
    """It settled the key and died before the log heard of it: nobody but the attempt itself is there to say that it is over."""

    async def settled_meanwhile(task, attempt):
        if attempt.number == 1:
            ticket = await attempt.stage(place.script.output(task, attempt))
            place.catalog.dead.add(ticket.key)
            place.catalog.commit(ticket.key, task.id)
        return await place.script.publish(task, attempt)

    place.script.steps = {"a": settled_meanwhile}
    state = await place.drive({"a": ""})
    assert state.run.status is RunStatus.SUCCEEDED
    (again,) = (entry for entry in place.seen if isinstance(entry, TaskRetried))
    assert (again.failure.kind, again.failure.transient) == (LOST_LEASE, True)
    assert LOST_LEASE in set(Category)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unavailable("no answer"), "storage"),
        (CorruptObject("no JSON"), "storage"),
        (PartitionsTouched("by others"), "upstream"),
        (NotFound("no table"), "missing_dependency"),
        (InvalidInput("no such column"), "configuration"),
        (Fenced("settled"), "lost_lease"),
        (ValueError("no number"), "transform"),
    ],
)
def test_every_failure_is_of_a_known_kind(error: Exception, kind: str) -> None:
    async def raises(task, attempt):
        raise error

    async def story(place: Place) -> None:
        place.script.steps = {"a": raises}
        state = await place.drive({"a": ""}, driving=policies("a", retry=Retry(attempts=0)))
        failure = state.task(task_id("a")).failure
        assert failure is not None
        assert failure.kind == kind
        assert failure.kind in set(Category)

    in_a_calm_world(story)


@told
async def test_a_store_that_does_not_answer_an_attempt_is_asked_again(place: Place) -> None:
    async def silent(task, attempt):
        if attempt.number == 1:
            raise Unavailable("no answer")
        return await place.script.publish(task, attempt)

    place.script.steps = {"a": silent}
    state = await place.drive({"a": ""})
    assert place.script.ran == ["a1", "a2"]
    assert state.run.status is RunStatus.SUCCEEDED


# Timeouts


@told
async def test_an_attempt_that_takes_too_long_is_stopped_settled_and_tried_again(place: Place) -> None:
    stopped = []

    async def slow(task, attempt):
        if attempt.number == 2:
            return await place.script.publish(task, attempt)
        await attempt.stage(place.script.output(task, attempt))
        try:
            await place.env().clock.sleep(1000.0)
        except asyncio.CancelledError:
            stopped.append(attempt.number)
            raise
        return Done()

    place.script.steps = {"a": slow}
    state = await place.drive({"a": ""}, driving=policies("a", timeout_s=60.0))
    assert stopped == [1]
    assert len(place.catalog.settled) == 1
    assert state.run.status is RunStatus.SUCCEEDED
    retried = next(entry for entry in place.seen if isinstance(entry, TaskRetried))
    assert retried.failure.kind == "timeout"


@told
async def test_a_timed_out_attempt_that_landed_is_adopted(place: Place) -> None:
    async def slow(task, attempt):
        ticket = await attempt.stage(place.script.output(task, attempt))
        place.catalog.commit(ticket.key, task.id)
        await place.env().clock.sleep(1000.0)
        return Done()

    place.script.steps = {"a": slow}
    state = await place.drive({"a": ""}, driving=policies("a", timeout_s=60.0))
    assert place.script.ran == ["a1"]
    assert state.run.status is RunStatus.SUCCEEDED
    published = next(entry for entry in place.seen if isinstance(entry, TaskPublished))
    assert published.adopted


@told
async def test_an_executor_that_does_not_stop_is_a_zombie_and_can_no_longer_publish(place: Place) -> None:
    heard = []

    async def stubborn(task, attempt):
        if attempt.number == 2:
            return await place.script.publish(task, attempt)
        ticket = await attempt.stage(place.script.output(task, attempt))
        until = place.world.loop.now_s + 500.0
        while place.world.loop.now_s < until:
            try:
                await place.env().clock.sleep(until - place.world.loop.now_s)
            except asyncio.CancelledError:
                continue
        try:
            place.catalog.commit(ticket.key, task.id)
        except Fenced as error:
            heard.append(error.message)
        return Done()

    place.script.steps = {"a": stubborn}
    state = await place.drive({"a": ""}, driving=policies("a", timeout_s=60.0))
    assert state.run.status is RunStatus.SUCCEEDED
    assert state.task(task_id("a")).attempt == 2
    await place.env().clock.sleep(1000.0)
    assert heard == ["this attempt is over"]
    assert len(place.catalog.published) == 1


@told
async def test_a_run_whose_time_is_over_stops_and_has_failed(place: Place) -> None:
    async def slow(task, attempt):
        await place.env().clock.sleep(1000.0)
        return Done()

    place.script.steps = {"b": slow}
    state = await place.drive({"a": "", "b": "a", "c": "b"}, timeout_s=100.0)
    assert place.statuses(state) == {"a": "succeeded", "b": "cancelled", "c": "cancelled"}
    assert state.run.status is RunStatus.FAILED
    assert place.world.loop.now_s < 200.0


# Failing fast, and going on


@told
async def test_a_run_that_fails_fast_stops_what_runs_and_cancels_the_rest(place: Place) -> None:
    async def fails(task, attempt):
        await place.env().clock.sleep(5.0)
        return Failed(FINAL)

    async def slow(task, attempt):
        await place.env().clock.sleep(500.0)
        return Done()

    place.script.steps = {"a": fails, "b": slow}
    state = await place.drive({"a": "", "b": "", "c": "a", "d": "b"}, on_failure=OnFailure.FAIL_FAST)
    assert place.statuses(state) == {"a": "failed", "b": "cancelled", "c": "skipped", "d": "cancelled"}
    assert state.run.status is RunStatus.FAILED


@told
async def test_a_run_that_keeps_going_runs_everything_that_can(place: Place) -> None:
    async def fails(task, attempt):
        return Failed(FINAL)

    place.script.steps = {"a": fails}
    state = await place.drive({"a": "", "b": "", "c": "a", "d": "b", "e": "cd"})
    assert place.statuses(state) == {"a": "failed", "b": "succeeded", "c": "skipped", "d": "succeeded", "e": "skipped"}
    assert state.run.status is RunStatus.FAILED
    assert exit_code(place.statuses(state).values()) == 1


# Gates


@pytest.mark.parametrize("action", list(Action))
def test_every_gate_has_the_effect_of_the_table(action: Action) -> None:
    async def story(place: Place) -> None:
        place.script.actions = {"a": action}
        state = await place.drive({"a": "", "b": "a", "c": ""}, max_parallelism=1)
        effect = EFFECTS[action]
        statuses = place.statuses(state)
        assert statuses["a"] == effect.task.value
        wanted = {
            Downstream.RUNS: ("succeeded", "succeeded"),
            Downstream.RUNS_ON_LAST_GOOD: ("succeeded", "succeeded"),
            Downstream.SKIPPED: ("skipped", "succeeded"),
            Downstream.RUN_CANCELLED: ("skipped", "cancelled"),
        }[effect.downstream]
        assert (statuses["b"], statuses["c"]) == wanted
        its = state.task(task_id("a"))
        assert its.materialization_id is not None
        assert [event.data["task"] for event in await place.ledger() if event.data["task"] == "a"] == ["a"]

    in_a_calm_world(story)


@told
async def test_what_was_held_back_without_a_commit_ends_the_same(place: Place) -> None:
    async def keeps_nothing(task, attempt):
        await attempt.stage(place.script.output(task, attempt, commit=None))
        return Done()

    place.script.steps, place.script.actions = {"a": keeps_nothing}, {"a": Action.BLOCK_DOWNSTREAM}
    state = await place.drive({"a": "", "b": "a"})
    assert place.statuses(state) == {"a": "blocked", "b": "skipped"}
    assert exit_code(place.statuses(state).values()) == 3
    assert place.catalog.settled == []


# Staging


@told
async def test_what_is_about_to_be_committed_is_in_the_log_before_it_is(place: Place) -> None:
    async def looks(task, attempt):
        ticket = await attempt.stage(place.script.output(task, attempt, written={"rows": 3}))
        log = await log_of(place, attempt.run)
        staged = log.state.task(task.id).staged
        assert staged is not None
        assert staged.publish is not None
        assert staged.publish.key == ticket.key
        assert staged.written == {"rows": 3}
        assert staged.events[0].id is not None
        assert TimedIdempotencyKey(ticket.key).time_ms == ticket.at_ms == staged.at_ms
        place.catalog.commit(ticket.key, task.id)
        return Done()

    place.script.steps = {"a": looks}
    assert (await place.drive({"a": ""})).run.status is RunStatus.SUCCEEDED


@told
async def test_an_attempt_that_stages_again_has_another_key_and_settles_the_first(place: Place) -> None:
    async def twice(task, attempt):
        first = await attempt.stage(place.script.output(task, attempt))
        second = await attempt.stage(place.script.output(task, attempt))
        assert first.key != second.key
        assert place.catalog.settled == [first.key]
        place.catalog.commit(second.key, task.id)
        return Done()

    place.script.steps = {"a": twice}
    state = await place.drive({"a": ""})
    assert state.run.status is RunStatus.SUCCEEDED
    assert len(await place.ledger()) == 1


@told
async def test_an_attempt_that_has_landed_stages_nothing_else(place: Place) -> None:
    async def forgets(task, attempt):
        ticket = await attempt.stage(place.script.output(task, attempt))
        place.catalog.commit(ticket.key, task.id)
        await attempt.stage(place.script.output(task, attempt))
        return Done()

    place.script.steps = {"a": forgets}
    state = await place.drive({"a": ""})
    assert state.run.status is RunStatus.SUCCEEDED
    assert place.script.ran == ["a1"]


@told
async def test_an_executor_that_committed_nothing_it_staged_has_failed(place: Place) -> None:
    async def nothing(task, attempt):
        return Done()

    place.script.steps = {"a": nothing}
    state = await place.drive({"a": ""})
    failure = state.task(task_id("a")).failure
    assert failure is not None
    assert (failure.kind, failure.severity) == ("storage", "critical")


@told
async def test_a_failure_is_believed_only_after_history_was_asked(place: Place) -> None:
    async def confused(task, attempt):
        ticket = await attempt.stage(place.script.output(task, attempt))
        place.catalog.commit(ticket.key, task.id)
        raise OutcomeUnknown("no reply")

    place.script.steps = {"a": confused}
    state = await place.drive({"a": ""})
    assert state.run.status is RunStatus.SUCCEEDED
    assert place.script.ran == ["a1"]


# Cancelling


@told
async def test_cancelling_is_written_down_first_and_leaves_a_clean_log(place: Place) -> None:
    stopped = []

    async def slow(task, attempt):
        try:
            await place.env().clock.sleep(500.0)
        except asyncio.CancelledError:
            stopped.append(task.id)
            raise
        return Done()

    place.script.steps = {"b": slow}
    started = await place.started({"a": "", "b": "", "c": "b"})
    driver = place.driver(started)
    driving = asyncio.get_running_loop().create_task(driver.drive())
    await place.env().clock.sleep(20.0)
    driver.cancel("me", "Ctrl-C")
    state = await driving
    assert place.statuses(state) == {"a": "succeeded", "b": "cancelled", "c": "cancelled"}
    assert state.run.status is RunStatus.CANCELLED
    assert stopped == [task_id("b")]
    log = await log_of(place, started.log.run)
    assert (log.state.is_finished, log.state.ignored, log.state.owed) == (True, [], {})
    assert state.run.cancel is not None
    assert state.run.cancel.who == "me"


@told
async def test_a_cancelled_attempt_that_landed_has_succeeded(place: Place) -> None:
    async def slow(task, attempt):
        ticket = await attempt.stage(place.script.output(task, attempt))
        place.catalog.commit(ticket.key, task.id)
        await place.env().clock.sleep(500.0)
        return Done()

    place.script.steps = {"a": slow}
    started = await place.started({"a": "", "b": "a"})
    driver = place.driver(started)
    driving = asyncio.get_running_loop().create_task(driver.drive())
    await place.env().clock.sleep(20.0)
    driver.cancel("me")
    state = await driving
    assert place.statuses(state) == {"a": "succeeded", "b": "cancelled"}
    assert len(await place.ledger()) == 1


@told
async def test_somebody_else_may_cancel_a_run_through_its_log(place: Place) -> None:
    async def slow(task, attempt):
        await place.env().clock.sleep(500.0)
        return Done()

    place.script.steps = {"a": slow}
    started = await place.started({"a": ""})
    driving = asyncio.get_running_loop().create_task(place.driver(started).drive())
    await place.env().clock.sleep(20.0)
    other = await place.opened(started.log.run)
    env = place.env("somebody")
    assert await request_cancel(other.log, "somebody", "not needed", env.clock, env.entropy)
    assert await request_cancel(other.log, "somebody else", "not needed either", env.clock, env.entropy)
    state = await driving
    assert state.run.status is RunStatus.CANCELLED
    assert place.world.loop.now_s < 60.0
    assert state.run.cancel is not None
    assert state.run.cancel.who == "somebody"


@told
async def test_a_run_that_has_ended_cannot_be_cancelled(place: Place) -> None:
    started = await place.started({"a": ""})
    await place.driver(started).drive()
    env = place.env("somebody")
    log = (await place.opened(started.log.run)).log
    assert not await request_cancel(log, "somebody", "too late", env.clock, env.entropy)
    assert log.state.run.status is RunStatus.SUCCEEDED


@told
async def test_a_failure_while_stopping_is_a_failure_and_is_not_tried_again(place: Place) -> None:
    async def fails(task, attempt):
        try:
            await place.env().clock.sleep(500.0)
        except asyncio.CancelledError:
            return Failed(TRANSIENT)
        return Done()

    place.script.steps = {"a": fails}
    started = await place.started({"a": ""})
    driver = place.driver(started)
    driving = asyncio.get_running_loop().create_task(driver.drive())
    await place.env().clock.sleep(5.0)
    driver.cancel("me")
    state = await driving
    assert place.statuses(state) == {"a": "failed"}


# Resuming


async def killed_after(place: Place, reads: dict, seconds: float) -> RunLog:
    """A driver that is gone after a while, without a word, as after `kill -9`."""
    started = await place.started(reads)
    driver = place.driver(started, "victim")
    driving = asyncio.get_running_loop().create_task(driver.drive())
    await place.env().clock.sleep(seconds)
    driving.cancel()
    await asyncio.wait({driving})
    return started.log


@told
async def test_a_killed_run_is_continued_from_what_is_published(place: Place) -> None:
    async def slow(task, attempt):
        await place.env().clock.sleep(50.0)
        return await place.script.publish(task, attempt)

    place.script.steps = {"b": slow}
    log = await killed_after(place, {"a": "", "b": "a", "c": "b"}, 30.0)
    assert place.script.ran == ["a1", "b1"]
    state = await place.driver(await place.opened(log.run), "successor").drive()
    assert state.run.status is RunStatus.SUCCEEDED
    assert place.script.ran == ["a1", "b1", "b2", "c1"]
    assert Counter(place.catalog.published.values()) == Counter(map(task_id, "abc"))


@told
async def test_a_successor_waits_until_the_dead_ones_claims_are_silent_unless_told_otherwise(place: Place) -> None:
    async def slow(task, attempt):
        await place.env().clock.sleep(50.0 if attempt.number == 1 else 1.0)
        return await place.script.publish(task, attempt)

    place.script.steps = {"a": slow}
    log = await killed_after(place, {"a": ""}, 5.0)
    begun = place.world.loop.now_s
    await place.driver(await place.opened(log.run), "successor", lease_s=30.0).drive()
    assert 20.0 < place.world.loop.now_s - begun < 40.0
    log = await killed_after(place, {"a": ""}, 5.0)
    begun = place.world.loop.now_s
    await place.driver(await place.opened(log.run), "hasty", seize=True).drive()
    assert place.world.loop.now_s - begun < 5.0


@told
async def test_a_publish_whose_driver_died_before_it_could_say_so_is_adopted_with_its_events(place: Place) -> None:
    async def dies(task, attempt):
        ticket = await attempt.stage(place.script.output(task, attempt))
        place.catalog.commit(ticket.key, task.id)
        await place.env().clock.sleep(10_000.0)
        return Done()

    place.script.steps = {"a": dies}
    log = await killed_after(place, {"a": ""}, 5.0)
    assert await place.ledger() == []
    state = await place.driver(await place.opened(log.run), "successor").drive()
    assert state.run.status is RunStatus.SUCCEEDED
    assert place.script.ran == ["a1"]
    assert [event.data for event in await place.ledger()] == [{"attempt": 1, "task": "a"}]


@told
async def test_a_worker_with_heartbeats_is_left_alone(place: Place) -> None:
    async def slow(task, attempt):
        attempt.progress({"stage": 3})
        await place.env().clock.sleep(300.0)
        return await place.script.publish(task, attempt)

    place.script.steps = {"a": slow}
    started = await place.started({"a": ""})
    first = asyncio.get_running_loop().create_task(place.driver(started, "first").drive())
    await place.env().clock.sleep(5.0)
    second = asyncio.get_running_loop().create_task(place.driver(await place.opened(started.log.run), "second").drive())
    await place.env().clock.sleep(100.0)
    found = await place.env().store.get(str(RunClaimKey(SCOPE, started.log.run, task_id("a"))))
    assert found is not None
    assert b'"progress":{"stage":3}' in found.data
    await asyncio.wait({first, second})
    assert place.script.ran == ["a1"]


@told
async def test_two_drivers_share_a_run_and_no_task_runs_twice(place: Place) -> None:
    async def slow(task, attempt):
        await place.env().clock.sleep(3.0)
        return await place.script.publish(task, attempt)

    letters = "abcdefgh"
    place.script.steps = dict.fromkeys(letters, slow)
    started = await place.started(dict.fromkeys(letters, ""), max_parallelism=4)
    other = await place.opened(started.log.run)
    await asyncio.gather(place.driver(started, "one", slots=2).drive(), place.driver(other, "two", slots=2).drive())
    assert Counter(place.script.ran) == Counter(f"{letter}1" for letter in letters)
    assert started.log.state.run.status is RunStatus.SUCCEEDED
    log = await log_of(place, started.log.run)
    assert log.state.ignored == []


@told
async def test_a_run_that_has_finished_has_nothing_left_to_drive(place: Place) -> None:
    started = await place.started({"a": ""})
    await place.driver(started).drive()
    state = await place.driver(await place.opened(started.log.run), "late").drive()
    assert state.run.status is RunStatus.SUCCEEDED
    assert place.script.ran == ["a1"]


# Events


def finished_event(entry, state: RunState) -> tuple[Draft, ...]:
    if not isinstance(entry, RunFinished):
        return ()
    ended = EventType("execution.run_completed.v1")
    return (Draft(type=ended, source="test", data={"tasks": len(state.tasks), "task": ""}),)


@told
async def test_events_of_tasks_and_of_the_run_are_in_the_ledger_and_the_log_says_so(place: Place) -> None:
    begun = Draft(type=EventType("execution.run_created.v1"), source="test", data={"task": ""})
    started = await place.started({"a": "", "b": "a"}, announce=lambda _: (begun,))
    state = await place.driver(started, announce=finished_event).drive()
    types = Counter(str(event.type) for event in await place.ledger())
    assert types == {str(MADE): 2, "execution.run_created.v1": 1, "execution.run_completed.v1": 1}
    assert state.owed == {}
    assert any(isinstance(entry, EventsAppended) for entry in place.seen)


@told
async def test_events_have_the_ids_that_the_log_gave_them(place: Place) -> None:
    await place.drive({"a": ""})
    staged = next(entry for entry in place.seen if isinstance(entry, OutputStaged))
    assert [event.id for event in await place.ledger()] == [staged.events[0].id]


@told
async def test_what_a_finished_run_owes_can_be_paid_by_anybody(place: Place) -> None:
    started = await place.started({"a": ""})
    driver = place.driver(started)

    async def refuses(*_args) -> None:
        raise Unavailable("the ledger does not answer")

    driver._ground.appender.append = refuses  # type: ignore[method-assign]
    state = await driver.drive()
    assert state.is_finished
    assert state.owed != {}
    assert await place.ledger() == []
    env = place.env("upkeep")
    log = await log_of(place, started.log.run)
    appender = Appender(env.store, SCOPE, env.clock, env.entropy)
    await pay_what_is_owed(log, appender, env.clock, env.entropy)
    await pay_what_is_owed(log, appender, env.clock, env.entropy)
    assert [event.data["task"] for event in await place.ledger()] == ["a"]
    assert log.state.owed == {}


@pytest.mark.parametrize(
    "event",
    [
        Draft(type=EventType("weather.changed.v1"), source="test", data={}),
        Draft(type=MADE, source="not a source", data={}),
        Draft(type=MADE, source="test", data={"x": "y" * 2_000_000}),
    ],
    ids=["no domain", "no event", "too large"],
)
def test_an_event_that_the_ledger_would_refuse_is_refused_before_it_is_owed(event: Draft) -> None:
    async def story(place: Place) -> None:
        async def stages(task, attempt):
            await attempt.stage(place.script.output(task, attempt, events=(event,)))
            return Done()

        async def fails(task, attempt):
            return Failed(FINAL, events=(event,))

        place.script.steps = {"a": stages, "b": fails}
        state = await place.drive({"a": "", "b": "", "c": ""})
        assert place.statuses(state) == {"a": "failed", "b": "failed", "c": "succeeded"}
        failure = state.task(task_id("b")).failure
        assert failure is not None
        assert failure.kind in {"configuration", "resource_exhausted"}
        assert state.owed == {}

    in_a_calm_world(story)


# Looking on


@told
async def test_an_observer_hears_of_every_entry_in_order_and_of_progress(place: Place) -> None:
    async def speaks(task, attempt):
        attempt.progress({"rows": 5})
        return await place.script.publish(task, attempt)

    place.script.steps = {"a": speaks}
    await place.drive({"a": ""})
    assert (task_id("a"), {"rows": 5}) in place.seen
    kinds = [type(entry).__name__ for entry in place.seen if not isinstance(entry, tuple)]
    assert kinds == ["TaskClaimed", "TaskStarted", "OutputStaged", "TaskPublished", "RunFinished", "EventsAppended"]


def test_a_request_for_nothing_or_for_no_time_is_refused() -> None:
    with pytest.raises(InvalidInput):
        RunRequest(max_parallelism=0)
    with pytest.raises(InvalidInput):
        RunRequest(timeout_s=0.0)
    with pytest.raises(InvalidInput):
        RunRequest(idempotency_key="")
    assert RunRequest().trigger is Trigger.MANUAL


@told
async def test_a_cancelled_task_says_why(place: Place) -> None:
    started = await place.started({"a": "", "b": "a"})
    driver = place.driver(started)
    driver.cancel("me", "changed my mind")
    state = await driver.drive()
    assert place.statuses(state) == {"a": "cancelled", "b": "cancelled"}
    reasons = {entry.reason for entry in place.seen if isinstance(entry, TaskCancelled)}
    assert reasons == {"changed my mind"}
