"""Positions: each writer's grow, no two writers' meet, and one broken clock does not drag the others along."""

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import decode_ulid, encode_ulid
from arco.kernel.limits import POSITION_LEAD_MS_MAX
from arco.kernel.position import HybridClock, Position
from stand_ins.hand_clock import NEW_YEAR_2025_MS, ConstantEntropy, HandClock, ReadingsClock

COUNTER_MAX = 0xFFFF


def position(at_ms: int, counter: int = 0, writer: int = 7) -> Position:
    return Position(encode_ulid((at_ms << 16 | counter) << 64 | writer))


def parts(of: Position) -> tuple[int, int, int]:
    number = decode_ulid(of)
    return number >> 80, number >> 64 & COUNTER_MAX, number & (1 << 64) - 1


def test_a_position_is_a_ulid_of_time_counter_and_writer():
    hybrid = HybridClock(HandClock(), ConstantEntropy(0xAB))
    first, second = hybrid.next(), hybrid.next()
    assert parts(first) == (NEW_YEAR_2025_MS, 0, 0xABABABABABABABAB)
    assert parts(second) == (NEW_YEAR_2025_MS, 1, 0xABABABABABABABAB)
    assert first.time_ms == NEW_YEAR_2025_MS


def test_positions_of_one_writer_grow_while_the_clock_stands_still():
    hybrid = HybridClock(HandClock(), SeededEntropy(1))
    made = [hybrid.next() for _ in range(300)]
    assert made == sorted(set(made))


def test_positions_of_one_writer_grow_while_the_clock_jumps_about():
    readings = [NEW_YEAR_2025_MS + jump for jump in (0, -1, -86_400_000, 5, 4, 5, 6, -10, 6, 1_000)]
    hybrid = HybridClock(ReadingsClock([*readings, 0, -1]), SeededEntropy(2))
    made = [hybrid.next() for _ in range(len(readings) + 2)]
    assert made == sorted(set(made))


def test_positions_return_to_the_clock_when_it_has_caught_up():
    clock = HandClock()
    hybrid = HybridClock(clock, SeededEntropy(3))
    hybrid.observe(position(NEW_YEAR_2025_MS + 500, 9))
    assert hybrid.next().time_ms == NEW_YEAR_2025_MS + 500
    clock.at_ms += 501
    assert parts(hybrid.next())[:2] == (NEW_YEAR_2025_MS + 501, 0)


def test_a_full_counter_overflows_into_the_next_millisecond():
    hybrid = HybridClock(HandClock(), SeededEntropy(4))
    hybrid.observe(position(NEW_YEAR_2025_MS, COUNTER_MAX - 1))
    assert parts(hybrid.next())[:2] == (NEW_YEAR_2025_MS, COUNTER_MAX)
    assert parts(hybrid.next())[:2] == (NEW_YEAR_2025_MS + 1, 0)
    assert parts(hybrid.next())[:2] == (NEW_YEAR_2025_MS + 1, 1)


@pytest.mark.parametrize("lead_ms", [-86_400_000, -1, 0, 1, 60_000, POSITION_LEAD_MS_MAX])
@pytest.mark.parametrize("writer", [0, (1 << 64) - 1])
def test_what_follows_a_seen_position_lies_above_it(lead_ms, writer):
    hybrid = HybridClock(HandClock(), SeededEntropy(5))
    seen = position(NEW_YEAR_2025_MS + lead_ms, 12, writer)
    before = hybrid.next()
    hybrid.observe(seen)
    assert hybrid.next() > max(seen, before)


@pytest.mark.parametrize("lead_ms", [POSITION_LEAD_MS_MAX + 1, 10 * POSITION_LEAD_MS_MAX, (1 << 48) - 1 - NEW_YEAR_2025_MS])
def test_a_position_from_the_far_future_is_refused_and_forgotten(lead_ms):
    hybrid = HybridClock(HandClock(), SeededEntropy(6))
    with pytest.raises(InvalidInput) as caught:
        hybrid.observe(position(NEW_YEAR_2025_MS + lead_ms))
    assert "future" in caught.value.message
    assert "clock" in caught.value.hint
    assert hybrid.next().time_ms == NEW_YEAR_2025_MS


def test_two_writers_in_one_millisecond_never_collide():
    clock = HandClock()
    writers = [HybridClock(clock, SeededEntropy(f"writer {number}")) for number in range(50)]
    made = [writer.next() for _ in range(20) for writer in writers]
    assert len(set(made)) == len(made)


def test_two_writers_that_see_each_other_order_what_they_did():
    one, other = (HybridClock(HandClock(now), SeededEntropy(now)) for now in (NEW_YEAR_2025_MS, NEW_YEAR_2025_MS - 5_000))
    made = []
    for writer, reader in [(one, other), (other, one)] * 10:
        made.append(writer.next())
        reader.observe(made[-1])
    assert made == sorted(set(made))
