"""The profiled store: requests and sequential round trips, counted per operation, and waits that the clock can tell."""

import asyncio

import pytest

from arco.kernel.errors import InvalidInput
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Always, Landed, Lost, Matches, SignedMethod, Version
from arco.storage.profile import GCS, INSTANT, PROFILES, S3, LatencyProfile, ProfiledStore, operation
from stand_ins.hand_clock import HandClock

TEN_AND_TWENTY = LatencyProfile("test", read_ms=10, write_ms=20)


class StandingClock(HandClock):
    """Waits are written down and take their turns, but the hands do not move: everything happens at once."""

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


def profiled(profile: LatencyProfile = TEN_AND_TWENTY, clock: HandClock | None = None, scale: float = 1.0) -> ProfiledStore:
    clock = clock or HandClock()
    return ProfiledStore(MemoryStore(clock), profile, clock, scale=scale)


# Round trips


def test_one_request_is_one_trip():
    async def scenario() -> None:
        store = profiled()
        with operation("get") as cost:
            await store.get("a")
        assert (cost.name, cost.round_trips, cost.total_requests) == ("get", 1, 1)

    asyncio.run(scenario())


def test_requests_one_after_another_are_as_many_trips():
    async def scenario() -> None:
        store = profiled()
        with operation("commit") as cost:
            await store.put("a", b"x", Absent())
            await store.get("a")
            await store.head("a")
            await store.get_range("a", 0, 1)
            await store.list_page("")
            await store.delete("a")
        assert cost.round_trips == cost.total_requests == 6
        assert cost.requests == {"put": 1, "get": 2, "head": 1, "list": 1, "delete": 1}

    asyncio.run(scenario())


def test_requests_under_way_together_share_a_trip():
    async def scenario() -> None:
        store = profiled()
        with operation("load") as cost:
            await asyncio.gather(*(store.get(f"k{number}") for number in range(10)))
        assert (cost.round_trips, cost.total_requests) == (1, 10)

    asyncio.run(scenario())


def test_a_trip_before_and_a_trip_after_a_group_are_three():
    async def scenario() -> None:
        store = profiled()
        with operation("load") as cost:
            await store.get("pointer")
            await asyncio.gather(store.get("a"), store.get("b"), store.put("c", b"", Absent()))
            await store.get("last")
        assert (cost.round_trips, cost.total_requests) == (3, 5)

    asyncio.run(scenario())


def test_chains_side_by_side_cost_as_many_trips_as_the_longest():
    async def scenario() -> None:
        store = profiled()

        async def chain(length: int) -> None:
            for number in range(length):
                await store.get(f"k{number}")

        with operation("load") as cost:
            await asyncio.gather(chain(1), chain(4), chain(2))
        assert (cost.round_trips, cost.total_requests) == (4, 7)

    asyncio.run(scenario())


def test_groups_inside_groups_count_their_depth():
    async def scenario() -> None:
        store = profiled()

        async def node(depth: int) -> None:
            await store.get(f"depth-{depth}")
            if depth:
                await asyncio.gather(node(depth - 1), node(depth - 1))

        with operation("tree") as cost:
            await node(3)
        assert (cost.round_trips, cost.total_requests) == (4, 15)

    asyncio.run(scenario())


def test_a_request_that_starts_while_another_is_under_way_is_not_a_trip_later():
    async def scenario() -> None:
        store = profiled()
        with operation("load") as cost:
            slow = asyncio.create_task(store.get("slow"))
            await asyncio.sleep(0)
            await store.get("beside it")
            await slow
        assert (cost.round_trips, cost.total_requests) == (1, 2)

    asyncio.run(scenario())


def test_a_request_that_fails_was_a_trip_all_the_same():
    async def scenario() -> None:
        store = profiled()
        with operation("bad") as cost:
            with pytest.raises(InvalidInput):
                await store.get("../x")
            await store.get("a")
        assert (cost.round_trips, cost.total_requests) == (2, 2)

    asyncio.run(scenario())


# Operations


def test_the_tasks_of_an_operation_count_for_it_and_others_do_not():
    async def scenario() -> None:
        store = profiled()

        async def work(name: str, requests: int) -> tuple[int, int]:
            with operation(name) as cost:
                for number in range(requests):
                    await asyncio.create_task(store.get(f"k{number}"))
            return cost.total_requests, cost.round_trips

        assert await asyncio.gather(work("one", 2), work("other", 5)) == [(2, 2), (5, 5)]
        assert store.total.total_requests == 7

    asyncio.run(scenario())


def test_what_is_asked_outside_an_operation_counts_only_in_the_total():
    async def scenario() -> None:
        store = profiled()
        await store.get("before")
        with operation("mine") as cost:
            await store.get("inside")
        await store.get("after")
        assert cost.total_requests == 1
        assert store.total.total_requests == 3
        assert store.total.round_trips == 3

    asyncio.run(scenario())


def test_an_operation_goes_on_after_one_inside_it_has_ended():
    async def scenario() -> None:
        store = profiled()
        with operation("outer") as outer:
            with operation("inner") as inner:
                await store.get("a")
            before = outer.total_requests
            await store.get("b")
            assert outer.total_requests == before + 1
        assert (inner.total_requests, store.total.total_requests) == (1, 2)

    asyncio.run(scenario())


def test_an_operation_that_raises_stops_counting():
    async def scenario() -> None:
        store = profiled()
        with pytest.raises(ZeroDivisionError), operation("broken") as cost:
            raise ZeroDivisionError
        await store.get("a")
        assert cost.total_requests == 0

    asyncio.run(scenario())


# Bytes


