"""Leases: they bound waiting, hand out growing epochs, and can neither free nor fence the wrong one."""

import asyncio

import msgspec
import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject, Fenced, OutcomeUnknown, UnknownFormat
from arco.kernel.ids import HolderId, encode_ulid
from arco.storage.cas import CasObject, Held
from arco.storage.lease import Lease, LeaseState, Tenure
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Always, Landed, Lost, Matches, Object, ObjectStore, Unknown, Version
from stand_ins.hand_clock import HandClock
from stand_ins.scripted_store import LostReplies, ScriptedStore, stored

KEY = "t/w/_catalog/core/locks/catalog.json"
TTL_S = 30.0


def holder(number: int) -> HolderId:
    return HolderId(encode_ulid(number))


def lease(store: ObjectStore, clock: HandClock, number: int = 1) -> Lease:
    return Lease(store, KEY, holder(number), clock, SeededEntropy(f"holder {number}"), ttl_s=TTL_S)


async def taken(of: Lease) -> Tenure:
    tenure = await of.try_acquire()
    assert tenure is not None
    return tenure


async def body(store: MemoryStore) -> dict[str, object]:
    found = await store.get(KEY)
    assert found is not None
    return msgspec.json.decode(found.data)


# Taking


def test_a_lease_lasts_for_its_time_by_the_holders_clock():
    async def scenario() -> None:
        clock = HandClock()
        tenure = await taken(lease(MemoryStore(clock), clock))
        assert tenure.epoch == 1
        assert tenure.held.value == LeaseState(holder(1), clock.at_ms + 30_000)

    asyncio.run(scenario())


@pytest.mark.parametrize(("waited_ms", "free"), [(0, False), (29_999, False), (30_000, True), (3_600_000, True)])
def test_a_lease_is_taken_over_only_when_it_has_expired(waited_ms, free):
    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        first = await taken(lease(store, clock, 1))
        clock.at_ms += waited_ms
        second = await lease(store, clock, 2).try_acquire()
        assert (second is not None) == free
        if second is not None:
            assert second.epoch == first.epoch + 1
            assert second.held.value.holder == holder(2)

    asyncio.run(scenario())


def test_even_the_holder_does_not_take_its_own_lease_twice():
    async def scenario() -> None:
        clock = HandClock()
        mine = lease(MemoryStore(clock), clock)
        await taken(mine)
        assert await mine.try_acquire() is None

    asyncio.run(scenario())


class AllReadFirst(MemoryStore):
    """A store where a reader's turn ends before it can act on what it read."""

    async def get(self, key: str) -> Object | None:
        found = await super().get(key)
        await asyncio.sleep(0)
        return found


@pytest.mark.parametrize("state", ["absent", "expired", "free"])
def test_of_many_that_find_a_lease_to_take_one_gets_it(state):
    async def scenario() -> None:
        clock = HandClock()
        store = AllReadFirst(clock)
        if state != "absent":
            earlier = lease(store, clock, 99)
            tenure = await taken(earlier)
            if state == "free":
                await earlier.release(tenure)
            clock.at_ms += 60_000
        tenures = await asyncio.gather(*(lease(store, clock, number).try_acquire() for number in range(8)))
        assert sum(tenure is not None for tenure in tenures) == 1

    asyncio.run(scenario())


def test_an_acquisition_whose_reply_is_lost_is_still_ours():
    async def scenario() -> None:
        clock = HandClock()
        store = LostReplies(clock, times=1)
        assert (await taken(lease(store, clock))).epoch == 1

    asyncio.run(scenario())


def test_an_acquisition_that_nobody_can_confirm_is_not_claimed():
    store = ScriptedStore([Unknown("no reply"), ...], [None, ...])
    assert asyncio.run(lease(store, HandClock()).try_acquire()) is None


# Keeping


def test_an_extension_counts_from_now_and_keeps_the_epoch():
    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        mine = lease(store, clock, 1)
        tenure = await taken(mine)
        for _ in range(5):
            clock.at_ms += 20_000
            tenure = await mine.extend(tenure)
            assert tenure.epoch == 1
            assert tenure.held.value.expires_ms == clock.at_ms + 30_000
            assert await lease(store, clock, 2).try_acquire() is None

    asyncio.run(scenario())


