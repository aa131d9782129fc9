"""A wrapper that makes any store as slow as a cloud, and counts what an operation costs.

Cost is stated in requests and in sequential round trips, which do not depend on the machine. A request that starts after
another one of the same operation has ended is one trip later than it; requests under way together share a trip. Trips are
counted per `Operation`, which the tasks of that operation inherit through their context.

The figures are one compare-and-swap of one object, as measured in January 2026 (C. Douglas, "Conditional Operations in
Object Stores"); reads are given the lower end of each range. GCS takes about one overwrite of one name per second.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from arco.kernel.clock import Clock
from arco.storage.port import Absent, Condition, Object, ObjectInfo, ObjectStore, Outcome, Page, SignedMethod

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """How long a store takes, in milliseconds, and how often one name may be overwritten."""

    name: str
    read_ms: float
    write_ms: float
    overwrite_interval_ms: float = 0.0


S3 = LatencyProfile("s3", read_ms=58, write_ms=63)
S3_EXPRESS = LatencyProfile("s3-express", read_ms=14, write_ms=20)
GCS = LatencyProfile("gcs", read_ms=500, write_ms=600, overwrite_interval_ms=1000)
AZURE = LatencyProfile("azure", read_ms=100, write_ms=350)
INSTANT = LatencyProfile("instant", read_ms=0, write_ms=0)
PROFILES = {profile.name: profile for profile in (S3, S3_EXPRESS, GCS, AZURE, INSTANT)}


@dataclass(slots=True)
class Operation:
    """What one logical operation has cost so far."""

    name: str
    requests: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    bytes_written: int = 0
    round_trips: int = 0

    @property
    def total_requests(self) -> int:
        return self.requests.total()


_current: ContextVar[tuple[Operation, ...]] = ContextVar("arco_operations", default=())


@contextmanager
def operation(name: str) -> Iterator[Operation]:
    """Count everything that this block, and the tasks it starts, ask of a profiled store."""
    measured = Operation(name)
    token = _current.set((*_current.get(), measured))
    try:
        yield measured
    finally:
        _current.reset(token)


class ProfiledStore:
    """A store with a latency profile and a counter. `scale` shortens or lengthens every wait."""

    def __init__(self, inner: ObjectStore, profile: LatencyProfile, clock: Clock, *, scale: float = 1.0) -> None:
        self._inner = inner
        self._profile = profile
        self._clock = clock
        self._scale = scale
        self._last_write_ms: dict[str, float] = {}
        self.total = Operation("total")

    async def get(self, key: str) -> Object | None:
        found = await self._request("get", self._profile.read_ms, lambda: self._inner.get(key))
        self._count_bytes(read=0 if found is None else len(found.data))
        return found

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        found = await self._request("get", self._profile.read_ms, lambda: self._inner.get_range(key, start, length))
        self._count_bytes(read=len(found or b""))
        return found

    async def head(self, key: str) -> ObjectInfo | None:
        return await self._request("head", self._profile.read_ms, lambda: self._inner.head(key))

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        wait_ms = self._profile.write_ms + self._throttle_ms(key, condition)
        outcome = await self._request("put", wait_ms, lambda: self._inner.put(key, data, condition))
        self._count_bytes(written=len(data))
        return outcome

    async def delete(self, key: str) -> None:
        await self._request("delete", self._profile.write_ms, lambda: self._inner.delete(key))

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        return await self._request("list", self._profile.read_ms, lambda: self._inner.list_page(prefix, after, limit))

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        return await self._inner.sign(key, method, ttl_s)

    async def close(self) -> None:
        await self._inner.close()

    def _measured(self) -> Iterator[Operation]:
        yield self.total
        yield from _current.get()

    async def _request(self, kind: str, latency_ms: float, work: Callable[[], Awaitable[T]]) -> T:
        started_after = [(measured, measured.round_trips) for measured in self._measured()]
        for measured, _ in started_after:
            measured.requests[kind] += 1
        try:
            # One turn for the others, so that requests made together overlap even where nothing takes time.
            await asyncio.sleep(0)
            if latency_ms:
                await self._clock.sleep(latency_ms * self._scale / 1000)
            return await work()
        finally:
            for measured, before in started_after:
                measured.round_trips = max(measured.round_trips, before + 1)

    def _count_bytes(self, read: int = 0, written: int = 0) -> None:
        for measured in self._measured():
            measured.bytes_read += read
            measured.bytes_written += written

    def _throttle_ms(self, key: str, condition: Condition) -> float:
        """How long an overwrite must wait for the store's limit per name; a new name never waits."""
        interval_ms = self._profile.overwrite_interval_ms * self._scale
        if not interval_ms or isinstance(condition, Absent):
            return 0.0
        now_ms = self._clock.monotonic_s() * 1000
        start_ms = max(now_ms, self._last_write_ms.get(key, float("-inf")) + interval_ms)
        self._last_write_ms[key] = start_ms
        return (start_ms - now_ms) / self._scale
