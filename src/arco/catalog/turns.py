"""Taking turns: servers on one root that wait for one another instead of racing for the manifest.

It saves lost swings where several servers change names all the time, and nothing else: a lease that cannot be had, expires
or is stolen is no reason not to commit, because the swing's own condition decides (hazards 2, 3 and 19). Off by default: with
one server it only adds two requests to every commit.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError
from arco.kernel.ids import HolderId, UlidSource
from arco.kernel.limits import TURN_BACKOFF_S_FIRST, TURN_BACKOFF_S_MAX, TURN_LEASE_S, TURN_WAIT_S
from arco.kernel.scope import Scope
from arco.storage.keys import LeaseKey, Word
from arco.storage.lease import Lease, Tenure
from arco.storage.port import ObjectStore


class Turns:
    """The turns of one process."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        holder = HolderId(UlidSource(clock, entropy).next())
        self._lease = Lease(store, str(LeaseKey(scope, Word("catalog"))), holder, clock, entropy, ttl_s=TURN_LEASE_S)
        self._clock = clock

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Our turn, if it comes within a reasonable time; without it otherwise."""
        tenure = await self._wait()
        try:
            yield
        finally:
            if tenure is not None:
                await self._give_back(tenure)

    async def _wait(self) -> Tenure | None:
        waited_s, pause_s = 0.0, TURN_BACKOFF_S_FIRST
        while waited_s < TURN_WAIT_S:
            try:
                tenure = await self._lease.try_acquire()
            except ArcoError:
                return None
            if tenure is not None:
                return tenure
            await self._clock.sleep(pause_s)
            waited_s, pause_s = waited_s + pause_s, min(pause_s * 2, TURN_BACKOFF_S_MAX)
        return None

    async def _give_back(self, tenure: Tenure) -> None:
        try:
            await self._lease.release(tenure)
        except ArcoError:
            return  # it expires by itself
