"""Runs that no process can drive: each is refused and said, and whatever else is open goes on."""

import pytest

from arco.kernel.errors import CorruptObject, InvalidInput, NotFound, UnknownFormat
from arco.kernel.ids import RunId, UlidSource
from arco.kernel.limits import RUN_PARALLELISM_MAX, RUN_TIMEOUT_S_MAX, TASK_LEASE_S_MAX
from arco.ledger.run_entries import RunCreated, TaskClaimed, Trigger
from arco.ledger.run_log import RunLog, write_plan
from arco.ledger.run_outline import Outline
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.crew import Crew
from arco.servo.schedule.interventions import request_cancel
from arco.servo.schedule.open_runs import OpenRun, OpenRunsNote
from arco.servo.schedule.starting import RunRequest
from unit.servo.schedule.ground import SCOPE, Place, log_of, plan_of, task_id
from unit.servo.schedule.test_crew import Heard, crew
from unit.servo.schedule.test_driver import told


async def written(place: Place, **changes) -> RunLog:
    """A run as somebody writes it who can write to the bucket, and asks nobody."""
    env, plan = place.env("writer"), plan_of({"a": ""})
    run = RunId(UlidSource(env.clock, env.entropy).next())
    note = OpenRun(run=str(run), project="shop", code_version="c", noted_ms=env.clock.now_ms())
    stored = await write_plan(env.store, SCOPE, run, plan.encode(), env.clock, env.entropy)
    await OpenRunsNote(env.store, SCOPE, env.clock, env.entropy).add(note)
    log = RunLog(env.store, SCOPE, run, Outline.of_plan(stored), env.clock, env.entropy)
    words = {"max_parallelism": 1} | changes
    await log.append([RunCreated(plan_id=plan.fingerprint, tasks=1, trigger=Trigger.MANUAL, who="eve", **words)])
    return log


@told
async def test_a_time_limit_that_no_clock_has_is_the_longest_that_a_run_may_have(place: Place) -> None:
    log = await written(place, timeout_s=1e306)
    await place.started({"b": ""}, project="shop")
    heard = Heard()
    await crew(place, "worker", heard).serve(once=True)
    assert heard.lines.count("succeeded") == 2
    assert (await log_of(place, log.run)).state.run.status.value == "succeeded"


@told
async def test_a_run_with_such_a_limit_can_be_cancelled(place: Place) -> None:
    log, env = await written(place, timeout_s=1e306), place.env("person")
    await request_cancel(log, "ann", "wrong", env.clock, env.entropy)
    heard = Heard()
    await crew(place, "worker", heard).serve(once=True)
    assert heard.lines == ["took 1", "cancelled"]
    assert place.script.ran == []


@told
async def test_more_tasks_at_once_than_can_be_counted_are_all_of_them(place: Place) -> None:
    await written(place, max_parallelism=10**30)
    heard = Heard()
    await crew(place, "worker", heard).serve(once=True)
    assert heard.lines == ["took 1", "succeeded"]


@told
async def test_a_claim_for_ever_is_silent_when_the_longest_lease_is_over(place: Place) -> None:
    log, env = await written(place), place.env("worker")
    await log.append([TaskClaimed(task=task_id("a"), attempt=1, worker="eve", lease_s=1e306)])
    claims = Claims(env.store, SCOPE, log.run, "worker", env.clock, env.entropy)
    assert not await claims.is_silent(task_id("a"), log.state.tasks[task_id("a")])
    await env.clock.sleep(TASK_LEASE_S_MAX)
    assert await claims.is_silent(task_id("a"), log.state.tasks[task_id("a")])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"timeout_s": 1e306}, "1e\\+306 s"),
        ({"timeout_s": float("inf")}, "inf s"),
        ({"timeout_s": float("nan")}, "nan s"),
        ({"timeout_s": 0.0}, "0 s"),
        ({"max_parallelism": 10**30}, "tasks at once"),
        ({"max_parallelism": 0}, "tasks at once"),
    ],
)
def test_no_run_is_asked_for_with_numbers_that_mean_nothing(words, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        RunRequest(**words)
    assert RunRequest(timeout_s=RUN_TIMEOUT_S_MAX, max_parallelism=RUN_PARALLELISM_MAX)


@pytest.mark.parametrize("trouble", [NotFound("gone"), UnknownFormat("newer"), CorruptObject("torn"), OverflowError("odd")])
def test_a_run_that_cannot_be_taken_is_refused_and_the_others_go_on(trouble) -> None:
    @told
    async def story(place: Place) -> None:
        first = await place.started({"a": ""}, project="shop")
        await place.started({"b": ""}, project="shop")
        heard = Heard()
        worker = crew(place, "worker", heard)
        taken = worker._take

        async def take(note, started):
            if note.run == str(first.log.run):
                raise trouble
            return await taken(note, started)

        await Crew(worker._ways, take).serve(once=True)
        assert place.script.ran == ["b1"]
        (refused,) = [line for line in heard.lines if line.startswith("refused")]
        assert str(trouble) in refused
        assert "succeeded" in heard.lines

    story()


@told
async def test_a_run_that_breaks_its_driver_is_refused_and_the_others_go_on(place: Place) -> None:
    first = await place.started({"a": ""}, project="shop")
    await place.started({"b": ""}, project="shop")
    heard = Heard()
    worker = crew(place, "worker", heard)
    taken = worker._take

    async def take(note, started):
        if note.run == str(first.log.run):
            return place.driver(started, "worker", announce=breaks)
        return await taken(note, started)

    def breaks(entry, state):
        raise OverflowError("cannot convert float infinity to integer")

    await Crew(worker._ways, take).serve(once=True)
    assert place.script.ran == ["b1"]
    (refused,) = [line for line in heard.lines if line.startswith("refused")]
    assert "OverflowError" in refused
