"""A wrapper that tells somebody of every request to a store: its kind, how long it took, and the operation it was part of.

Nothing else changes: no wait, no retry, no outcome. Round trips are counted as in `profile.py`: a request that starts after
another one of the same operation has ended is one trip later than it.
"""

from collections.abc import Awaitable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeVar

from arco.kernel.clock import Clock
from arco.storage.local import LocalStore
from arco.storage.port import Condition, LooksAtOnce, Object, ObjectInfo, ObjectStore, Outcome, Page, SignedMethod

T = TypeVar("T")


@dataclass(slots=True)
class Trips:
    """One operation, by a word from a short list, and the sequential round trips that it has taken so far."""

    operation: str
    count: int = 0


_UNNAMED = Trips("beside")
"""What no operation asked for: upkeep, folds, probes."""

_current: ContextVar[Trips] = ContextVar("arco_trips", default=_UNNAMED)


class counting:  # noqa: N801 - used as a function is, like those of contextlib
    """Everything that this block, and the tasks it starts, ask of a counted store is part of one operation.

    It may end in another context than it began in, as work does that is begun without a task and goes on in one.
    """

    __slots__ = ("_before", "_trips")

    def __init__(self, operation: str) -> None:
        self._trips = Trips(operation)

    def __enter__(self) -> Trips:
        self._before = _current.get()
        _current.set(self._trips)
        return self._trips

    def __exit__(self, *_raised: object) -> None:
        _current.set(self._before)


class Counter(Protocol):
    def store_requests(self, operation: str, kind: str, count: int, took_s: float) -> None:
        """So many requests, which together took so long."""
        ...


class CountedStore:
    def __init__(self, inner: ObjectStore, counter: Counter, clock: Clock) -> None:
        self._inner = inner
        self._counter = counter
        self._clock = clock

    async def get(self, key: str) -> Object | None:
        return await self._counted("get", self._inner.get(key))

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return await self._counted("get", self._inner.get_range(key, start, length))

    async def head(self, key: str) -> ObjectInfo | None:
        return await self._counted("head", self._inner.head(key))

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        return await self._counted("put", self._inner.put(key, data, condition))

    async def delete(self, key: str) -> None:
        await self._counted("delete", self._inner.delete(key))

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        return await self._counted("list", self._inner.list_page(prefix, after, limit))

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        return await self._inner.sign(key, method, ttl_s)

    async def close(self) -> None:
        await self._inner.close()

    async def _counted(self, kind: str, work: Awaitable[T]) -> T:
        trips = _current.get()
        before, began_s = trips.count, self._clock.monotonic_s()
        try:
            return await work
        finally:
            trips.count = max(trips.count, before + 1)
            self._counter.store_requests(trips.operation, kind, 1, self._clock.monotonic_s() - began_s)


class CountedFolders(CountedStore, LooksAtOnce):
    """The same of a folder on a disk."""

    def __init__(self, folder: LocalStore, counter: Counter, clock: Clock) -> None:
        super().__init__(folder, counter, clock)
        self._folder = folder

    async def make_folder(self, prefix: str) -> None:
        await self._folder.make_folder(prefix)

    def look(self, keys: Sequence[str]) -> list[ObjectInfo | None] | None:
        began_s = self._clock.monotonic_s()
        found = self._folder.look(keys)
        if found is not None:
            trips = _current.get()
            trips.count += 1
            self._counter.store_requests(trips.operation, "head", len(keys), self._clock.monotonic_s() - began_s)
        return found


def counted(store: ObjectStore, counter: Counter, clock: Clock) -> ObjectStore:
    """The store, with somebody who counts; it can do what it could."""
    if isinstance(store, LocalStore):
        return CountedFolders(store, counter, clock)
    return CountedStore(store, counter, clock)
