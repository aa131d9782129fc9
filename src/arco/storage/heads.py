"""Looking at objects without reading them, several at once: what a load does instead of loading.

On a disk of this machine a look takes microseconds, and handing it to a thread and back a hundred. So it is done at once, in the
event loop, as long as the disk is that fast; after slow looks threads do it for a while, and what is asked for in one turn of the
loop goes to one thread together. What must never enter: anything that waits for a flush; those go to their own threads.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from arco.kernel.clock import Clock
from arco.kernel.errors import ArcoError
from arco.kernel.limits import LOCAL_HEADS_TOGETHER_MAX, LOCAL_LOOK_REST_S, LOCAL_LOOK_S_MAX, LOCAL_LOOKS_SLOW_MAX
from arco.storage.port import LooksAtOnce, ObjectInfo, ObjectStore

Found = ObjectInfo | OSError | ArcoError | None
_Asked = tuple[str, "asyncio.Future[ObjectInfo | None]"]


class Looks:
    """Some objects that are looked at together, again and again."""

    __slots__ = ("_asked", "_folder", "_keys")

    def __init__(self, *asked: tuple[ObjectStore, str]) -> None:
        store = asked[0][0]
        self._asked = asked
        self._keys = [key for other, key in asked if other is store]
        self._folder = store if isinstance(store, LooksAtOnce) and len(self._keys) == len(asked) else None

    def now(self) -> list[ObjectInfo | None] | None:
        """Here and now; None where that may take long."""
        return None if self._folder is None else self._folder.look(self._keys)

    async def heads(self) -> list[ObjectInfo | None]:
        """In one round trip. Raises what went wrong after all of them have been asked for."""
        found = self.now()
        if found is not None:
            return found
        told = await asyncio.gather(*(store.head(key) for store, key in self._asked), return_exceptions=True)
        return [_or_raised(one) for one in told]


def _or_raised(told: ObjectInfo | BaseException | None) -> ObjectInfo | None:
    if isinstance(told, BaseException):
        raise told
    return told


class Threads(Protocol):
    """Where looks are done that may take long. A RuntimeError if they have ended."""

    def submit(self, work: Callable[[], None], /) -> object: ...


class Heads:
    """The heads of one folder. A loop that ends takes those with it that it asked for."""

    def __init__(self, threads: Threads, head: Callable[[str], ObjectInfo | None], clock: Clock) -> None:
        self._threads = threads
        self._head = head
        self._clock = clock
        self._slow_in_turn = 0
        self._rests_until_s = 0.0
        self._asked: dict[asyncio.AbstractEventLoop, list[_Asked]] = {}

    def look(self, keys: Sequence[str]) -> list[ObjectInfo | None] | None:
        """Here and now, unless looks take long. One that did may have waited for the processor; several waited for the disk."""
        began_s = self._clock.monotonic_s()
        if began_s < self._rests_until_s:
            return None
        try:
            return [self._head(key) for key in keys]
        finally:
            ended_s = self._clock.monotonic_s()
            self._slow_in_turn = self._slow_in_turn + 1 if ended_s - began_s > LOCAL_LOOK_S_MAX else 0
            if self._slow_in_turn >= LOCAL_LOOKS_SLOW_MAX:
                self._slow_in_turn, self._rests_until_s = 0, ended_s + LOCAL_LOOK_REST_S

    def ask(self, key: str) -> "asyncio.Future[ObjectInfo | None]":
        loop = asyncio.get_running_loop()
        found = loop.create_future()
        asked = self._asked.get(loop)
        if asked is None:
            asked = self._asked[loop] = []
            loop.call_soon(self._go, loop)
        asked.append((key, found))
        return found

    def _go(self, loop: asyncio.AbstractEventLoop) -> None:
        asked = self._asked.pop(loop)
        for start in range(0, len(asked), LOCAL_HEADS_TOGETHER_MAX):
            some = asked[start : start + LOCAL_HEADS_TOGETHER_MAX]
            try:
                self._threads.submit(partial(self._look, loop, some))
            except RuntimeError as closed:
                for _, found in some:
                    found.set_exception(closed)

    def _look(self, loop: asyncio.AbstractEventLoop, asked: Sequence[_Asked]) -> None:
        told = [self._looked(key) for key, _ in asked]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_tell, asked, told)

    def _looked(self, key: str) -> Found:
        try:
            return self._head(key)
        except (OSError, ArcoError) as error:
            return error


def _tell(asked: Sequence[_Asked], told: Sequence[Found]) -> None:
    for (_, found), what in zip(asked, told, strict=True):
        if found.done():
            continue  # nobody waits for it any more
        if isinstance(what, OSError | ArcoError):
            found.set_exception(what)
        else:
            found.set_result(what)
