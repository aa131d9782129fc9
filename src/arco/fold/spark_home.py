"""One Spark session for everything that a process does with a lake: opened when it is first needed, stopped by whoever made this.

A run and the fold after it share it: starting Spark takes longer than folding a run.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from arco.fold.spark_session import Session, SparkSettings, open_session
from arco.fold.spark_threads import opened, stopped


@dataclass(slots=True)
class SparkHome:
    """`root` and `options` are those of a lake that Spark itself must reach. `starting` is told before Spark starts."""

    settings: SparkSettings
    root: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    starting: Callable[[], None] = lambda: None
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
                self._session = await opened(partial(open_session, self.settings, self.root, self.options))
            return self._session

    async def stop(self) -> None:
        """Stop the session, if this opened one. The next use opens another."""
        session, self._session = self._session, None
        if session is not None:
            await stopped(session)
