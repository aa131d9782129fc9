"""An asyncio event loop with virtual time, where a dead process's code simply never runs again.

Protocol code runs unmodified: tasks, gather, timeouts and sleeps are asyncio's own. What differs: time jumps to the next
thing that happens, what happens next is decided by the world, and callbacks that belong to a dead incarnation are dropped,
without running its `finally` blocks, as `kill -9` would.
"""

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Mortal(Protocol):
    """Something that callbacks belong to, and that may be dead."""

    alive: bool


# The interface has forty methods for sockets, processes and signals that simulated code must not use: they raise.
_LoopBase: Any = asyncio.AbstractEventLoop

OWNER: ContextVar[Mortal | None] = ContextVar("arco_sim_owner", default=None)


class _Call:
    """What asyncio calls a handle: a callback that will be called, unless it is cancelled before."""

    __slots__ = ("_cancelled", "_when_s", "args", "callback", "context")

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None, when_s: float
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self._when_s = when_s
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True

    def cancelled(self) -> bool:
        return self._cancelled

    def when(self) -> float:
        return self._when_s

    def is_dropped(self) -> bool:
        """Whether it is cancelled, or belongs to the dead."""
        if self._cancelled:
            return True
        owner = self.context.get(OWNER)
        return owner is not None and not owner.alive


class SimLoop(_LoopBase):  # type: ignore[misc]
    """Just enough of an event loop. `on_idle` makes the next thing happen; it returns False when nothing can."""

    def __init__(self, on_idle: Callable[[], bool]) -> None:
        self.now_s = 0.0
        self._on_idle = on_idle
        self._ready: deque[_Call] = deque()
        self._timers: list[tuple[float, int, _Call]] = []
        self._timer_count = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self.create_future: Callable[[], asyncio.Future[Any]] = partial(asyncio.Future, loop=self)

    # What asyncio asks of a loop

    # Every future and every task asks: `bool()` is False, and no frame of ours.
    get_debug = bool

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def time(self) -> float:
        return self.now_s

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        # A task of a dead process stays pending for good: that is its fate, not a mistake to warn about.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.append(task)
        return task

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> _Call:
        call = _Call(callback, args, context, self.now_s)
        self._ready.append(call)
        return call

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Call:
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> _Call:
        call = _Call(callback, args, context, when)
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, call))
        return call

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        # An exception that nobody fetched belongs to a task of the dead; everything else is a finding.
        if isinstance(error, BaseException) and "never retrieved" not in context.get("message", ""):
            raise error

    # Running

    def run(self, main: Coroutine[Any, Any, T]) -> T | None:
        """Run until `main` is done; None if everything else has stopped before it could be."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            task: asyncio.Task[T] = self.create_task(main)
            while not task.done():
                self._run_ready()
                if not task.done() and not self._fire_due_timer() and not self._on_idle():
                    return None
            return task.result()
        finally:
            events._set_running_loop(outer)

    def _run_ready(self) -> None:
        ready = self._ready
        while ready:
            call = ready.popleft()
            if not call.is_dropped():
                call.context.run(call.callback, *call.args)

    def next_timer_s(self) -> float | None:
        """When the next timer is due; timers of the dead and the cancelled are forgotten on the way."""
        while self._timers:
            when, _, call = self._timers[0]
            if not call.is_dropped():
                return when
            heapq.heappop(self._timers)
        return None

    def _fire_due_timer(self) -> bool:
        when = self.next_timer_s()
        if when is None or when > self.now_s:
            return False
        self._ready.append(heapq.heappop(self._timers)[2])
        return True

    def abandon(self) -> None:
        """Drop what is left, so that the garbage collector does not run the cleanup code of the dead."""
        for task in self._tasks:
            coroutine = task.get_coro()
            if not task.done() and coroutine is not None:
                # Cleanup code may object; it has no store to reach any more, so nothing it does matters.
                with suppress(BaseException):
                    coroutine.close()
        self._tasks.clear()
        self._ready.clear()
        self._timers.clear()
