"""Tasks computed in the Spark session of this process: all of them share it, its keys and this process's environment."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyiceberg.io import FileIO

from arco.fold.spark_threads import SparkThreads
from arco.iceberg.metadata import TableMetadata
from arco.servo.execute.computing import Assignment, Computed, Listener, Rooms, Stored
from arco.servo.execute.spark_task import SparkTask, Workplace


@dataclass(frozen=True, slots=True)
class InSession:
    """Computes with the session of some threads. Files are read and listed through `io`."""

    threads: SparkThreads
    io: FileIO
    folder: Path
    root: str
    wants_rooms: bool = field(default=False, init=False)

    @asynccontextmanager
    async def begun(self, given: Assignment, rooms: Rooms | None, told: Listener) -> AsyncIterator["_Computation"]:
        loop = asyncio.get_running_loop()

        def tell(facts: Mapping[str, Any]) -> None:
            """Progress from Spark's thread, said on the loop's own."""
            loop.call_soon_threadsafe(told.progress, facts)

        work = SparkTask(given, Workplace(self.threads.session, self.io, self.folder, self.root), tell)
        try:
            yield _Computation(self.threads, given, work, told)
        finally:
            work.release()


@dataclass(frozen=True, slots=True)
class _Computation:
    threads: SparkThreads
    given: Assignment
    work: SparkTask
    told: Listener

    async def computed(self) -> Computed:
        found: Computed = await self._in_spark("reading", self.work.compute)
        return found

    async def stored(self, table: TableMetadata, aside: TableMetadata | None) -> Stored:
        found: Stored = await self._in_spark("writing", lambda: self.work.store(table, aside))
        return found

    async def _in_spark(self, phase: str, work: Callable[[], Any]) -> Any:
        given = self.given
        group = f"{given.run}/{given.task.id}/{given.attempt}"

        def progressed(found: Any) -> None:
            counts = {} if found is None else {"tasks_done": found.tasks_done, "tasks": found.tasks}
            self.told.progress({"phase": phase, **counts})

        def logged() -> Any:
            with self.told.listening():
                return work()

        self.told.progress({"phase": phase})
        self.told.say(phase)
        return await self.threads.call(group, f"{given.asset.key}: {phase}", logged, progressed)
