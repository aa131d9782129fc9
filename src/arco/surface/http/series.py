"""Series that are counted in plain numbers first, and written to where all workers see them a moment later.

Prometheus' own series take a lock for every number, and the shared ones pack it into a file: for a request that is answered from
memory that was a fifth of its processor time. Everything here happens in the event loop of one process.
"""

from bisect import bisect_left
from collections.abc import Sequence

from prometheus_client import Counter, Gauge, Histogram


class Spread(Histogram):
    """A histogram that takes many observations at once."""

    def take(self, counts: Sequence[int], total: float) -> None:
        """`counts` has as many numbers as there are buckets, each of its own bucket alone."""
        self._sum.inc(total)
        for bucket, count in zip(self._buckets, counts, strict=True):
            if count:
                bucket.inc(count)

    @property
    def bounds(self) -> tuple[float, ...]:
        return tuple(self._upper_bounds)


class Count:
    """One series of a counter, or of a gauge that goes up and down."""

    __slots__ = ("_series", "_waiting")

    def __init__(self, series: Counter | Gauge) -> None:
        self._series = series
        self._waiting = 0

    def add(self, by: int = 1) -> None:
        self._waiting += by

    def write(self) -> None:
        if self._waiting:
            self._series.inc(self._waiting)
            self._waiting = 0


class Observed:
    """One series of a histogram."""

    __slots__ = ("_bounds", "_counts", "_series", "_total", "_waits")

    def __init__(self, series: Spread) -> None:
        self._series = series
        self._bounds = series.bounds
        self._counts = [0] * len(self._bounds)
        self._total = 0.0
        self._waits = False

    def add(self, amount: float, times: int = 1) -> None:
        self._counts[bisect_left(self._bounds, amount)] += times
        self._total += amount * times
        self._waits = True

    def write(self) -> None:
        if self._waits:
            self._series.take(self._counts, self._total)
            self._counts, self._total, self._waits = [0] * len(self._bounds), 0.0, False
