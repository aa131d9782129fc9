"""Following the ledger: everything is seen, however late it comes, from wherever the follower goes on."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco.kernel.clock import utc_date
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject, InvalidInput, UnknownFormat
from arco.kernel.ids import EventId, SegmentId, UlidSource, WriterId, encode_ulid
from arco.kernel.limits import LEDGER_TAIL_READS_MAX
from arco.kernel.position import HybridClock
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import EventType, encode
from arco.ledger.segment import Segment, encode_segment
from arco.ledger.segment_numbers import gaps
from arco.ledger.tailing import Cursor, Tail, Unreadable
from arco.storage.keys import Day, Domain, SegmentKey
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent
from arco.storage.profile import INSTANT, ProfiledStore, operation
from stand_ins.hand_clock import HandClock

SCOPE = Scope.of("acme", "prod")
HAPPENED = EventType("execution.happened.v1")
DAY_MS = 24 * 3600 * 1000


class Ledger:
    """One domain in a memory store, written segment by segment under names of any moment."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        self.counted = ProfiledStore(self.store, INSTANT, self.clock)
        self._ulids = UlidSource(self.clock, SeededEntropy(1))
        self._positions = HybridClock(self.clock, SeededEntropy(2))
        self._names = 0
        self.writer = WriterId(self._ulids.next())

    def key(self, days_ago: int = 0) -> SegmentKey:
        """A name that was drawn some days ago."""
        self._names += 1
        at_ms = self.clock.now_ms() - days_ago * DAY_MS
        segment = SegmentId(encode_ulid(at_ms << 80 | self._names))
        return SegmentKey(SCOPE, Domain.EXECUTION, Day(utc_date(at_ms)), segment)

    def store_at(self, key: SegmentKey, label: str = "", number: int = 1) -> SegmentKey:
        event = seal(
            Draft(type=HAPPENED, source="test", data={"label": label}),
            SCOPE,
            fresh_id=EventId(self._ulids.next()),
            position=self._positions.next(),
            now_ms=self.clock.now_ms(),
        )
        self.put(key, encode_segment(key, self.writer, number, [encode(event)]))
        return key

    def put(self, key: SegmentKey, data: bytes) -> None:
        asyncio.run(self.store.put(str(key), data, Absent()))

    def write(self, label: str, days_ago: int = 0) -> SegmentKey:
        return self.store_at(self.key(days_ago), label)

    def tail(self, cursor: Cursor | None = None, **how: Any) -> Tail:
        return Tail(self.counted, SCOPE, Domain.EXECUTION, self.clock, cursor, **how)


def seen(look: Callable[[], Any]) -> list[str]:
    """The labels of everything that a look or a sweep gives."""

    async def all_of() -> list[str]:
        return [found.events[0].data["label"] async for found in look()]

    return asyncio.run(all_of())


# Looking


def test_each_segment_is_seen_once_and_in_the_order_of_names() -> None:
    ledger = Ledger()
    tail = ledger.tail()
    ledger.write("a")
    ledger.write("b")
    assert seen(tail.look) == ["a", "b"]
    assert seen(tail.look) == []
    ledger.write("c")
    assert seen(tail.look) == ["c"]


def test_hazard_04_a_segment_that_comes_late_under_an_older_name_is_seen() -> None:
    ledger = Ledger()
    tail = ledger.tail()
    stalled, yesterday = ledger.key(), ledger.key(days_ago=1)
    ledger.write("a")
    assert seen(tail.look) == ["a"]
    ledger.store_at(stalled, "stalled")
    ledger.store_at(yesterday, "of yesterday")
    assert sorted(seen(tail.look)) == ["of yesterday", "stalled"]


def test_a_writer_whose_clock_is_a_day_ahead_is_seen() -> None:
    ledger = Ledger()
    ledger.write("ahead", days_ago=-1)
    assert seen(ledger.tail().look) == ["ahead"]


def test_a_look_asks_for_recent_days_alone_and_reads_only_what_is_new() -> None:
    ledger = Ledger()
    for number in range(30):
        ledger.write(str(number))
    tail = ledger.tail(recent_days=3)
    seen(tail.look)
    ledger.write("new")
    with operation("look") as cost:
        assert seen(tail.look) == ["new"]
    assert dict(cost.requests) == {"list": 4, "get": 1}


def test_more_segments_than_are_held_at_once_are_read_in_parts() -> None:
    ledger = Ledger()
    labels = [f"{number:03}" for number in range(LEDGER_TAIL_READS_MAX * 3 + 1)]
    for label in labels:
        ledger.write(label)
    assert seen(ledger.tail().look) == labels


# Going on


def test_a_follower_goes_on_where_another_stopped() -> None:
    ledger = Ledger()
    for label in "abc":
        ledger.write(label)
    tail = ledger.tail()
    seen(tail.look)
    ledger.write("d")
    stored = tail.cursor.encode()
    assert seen(ledger.tail(Cursor.decode(stored)).look) == ["d"]


def test_what_was_given_out_and_not_finished_is_given_out_again() -> None:
    ledger = Ledger()
    for label in "abc":
        ledger.write(label)
    tail = ledger.tail()

    async def dies_at_b() -> None:
        async for found in tail.look():
            assert isinstance(found, Segment)
            if found.events[0].data["label"] == "b":
                return

    asyncio.run(dies_at_b())
    assert seen(ledger.tail(tail.cursor).look) == ["b", "c"]
    assert seen(tail.look) == ["b", "c"]


