"""Stores for the cases that a real store only shows by bad luck: prepared replies, and effects without replies."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from arco.storage.memory import MemoryStore
from arco.storage.port import (
    Condition,
    Object,
    ObjectInfo,
    Outcome,
    Page,
    SignedMethod,
    Unknown,
    Version,
)

Reply = Outcome | Exception
Found = Object | Exception | None


@dataclass(frozen=True, slots=True)
class Put:
    """One write as the store received it."""

    key: str
    data: bytes
    condition: Condition


def stored(key: str, data: bytes, version: str) -> Object:
    return Object(ObjectInfo(key, len(data), Version(version), 0), data)


class ScriptedStore:
    """A sequence of replies, one for each write and one for each read. What was asked is in `puts` and `reads`.

    A script that ends with `...` repeats its last reply for ever.
    """

    def __init__(self, puts: Iterable[object] = (), gets: Iterable[object] = ()) -> None:
        self._replies = deque(puts)
        self._found = deque(gets)
        self.puts: list[Put] = []
        self.reads: list[str] = []

    @property
    def used_up(self) -> bool:
        """Whether every prepared reply was asked for."""
        return not self._replies and not self._found

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        self.puts.append(Put(key, data, condition))
        return _next(self._replies)

    async def get(self, key: str) -> Object | None:
        self.reads.append(key)
        return _next(self._found)

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        raise AssertionError("nothing here reads ranges")

    async def head(self, key: str) -> ObjectInfo | None:
        raise AssertionError("nothing here asks for heads")

    async def delete(self, key: str) -> None:
        raise AssertionError("nothing here deletes")

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        raise AssertionError("nothing here lists")

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        raise AssertionError("nothing here signs")

    async def close(self) -> None:
        return


def _next(script: deque):
    assert script, "the script has no more replies"
    reply = script[0] if len(script) > 1 and script[1] is ... else script.popleft()
    if isinstance(reply, Exception):
        raise reply
    return reply


class LostReplies(MemoryStore):
    """A memory store whose next writes take effect while their replies get lost.

    `meanwhile` runs between the effect and the read-back: it is where rivals do their worst.
    """

    def __init__(self, clock, *, times: int = 0, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        super().__init__(clock)
        self.times = times
        self.meanwhile = meanwhile
        self.puts: list[Put] = []

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        self.puts.append(Put(key, data, condition))
        outcome = await super().put(key, data, condition)
        if not self.times:
            return outcome
        self.times -= 1
        if self.meanwhile is not None:
            await self.meanwhile()
        return Unknown("the reply got lost")
