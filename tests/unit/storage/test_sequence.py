"""Densely numbered records beside a collector: what the store says is only believed above the boundary."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import AccessDenied, Throttled, Unavailable
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Landed, Lost, ObjectStore, Outcome, Unknown, Version
from arco.storage.sequence import Sequence
from stand_ins.hand_clock import HandClock
from stand_ins.scripted_store import LostReplies, ScriptedStore, stored


def name_of(number: int) -> str:
    return f"t/w/log/{number:08}.json"


async def nothing_deleted() -> int:
    return 0


def sequence(store: ObjectStore, boundary: Callable[[], Awaitable[int]] = nothing_deleted) -> Sequence:
    return Sequence(store, name_of, boundary, HandClock(), SeededEntropy(1))


def at(number: int) -> Callable[[], Awaitable[int]]:
    async def boundary() -> int:
        return number

    return boundary


def memory() -> MemoryStore:
    return MemoryStore(HandClock())


def test_a_record_is_created_under_its_number_and_only_if_absent():
    store = ScriptedStore([Landed(Version("1"))])
    assert asyncio.run(sequence(store).append(7, b"seven")) == Landed(Version("1"))
    assert [(put.key, put.data, put.condition) for put in store.puts] == [(name_of(7), b"seven", Absent())]


def test_a_record_reads_back_and_a_missing_one_is_none():
    async def scenario() -> None:
        records = sequence(memory())
        await records.append(1, b"one")
        assert await records.read(1) == b"one"
        assert await records.read(2) is None

    asyncio.run(scenario())


def test_a_taken_number_is_lost_and_keeps_its_record():
    async def scenario() -> None:
        records = sequence(memory())
        await records.append(1, b"first")
        assert isinstance(await records.append(1, b"second"), Lost)
        assert await records.read(1) == b"first"

    asyncio.run(scenario())


def test_of_many_appends_of_one_number_one_wins():
    async def scenario() -> list[Outcome]:
        store = memory()
        return await asyncio.gather(*(sequence(store).append(1, b"%d" % rival) for rival in range(8)))

    outcomes = asyncio.run(scenario())
    assert sum(isinstance(outcome, Landed) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Lost) for outcome in outcomes) == 7


def test_a_record_whose_reply_is_lost_is_recognised_by_its_bytes():
    async def scenario() -> None:
        store = LostReplies(HandClock(), times=1)
        assert isinstance(await sequence(store).append(1, b"ours"), Landed)
        assert len(store.puts) == 1

    asyncio.run(scenario())


# Hazard 13


@pytest.mark.parametrize(("boundary", "believed"), [(0, True), (6, True), (7, False), (8, False), (1000, False)])
def test_hazard_13_a_created_name_counts_only_above_the_boundary(boundary, believed):
    outcome = asyncio.run(sequence(memory(), at(boundary)).append(7, b"seven"))
    assert isinstance(outcome, Landed if believed else Unknown)


@pytest.mark.parametrize(("boundary", "believed"), [(6, True), (7, False)])
def test_hazard_13_a_taken_name_counts_only_above_the_boundary(boundary, believed):
    """What stands there may be a ghost of another writer, where our own record was folded before its reply got lost."""

    async def scenario() -> Outcome:
        store = memory()
        await store.put(name_of(7), b"ghost", Absent())
        return await sequence(store, at(boundary)).append(7, b"ours")

    assert isinstance(asyncio.run(scenario()), Lost if believed else Unknown)


def test_hazard_13_a_stalled_writer_is_not_told_that_it_won_a_name_that_was_collected():
    """The three steps of the failure, in order."""

    async def scenario() -> None:
        store = memory()
        boundary = 0

        async def read_boundary() -> int:
            return boundary

        records = sequence(store, read_boundary)
        for number in (7, 8, 9):
            await records.append(number, b"others")
        boundary = 9
        for number in (7, 8, 9):
            await store.delete(name_of(number))
        stalled = await records.append(7, b"stalled")
        assert isinstance(stalled, Unknown)
        assert "boundary 9" in stalled.reason
        assert isinstance(await records.append(10, b"next"), Landed)

    asyncio.run(scenario())


def test_hazard_13_the_boundary_is_read_after_the_attempt():
    """Read before it, a collector that works in between would not be noticed."""

    async def scenario() -> None:
        order: list[str] = []

        class Watched(MemoryStore):
            async def put(self, key, data, condition):
                order.append("put")
                return await super().put(key, data, condition)

        async def boundary() -> int:
            order.append("boundary")
            return 0

        await sequence(Watched(HandClock()), boundary).append(1, b"x")
        assert order == ["put", "boundary"]

    asyncio.run(scenario())


def test_hazard_13_a_collector_that_works_during_the_attempt_is_noticed():
    async def scenario() -> None:
        boundary = 0

        async def read_boundary() -> int:
            return boundary

        class CollectedMeanwhile(MemoryStore):
            async def put(self, key, data, condition):
                nonlocal boundary
                outcome = await super().put(key, data, condition)
                boundary = 5
                await self.delete(key)
                return outcome

        assert isinstance(await sequence(CollectedMeanwhile(HandClock()), read_boundary).append(5, b"x"), Unknown)

    asyncio.run(scenario())


# Doubt


@pytest.mark.parametrize("error", [Throttled("slow down"), Unavailable("down")], ids=lambda error: error.code)
@pytest.mark.parametrize("taken", [False, True])
def test_a_boundary_that_cannot_be_read_leaves_the_outcome_unknown(error, taken):
    async def boundary() -> int:
        raise error

    async def scenario() -> Outcome:
        store = memory()
        if taken:
            await store.put(name_of(1), b"theirs", Absent())
        return await sequence(store, boundary).append(1, b"ours")

    outcome = asyncio.run(scenario())
    assert isinstance(outcome, Unknown)
    assert error.message in outcome.reason


def test_an_unknown_outcome_is_passed_on_without_asking_for_the_boundary():
    async def boundary() -> int:
        raise AssertionError("the boundary cannot make an unknown outcome known")

    store = ScriptedStore([Unknown("no reply"), ...], [Unavailable("down"), ...])
    assert isinstance(asyncio.run(sequence(store, boundary).append(1, b"x")), Unknown)


def test_a_write_that_is_refused_outright_is_raised():
    with pytest.raises(AccessDenied):
        asyncio.run(sequence(ScriptedStore([AccessDenied("no")])).append(1, b"x"))


def test_a_doubtful_create_that_finds_another_record_is_lost():
    store = ScriptedStore([Unknown("no reply")], [stored(name_of(1), b"theirs", "1")])
    assert isinstance(asyncio.run(sequence(store).append(1, b"ours")), Lost)
