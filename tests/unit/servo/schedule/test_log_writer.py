"""Many proposals, one object: what is decided together, decided again, and refused alone."""

import asyncio

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Conflict, OutcomeUnknown, TooLarge, Unavailable
from arco.kernel.limits import RUN_LOG_BYTES_MAX
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.run_entries import RunCancelRequested, TaskCancelled, TaskClaimed, TaskStarted
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import RunState
from arco.servo.schedule.log_writer import LogWriter
from arco.servo.schedule.outbox import _pieces
from arco.servo.schedule.starting import RunRequest, start_run
from arco.storage.memory import MemoryStore
from arco.storage.port import Condition, Object, Outcome, Unknown
from stand_ins.hand_clock import HandClock
from unit.servo.schedule.ground import SCOPE, plan_of, task_id

CLOCK = HandClock()
PLAN = plan_of(dict.fromkeys("abcdef", ""))


def claim(letter: str, worker: str = "w") -> TaskClaimed:
    return TaskClaimed(task=task_id(letter), attempt=1, worker=worker, lease_s=30.0)


def nothing(_state: RunState) -> list:
    return []


def writer_on(log: RunLog, follow_up=nothing, seed: str = "writer") -> LogWriter:
    return LogWriter(log, follow_up, lambda entry, _: entry, CLOCK, SeededEntropy(seed))


async def begun(store: MemoryStore | None = None) -> tuple[MemoryStore, RunLog]:
    store = store or MemoryStore(CLOCK)
    started = await start_run(store, SCOPE, PLAN, RunRequest(max_parallelism=9), CLOCK, SeededEntropy("start"))
    return store, started.log


def other_log(store: MemoryStore, log: RunLog) -> RunLog:
    return RunLog(store, SCOPE, log.run, log.state.outline, CLOCK, SeededEntropy("other"))


def test_proposals_that_arrive_together_share_an_object():
    async def story() -> None:
        _, log = await begun()
        writer = writer_on(log)
        await asyncio.gather(*(writer.propose(lambda _, one=letter: [claim(one)]) for letter in "abcdef"))
        assert log.state.sequence == 2
        assert len(log.state.active) == 6

    asyncio.run(story())


def test_what_does_not_follow_is_refused_alone():
    async def story() -> None:
        _, log = await begun()
        writer = writer_on(log)
        good = writer.propose(lambda _: [claim("a")])
        bad = writer.propose(lambda _: [claim("b"), TaskStarted(task=task_id("c"), attempt=1)])
        first, second = await asyncio.gather(good, bad, return_exceptions=True)
        assert first is None
        assert isinstance(second, Conflict)
        assert set(log.state.active) == {task_id("a")}

    asyncio.run(story())


def test_a_lost_slot_voids_the_decision_and_it_is_made_again():
    async def story() -> None:
        store, log = await begun()
        rival = other_log(store, log)
        await rival.catch_up()
        assert await rival.append([claim("a", "rival")])
        asked: list[str | None] = []

        def decide(state: RunState) -> list:
            asked.append(state.task(task_id("a")).worker)
            return [] if state.task(task_id("a")).worker else [claim("a", "mine")]

        await writer_on(log).propose(decide)
        assert asked == [None, "rival"]
        assert log.state.task(task_id("a")).worker == "rival"
        assert log.state.ignored == []

    asyncio.run(story())


def test_nothing_is_refused_from_memory_alone():
    """The rival gave the task back; the writer has not heard of either."""

    async def story() -> None:
        store, log = await begun()
        writer, rival = writer_on(log), other_log(store, log)
        await writer.propose(lambda _: [claim("a")])
        await rival.catch_up()
        assert await rival.append([TaskStarted(task=task_id("a"), attempt=1)])
        await writer.propose(lambda _: [TaskCancelled(task=task_id("a"), attempt=1, reason="r")])
        with pytest.raises(Conflict):
            await writer.propose(lambda _: [TaskStarted(task=task_id("b"), attempt=0)])
        assert log.state.sequence == 4

    asyncio.run(story())


