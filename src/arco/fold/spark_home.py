"""One Spark session for everything that a process does with a lake: opened when it is first needed, stopped by whoever made this.

A run and the fold after it share it: starting Spark takes longer than folding a run. Of a cluster it is first asked what its
executors have, so that what will not work is said at the start and not at the end.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from arco.fold.spark_executors import notes_about
from arco.fold.spark_session import Progress, Session, SparkSettings, open_session
from arco.fold.spark_threads import LOOK_S, SparkThreads, opened, stopped
from arco.kernel.limits import SPARK_EXECUTORS_LATE_S

_ASKING = "arco-executors"


@dataclass(slots=True)
class SparkHome:
    """`root` and `options` are those of a lake that Spark itself must reach. `starting` is told before Spark starts.

    `told` hears, in a line each, what people should know before anything runs.
    """

    settings: SparkSettings
    root: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    starting: Callable[[], None] = lambda: None
    told: Callable[[str], None] = lambda _: None
    _opening: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _session: Session | None = field(init=False, default=None)

    @property
    def is_open(self) -> bool:
        return self._session is not None

    async def session(self) -> Session:
        """The session. Whoever is cancelled meanwhile leaves none behind."""
        async with self._opening:
            if self._session is None:
                self.starting()
                session = await opened(partial(open_session, self.settings, self.root, self.options))
                try:
                    await self._introduced(session)
                except BaseException:
                    await stopped(session)
                    raise
                self._session = session
            return self._session

    async def stop(self) -> None:
        """Stop the session, if this opened one. The next use opens another."""
        session, self._session = self._session, None
        if session is not None:
            await stopped(session)

    async def _introduced(self, session: Session) -> None:
        """Say what there is to say of a session. Executors of this process need not be asked."""
        for note in session.notes:
            self.told(note)
        if self.settings.is_local or not session.ours:
            return
        threads = SparkThreads(session, 1)
        late = _Late(self.told, self.settings.place.shown)
        try:
            for note in await threads.call(_ASKING, "what executors have", partial(notes_about, session, self.root), late):
                self.told(note)
        finally:
            threads.close()


@dataclass(slots=True)
class _Late:
    """Says once that no executor has taken a task. It may still come: some clusters grow when they are asked."""

    told: Callable[[str], None]
    master: str
    looks: int = 0

    def __call__(self, found: Progress | None) -> None:
        self.looks += 1
        if self.looks * LOOK_S == SPARK_EXECUTORS_LATE_S and found is not None and not found.tasks_done:
            self.told(
                f"no executor of {self.master} has taken a task for {SPARK_EXECUTORS_LATE_S:.0f} s: see whether it has workers"
                " with room for spark.executor.memory and spark.executor.cores, and whether they reach this machine"
            )
