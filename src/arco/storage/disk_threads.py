"""The threads that wait for a disk: work goes to them from an event loop, and its result comes back there.

They do what an executor of the standard library does, for a fraction of its processor time: a commit makes half a dozen writes,
and handing one over and back cost as much as many of the calls that it is made of. What must never enter: what the work is.
"""

import asyncio
import atexit
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Work = Callable[[], None]


class _Desk:
    """What the threads share with who asks them: the work, and how many of them wait for some."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: SimpleQueue[Work | None] = SimpleQueue()
        self.idle = 0


class DiskThreads:
    """So many threads at most, each started when none is idle. They end with `close`, with their owner, or with the process."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._desk = _Desk()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        # The threads know nothing of this object, so that one that nobody closed takes them along.
        weakref.finalize(self, _let_go, self._desk, self._threads).atexit = False
        _ALL[next(_NUMBERS)] = self

    def submit(self, work: Work) -> None:
        """Do some work, which raises nothing. A RuntimeError if these threads have ended."""
        desk = self._desk
        with desk.lock:
            if self._is_closed:
                raise RuntimeError("the store is closed")
            if desk.idle:
                desk.idle -= 1
            elif len(self._threads) < self._most:
                self._start()
            # Else it waits. Whoever takes it counts as idle from then on; but nobody asks that once all threads are there.
        desk.asked.put(work)

    def _start(self) -> None:
        name = f"{self._name}_{len(self._threads)}"
        thread = threading.Thread(target=_work, args=(self._desk,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[R]":
        """Call something on a thread, for the loop that runs here. What nobody waits for any more is not begun."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[R] = loop.create_future()

        def work() -> None:
            if told.cancelled():
                return
            try:
                result = call(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
                _tell(loop, _failed, told, error)
            else:
                _tell(loop, _done, told, result)

        self.submit(work)
        return told

    def together(self, work: Sequence[Work]) -> None:
        """All of it at the same time, the last here; raises what went wrong after all of it has ended."""
        if len(work) < 2:
            for one in work:
                one()
            return
        ended: SimpleQueue[BaseException | None] = SimpleQueue()
        for one in work[:-1]:
            self.submit(_reporting(one, ended))
        _reporting(work[-1], ended)()
        failures = [failure for failure in [ended.get() for _ in work] if failure is not None]
        if failures:
            raise failures[0]

    def close(self) -> None:
        """After all that was asked for is done."""
        with self._desk.lock:
            self._is_closed = True
        _let_go(self._desk, self._threads)
        for thread in self._threads:
            thread.join()


def _work(desk: _Desk) -> None:
    while (work := desk.asked.get()) is not None:
        work()
        # What it was about must not live on until the next.
        del work
        with desk.lock:
            desk.idle += 1


def _let_go(desk: _Desk, threads: Sequence[threading.Thread]) -> None:
    for _ in threads:
        desk.asked.put(None)


def _reporting(work: Work, ended: "SimpleQueue[BaseException | None]") -> Work:
    def reporting() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            ended.put(error)
        else:
            ended.put(None)

    return reporting


def _tell(loop: asyncio.AbstractEventLoop, tell: Callable[..., None], told: "asyncio.Future[R]", what: object) -> None:
    # A loop that has ended listens to nobody.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(tell, told, what)


def _done(told: "asyncio.Future[R]", result: R) -> None:
    if not told.done():
        told.set_result(result)


def _failed(told: "asyncio.Future[R]", error: BaseException) -> None:
    if not told.done():
        told.set_exception(error)


_ALL: "weakref.WeakValueDictionary[int, DiskThreads]" = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()


@atexit.register
def _finish() -> None:
    """What was asked for is done before the process ends, as with threads of the standard library; the oldest first, because
    they may ask those that were made after them."""
    for _, threads in sorted(_ALL.items()):
        threads.close()