def test_what_follows_is_written_in_the_same_object():
    async def story() -> None:
        _, log = await begun()

        def follow(state: RunState) -> list:
            due = [task for task in state.active if state.tasks[task].started_ms is None]
            made = [TaskStarted(task=task, attempt=1) for task in due]
            for entry in made:
                state.apply(entry, 1)
            return made

        await writer_on(log, follow).propose(lambda _: [claim("a")])
        assert log.state.sequence == 2
        assert log.state.task(task_id("a")).started_ms is not None

    asyncio.run(story())


def test_nothing_to_say_writes_nothing():
    async def story() -> None:
        _, log = await begun()
        await writer_on(log).nudge()
        await writer_on(log).look()
        assert log.state.sequence == 1

    asyncio.run(story())


class Troubled(MemoryStore):
    """Answers nothing to the next writes to a log: with their effect if `mute`, without if not."""

    silent = 0
    mute = False
    deaf_reads = 0

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if self.silent and "/log/" in key:
            self.silent -= 1
            if self.mute:
                await super().put(key, data, condition)
            return Unknown("no reply")
        return await super().put(key, data, condition)

    async def get(self, key: str) -> Object | None:
        if self.deaf_reads and "/log/" in key:
            self.deaf_reads -= 1
            raise Unavailable("no answer")
        return await super().get(key)


@pytest.mark.parametrize("mute", [True, False])
def test_an_entry_of_which_nobody_knows_is_looked_for_and_never_written_twice(mute: bool):
    async def story() -> None:
        store = Troubled(CLOCK)
        _, log = await begun(store)
        store.silent, store.mute, store.deaf_reads = 6, mute, 6

        def decide(state: RunState) -> list:
            return [] if state.run.cancel else [RunCancelRequested(who="me", reason="r")]

        await writer_on(log).propose(decide)
        assert log.state.run.cancel is not None
        assert log.state.sequence == 2
        assert log.state.ignored == []

    asyncio.run(story())


def test_a_store_that_stays_silent_is_reported_and_nothing_is_forgotten():
    async def story() -> None:
        store = Troubled(CLOCK)
        _, log = await begun(store)
        store.silent = 10**6
        writer = writer_on(log)
        with pytest.raises(OutcomeUnknown):
            await writer.propose(lambda _: [claim("a")])
        store.silent = 0
        await writer.propose(lambda _: [claim("a")])
        assert log.state.sequence == 2

    asyncio.run(story())


def test_proposals_that_are_too_large_together_go_out_one_after_the_other():
    async def story() -> None:
        _, log = await begun()
        writer = writer_on(log)
        reason = "x" * (RUN_LOG_BYTES_MAX // 3)
        cancels = [TaskCancelled(task=task_id(letter), attempt=0, reason=reason) for letter in "abc"]
        await asyncio.gather(*(writer.propose(lambda _, one=entry: [one]) for entry in cancels))
        assert log.state.sequence == 4
        assert log.state.open_tasks == 3

    asyncio.run(story())


def test_events_are_appended_in_pieces_that_fit_into_a_segment():
    def draft(size: int) -> Draft:
        return Draft(type=EventType("execution.x.v1"), source="s", data={"x": "y" * size})

    assert [len(piece) for piece in _pieces([draft(1)] * 2500)] == [1000, 1000, 500]
    assert [len(piece) for piece in _pieces([draft(900_000)] * 10)] == [4, 4, 2]


def test_a_proposal_that_is_too_large_is_refused_alone():
    async def story() -> None:
        _, log = await begun()
        writer = writer_on(log)
        huge = TaskCancelled(task=task_id("a"), attempt=0, reason="x" * RUN_LOG_BYTES_MAX)
        first, second = await asyncio.gather(
            writer.propose(lambda _: [huge]), writer.propose(lambda _: [claim("b")]), return_exceptions=True
        )
        assert isinstance(first, TooLarge)
        assert second is None
        assert set(log.state.active) == {task_id("b")}

    asyncio.run(story())
