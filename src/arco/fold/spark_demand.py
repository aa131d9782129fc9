"""The fold on Spark, on demand: a session is asked for when there is something to fold, and not before.

Most looks at a ledger find nothing new. They cost a few requests, and no JVM.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arco.fold.spark_fold import SparkFold
from arco.fold.spark_home import SparkHome
from arco.fold.work import Folded, StateFile
from arco.kernel.scope import Scope
from arco.storage.keys import Head


@dataclass(slots=True)
class OnDemand:
    """Executes the fold of one workspace in the session of a home. `root` and `options` are the lake's."""

    home: SparkHome
    root: str
    options: Mapping[str, str]
    scope: Scope
    _fold: SparkFold | None = field(init=False, default=None)

    async def fold(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        return await (await self._work()).fold(head, segments, into)

    async def merge(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        return await (await self._work()).merge(head, files, into)

    def close(self) -> None:
        """Let go of the threads. The session is the home's to stop."""
        if self._fold is not None:
            self._fold.close()

    async def _work(self) -> SparkFold:
        session = await self.home.session()
        if self._fold is None:
            # Tasks go through the store: Spark itself need not reach the lake, and no connector is fetched for it.
            self._fold = SparkFold(session, self.root, self.options, self.scope)
        return self._fold
