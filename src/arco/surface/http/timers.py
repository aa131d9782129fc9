"""What happens on a connection if something else does not happen in time. What must never enter: what that is."""

import asyncio
from collections.abc import Callable


class Timer:
    """Does something if it is not stopped in time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, action: Callable[[], None]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._action = action
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Once: a timer that runs is not started again."""
        if self._handle is None:
            self._handle = self._loop.call_later(self._seconds, self._fire)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self._handle = None
        self._action()


class LazyTimer:
    """The same for what is started anew with every request: the loop hears of it once, and it looks when it is called."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, action: Callable[[], None]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._action = action
        self._due_s: float | None = None
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """From now on; an earlier start counts no more."""
        self._due_s = self._loop.time() + self._seconds
        if self._handle is None:
            self._handle = self._loop.call_at(self._due_s, self._look)

    def stop(self) -> None:
        self._due_s = None

    def end(self) -> None:
        """For good: the loop lets go of whoever is behind it."""
        self._due_s = None
        if self._handle is not None:
            self._handle.cancel()

    def _look(self) -> None:
        self._handle = None
        due_s = self._due_s
        if due_s is None:
            return
        if due_s > self._loop.time():
            self._handle = self._loop.call_at(due_s, self._look)
            return
        self._due_s = None
        self._action()