def test_a_late_extension_succeeds_as_long_as_nobody_came():
    async def scenario() -> None:
        clock = HandClock()
        mine = lease(MemoryStore(clock), clock)
        tenure = await taken(mine)
        clock.at_ms += 600_000
        assert (await mine.extend(tenure)).held.value.expires_ms == clock.at_ms + 30_000

    asyncio.run(scenario())


def test_a_holder_that_was_robbed_is_fenced():
    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        first, second = lease(store, clock, 1), lease(store, clock, 2)
        stale = await taken(first)
        clock.at_ms += 30_000
        await taken(second)
        with pytest.raises(Fenced, match="epoch 1"):
            await first.extend(stale)

    asyncio.run(scenario())


def test_a_stale_tenure_of_the_same_holder_is_fenced_too():
    async def scenario() -> None:
        clock = HandClock()
        mine = lease(MemoryStore(clock), clock)
        tenure = await taken(mine)
        await mine.extend(tenure)
        with pytest.raises(Fenced):
            await mine.extend(tenure)

    asyncio.run(scenario())


def test_the_write_of_a_stalled_holder_is_fenced_by_the_object_it_writes():
    class Number:
        format = "test.number"

        def encode(self, value):
            return 1, {"value": value}

        def decode(self, format_version, fields):
            return fields["value"]

    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        guarded = CasObject(store, "t/w/head", Number(), clock, SeededEntropy(9))
        stalled = await taken(lease(store, clock, 1))
        await guarded.create(1, epoch=stalled.epoch)
        clock.at_ms += 30_000
        robber = await taken(lease(store, clock, 2))
        await guarded.update(lambda _: 2, epoch=robber.epoch)
        with pytest.raises(Fenced):
            await guarded.update(lambda _: 3, epoch=stalled.epoch)
        held = await guarded.read()
        assert held is not None
        assert held.value == 2

    asyncio.run(scenario())


# Hazard 3: the generation that guards the lock is the store's, not the body's


def test_hazard_03_every_step_after_the_first_is_conditional_on_the_stores_version():
    clock = HandClock()
    free = {"holder": None, "expires_ms": 0, "format": "arco.lease", "format_version": 1, "epoch": 4}
    header = {"generation": 0, "write_id": "0" * 26, "recent_write_ids": []}
    found = stored(KEY, msgspec.json.encode(free | header), "v41")
    store = ScriptedStore([Landed(Version(version)) for version in ("v42", "v43", "v44")], [found])

    async def scenario() -> None:
        mine = lease(store, clock)
        tenure = await taken(mine)
        assert tenure.epoch == 5
        assert await mine.release(await mine.extend(tenure))

    asyncio.run(scenario())
    assert [put.condition for put in store.puts] == [Matches(Version(version)) for version in ("v41", "v42", "v43")]


def test_hazard_03_the_first_holder_creates_the_lease_only_if_it_is_absent():
    store = ScriptedStore([Landed(Version("v1"))], [None])
    asyncio.run(taken(lease(store, HandClock())))
    assert [put.condition for put in store.puts] == [Absent()]


def test_hazard_03_a_body_that_claims_the_same_generation_does_not_pass_for_the_same_lease():
    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        mine = lease(store, clock, 1)
        tenure = await taken(mine)
        robbed = await body(store) | {"holder": encode_ulid(2), "write_id": encode_ulid(77)}
        await store.put(KEY, msgspec.json.encode(robbed), Always())
        assert not await mine.release(tenure)
        with pytest.raises(Fenced):
            await mine.extend(tenure)
        assert await body(store) == robbed

    asyncio.run(scenario())


def test_hazard_03_epochs_grow_through_releases_and_thefts():
    async def scenario() -> list[int]:
        clock = HandClock()
        store = MemoryStore(clock)
        epochs = []
        for number in range(12):
            mine = lease(store, clock, number)
            tenure = await taken(mine)
            epochs.append(tenure.epoch)
            if number % 2:
                assert await mine.release(tenure)
            else:
                clock.at_ms += 30_000
        return epochs

    assert asyncio.run(scenario()) == list(range(1, 13))


# Hazard 19: release is one compare-and-swap


