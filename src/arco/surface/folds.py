"""Folding for whoever is asked to: the command, for one workspace or all of a root, and a run at its end."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from arco.catalog.telling import Teller
from arco.catalog.workspace import Workspace
from arco.fold.folding import Folding, Settings
from arco.fold.following import Following
from arco.fold.heads import Heads
from arco.fold.passes import Pass, fold_pass
from arco.fold.spark_demand import OnDemand
from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import SparkSettings
from arco.kernel.clock import Clock
from arco.kernel.errors import ArcoError
from arco.kernel.limits import WORKSPACES_LISTED_MAX
from arco.kernel.retention import Retention
from arco.kernel.scope import Scope
from arco.servo.deploy.deploying import Deployments
from arco.servo.deploy.telling import tell_all
from arco.storage.port import ObjectStore
from arco.storage.workspaces import workspaces
from arco.surface.receipts import receipts_of

Told = Callable[[Scope | None, Pass | ArcoError], None]
"""Hears what became of a pass over a workspace; None: which workspaces there are could not be found out."""

# The JVM of a fold's own session only hands out tasks: it need not become fast, it needs to be there soon. The first compiler
# alone has 48 MB for its code unless told otherwise: whoever follows for long fills them, and everything is interpreted then.
_LIGHT = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
}


def own_session(name: str, master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSettings:
    """The Spark of whoever only folds: here, unless somebody says otherwise."""
    log = Path(tempfile.gettempdir()) / "arco-fold-spark.log"
    return SparkSettings(master or "local[*]", name, {**_LIGHT, **(conf or {})}, log_file=log)


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake as any process of this machine opens it. `lists`: whether what is new in it is found by listing."""

    place: str
    options: Mapping[str, str]
    retention: Retention = field(default_factory=Retention)
    lists: bool = True


@asynccontextmanager
async def folding_of(
    parts: Workspace, lake: Lake, home: SparkHome, settings: Settings | None = None
) -> AsyncIterator[Folding]:
    """Whoever folds a workspace. Spark is started if there is something to fold, and stopped by whoever has the home."""
    reach_s = lake.retention.reach_s
    heads = Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy, reach_s=reach_s)
    names = Teller(heads.store, parts.scope, parts.clock, parts.entropy)
    deployments = Deployments(heads.store, parts.scope, parts.clock, parts.entropy)

    async def tell() -> Sequence[str]:
        # Who does not list finds neither their heads nor what is told of them.
        if settings is None or settings.listing:
            await tell_all(deployments)
        return await names.tell()

    work = OnDemand(home, lake.place, lake.options, parts.scope)
    try:
        yield Folding(heads, work, settings, receipts=receipts_of(parts), tell=tell)
    finally:
        work.close()


class EveryFold:
    """The folds of a root: one for each of its workspaces, in one Spark session."""

    def __init__(
        self, root: "FoldedRoot", home: SparkHome, every_s: float, told: Told, settings: Settings | None = None
    ) -> None:
        self._root = root
        self._home = home
        self._every_s = every_s
        self._told = told
        self._settings = settings
        self._following: dict[Scope, Following] = {}
        self._tasks: dict[Scope, asyncio.Task[None]] = {}

    def wake(self, scope: Scope) -> None:
        """There is something new in a workspace."""
        if scope in self._following:
            self._following[scope].wake()
        elif scope not in self._tasks:
            self._tasks[scope] = asyncio.create_task(self._follow(scope))

    async def go_on(self) -> None:
        """Until cancelled. Workspaces come into being meanwhile. What is being folded is left: the next fold does it again."""
        try:
            while True:
                try:
                    for scope in await workspaces(self._root.store, WORKSPACES_LISTED_MAX):
                        if scope not in self._tasks:
                            self.wake(scope)
                except ArcoError as error:
                    self._told(None, error)
                await self._root.clock.sleep(self._every_s)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def once(self) -> AsyncIterator[tuple[Scope, Pass]]:
        """One pass over each workspace that is there."""
        for scope in await workspaces(self._root.store, WORKSPACES_LISTED_MAX):
            async with folding_of(self._root.parts(scope), self._root.lake, self._home, self._settings) as folding:
                yield scope, await fold_pass(folding)

    async def _follow(self, scope: Scope) -> None:
        async with folding_of(self._root.parts(scope), self._root.lake, self._home, self._settings) as folding:
            following = self._following[scope] = Following(folding, self._every_s, lambda done: self._told(scope, done))
            await following.go_on()


@dataclass(frozen=True, slots=True)
class FoldedRoot:
    """A root as whoever folds all of it sees it."""

    store: ObjectStore
    clock: Clock
    lake: Lake
    parts: Callable[[Scope], Workspace]
