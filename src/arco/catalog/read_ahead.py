"""Objects of a chain, read a few at a time before they are asked for.

A chain can only be walked link by link, each named by the one before, and a store takes its time for every request. But the
names of a chain sort nearly in its order, so the next links are most likely the next names. A wrong guess costs a request and
nothing else.
"""

import asyncio
from collections.abc import Iterable

from arco.kernel.limits import VERIFY_READ_AHEAD_MAX
from arco.storage.port import Object, ObjectStore


class ReadAhead:
    """Reads keys in their order, from the greatest to the smallest."""

    def __init__(self, store: ObjectStore, keys: Iterable[str]) -> None:
        self._store = store
        self._left = sorted(keys)
        self._reading: dict[str, asyncio.Task[Object | None]] = {}

    async def get(self, key: str) -> Object | None:
        for passed in [one for one in self._reading if one > key]:
            _abandon(self._reading.pop(passed))
        while self._left and self._left[-1] > key:
            self._left.pop()
        while self._left and len(self._reading) < VERIFY_READ_AHEAD_MAX:
            following = self._left.pop()
            self._reading[following] = asyncio.ensure_future(self._store.get(following))
        task = self._reading.pop(key, None)
        return await (self._store.get(key) if task is None else task)

    def close(self) -> None:
        """Leave nothing running behind."""
        while self._reading:
            _abandon(self._reading.popitem()[1])


def _abandon(task: asyncio.Task[Object | None]) -> None:
    """Nobody asks for it any more; what came of it is nobody's failure."""
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception() and None)
    task.cancel()