def test_hazard_19_a_release_never_frees_the_next_holders_lease():
    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        first, second = lease(store, clock, 1), lease(store, clock, 2)
        stale = await taken(first)
        clock.at_ms += 30_000
        current = await taken(second)
        assert not await first.release(stale)
        assert await lease(store, clock, 3).try_acquire() is None
        assert (await second.extend(current)).epoch == current.epoch

    asyncio.run(scenario())


def test_hazard_19_a_release_that_is_robbed_between_its_check_and_its_write_frees_nothing():
    """The thief comes at the worst moment: after the releaser has decided, before its write takes effect."""

    class RobbedOnTheWay(MemoryStore):
        robber: Lease | None = None

        async def put(self, key, data, condition):
            robber, self.robber = self.robber, None
            if robber is not None:
                await taken(robber)
            return await super().put(key, data, condition)

    async def scenario() -> None:
        clock = HandClock()
        store = RobbedOnTheWay(clock)
        first = lease(store, clock, 1)
        tenure = await taken(first)
        clock.at_ms += 30_000
        store.robber = lease(store, clock, 2)
        assert not await first.release(tenure)
        assert (await body(store))["holder"] == holder(2)

    asyncio.run(scenario())


def test_hazard_19_a_release_writes_free_and_deletes_nothing():
    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        mine = lease(store, clock)
        assert await mine.release(await taken(mine))
        left = await body(store)
        assert (left["holder"], left["expires_ms"], left["epoch"]) == (None, 0, 1)
        assert (await taken(lease(store, clock, 2))).epoch == 2

    asyncio.run(scenario())


def test_hazard_19_a_release_whose_reply_is_lost_is_known_to_have_freed_even_after_the_next_took_it():
    async def scenario() -> None:
        clock = HandClock()
        store = LostReplies(clock)
        mine, following = lease(store, clock, 1), lease(store, clock, 2)
        tenure = await taken(mine)
        store.times, store.meanwhile = 1, following.try_acquire
        assert await mine.release(tenure)
        assert (await body(store))["holder"] == holder(2)

    asyncio.run(scenario())


def test_a_second_release_frees_nothing_more():
    async def scenario() -> None:
        clock = HandClock()
        mine = lease(MemoryStore(clock), clock)
        tenure = await taken(mine)
        assert await mine.release(tenure)
        assert not await mine.release(tenure)

    asyncio.run(scenario())


def answered_by(outcome):
    """A lease whose swap gets this answer, whatever is asked."""
    held = Held(LeaseState(holder(1), 0), Version("v1"), 1, holder(5), (), 1)
    store = ScriptedStore([outcome, ...], [stored(KEY, b"base", "v1"), ...])
    return lease(store, HandClock()), Tenure(1, held)


def test_a_release_that_came_too_late_freed_nothing():
    mine, tenure = answered_by(Lost("taken"))
    assert not asyncio.run(mine.release(tenure))


@pytest.mark.parametrize("act", ["release", "extend"])
def test_silence_is_neither_kept_nor_lost(act):
    mine, tenure = answered_by(Unknown("no reply"))
    with pytest.raises(OutcomeUnknown):
        asyncio.run(getattr(mine, act)(tenure))


# What is stored


@pytest.mark.parametrize(
    "wrong",
    [
        {"holder": 5},
        {"holder": []},
        {"expires_ms": None},
        {"expires_ms": "soon"},
        {"expires_ms": {}},
        {"holder": ...},
        {"expires_ms": ...},
    ],
    ids=str,
)
def test_a_lease_with_wrong_fields_is_corrupt(wrong):
    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        await taken(lease(store, clock))
        spoiled = await body(store) | wrong
        spoiled = {name: value for name, value in spoiled.items() if value is not ...}
        await store.put(KEY, msgspec.json.encode(spoiled), Always())
        with pytest.raises(CorruptObject):
            await lease(store, clock, 2).try_acquire()

    asyncio.run(scenario())


def test_a_lease_of_a_newer_format_is_left_alone():
    async def scenario() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        await taken(lease(store, clock))
        newer = await body(store) | {"format_version": 2}
        await store.put(KEY, msgspec.json.encode(newer), Always())
        clock.at_ms += 60_000
        with pytest.raises(UnknownFormat):
            await lease(store, clock, 2).try_acquire()
        assert await body(store) == newer

    asyncio.run(scenario())
