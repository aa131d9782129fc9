"""The fold on Spark, on demand: a session is opened when there is something to fold, and not before.

Most looks at a ledger find nothing new. They cost a few requests, and no JVM.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from arco.fold.spark_fold import SparkFold
from arco.fold.spark_session import Session, SparkSettings, open_session
from arco.fold.spark_threads import opened
from arco.fold.work import Folded, StateFile
from arco.kernel.scope import Scope
from arco.storage.keys import Head

# The JVM of such a session only hands out tasks: it need not become fast, it needs to be there soon.
LIGHT = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@dataclass(slots=True)
class OnDemand:
    """Executes the fold of one workspace. `root` and `options` are the lake's."""

    settings: SparkSettings
    root: str
    options: Mapping[str, str]
    scope: Scope
    starting: Callable[[], None] = lambda: None
    _opening: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _session: Session | None = field(init=False, default=None)
    _fold: SparkFold | None = field(init=False, default=None)

    async def fold(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        return await (await self._work()).fold(head, segments, into)

    async def merge(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        return await (await self._work()).merge(head, files, into)

    def close(self) -> None:
        """Stop the session, if this opened one."""
        if self._fold is not None:
            self._fold.close()
        if self._session is not None:
            self._session.stop()

    async def _work(self) -> SparkFold:
        async with self._opening:
            if self._fold is None:
                self.starting()
                # Tasks go through the store: Spark itself need not reach the lake, and no connector is fetched for it.
                light = replace(self.settings, conf={**LIGHT, **self.settings.conf})
                self._session = await opened(partial(open_session, light))
                self._fold = SparkFold(self._session, self.root, self.options, self.scope)
            return self._fold
