"""The two ports to the outside of a process: time and randomness."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from arco.kernel.clock import SystemClock, utc_date
from arco.kernel.entropy import DrawnAhead, SeededEntropy, SystemEntropy
from arco.kernel.limits import ENTROPY_DRAWN_BYTES_MAX

DAY_MS = 86_400_000
MILLISECONDS_IN_2020 = 1_577_836_800_000


@pytest.mark.parametrize(
    ("at_ms", "expected"),
    [
        (-62_135_596_800_000, "0001-01-01"),
        (-1, "1969-12-31"),
        (0, "1970-01-01"),
        (DAY_MS - 1, "1970-01-01"),
        (DAY_MS, "1970-01-02"),
        (951_782_400_000, "2000-02-29"),
        (1_709_251_199_999, "2024-02-29"),
        (1_709_251_200_000, "2024-03-01"),
        (1_735_689_599_999, "2024-12-31"),
        (1_735_689_600_000, "2025-01-01"),
        (4_102_444_799_999, "2099-12-31"),
        (253_402_300_799_999, "9999-12-31"),
    ],
)
def test_a_moment_belongs_to_its_date_in_utc(at_ms, expected):
    assert utc_date(at_ms) == expected


@pytest.fixture
def in_zone() -> Iterator[Callable[[str], None]]:
    """Move the machine to another zone; it is moved back at the end."""
    with pytest.MonkeyPatch.context() as patch:

        def move(zone: str) -> None:
            patch.setenv("TZ", zone)
            time.tzset()

        yield move
    time.tzset()


@pytest.mark.parametrize("zone", ["UTC0", "EAST-14", "WEST+12"])
def test_the_date_does_not_depend_on_the_zone_of_the_machine(in_zone, zone):
    in_zone(zone)
    assert utc_date(1_735_689_599_999) == "2024-12-31"
    assert utc_date(1_735_689_600_000) == "2025-01-01"


def test_the_system_clock_counts_whole_milliseconds():
    now = SystemClock().now_ms()
    assert type(now) is int
    assert now > MILLISECONDS_IN_2020


def test_the_monotonic_clock_never_goes_back():
    clock = SystemClock()
    readings = [clock.monotonic_s() for _ in range(1000)]
    assert readings == sorted(readings)


def test_waiting_lets_others_go_on():
    order: list[str] = []

    async def wait() -> None:
        order.append("waits")
        await SystemClock().sleep(0)
        order.append("is back")

    async def work() -> None:
        order.append("works")

    async def both() -> None:
        await asyncio.gather(wait(), work())

    asyncio.run(both())
    assert order == ["waits", "works", "is back"]


@pytest.mark.parametrize("seed", [0, 1, -1, "a seed", ""])
def test_one_seed_decides_everything(seed):
    one, other = SeededEntropy(seed), SeededEntropy(seed)
    for _ in range(20):
        assert one.token_bytes(9) == other.token_bytes(9)
        assert one.fraction() == other.fraction()


def test_different_seeds_differ():
    assert len({SeededEntropy(seed).token_bytes(16) for seed in range(100)}) == 100


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(1)], ids=["system", "seeded"])
def test_randomness_has_the_asked_length_and_does_not_repeat(entropy):
    for count in (0, 1, 10, 16, 1000):
        assert len(entropy.token_bytes(count)) == count
    assert len({entropy.token_bytes(16) for _ in range(200)}) == 200


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(1)], ids=["system", "seeded"])
def test_a_fraction_lies_between_nought_and_one(entropy):
    fractions = [entropy.fraction() for _ in range(2000)]
    assert all(0 <= fraction < 1 for fraction in fractions)
    assert len(set(fractions)) > 1900


class _Asked:
    """A source that says how often it was asked."""

    def __init__(self) -> None:
        self.inner = SeededEntropy(7)
        self.asked: list[int] = []

    def token_bytes(self, count: int) -> bytes:
        self.asked.append(count)
        return self.inner.token_bytes(count)

    def fraction(self) -> float:
        return self.inner.fraction()


def test_what_is_drawn_ahead_is_handed_out_once() -> None:
    source = _Asked()
    ahead = DrawnAhead(source)
    handed_out = [ahead.token_bytes(10) for _ in range(1000)]
    assert all(len(one) == 10 for one in handed_out)
    assert len(set(handed_out)) == 1000
    assert source.asked == [ENTROPY_DRAWN_BYTES_MAX] * 3


def test_more_than_is_drawn_ahead_is_asked_for_by_itself() -> None:
    source = _Asked()
    assert len(DrawnAhead(source).token_bytes(ENTROPY_DRAWN_BYTES_MAX + 1)) == ENTROPY_DRAWN_BYTES_MAX + 1
    assert source.asked == [ENTROPY_DRAWN_BYTES_MAX + 1]
