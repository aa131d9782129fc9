"""A stored lake, copied and opened by a process that knows nothing else: what the tests of lakes share."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arco.catalog.catalog import Catalog
from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.tables import TABLES
from arco.kernel.entropy import Entropy, SeededEntropy
from arco.kernel.ids import RunId
from arco.read.library import CURRENT, Binding, Library
from arco.read.reader import Reader, Rows
from arco.servo.deploy.deploying import Deployments
from arco.servo.schedule.starting import Started, open_run
from arco.storage.local import LocalStore
from tests.compat.lake_story import Known, folding
from tests.compat.story import BASE_URI, SCOPE
from tests.stand_ins.hand_clock import HandClock


@dataclass(frozen=True, slots=True)
class Lake:
    """A copy of a lake, to be opened and changed."""

    folder: Path
    known: Known

    def one(self, part: str) -> Path:
        """The first object whose name has a part in it."""
        return min(path for path in self.folder.rglob("*") if path.is_file() and part in path.as_posix())


@dataclass(frozen=True, slots=True)
class Process:
    """Everything that a process has of a lake."""

    store: LocalStore
    clock: HandClock
    entropy: Entropy
    known: Known
    folder: Path

    @property
    def heads(self) -> Heads:
        return Heads(self.store, SCOPE, self.clock, self.entropy)

    @property
    def catalog(self) -> Catalog:
        return Catalog.open(self.store, BASE_URI, SCOPE, self.clock, self.entropy)

    @property
    def deployments(self) -> Deployments:
        return Deployments(self.store, SCOPE, self.clock, self.entropy)

    def folding(self) -> Folding:
        return folding(self.store, self.clock, self.entropy)

    async def run(self, name: str) -> Started:
        return await open_run(self.store, SCOPE, RunId(self.known.runs[name]), self.clock, self.entropy)

    async def reader(self, binding: Binding = CURRENT) -> Reader:
        return (await Library(self.heads, folder=self.folder).open(binding)).reader

    async def everything(self) -> dict[str, Rows]:
        """All rows of all tables."""
        reader = await self.reader()
        return {
            table.name: await reader.rows(f"SELECT * FROM {await reader.relation(table)} ORDER BY ALL") for table in TABLES
        }


@asynccontextmanager
async def opened(lake: Lake) -> AsyncIterator[Process]:
    clock, entropy = HandClock(lake.known.at_ms + 1000), SeededEntropy("reader")
    store = LocalStore(str(lake.folder), clock, entropy)
    try:
        yield Process(store, clock, entropy, lake.known, lake.folder)
    finally:
        await store.close()


def with_lake(lake: Lake, work: Callable[[Process], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with opened(lake) as process:
            return await work(process)

    return asyncio.run(run())
