"""The end of an attempt is written down only when it is certain, and on the log as it is then."""

import asyncio

import pytest

from arco.catalog.settling import DidLand, NeverLands, Settled
from arco.kernel.errors import OutcomeUnknown, Unavailable
from arco.kernel.ids import RunId
from arco.ledger.materializations import materialization_id
from arco.ledger.run_entries import (
    Failure,
    OutputStaged,
    RunCancelRequested,
    RunCreated,
    TaskCancelled,
    TaskClaimed,
    TaskFailed,
    TaskPublished,
    TaskRetried,
    TaskStarted,
    Trigger,
)
from arco.ledger.run_outline import Outline
from arco.ledger.run_state import LOST_LEASE, RunState, TaskState, TaskStatus
from arco.servo.schedule.decisions import (
    FOLLOWING_ENTRIES_MAX,
    LOST_LEASES_MAX,
    Claimant,
    failed_entry,
    follow_up,
    landed_entry,
    pause_before,
)
from arco.servo.schedule.executor import TaskPolicy
from arco.servo.schedule.log_writer import LogWriter
from arco.servo.schedule.work import Work, Workshop, conclude, lost_lease
from arco.servo.sdk.definitions import Retry
from unit.servo.schedule.ground import Place, in_a_calm_world, plan_of, task_id

A = task_id("a")
TASK = plan_of({"a": ""}).spec.tasks[0]


def told(story):
    def test() -> None:
        in_a_calm_world(story)

    test.__name__ = story.__name__
    return test


async def claimed_by_a_stranger(place: Place) -> RunId:
    """A run with one task that a worker has, of which nothing was heard since."""
    started = await place.started({"a": ""})
    claim = TaskClaimed(task=A, attempt=1, worker="stranger", lease_s=30.0)
    assert await started.log.append([claim, TaskStarted(task=A, attempt=1)])
    return started.log.run


async def shop_of(place: Place, run: RunId, name: str, settler=None) -> Workshop:
    env = place.env(name)
    log = (await place.opened(run, name)).log
    writer = LogWriter(log, lambda _: [], lambda entry, _: entry, env.clock, env.entropy)
    return Workshop(
        run, writer, settler or place.catalog, place.script, env.clock, env.entropy, log._ulids, lambda *_: None
    )


@told
async def test_what_a_worker_stages_while_it_is_declared_dead_is_settled_too(place: Place) -> None:
    """The worker wins the slot that its successor wanted for the word that it is dead."""
    run = await claimed_by_a_stranger(place)
    successor = await shop_of(place, run, "successor")
    stranger = await shop_of(place, run, "stranger")
    work = Work(stranger, TASK, 1, TaskPolicy())
    ticket = await work.stage(place.script.output(TASK, work))
    assert successor.writer.state.task(A).staged is None
    await conclude(successor, A, 1, lost_lease("stranger"), TaskPolicy())
    assert place.catalog.settled == [ticket.key]
    assert successor.writer.state.task(A).status is TaskStatus.QUEUED


class StagesMeanwhile:
    """While a worker is being settled it gives up its first commit, and stages another."""

    def __init__(self, place: Place, work: Work) -> None:
        self.place = place
        self.work = work
        self.keys: list[str] = []

    async def settle(self, run: RunId, staged: OutputStaged, reason: str) -> Settled:
        assert staged.publish is not None
        self.keys.append(staged.publish.key)
        if len(self.keys) == 1:
            await self.work.stage(self.place.script.output(TASK, self.work))
        return NeverLands()


@told
async def test_what_a_worker_stages_while_it_is_settled_is_settled_too(place: Place) -> None:
    run = await claimed_by_a_stranger(place)
    stranger = await shop_of(place, run, "stranger")
    work = Work(stranger, TASK, 1, TaskPolicy())
    first = await work.stage(place.script.output(TASK, work))
    settler = StagesMeanwhile(place, work)
    successor = await shop_of(place, run, "successor", settler)
    await conclude(successor, A, 1, lost_lease("stranger"), TaskPolicy())
    second = stranger.writer.state.task(A).staged
    assert second is not None
    assert second.publish is not None
    assert settler.keys == [first.key, second.publish.key]


