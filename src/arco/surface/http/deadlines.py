"""When requests under way have taken too long: one timer for all of them.

All have the same time, so the one that began first is due first, and a timer of its own for each would almost always be thrown
away unused. What must never enter: what is done with a request that is late.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Deadlines(Generic[T]):
    """What has begun and not ended, in its order. What is late is told once, and is then nobody's any more."""

    def __init__(self, seconds: float, late: Callable[[T], None]) -> None:
        self._seconds = seconds
        self._late = late
        self._due_s: dict[T, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        """The one that has the timer, which stands for whoever was first when it was set; None if there is no timer."""

    def begin(self, one: T) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            # To ask for the loop is to ask the system who we are, so it is not done for every request.
            loop = self._loop = asyncio.get_running_loop()
            loop.call_later(self._seconds, self._look, loop)
        self._due_s[one] = loop.time() + self._seconds

    def end(self, one: T) -> None:
        self._due_s.pop(one, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now_s = loop.time()
        for one, due_s in list(self._due_s.items()):
            if due_s > now_s:
                loop.call_at(due_s, self._look, loop)
                return
            del self._due_s[one]
            self._late(one)
        self._loop = None
