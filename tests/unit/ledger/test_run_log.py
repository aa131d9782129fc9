"""The log of a run on a store: one winner for every number, and the loser decides again."""

import asyncio

import msgspec
import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Conflict, CorruptObject, Fenced, NotFound, OutcomeUnknown, Unavailable
from arco.kernel.ids import RunId, encode_ulid
from arco.kernel.limits import RUN_LOG_READS_MAX
from arco.kernel.scope import Scope
from arco.ledger.run_entries import RunCancelRequested, RunCreated, TaskClaimed, TaskStarted, Trigger
from arco.ledger.run_log import RunLog, read_plan, write_plan
from arco.ledger.run_outline import Outline
from arco.ledger.run_state import TaskStatus
from arco.storage.keys import RunLogKey
from arco.storage.memory import MemoryStore
from arco.storage.port import Condition, ObjectStore, Outcome, Unknown
from stand_ins.hand_clock import HandClock

SCOPE = Scope.of("t", "w")
RUN = RunId(encode_ulid(1))
CREATED = RunCreated(plan_id="plan_x", tasks=2, trigger=Trigger.MANUAL, who="me", max_parallelism=9)
PLAN = msgspec.json.encode({"spec": {"tasks": [{"id": "a", "depends_on": []}, {"id": "b", "depends_on": ["a"]}]}})
CLOCK = HandClock()


def claimed(worker: str, attempt: int = 1) -> TaskClaimed:
    return TaskClaimed(task="a", attempt=attempt, worker=worker, lease_s=30.0)


def log_on(store: ObjectStore, seed: str = "one") -> RunLog:
    return RunLog(store, SCOPE, RUN, Outline.of_plan(PLAN), CLOCK, SeededEntropy(seed))


async def begun() -> tuple[MemoryStore, RunLog]:
    store = MemoryStore(CLOCK)
    await write_plan(store, SCOPE, RUN, PLAN, CLOCK, SeededEntropy("plan"))
    log = log_on(store)
    assert await log.append([CREATED])
    return store, log


def test_whoever_loses_the_slot_reads_what_came_first():
    async def story() -> None:
        store, mine = await begun()
        theirs = log_on(store, "two")
        await theirs.catch_up()
        assert await mine.append([claimed("mine")])
        assert not await theirs.append([claimed("theirs")])
        assert theirs.state.task("a").worker == "mine"
        with pytest.raises(Fenced):
            await theirs.append([claimed("theirs")])

    asyncio.run(story())


def test_of_many_at_once_one_wins_each_number():
    async def story() -> None:
        store, first = await begun()
        logs = [log_on(store, f"{number}") for number in range(8)]
        await asyncio.gather(*(log.catch_up() for log in logs))
        won = await asyncio.gather(*(log.append([claimed(f"{number}")]) for number, log in enumerate(logs)))
        assert won.count(True) == 1
        await first.catch_up()
        assert first.state.task("a").worker == f"{won.index(True)}"

    asyncio.run(story())


def test_nothing_is_written_that_does_not_follow():
    async def story() -> None:
        store, log = await begun()
        with pytest.raises(Conflict):
            await log.append([TaskStarted(task="a", attempt=0)])
        with pytest.raises(Conflict):
            await log.append([claimed("w"), TaskStarted(task="b", attempt=0)])
        assert log.state.sequence == 1
        assert log.state.task("a").status is TaskStatus.READY
        assert await store.head(str(RunLogKey(SCOPE, RUN, 2))) is None

    asyncio.run(story())


class LosesReplies(MemoryStore):
    """Stores everything and answers nothing, while `mute`; drops everything, while `deaf`."""

    mute = deaf = False

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if self.deaf:
            return Unknown("no reply")
        outcome = await super().put(key, data, condition)
        return Unknown("no reply") if self.mute else outcome


def test_a_lost_reply_is_resolved_by_what_the_log_says():
    async def story() -> None:
        store = LosesReplies(CLOCK)
        log = log_on(store)
        store.mute = True
        assert await log.append([CREATED])
        assert log.state.sequence == 1

    asyncio.run(story())


def test_an_outcome_that_stays_unknown_is_said_to_be_and_may_turn_out_either_way():
    async def story() -> None:
        store = LosesReplies(CLOCK)
        log = log_on(store)
        assert await log.append([CREATED])
        store.deaf = True
        with pytest.raises(OutcomeUnknown):
            await log.append([claimed("w")])
        assert log.state.sequence == 1
        store.deaf = False
        assert await log.append([RunCancelRequested(who="me", reason="enough")])

    asyncio.run(story())


def test_a_run_is_opened_with_everything_its_log_says():
    async def story() -> None:
        store, log = await begun()
        assert await log.append([claimed("w"), TaskStarted(task="a", attempt=1)])
        seen = []
        opened, plan = await RunLog.open(store, SCOPE, RUN, CLOCK, SeededEntropy("later"))
        opened.on_batch = seen.append
        assert plan == PLAN
        assert (opened.state.sequence, opened.state.task("a").status) == (2, TaskStatus.RUNNING)
        assert await log.append([RunCancelRequested(who="me", reason="enough")])
        await opened.catch_up()
        assert [one.sequence for one in seen] == [3]

    asyncio.run(story())