def test_bytes_are_counted_as_they_travel():
    async def scenario() -> None:
        store = profiled()
        with operation("bytes") as cost:
            await store.put("a", b"12345", Absent())
            await store.put("a", b"lost all the same", Absent())
            await store.get("a")
            await store.get_range("a", 1, 2)
            await store.get("nothing")
            await store.get_range("nothing", 0, 9)
            await store.head("a")
        assert (cost.bytes_written, cost.bytes_read) == (5 + 17, 5 + 2)
        assert (store.total.bytes_written, store.total.bytes_read) == (22, 7)

    asyncio.run(scenario())


# Waits


def test_reads_and_writes_take_what_the_profile_says():
    async def scenario() -> None:
        clock = HandClock()
        store = profiled(clock=clock)
        await store.put("a", b"x", Absent())
        for read in (store.get("a"), store.head("a"), store.get_range("a", 0, 1), store.list_page("")):
            await read
        await store.delete("a")
        assert clock.pauses == [0.02, 0.01, 0.01, 0.01, 0.01, 0.02]

    asyncio.run(scenario())


@pytest.mark.parametrize("scale", [0.0, 0.01, 0.5, 2.0])
def test_the_scale_stretches_every_wait(scale):
    async def scenario() -> None:
        clock = HandClock()
        store = profiled(clock=clock, scale=scale)
        await store.get("a")
        await store.put("a", b"x", Always())
        assert clock.pauses == pytest.approx([0.01 * scale, 0.02 * scale])

    asyncio.run(scenario())


def test_an_instant_store_never_waits():
    async def scenario() -> None:
        clock = HandClock()
        store = profiled(INSTANT, clock)
        for _ in range(5):
            await store.put("a", b"x", Always())
            await store.get("a")
        assert clock.pauses == []

    asyncio.run(scenario())


def test_overwrites_of_one_name_wait_for_the_stores_interval():
    async def scenario() -> None:
        clock = HandClock()
        store = profiled(GCS, clock)
        for _ in range(3):
            await store.put("a", b"x", Always())
        # 600 ms of each second are the write itself; the rest is waiting for the name to be free.
        assert clock.pauses == pytest.approx([0.6, 1.0, 1.0])

    asyncio.run(scenario())


def test_overwrites_of_one_name_at_once_queue_up():
    async def scenario() -> None:
        clock = StandingClock()
        store = profiled(GCS, clock)
        await asyncio.gather(*(store.put("a", b"x", Always()) for _ in range(4)))
        assert clock.pauses == pytest.approx([0.6, 1.6, 2.6, 3.6])

    asyncio.run(scenario())


def test_an_overwrite_after_the_interval_does_not_wait():
    async def scenario() -> None:
        clock = HandClock()
        store = profiled(GCS, clock)
        await store.put("a", b"x", Always())
        clock.elapsed_s += 10
        await store.put("a", b"x", Always())
        assert clock.pauses == pytest.approx([0.6, 0.6])

    asyncio.run(scenario())


def test_new_names_and_other_names_never_wait_for_the_interval():
    async def scenario() -> None:
        clock = StandingClock()
        store = profiled(GCS, clock)
        for number in range(3):
            await store.put(f"new-{number}", b"x", Absent())
            await store.put(f"other-{number}", b"x", Always())
        assert clock.pauses == pytest.approx([0.6] * 6)

    asyncio.run(scenario())


def test_creating_one_name_again_and_again_is_no_overwrite_of_it():
    async def scenario() -> None:
        clock = StandingClock()
        store = profiled(GCS, clock)
        for _ in range(3):
            await store.put("a", b"x", Absent())
        await store.put("a", b"x", Always())
        assert clock.pauses == pytest.approx([0.6] * 4)

    asyncio.run(scenario())


def test_a_swap_is_an_overwrite():
    async def scenario() -> None:
        clock = StandingClock()
        store = profiled(GCS, clock)
        for _ in range(2):
            await store.put("a", b"x", Matches(Version("none")))
        assert clock.pauses == pytest.approx([0.6, 1.6])

    asyncio.run(scenario())


@pytest.mark.parametrize("scale", [0.01, 0.5, 3.0])
def test_the_scale_stretches_the_interval_too(scale):
    async def scenario() -> None:
        clock = StandingClock()
        store = profiled(GCS, clock, scale)
        for _ in range(3):
            await store.put("a", b"x", Always())
        assert clock.pauses == pytest.approx([0.6 * scale, 1.6 * scale, 2.6 * scale])

    asyncio.run(scenario())


def test_a_scale_of_nought_waits_for_nothing():
    async def scenario() -> None:
        clock = StandingClock()
        store = profiled(GCS, clock, 0.0)
        for _ in range(3):
            await store.put("a", b"x", Always())
        assert sum(clock.pauses) == 0

    asyncio.run(scenario())


# The store below


def test_the_answers_are_those_of_the_store_below():
    async def scenario() -> None:
        store = profiled()
        landed = await store.put("a", b"x", Absent())
        assert isinstance(landed, Landed)
        assert isinstance(await store.put("a", b"y", Absent()), Lost)
        found = await store.get("a")
        assert found is not None
        assert (found.data, found.version) == (b"x", landed.version)
        assert [entry.key for entry in (await store.list_page("")).entries] == ["a"]
        with pytest.raises(InvalidInput):
            await store.sign("a", SignedMethod.GET, 60)
        await store.delete("a")
        assert await store.head("a") is None
        await store.close()

    asyncio.run(scenario())


def test_every_profile_is_found_by_its_name():
    assert all(PROFILES[name].name == name for name in PROFILES)
    assert PROFILES["s3"] is S3
    assert all(profile.read_ms <= profile.write_ms for profile in PROFILES.values())
