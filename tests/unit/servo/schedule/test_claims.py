"""Signs of life: they say how long to wait for a worker, and never who may write."""

import asyncio

import msgspec
import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject, Fenced, UnknownFormat
from arco.kernel.ids import RunId, TaskId, encode_ulid
from arco.ledger.run_state import TaskState, TaskStatus
from arco.servo.schedule.claims import Claims
from arco.storage.keys import RunClaimKey
from arco.storage.memory import MemoryStore
from arco.storage.port import Always
from stand_ins.hand_clock import HandClock
from unit.servo.schedule.ground import SCOPE, task_id

RUN = RunId(encode_ulid(1))
A = task_id("a")
NAME = str(RunClaimKey(SCOPE, RUN, TaskId(A)))


class Place:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)

    def claims(self, worker: str) -> Claims:
        return Claims(self.store, SCOPE, RUN, worker, self.clock, SeededEntropy(worker))

    def claimed(self, attempt: int = 1, lease_s: float = 30.0) -> TaskState:
        """What the log says of a task that was claimed now."""
        return TaskState(
            status=TaskStatus.RUNNING, attempt=attempt, worker="w", claimed_ms=self.clock.at_ms, lease_s=lease_s
        )

    def later(self, seconds: float) -> None:
        self.clock.at_ms += round(seconds * 1000)


def test_the_entry_in_the_log_is_the_first_sign_of_life_and_needs_no_object():
    async def story() -> None:
        place = Place()
        state, others = place.claimed(), place.claims("other")
        place.later(29.9)
        assert not await others.is_silent(A, state)
        assert place.store._objects == {}
        place.later(0.2)
        assert await others.is_silent(A, state)

    asyncio.run(story())


def test_a_heartbeat_makes_others_wait_for_another_lease():
    async def story() -> None:
        place = Place()
        state, mine, others = place.claimed(), place.claims("w"), place.claims("other")
        for _ in range(10):
            place.later(20.0)
            await mine.beat(A, 1, 30.0, {"rows": 3})
            place.later(9.0)
            assert not await others.is_silent(A, state)
        place.later(21.0)
        assert await others.is_silent(A, state)
        claim = await others.read(A)
        assert claim is not None
        assert (claim.worker, claim.attempt, claim.progress) == ("w", 1, {"rows": 3})

    asyncio.run(story())


def test_a_sign_of_life_of_another_attempt_says_nothing():
    async def story() -> None:
        place = Place()
        old, others = place.claims("old"), place.claims("other")
        await old.beat(A, 1, 1000.0, {})
        state = place.claimed(attempt=2)
        place.later(31.0)
        assert await others.is_silent(A, state)

    asyncio.run(story())


def test_whoever_beats_after_a_later_attempt_is_fenced():
    async def story() -> None:
        place = Place()
        old, new = place.claims("old"), place.claims("new")
        await old.beat(A, 1, 30.0, {})
        await new.beat(A, 2, 30.0, {})
        # The first beat after it is lost to the newer state, the next one sees it.
        await old.beat(A, 1, 30.0, {})
        with pytest.raises(Fenced, match="attempt 2"):
            await old.beat(A, 1, 30.0, {})
        claim = await new.read(A)
        assert claim is not None
        assert claim.worker == "new"

    asyncio.run(story())


def test_beats_go_on_after_one_was_lost():
    async def story() -> None:
        place = Place()
        mine = place.claims("w")
        await mine.beat(A, 1, 30.0, {})
        twin = place.claims("twin")
        await twin.beat(A, 1, 30.0, {})
        await mine.beat(A, 1, 30.0, {"n": 1})
        await mine.beat(A, 1, 30.0, {"n": 2})
        claim = await mine.read(A)
        assert claim is not None
        assert claim.progress == {"n": 2}

    asyncio.run(story())


@pytest.mark.parametrize(("change", "error"), [({"format_version": 2}, UnknownFormat), ({"attempt": "one"}, CorruptObject)])
def test_a_claim_that_nobody_understands_is_refused(change: dict, error: type):
    async def story() -> None:
        place = Place()
        await place.claims("w").beat(A, 1, 30.0, {})
        found = await place.store.get(NAME)
        assert found is not None
        await place.store.put(NAME, msgspec.json.encode(msgspec.json.decode(found.data) | change), Always())
        with pytest.raises(error):
            await place.claims("other").read(A)

    asyncio.run(story())


def test_nobody_has_said_anything_yet():
    assert asyncio.run(Place().claims("w").read(A)) is None