class Silent:
    """Does not know for a while."""

    def __init__(self, times: int, error: Exception) -> None:
        self.left = times
        self.error = error

    async def settle(self, run: RunId, staged: OutputStaged, reason: str) -> Settled:
        self.left -= 1
        if self.left >= 0:
            raise self.error
        return DidLand("here")


async def staged_by_a_stranger(place: Place) -> RunId:
    run = await claimed_by_a_stranger(place)
    stranger = await shop_of(place, run, "stranger")
    work = Work(stranger, TASK, 1, TaskPolicy())
    await work.stage(place.script.output(TASK, work))
    return run


@pytest.mark.parametrize("error", [Unavailable("no answer"), OutcomeUnknown("it may still land")])
def test_nothing_is_written_down_while_nobody_knows(error: Exception) -> None:
    async def story(place: Place) -> None:
        run = await staged_by_a_stranger(place)
        shop = await shop_of(place, run, "successor", Silent(3, error))
        await conclude(shop, A, 1, lost_lease("stranger"), TaskPolicy())
        its = shop.writer.state.task(A)
        assert its.status is TaskStatus.SUCCEEDED
        assert its.materialization_id == materialization_id(run, A)

    in_a_calm_world(story)


@told
async def test_a_driver_that_cannot_learn_it_leaves_the_attempt_as_it_is(place: Place) -> None:
    run = await staged_by_a_stranger(place)
    shop = await shop_of(place, run, "successor", Silent(10**6, OutcomeUnknown("it may still land")))
    with pytest.raises(OutcomeUnknown):
        await conclude(shop, A, 1, lost_lease("stranger"), TaskPolicy())
    assert shop.writer.state.task(A).status is TaskStatus.RUNNING


@told
async def test_of_two_that_declare_a_worker_dead_one_does(place: Place) -> None:
    run = await staged_by_a_stranger(place)
    one, two = await shop_of(place, run, "one"), await shop_of(place, run, "two")
    await asyncio.gather(*(conclude(shop, A, 1, lost_lease("stranger"), TaskPolicy()) for shop in (one, two)))
    for shop in (one, two):
        await shop.writer.look()
        assert shop.writer.state.task(A).lost_leases == 1
        assert shop.writer.state.ignored == []


@told
async def test_an_attempt_that_is_over_already_is_left_alone(place: Place) -> None:
    run = await claimed_by_a_stranger(place)
    shop = await shop_of(place, run, "one")
    await conclude(shop, A, 1, lost_lease("stranger"), TaskPolicy())
    before = shop.writer.state.sequence
    await conclude(shop, A, 1, lost_lease("stranger"), TaskPolicy())
    assert shop.writer.state.sequence == before


@told
async def test_silence_in_a_run_that_stops_is_a_cancelled_task(place: Place) -> None:
    run = await staged_by_a_stranger(place)
    shop = await shop_of(place, run, "one")
    await shop.writer.propose(lambda _: [RunCancelRequested(who="me", reason="enough")])
    await conclude(shop, A, 1, lost_lease("stranger"), TaskPolicy())
    its = shop.writer.state.task(A)
    assert (its.status, its.reason) == (TaskStatus.CANCELLED, "enough")


# Pure decisions

TRANSIENT = Failure(kind="storage_error", message="no answer", transient=True)
LOST = Failure(kind=LOST_LEASE, message="silent", transient=True)
POLICY = TaskPolicy(Retry(attempts=2, pause_s=4.0, pause_s_max=10.0))


def its(**more) -> TaskState:
    return TaskState(status=TaskStatus.RUNNING, attempt=1, **more)


def test_a_task_is_tried_again_as_its_policy_says():
    first = failed_entry("a", its(), TRANSIENT, POLICY, 1000, 1.0)
    assert first == TaskRetried(task="a", attempt=1, failure=TRANSIENT, not_before_ms=5000)
    assert isinstance(failed_entry("a", its(failures=1), TRANSIENT, POLICY, 0, 1.0), TaskRetried)
    assert isinstance(failed_entry("a", its(failures=2), TRANSIENT, POLICY, 0, 1.0), TaskFailed)
    final = Failure(kind="transform", message="wrong")
    assert isinstance(failed_entry("a", its(), final, POLICY, 0, 1.0), TaskFailed)


