"""Folding again and again: when somebody says that there is something new, and on a timer in case nobody does.

Of those who follow one ledger one folds, and the others stand by (`turns.py`). What fails is tried again with the next pass,
after longer and longer waits while it goes on failing: a store that is away must not be asked all the time, and a fold that
cannot work must not burn a core.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from arco.fold.folding import Folding
from arco.fold.passes import Pass, fold_pass
from arco.fold.turns import Turn
from arco.kernel.errors import ArcoError
from arco.kernel.limits import FOLD_LEASE_S

_LONGER_MAX = 32

T = TypeVar("T")


class Following:
    """Keeps one workspace up to date. `told` hears of every pass, and of what kept one from happening."""

    def __init__(self, folding: Folding, every_s: float, told: Callable[[Pass | ArcoError], None]) -> None:
        self._folding = folding
        self._every_s = every_s
        self._told = told
        self._woken = asyncio.Event()
        self._turn = Turn(folding.heads)

    def wake(self) -> None:
        """There is something new: look soon. What arrives during a pass is looked for after it."""
        self._woken.set()

    async def go_on(self) -> None:
        """Until cancelled. Then the next one need not wait."""
        longer = 1
        try:
            while True:
                self._woken.clear()
                done = await self.look()
                if done is None:
                    await self._wait(min(self._every_s, FOLD_LEASE_S), wakes=False)
                    continue
                self._told(done)
                in_trouble = isinstance(done, ArcoError) or bool(done.failed)
                longer = min(2 * longer, _LONGER_MAX) if in_trouble else 1
                await self._rest(self._every_s * longer, wakes=not in_trouble)
        finally:
            await self._give_up()

    async def look(self) -> Pass | ArcoError | None:
        """One pass, if it is this one's turn; None if it is another's."""
        clock = self._folding.heads.clock
        try:
            self._folding.epoch = await self._turn.take()
            if self._folding.epoch is None:
                return None
            began_s = clock.monotonic_s()
            done = await self._holding(fold_pass(self._folding))
            return replace(done, took_s=clock.monotonic_s() - began_s)
        except ArcoError as error:
            return error

    async def _rest(self, seconds: float, *, wakes: bool) -> None:
        """Wait, and keep the turn meanwhile."""
        await self._holding(self._wait(seconds, wakes=wakes))

    async def _holding(self, work: Coroutine[Any, Any, T]) -> T:
        keeping = asyncio.ensure_future(self._turn.keep())
        try:
            return await work
        finally:
            keeping.cancel()

    async def _give_up(self) -> None:
        try:
            await self._turn.give_up()
        except ArcoError:
            return  # it ends by itself, after a while

    async def _wait(self, seconds: float, *, wakes: bool) -> None:
        """Until the time is over or somebody wakes it; in trouble, and out of turn, nobody does."""
        timer = asyncio.ensure_future(self._folding.heads.clock.sleep(seconds))
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait({timer, woken} if wakes else {timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()
