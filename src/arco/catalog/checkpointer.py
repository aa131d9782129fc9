"""The checkpointer of a server: within a second of a commit, what it changed is in Parquet.

It waits a moment, so that a burst of commits makes one file, and folds the tail. Nothing depends on it: the tail is as good
as the files, and a committer that finds it long folds it itself. So whatever fails here is tried again after the next commit.
"""

import asyncio
import logging

from arco.catalog.checkpoint import Offload, checkpoint
from arco.catalog.tier1 import Tier1
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError
from arco.kernel.limits import CHECKPOINT_DELAY_S

log = logging.getLogger("arco.catalog")


class Checkpointer:
    """Folds the tail of one workspace in the background, while there is one."""

    def __init__(self, tier1: Tier1, clock: Clock, entropy: Entropy, offload: Offload) -> None:
        self._tier1 = tier1
        self._clock = clock
        self._entropy = entropy
        self._offload = offload
        self._running: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """There may be something to fold."""
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while self._tier1.manifest.tail:
            await self._clock.sleep(CHECKPOINT_DELAY_S)
            try:
                await checkpoint(self._tier1, self._clock, self._entropy, self._offload)
            except ArcoError as error:
                log.warning("checkpoint of %s put off: %s", self._tier1.scope.prefix, error.one_line())
                return
