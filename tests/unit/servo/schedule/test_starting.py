"""Starting runs: the same key is the same run, whoever sends it, however often, and wherever it died before."""

import asyncio
from collections.abc import Callable

import pytest

from arco.kernel import crash_points
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject, KeyReused, NotFound, OutcomeUnknown
from arco.kernel.ids import RunId, TaskId, TimedIdempotencyKey, encode_ulid
from arco.ledger.materializations import materialization_id
from arco.ledger.run_entries import OnFailure, Trigger
from arco.servo.schedule.publish_keys import publish_key, snapshot_id
from arco.servo.schedule.starting import RunRequest, Started, open_run, start_run
from arco.storage.memory import MemoryStore
from arco.storage.port import Always, Condition, Outcome, Unknown
from stand_ins.hand_clock import HandClock
from unit.servo.schedule.ground import SCOPE, plan_of

CLOCK = HandClock()
PLAN = plan_of({"a": "", "b": "a"})
OTHER = plan_of({"a": ""})


async def start(store: MemoryStore, seed: str, plan=PLAN, **words) -> Started:
    return await start_run(store, SCOPE, plan, RunRequest(**words), CLOCK, SeededEntropy(seed))


def test_a_run_says_how_it_was_asked_for():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        words = {
            "trigger": Trigger.SCHEDULED,
            "who": "cron",
            "max_parallelism": 7,
            "timeout_s": 60.0,
            "on_failure": OnFailure.FAIL_FAST,
            "idempotency_key": "nightly",
        }
        started = await start(store, "one", **words)
        assert started.is_new
        opened = await open_run(store, SCOPE, started.log.run, CLOCK, SeededEntropy("two"))
        created = opened.log.state.run.created
        assert created is not None
        assert {name: getattr(created, name) for name in words} == words
        assert (created.plan_id, created.tasks) == (PLAN.fingerprint, 2)
        assert opened.plan == PLAN

    asyncio.run(story())


def test_without_a_key_every_request_is_a_run_of_its_own():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        one, two = await start(store, "one"), await start(store, "two")
        assert one.log.run != two.log.run

    asyncio.run(story())


def test_the_same_key_is_the_same_run_with_the_plan_that_it_has():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        first = await start(store, "one", idempotency_key="k")
        again = await start(store, "two", OTHER, idempotency_key="k")
        assert again.log.run == first.log.run
        assert (again.is_new, again.plan) == (False, PLAN)

    asyncio.run(story())


def test_requests_with_one_key_at_the_same_moment_start_one_run():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        found = await asyncio.gather(*(start(store, f"{number}", idempotency_key="k") for number in range(9)))
        assert len({one.log.run for one in found}) == 1
        assert [one.is_new for one in found].count(True) == 1

    asyncio.run(story())


def test_a_key_that_was_used_for_something_else_is_refused():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        await start(store, "one", idempotency_key="k", about="shop.*")
        with pytest.raises(KeyReused):
            await start(store, "two", idempotency_key="k", about="shop.orders")
        await start(store, "three", idempotency_key="k2", about="shop.orders")

    asyncio.run(story())


class Dead(BaseException):
    pass


@pytest.mark.parametrize("point", ["run.key_bound", "run.plan_written"])
def test_a_request_whose_sender_died_half_way_is_finished_by_the_next(point: str):
    def die(reached: str) -> None:
        if reached == point:
            raise Dead

    async def story() -> None:
        store = MemoryStore(CLOCK)
        crash_points.install(die)
        try:
            with pytest.raises(Dead):
                await start(store, "one", idempotency_key="k")
        finally:
            crash_points.install(None)
        second = await start(store, "two", OTHER, idempotency_key="k")
        assert second.is_new
        wanted = PLAN if point == "run.plan_written" else OTHER
        assert second.plan == wanted
        assert (await start(store, "three", idempotency_key="k")).log.run == second.log.run

    asyncio.run(story())


class Mute(MemoryStore):
    """A store that has the effect, and answers nothing to the writes that a test names."""

    def __init__(self, is_mute: Callable[[str], bool], *, deaf: bool) -> None:
        super().__init__(CLOCK)
        self.is_mute = is_mute
        self.deaf = deaf

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if not self.is_mute(key):
            return await super().put(key, data, condition)
        if not self.deaf:
            await super().put(key, data, condition)
        return Unknown("no reply")


@pytest.mark.parametrize("part", ["run_requests", "plan.json", "/log/"])
def test_lost_replies_do_not_start_a_second_run(part: str):
    async def story() -> None:
        store = Mute(lambda key: part in key, deaf=False)
        first = await start(store, "one", idempotency_key="k")
        again = await start(store, "two", idempotency_key="k")
        assert again.log.run == first.log.run

    asyncio.run(story())


@pytest.mark.parametrize("part", ["run_requests", "plan.json", "/log/"])
def test_an_outcome_that_stays_unknown_is_said_to_be(part: str):
    async def story() -> None:
        store = Mute(lambda key: part in key, deaf=True)
        with pytest.raises(OutcomeUnknown):
            await start(store, "one", idempotency_key="k")
        store.is_mute = lambda key: False
        first = await start(store, "one", idempotency_key="k")
        assert (await start(store, "two", idempotency_key="k")).log.run == first.log.run

    asyncio.run(story())


def test_a_key_that_does_not_say_its_run_is_damage():
    async def story() -> None:
        store = MemoryStore(CLOCK)
        await start(store, "one", idempotency_key="k")
        name = next(key for key in store._objects if "run_requests" in key)
        await store.put(name, b"{}", Always())
        with pytest.raises(CorruptObject):
            await start(store, "two", idempotency_key="k")

    asyncio.run(story())


def test_a_run_that_nobody_started_cannot_be_opened():
    async def story() -> None:
        with pytest.raises(NotFound):
            await open_run(MemoryStore(CLOCK), SCOPE, RunId(encode_ulid(1)), CLOCK, SeededEntropy("one"))

    asyncio.run(story())


# Names that are derived

RUN = RunId(encode_ulid(1_700_000_000_000 << 80 | 5))
TASK = TaskId("task_0123456789abcdef")


def test_a_publish_key_carries_its_moment_and_differs_for_everything_else():
    moment = 1_750_000_000_123
    keys = {
        publish_key(run, task, attempt, rebase, at_ms)
        for run in (RUN, encode_ulid(9))
        for task in (TASK, "task_0000000000000000")
        for attempt in (1, 2, 11)
        for rebase in (0, 1, 19)
        for at_ms in (moment, moment + 1)
    }
    assert len(keys) == 2 * 2 * 3 * 3 * 2
    assert {TimedIdempotencyKey(key).time_ms for key in keys} == {moment, moment + 1}
    assert publish_key(RUN, TASK, 1, 0, moment) == "01977420-dc7b-7f7f-92a9-c4612c5fb2b2"


def test_a_materialization_is_the_same_for_all_attempts_of_a_task_in_a_run():
    made = materialization_id(RUN, TASK)
    assert made == materialization_id(RUN, TASK)
    assert made.time_ms == RUN.time_ms
    assert made != materialization_id(RUN, TaskId("task_0000000000000000"))
    assert made != materialization_id(RunId(encode_ulid(1_700_000_000_000 << 80 | 6)), TASK)


def test_a_snapshot_belongs_to_its_attempt_and_fits_into_a_signed_integer():
    found = {snapshot_id(RUN, TASK, attempt) for attempt in range(1, 200)}
    assert len(found) == 199
    assert all(0 < one < 2**63 for one in found)