def test_a_long_log_is_read_in_order():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        tasks = [{"id": f"t{number}", "depends_on": []} for number in range(3 * RUN_LOG_READS_MAX)]
        plan = msgspec.json.encode({"spec": {"tasks": tasks}})
        await write_plan(store, SCOPE, RUN, plan, CLOCK, SeededEntropy("plan"))
        log = RunLog(store, SCOPE, RUN, Outline.of_plan(plan), CLOCK, SeededEntropy("one"))
        assert await log.append([msgspec.structs.replace(CREATED, max_parallelism=1000)])
        for task in tasks:
            assert await log.append([TaskClaimed(task=task["id"], attempt=1, worker="w", lease_s=1.0)])
        opened, _ = await RunLog.open(store, SCOPE, RUN, CLOCK, SeededEntropy("two"))
        assert opened.state.sequence == log.state.sequence
        assert opened.state.tasks == log.state.tasks
        assert opened.state.ignored == []

    asyncio.run(story())


def test_a_number_that_is_missing_below_another_is_damage():
    async def story() -> None:
        store, log = await begun()
        assert await log.append([claimed("w")])
        assert await log.append([TaskStarted(task="a", attempt=1)])
        await store.delete(str(RunLogKey(SCOPE, RUN, 2)))
        with pytest.raises(CorruptObject, match=r"entry 2 of run .* is missing, and entry 3 is there"):
            await RunLog.open(store, SCOPE, RUN, CLOCK, SeededEntropy("two"))

    asyncio.run(story())


def test_there_is_no_run_without_a_plan_and_none_without_a_first_entry():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        with pytest.raises(NotFound, match="there is no run"):
            await RunLog.open(store, SCOPE, RUN, CLOCK, SeededEntropy("one"))
        await write_plan(store, SCOPE, RUN, PLAN, CLOCK, SeededEntropy("plan"))
        with pytest.raises(NotFound, match="never created"):
            await RunLog.open(store, SCOPE, RUN, CLOCK, SeededEntropy("one"))

    asyncio.run(story())


def test_the_first_plan_that_is_written_counts():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        assert await write_plan(store, SCOPE, RUN, PLAN, CLOCK, SeededEntropy("one")) == PLAN
        assert await write_plan(store, SCOPE, RUN, b"{}", CLOCK, SeededEntropy("two")) == PLAN
        assert await read_plan(store, SCOPE, RUN) == PLAN

    asyncio.run(story())


def test_a_plan_whose_writing_stays_unknown_is_no_plan():
    async def story() -> None:
        store = LosesReplies(CLOCK)
        store.deaf = True
        with pytest.raises(OutcomeUnknown):
            await write_plan(store, SCOPE, RUN, PLAN, CLOCK, SeededEntropy("one"))

    asyncio.run(story())


# Deleted runs


def test_nobody_writes_into_the_place_of_a_deleted_run():
    async def story() -> None:
        store, log = await begun()
        sleeper = log_on(store, "sleeper")
        await sleeper.catch_up()
        assert await log.append([claimed("w")])
        await log.close()
        await log.close()
        for number in (1, 2):
            await store.delete(str(RunLogKey(SCOPE, RUN, number)))
        with pytest.raises(Fenced, match="was deleted"):
            await sleeper.append([claimed("sleeper")])
        assert sleeper.state.sequence == 1

    asyncio.run(story())


def test_a_log_that_is_half_deleted_is_a_deleted_run_and_no_damage():
    async def story() -> None:
        store, log = await begun()
        assert await log.append([claimed("w")])
        await log.close()
        await store.delete(str(RunLogKey(SCOPE, RUN, 1)))
        with pytest.raises(Fenced, match="was deleted"):
            await RunLog.open(store, SCOPE, RUN, CLOCK, SeededEntropy("two"))

    asyncio.run(story())


class Silent(MemoryStore):
    silent = False

    async def head(self, key: str):
        if self.silent:
            raise Unavailable("no answer")
        return await super().head(key)


def test_an_entry_counts_only_when_the_run_is_known_to_be_open():
    async def story() -> None:
        store = Silent(CLOCK)
        log = log_on(store)
        store.silent = True
        with pytest.raises(OutcomeUnknown):
            await log.append([CREATED])
        store.silent = False
        assert log.state.sequence == 0
        assert (await log.catch_up()).sequence == 1

    asyncio.run(story())


def test_closing_whose_outcome_stays_unknown_is_not_closing():
    async def story() -> None:
        store = LosesReplies(CLOCK)
        log = log_on(store)
        assert await log.append([CREATED])
        store.deaf = True
        with pytest.raises(OutcomeUnknown):
            await log.close()

    asyncio.run(story())
