"""Whose turn it is to fold, among those who follow one ledger all the time. It saves work, and never carries correctness.

The failures this prevents, in order:
  1. three servers follow a workspace; ten thousand events arrive, each folds all of them on its own Spark, and two lose the
     swing: everything costs three times
  2. one of them is stopped by its machine, comes back after minutes and goes on as before; it may be an Arco of last month, for
     which the newest events are unknown ones: it sets them aside, and they count as consumed
So a follower holds a lease while it follows, and swings heads with the epoch of it. Who finds that another has the lease stands
by and looks again; who stalled past its own is refused by the first head that its successor has swung (`CasObject.swap`). Whoever
folds once, or rebuilds, needs no turn: it swings with the epoch that it finds. What must never enter: anything that is right only
if one folder is at work.
"""

import asyncio
from contextlib import suppress

from arco.fold.heads import Heads
from arco.fold.tables import FOLDED_FROM
from arco.kernel.errors import ArcoError, Fenced
from arco.kernel.ids import HolderId, UlidSource, WriteId
from arco.kernel.limits import FOLD_LEASE_S
from arco.storage.keys import Head, LeaseKey, Word
from arco.storage.lease import Lease, Tenure


class Turn:
    """The turn of one follower, if it has it."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        holder = HolderId(UlidSource(heads.clock, heads.entropy).next())
        key = str(LeaseKey(heads.scope, Word("fold")))
        self._lease = Lease(heads.store, key, holder, heads.clock, heads.entropy, ttl_s=FOLD_LEASE_S)
        self._tenure: Tenure | None = None
        self._extending: asyncio.Future[None] | None = None
        self._heard: tuple[WriteId, float] | None = None

    async def take(self) -> int | None:
        """The epoch to swing with from now on; None while it is somebody else's turn."""
        await self._extend()
        if self._tenure is None:
            silent = await self._silent()
            self._tenure = await self._lease.try_acquire(above=await self._greatest(), silent=silent)
        return None if self._tenure is None else self._tenure.epoch

    async def keep(self) -> None:
        """Until cancelled, or until the turn is another's."""
        while self._tenure is not None:
            await self._heads.clock.sleep(FOLD_LEASE_S / 3)
            try:
                await self._extend()
            except ArcoError:
                # Silence of the store is no takeover. If it lasts, another has the turn, and that is found out at the next look.
                continue

    async def give_up(self) -> None:
        """Let the next one in at once."""
        await self._under_way()
        tenure, self._tenure = self._tenure, None
        if tenure is not None:
            await self._lease.release(tenure)

    async def _extend(self) -> None:
        """Say that it is still ours, one word at a time. Who is cancelled meanwhile leaves a word under way that counts."""
        await self._under_way()
        if self._tenure is not None:
            self._extending = asyncio.ensure_future(self._extended(self._tenure))
            await asyncio.shield(self._extending)

    async def _extended(self, tenure: Tenure) -> None:
        try:
            self._tenure = await self._lease.extend(tenure)
        except Fenced:
            self._tenure = None

    async def _under_way(self) -> None:
        if self._extending is not None and not self._extending.done():
            with suppress(ArcoError):
                await asyncio.shield(self._extending)

    async def _silent(self) -> WriteId | None:
        """What the other said last, if it has said nothing since for as long as a lease lasts."""
        current, now_s = await self._lease.look(), self._heads.clock.monotonic_s()
        if current is None:
            return None
        if self._heard is None or self._heard[0] != current.write_id:
            self._heard = (current.write_id, now_s)
        return current.write_id if now_s - self._heard[1] >= FOLD_LEASE_S else None

    async def _greatest(self) -> int:
        """The greatest epoch that a head was swung with."""
        held = await asyncio.gather(*(self._heads.object(head).read() for head in (*FOLDED_FROM, Head.ROOT)))
        return max((one.epoch for one in held if one is not None), default=0)
