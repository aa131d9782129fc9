"""Spark's blocking calls beside an event loop: each attempt in a group of jobs of its own, which can be stopped.

A call that is cancelled stops the jobs of its group until its thread has come to an end, so that nothing of it goes on unseen.
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
    """The threads of one session."""

    def __init__(self, session: Session, at_once: int) -> None:
        self.session = session
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix=_NAME)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def call(self, group: str, description: str, work: Callable[[], T], progressed: Callable[[Any], None]) -> T:
        """Run something on a thread, as jobs of a group, and say how far they are while it runs."""

        def inside() -> T:
            with self.session.job(group, description):
                try:
                    return work()
                except SystemExit as left:
                    # Code that leaves: the loop that waits for it would leave too, with everything else that it drives.
                    raise RuntimeError(f"the code would end the process: SystemExit({left.code!r})") from left

        running = asyncio.get_running_loop().run_in_executor(self._pool, inside)
        try:
            while True:
                done, _ = await asyncio.wait({running}, timeout=LOOK_S)
                if done:
                    return running.result()
                progressed(self.session.progress(group))
        except asyncio.CancelledError:
            await self._stop(group, running)
            raise

    async def _stop(self, group: str, running: "asyncio.Future[Any]") -> None:
        """Stop the group's jobs, again and again: a job may begin between two looks.

        Code that works without Spark cannot be stopped. Whoever waits no longer for it cancels a second time.
        """
        while not running.done():
            self.session.cancel(group)
            await asyncio.wait({running}, timeout=LOOK_S)
        running.exception()


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
