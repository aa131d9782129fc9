"""Time as a port: what the time is, and how to wait.

Everything above the kernel receives a `Clock` and never reads the machine's own, so that a simulation can drift it, jump it
and skip the waiting. No comparison of two machines' clocks may decide safety; clocks only decide how long to wait.
"""

import asyncio
import time
from datetime import date
from typing import Protocol

from arco.kernel.errors import InvalidInput


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

    # The system's own, without a call of ours around it: every request asks several times.
    monotonic_s = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The first and the last millisecond of the years 1 to 9999, which names and events can say."""

_DAY_MS = 86_400_000
_FIRST_OF_1970 = date(1970, 1, 1).toordinal()


def in_calendar(at_ms: int) -> int:
    """A moment that others chose, within the years that can be written down."""
    return min(max(at_ms, FIRST_MS), LAST_MS)


def utc_date(at_ms: int) -> str:
    """The UTC date that a moment belongs to, as object names carry it."""
    try:
        return date.fromordinal(_FIRST_OF_1970 + at_ms // _DAY_MS).isoformat()
    except (ValueError, OverflowError):
        raise InvalidInput(f"the time {at_ms} ms lies outside the years 1 to 9999") from None
