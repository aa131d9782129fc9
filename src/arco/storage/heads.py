"""Looking at many files in one go: heads that are asked for in one turn of the event loop go to one thread together.

Looking at a file takes microseconds, handing work to a thread and back takes a hundred. A load looks at three files side by
side, and many loads are under way at once. What must never enter: anything that waits for a flush; those go to their own threads.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from arco.kernel.errors import ArcoError
from arco.kernel.limits import LOCAL_HEADS_TOGETHER_MAX
from arco.storage.port import ObjectInfo

Found = ObjectInfo | OSError | ArcoError | None
_Asked = tuple[str, "asyncio.Future[ObjectInfo | None]"]


class Heads:
    """The heads of one store. A loop that ends takes those with it that it asked for."""

    def __init__(self, threads: Executor, head: Callable[[str], ObjectInfo | None]) -> None:
        self._threads = threads
        self._head = head
        self._asked: dict[asyncio.AbstractEventLoop, list[_Asked]] = {}

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
                self._threads.submit(self._look, loop, some)
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
