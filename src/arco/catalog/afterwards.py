"""What is left to do after an answer was sent: receipts and finished markers.

None of it protects anything: the next swing writes a missing receipt, a retry finishes a marker. So it holds nobody up, and
its failure is nobody's failure. A graceful stop waits for it.
"""

import asyncio
from collections.abc import Awaitable


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
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
