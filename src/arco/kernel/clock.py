"""Time as a port: what the time is, and how to wait.

Everything above the kernel receives a `Clock` and never reads the machine's own, so that a simulation can drift it, jump it
and skip the waiting. No comparison of two machines' clocks may decide safety; clocks only decide how long to wait.
"""

import asyncio
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import DATES_KEPT_MAX


class Clock(Protocol):
    """The time of one process."""

    def now_ms(self) -> int:
        """Milliseconds since 1970 by the wall clock; may jump in either direction."""
        ...

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back, never compared across processes."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait without holding anything up."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The first and the last millisecond of the years 1 to 9999, which names and events can say."""


def in_calendar(at_ms: int) -> int:
    """A moment that others chose, within the years that can be written down."""
    return min(max(at_ms, FIRST_MS), LAST_MS)


_DAY_S = 86_400


def utc_date(at_ms: int) -> str:
    """The UTC date that a moment belongs to, as object names carry it."""
    try:
        return _date_of(at_ms // (1000 * _DAY_S))
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"the time {at_ms} ms lies outside the years 1 to 9999") from None


@lru_cache(DATES_KEPT_MAX)
def _date_of(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY_S, UTC).strftime("%Y-%m-%d")
