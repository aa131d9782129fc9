"""Spark's blocking calls beside an event loop: each attempt in a group of jobs of its own, which can be stopped.

A call that is cancelled stops the jobs of its group until its thread has come to an end, so that nothing of it goes on unseen.
Spark is never asked on the loop's own thread: while Java collects its garbage nobody answers, and heartbeats must go on.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from arco.fold.spark_session import Session

T = TypeVar("T")

LOOK_S = 0.5
_NAME = "arco-spark"


class SparkThreads:
    """The threads of one session: some for calls, and one that asks how far they are and stops them."""

    def __init__(self, session: Session, at_once: int, look_s: float = LOOK_S) -> None:
        self.session = session
        self._look_s = look_s
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix=_NAME)
        self._asking = ThreadPoolExecutor(1, thread_name_prefix=_NAME)

    def close(self) -> None:
        for pool in (self._pool, self._asking):
            pool.shutdown(wait=False, cancel_futures=True)

    async def call(self, group: str, description: str, work: Callable[[], T], progressed: Callable[[Any], None]) -> T:
        """Run something on a thread, as jobs of a group, and say how far they are while it runs.

        It is said at every look. Where Spark has not answered since the last one, that is what it said before.
        """

        def inside() -> T:
            with self.session.job(group, description):
                try:
                    return work()
                except SystemExit as left:
                    # Code that leaves: the loop that waits for it would leave too, with everything else that it drives.
                    raise RuntimeError(f"the code would end the process: SystemExit({left.code!r})") from left

        running = asyncio.get_running_loop().run_in_executor(self._pool, inside)
        known: Any = None
        asked: asyncio.Future[Any] | None = None
        try:
            while True:
                done, _ = await asyncio.wait({running}, timeout=self._look_s)
                if done:
                    return running.result()
                asked = asked or self._ask(self.session.progress, group)
                await asyncio.wait({running, asked}, timeout=self._look_s, return_when=asyncio.FIRST_COMPLETED)
                if asked.done():
                    # A question that fails says nothing: if Spark is gone, the work will say so itself.
                    known, asked = (known if _failed(asked) else asked.result()), None
                progressed(known)
        except asyncio.CancelledError:
            await self._stop(group, running)
            raise

    async def _stop(self, group: str, running: "asyncio.Future[Any]") -> None:
        """Stop the group's jobs, again and again: a job may begin between two looks.

        Code that works without Spark cannot be stopped. Whoever waits no longer for it cancels a second time.
        """
        while not running.done():
            stopping = self._ask(self.session.cancel, group)
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                stopping.result()
            await asyncio.wait({running}, timeout=self._look_s)
        running.exception()

    def _ask(self, question: Callable[[str], Any], group: str) -> "asyncio.Future[Any]":
        """Ask Spark something of a group, behind what it was asked before: never two questions at once."""
        asked = asyncio.get_running_loop().run_in_executor(self._asking, question, group)
        asked.add_done_callback(_failed)
        return asked


def _failed(asked: "asyncio.Future[Any]") -> bool:
    """Whether a question came to nothing. Also for who no longer waits for it: somebody has to hear of its error."""
    return asked.cancelled() or asked.exception() is not None


async def opened(open_one: Callable[[], Session]) -> Session:
    """A session, opened on a thread. Whoever is cancelled waits no longer: it is stopped as soon as it is there."""
    given_up = threading.Event()

    def inside() -> Session:
        session = open_one()
        if given_up.is_set():
            session.stop()
        return session

    pool = ThreadPoolExecutor(1, thread_name_prefix=_NAME)
    opening = asyncio.get_running_loop().run_in_executor(pool, inside)
    pool.shutdown(wait=False)
    try:
        return await opening
    except asyncio.CancelledError:
        given_up.set()
        raise


async def stopped(session: Session) -> None:
    """Stop a session, on a thread: Spark takes its time."""
    await asyncio.to_thread(session.stop)


async def is_alive(session: Session) -> bool:
    """Whether a session still answers. Asked on a thread: one that hangs is waited for by nobody else."""
    return await asyncio.to_thread(session.is_alive)


def any_left() -> bool:
    """Whether a call goes on that nobody waits for any more. Python would wait for it before it ends."""
    return any(thread.name.startswith(_NAME) and thread.is_alive() for thread in threading.enumerate())
