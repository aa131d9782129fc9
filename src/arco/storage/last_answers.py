"""Nothing that obstore still has in hand outlives the event loop that asked for it, nor the interpreter.

The failures this prevents, in order:
  1. a thread that Python did not start hands the last answer of a command to its loop, and wakes it with a byte to a socket; to
     send it, the thread lets go of the interpreter's lock
  2. the loop takes the answer, the command says what came of it, and Python begins to end
  3. the thread comes back for the lock. Before 3.14, Python ends such a thread where it stands, which tears through frames of
     Rust that must not be torn: the process aborts, and its exit code says nothing of what it did
and: nobody waits for an answer any more, the loop is closed, the thread is refused by it, and prints that while Python ends.

A busy machine makes a thread late. One whose request is cancelled before it has the lock calls no Python, but still asks for the
lock when it likes; so a store that is closed lets answers come that are about to. What must never enter: waiting for ever for a
store, which may never answer.
"""

import asyncio
import atexit
import sys
import threading
from asyncio import AbstractEventLoop, BaseEventLoop, Future
from collections.abc import Awaitable
from types import FrameType
from typing import Any, TypeVar

from arco.kernel.limits import LAST_ANSWER_LOOK_S, LAST_ANSWER_LOOKS_MAX, LAST_ANSWERS_S

T = TypeVar("T")

_HANDING_OVER = BaseEventLoop.call_soon_threadsafe.__code__


class UnderWay:
    """The requests of one store that have no answer yet."""

    def __init__(self) -> None:
        self._requests: set[Future[Any]] = set()
        _wait_at_exit()

    def begun(self, request: Awaitable[T]) -> Future[T]:
        """The same request, which is known here until it has its answer."""
        known = asyncio.ensure_future(request)
        self._requests.add(known)
        known.add_done_callback(self._requests.discard)
        return known

    async def end(self) -> None:
        """Let what is under way have its answers, if they come soon. After that no thread calls the running loop with any."""
        loop = asyncio.get_running_loop()
        if mine := [one for one in self._requests if one.get_loop() is loop]:
            await asyncio.wait(mine, timeout=LAST_ANSWERS_S)
        for request in mine:
            request.cancel()
        await asyncio.sleep(0)
        for _ in range(LAST_ANSWER_LOOKS_MAX):
            if not _is_any_handing_over(loop):
                return
            await asyncio.sleep(LAST_ANSWER_LOOK_S)


def _wait_for_last_answers() -> None:
    """Return when no thread hands anything over; or after some seconds, because a process must end."""
    rest = threading.Event()
    for _ in range(LAST_ANSWER_LOOKS_MAX):
        if not _is_any_handing_over():
            return
        rest.wait(LAST_ANSWER_LOOK_S)


def _wait_at_exit() -> None:
    """Also where a store was never closed. Once is enough, and once more changes nothing."""
    atexit.unregister(_wait_for_last_answers)
    atexit.register(_wait_for_last_answers)


def _is_any_handing_over(loop: AbstractEventLoop | None = None) -> bool:
    """To one loop, or to any. A thread that has left that frame keeps the lock until it is through: it is found, or gone."""
    return any(_hands_over(frame, loop) for frame in sys._current_frames().values())


def _hands_over(frame: FrameType | None, loop: AbstractEventLoop | None) -> bool:
    while frame is not None:
        if frame.f_code is _HANDING_OVER:
            return loop is None or frame.f_locals.get("self") is loop
        frame = frame.f_back
    return False
