"""Folding again and again: when somebody says that there is something new, and on a timer in case nobody does.

What fails is tried again with the next pass, after longer and longer waits while it goes on failing: a store that is away must
not be asked all the time, and a fold that cannot work must not burn a core.
"""

import asyncio
from collections.abc import Callable

from arco.fold.folding import Folding
from arco.fold.passes import Pass, fold_pass
from arco.kernel.errors import ArcoError

_LONGER_MAX = 32


class Following:
    """Keeps one workspace up to date. `told` hears of every pass, and of what kept one from happening."""

    def __init__(self, folding: Folding, every_s: float, told: Callable[[Pass | ArcoError], None]) -> None:
        self._folding = folding
        self._every_s = every_s
        self._told = told
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """There is something new: look soon. What arrives during a pass is looked for after it."""
        self._woken.set()

    async def go_on(self) -> None:
        """Until cancelled."""
        longer = 1
        while True:
            self._woken.clear()
            done = await self._pass()
            self._told(done)
            in_trouble = isinstance(done, ArcoError) or bool(done.failed)
            longer = min(2 * longer, _LONGER_MAX) if in_trouble else 1
            await self._wait(self._every_s * longer, wakes=not in_trouble)

    async def _pass(self) -> Pass | ArcoError:
        try:
            return await fold_pass(self._folding)
        except ArcoError as error:
            return error

    async def _wait(self, seconds: float, *, wakes: bool) -> None:
        """Until the time is over or somebody wakes it; in trouble nobody does."""
        timer = asyncio.ensure_future(self._folding.heads.clock.sleep(seconds))
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait({timer, woken} if wakes else {timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()
