"""Folding for whoever is asked to: the command, a run at its end, a server. What all of them set up in the same way."""

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from arco.catalog.workspace import Workspace
from arco.fold.folding import Folding, Settings
from arco.fold.following import Following
from arco.fold.heads import Heads
from arco.fold.passes import Pass
from arco.fold.receipt_events import ReceiptEvents
from arco.fold.spark_demand import OnDemand
from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import SparkSettings
from arco.kernel.errors import ArcoError
from arco.kernel.limits import READY_WORKSPACES_MAX
from arco.kernel.retention import Retention
from arco.kernel.scope import Scope
from arco.storage.workspaces import workspaces
from arco.surface.http.server_state import ServerState

log = logging.getLogger("arco.fold")

# The JVM of a fold's own session only hands out tasks: it need not become fast, it needs to be there soon.
_LIGHT = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def own_session(name: str, master: str = "local[*]") -> SparkSettings:
    """The Spark of whoever only folds."""
    return SparkSettings(master, name, _LIGHT, log_file=Path(tempfile.gettempdir()) / "arco-fold-spark.log")


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake as any process of this machine opens it."""

    place: str
    options: Mapping[str, str]
    retention: Retention = field(default_factory=Retention)


@asynccontextmanager
async def folding_of(
    parts: Workspace, lake: Lake, home: SparkHome, settings: Settings | None = None
) -> AsyncIterator[Folding]:
    """Whoever folds a workspace. Spark is started if there is something to fold, and stopped by whoever has the home."""
    reach_s = lake.retention.reach_s
    heads = Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy, reach_s=reach_s)
    receipts = ReceiptEvents(heads.store, parts.scope, parts.files.find, parts.clock, parts.entropy)
    work = OnDemand(home, lake.place, lake.options, parts.scope)
    try:
        yield Folding(heads, work, settings, receipts=receipts)
    finally:
        work.close()


class ServerFolds:
    """The folds of a server: one for each workspace of its root, in one Spark session."""

    def __init__(self, state: ServerState, lake: Lake, home: SparkHome, every_s: float) -> None:
        self._state = state
        self._lake = lake
        self._home = home
        self._every_s = every_s
        self._following: dict[Scope, Following] = {}
        self._tasks: dict[Scope | None, asyncio.Task[None]] = {}

    def start(self) -> None:
        self._state.wake_fold = self.wake
        self._tasks[None] = asyncio.create_task(self._watch())

    def wake(self, scope: Scope) -> None:
        """There is something new in a workspace."""
        if scope in self._following:
            self._following[scope].wake()
        elif scope not in self._tasks:
            self._tasks[scope] = asyncio.create_task(self._follow(scope))

    async def stop(self) -> None:
        """Leave what is being folded: nothing of it is published, and the next fold does it again."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.wait(self._tasks.values())
        await self._home.stop()

    async def _watch(self) -> None:
        """Workspaces come into being while a server runs."""
        while True:
            try:
                for scope in await workspaces(self._state.store, READY_WORKSPACES_MAX):
                    if scope not in self._tasks:
                        self.wake(scope)
            except ArcoError as error:
                log.warning("the fold found no workspaces: %s", error.one_line())
            await self._state.clock.sleep(self._every_s)

    async def _follow(self, scope: Scope) -> None:
        async with folding_of(self._state.catalog(scope).parts, self._lake, self._home) as folding:
            following = self._following[scope] = Following(folding, self._every_s, lambda done: _log(scope, done))
            await following.go_on()


def _log(scope: Scope, done: Pass | ArcoError) -> None:
    if isinstance(done, ArcoError):
        log.warning("fold of %s: %s", scope.warehouse, done.one_line())
        return
    for head, one in done.rounds.items():
        if one.segments:
            log.info(
                "fold of %s: %s, %d segments, %d events, %d refused",
                scope.warehouse,
                head.value,
                one.segments,
                one.events,
                one.refused,
            )
    for head, error in done.failed.items():
        log.warning("fold of %s: %s: %s", scope.warehouse, head.value, error.one_line())