def test_silence_is_tried_again_at_once_whatever_the_policy_and_not_for_ever():
    never = TaskPolicy(Retry(attempts=0))
    again = failed_entry("a", its(), LOST, never, 1000, 1.0)
    assert again == TaskRetried(task="a", attempt=1, failure=LOST, not_before_ms=1000)
    assert isinstance(failed_entry("a", its(lost_leases=LOST_LEASES_MAX), LOST, never, 0, 1.0), TaskFailed)


def test_pauses_double_up_to_the_greatest_and_are_shortened_at_random():
    retry = Retry(attempts=9, pause_s=2.0, pause_s_max=30.0)
    assert [pause_before(retry, count, 1.0) for count in range(1, 7)] == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert pause_before(retry, 3, 0.0) == 4.0
    assert pause_before(retry, 10**6, 1.0) == 30.0


def test_what_failed_its_checks_says_which():
    staged = OutputStaged(
        task="a",
        attempt=1,
        at_ms=1,
        materialization_id="m",
        action="fail_run",
        decision={"reasons": [{"check": "unique_id"}, {"check": "not_null"}]},
    )
    entry = landed_entry(staged)
    assert isinstance(entry, TaskFailed)
    assert entry.failure.message == "checks failed: unique_id, not_null"
    assert entry.stops_run


def state_of(reads: dict[str, tuple[str, ...]], *entries) -> RunState:
    state = RunState(Outline.of(reads))
    words = {"plan_id": "p", "tasks": 1, "trigger": Trigger.MANUAL, "who": "me", "max_parallelism": 3, "timeout_s": 10.0}
    for entry in (RunCreated(**words), *entries):
        state.apply(entry, 0)
    return state


def test_what_follows_is_decided_to_the_end_at_once():
    state = state_of(
        {"a": (), "b": ("a",), "c": ("b",), "d": ()}, TaskClaimed(task="a", attempt=1, worker="w", lease_s=1.0)
    )
    state.apply(TaskFailed(task="a", attempt=1, failure=TRANSIENT), 0)
    kinds = [type(entry).__name__ for entry in follow_up(state, Claimant("w", 30.0, 9), 5)]
    assert kinds == ["TaskSkipped", "TaskSkipped", "TaskClaimed", "TaskStarted"]


def test_a_claimant_takes_no_more_than_it_has_room_for():
    state = state_of(dict.fromkeys("abcdef", ()))
    claims = [entry for entry in follow_up(state, Claimant("w", 30.0, 2), 5) if isinstance(entry, TaskClaimed)]
    assert [entry.task for entry in claims] == ["a", "b"]
    more = [entry for entry in follow_up(state, Claimant("other", 30.0, 9), 5) if isinstance(entry, TaskClaimed)]
    assert [entry.task for entry in more] == ["c"]


def test_when_the_time_of_a_run_is_over_everything_that_waits_is_cancelled():
    state = state_of({"a": (), "b": ("a",)})
    assert not any(isinstance(entry, TaskCancelled) for entry in follow_up(state, Claimant("w", 30.0, 0), 9_999))
    made = follow_up(state, Claimant("w", 30.0, 0), 10_000)
    assert [type(entry).__name__ for entry in made] == [
        "RunCancelRequested",
        "TaskCancelled",
        "TaskCancelled",
        "RunFinished",
    ]


def test_a_run_that_ended_needs_nothing():
    state = state_of({})
    assert len(follow_up(state, Claimant("w", 30.0, 9), 0)) == 1
    assert follow_up(state, Claimant("w", 30.0, 9), 10**9) == []


def test_an_adopted_publish_says_so():
    staged = OutputStaged(task="a", attempt=1, at_ms=1, materialization_id="m", action="warn")
    entry = landed_entry(staged, adopted=True)
    assert isinstance(entry, TaskPublished)
    assert entry.adopted


def test_so_much_follows_at_once_and_the_rest_after_it():
    state = state_of({f"t{number}": () for number in range(FOLLOWING_ENTRIES_MAX + 10)})
    state.apply(RunCancelRequested(who="me", reason="enough"), 0)
    assert len(follow_up(state, Claimant("w", 30.0, 9), 0)) == FOLLOWING_ENTRIES_MAX
    rest = follow_up(state, Claimant("w", 30.0, 9), 0)
    assert [type(entry).__name__ for entry in rest] == ["TaskCancelled"] * 10 + ["RunFinished"]