def test_who_has_folded_some_segments_follows_the_others() -> None:
    ledger = Ledger()
    folded = [ledger.write("a"), ledger.write("b")]
    late = ledger.key(days_ago=1)
    ledger.write("c")
    ledger.store_at(late, "late")
    assert sorted(seen(ledger.tail(Cursor.of(folded)).look)) == ["c", "late"]


@pytest.mark.parametrize("data", [b"", b"[]", b'{"recent": 7}', b"\xff", b'{"recent": {"\xff": []}}'])
def test_what_is_no_cursor_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        Cursor.decode(data)


# Sweeping


def test_who_begins_anew_sweeps_and_sees_every_day() -> None:
    ledger = Ledger()
    for days_ago in (400, 30, 7, 1, 0):
        ledger.write(f"{days_ago}", days_ago=days_ago)
    tail = ledger.tail()
    assert seen(tail.sweep) == ["400", "30", "7", "1", "0"]
    assert seen(tail.sweep) == seen(tail.look) == []


def test_a_segment_that_comes_to_an_old_day_is_found_by_a_sweep() -> None:
    ledger = Ledger()
    late = ledger.key(days_ago=30)
    ledger.write("old", days_ago=30)
    tail = ledger.tail()
    seen(tail.sweep)
    ledger.store_at(late, "late")
    assert seen(tail.look) == []
    assert sorted(seen(tail.sweep)) == ["late", "old"], "the day is read whole: whoever follows keeps one event of each id"
    assert seen(tail.sweep) == []


def test_a_day_that_grows_old_is_remembered_by_a_sum() -> None:
    ledger = Ledger()
    for number in range(100):
        ledger.write(str(number))
    tail = ledger.tail(recent_days=2)
    seen(tail.look)
    large = len(tail.cursor.encode())
    ledger.clock.at_ms += 5 * DAY_MS
    seen(tail.look)
    assert tail.cursor.recent == {}
    assert [day.count for day in tail.cursor.old.values()] == [100]
    assert len(tail.cursor.encode()) < large / 20
    assert seen(tail.sweep) == []
    again = ledger.tail(Cursor.decode(tail.cursor.encode()))
    assert seen(again.sweep) == []


def test_a_sweep_remembers_no_more_names_than_a_look() -> None:
    ledger = Ledger()
    for days_ago in range(60):
        ledger.write(str(days_ago), days_ago=days_ago)
    tail = ledger.tail(recent_days=3)
    seen(tail.sweep)
    assert len(tail.cursor.recent) == 3
    assert len(tail.cursor.old) == 57


def test_a_sweep_that_is_cut_off_in_an_old_day_reads_it_again() -> None:
    ledger = Ledger()
    late = ledger.key(days_ago=30)
    ledger.write("old", days_ago=30)
    tail = ledger.tail()
    seen(tail.sweep)
    ledger.store_at(late, "late")

    async def dies_at_the_first() -> None:
        async for _ in tail.sweep():
            return

    asyncio.run(dies_at_the_first())
    assert "late" in seen(ledger.tail(tail.cursor).sweep)


# What cannot be read


def test_a_damaged_segment_is_given_out_as_such_and_does_not_stop_the_rest() -> None:
    ledger = Ledger()
    broken, newer = ledger.key(), ledger.key()
    ledger.put(broken, b"nothing of ours\n")
    ledger.put(newer, b'{"format":"arco.ledger_segment","format_version":9}\n')
    ledger.write("a")
    tail = ledger.tail()

    async def story() -> list[Any]:
        return [found async for found in tail.look()]

    first, second, third = asyncio.run(story())
    assert (first.key, type(first.error)) == (broken, CorruptObject)
    assert (second.key, type(second.error)) == (newer, UnknownFormat)
    assert isinstance(third, Segment)
    assert not any(isinstance(found, Unreadable) for found in asyncio.run(story()))


def test_a_segment_that_was_moved_aside_meanwhile_is_passed_over() -> None:
    ledger = Ledger()
    gone = ledger.write("gone")
    ledger.write("a")
    tail = ledger.tail()

    class Moved(ProfiledStore):
        async def get(self, key: str) -> Any:
            return None if key == str(gone) else await super().get(key)

    tail._store = Moved(ledger.store, INSTANT, ledger.clock)
    assert seen(tail.look) == ["a"]


@pytest.mark.parametrize("days", [0, -1, 1000])
def test_recent_days_have_a_limit(days: int) -> None:
    with pytest.raises(InvalidInput):
        Ledger().tail(recent_days=days)


# Gaps


A, B = WriterId("01K7A5V6M8YQ4Z3B2N1C0D9E8A"), WriterId("01K7A5V6M8YQ4Z3B2N1C0D9E8B")


@pytest.mark.parametrize(
    ("pairs", "missing"),
    [
        ([], {}),
        ([(A, 1)], {}),
        ([(A, 3), (A, 1), (A, 2), (B, 1)], {}),
        ([(A, 1), (A, 1), (A, 2)], {}),
        ([(A, 2)], {A: ((1, 1),)}),
        ([(A, 1), (A, 5), (B, 2)], {A: ((2, 4),), B: ((1, 1),)}),
    ],
)
def test_a_gap_is_a_number_missing_below_the_highest(pairs: Any, missing: Any) -> None:
    assert gaps(pairs) == missing


@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)))
def test_gaps_are_exactly_what_is_not_there(left: set[int], right: set[int]) -> None:
    found = gaps([*((A, one) for one in left), *((B, one) for one in right)])
    for writer, its in ((A, left), (B, right)):
        missing = {number for first, last in found.get(writer, ()) for number in range(first, last + 1)}
        assert missing == set(range(1, max(its, default=1))) - its
        assert its | missing == set(range(1, max(its, default=0) + 1))
