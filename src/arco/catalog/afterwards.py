"""What is left to do after an answer was sent: receipts and finished markers.

None of it protects anything: the next swing writes a missing receipt, a retry finishes a marker. So it holds nobody up, and
its failure is nobody's failure. A graceful stop waits for it.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Afterwards:
    """The work of one workspace that outlives its requests."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Future[object]] = set()

    def do(self, work: Awaitable[object]) -> None:
        task: asyncio.Future[object] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    async def settle(self) -> None:
        """Wait until nothing is left."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Future[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()


async def together(*work: Awaitable[object]) -> None:
    """Everything at once, and to the end: a failure must not leave writes running behind an answer."""
    if work:
        await beside(*work)


async def to_the_end(work: Sequence["asyncio.Future[T]"]) -> list[T]:
    """What all of it came to, or the first that failed once all has ended: no write may run on behind a decision about it."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


async def beside(here: Awaitable[T], *others: Awaitable[object]) -> T:
    """The same, for who wants the result of the first, which is done right here: of two things that wait for a store only one
    needs a task. Raises what went wrong with the first that failed, in the order in which they were given."""
    tasks = [asyncio.ensure_future(one) for one in others]
    done: list[T] = []
    failures: list[BaseException] = []
    try:
        try:
            done.append(await here)
        except Exception as error:  # noqa: BLE001 - raised when the others have ended
            failures.append(error)
        left = [one for one in tasks if not one.done()]
        if left:
            await asyncio.wait(left)
    except asyncio.CancelledError:
        for one in tasks:
            one.cancel()
        if tasks:
            await asyncio.wait(tasks)
        raise
    # Each is asked, so that none is taken for one that nobody heard of.
    failures += [failure for failure in map(_failure, tasks) if failure is not None]
    if failures:
        raise failures[0]
    return done[0]


def _failure(ended: "asyncio.Future[object]") -> BaseException | None:
    return asyncio.CancelledError() if ended.cancelled() else ended.exception()
