"""Tasks computed in processes of their own: each attempt has one, with a Spark session and keys for its own places alone.

The worker keeps the root's keys, pins, finds the table, decides and publishes; the process runs the asset's code. What it says is
data to be judged (`believing.py`). What must never enter: an asset's code, and the worker's own keys in anything that is sent.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pyiceberg.io import FileIO

from arco.fold.spark_session import SparkSettings
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import BrokenInvariant, InvalidInput
from arco.servo.execute.believing import Believing, computed_of
from arco.servo.execute.computing import Assignment, Computed, Listener, Rooms, Stored
from arco.servo.execute.task_messages import FORMAT, Begin, Files, Made, PinnedTable, ProjectSource, SparkPart, Store
from arco.servo.execute.task_process import COMMAND, SPARK_LOG, TaskProcess, new_scratch
from arco.servo.plan.facts import AssetFacts, PlanningSnapshot


class KeysOfTasks(Protocol):
    """Makes the options of the store for one attempt: they open what it reads and its own directory, for a while."""

    async def options(self, given: Assignment, rooms: Rooms) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """How tasks of a worker are kept apart. `environment` is all that their processes find in theirs."""

    source: ProjectSource
    keys: KeysOfTasks
    environment: Mapping[str, str]
    command: tuple[str, ...] = COMMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolated:
    """Computes attempts of one run in processes. `io` is the worker's own access to files."""

    how: Isolation
    code_version: str
    parameters: Mapping[str, str]
    snapshot: PlanningSnapshot
    spark: SparkSettings
    root: str
    io: FileIO
    wants_rooms: bool = field(default=True, init=False)

    @asynccontextmanager
    async def begun(self, given: Assignment, rooms: Rooms | None, told: Listener) -> AsyncIterator["_Computation"]:
        if rooms is None:
            raise BrokenInvariant("a task was to get keys for an output that has no place")
        told.progress({"phase": "starting"})
        options = await self.how.keys.options(given, rooms)
        scratch = new_scratch()
        try:
            process = await TaskProcess.started(self.how.environment, scratch, told, self.how.command)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        try:
            told.say(f"process {process.pid}")
            await process.send(self._begin(given, options, scratch))
            yield _Computation(process, given, self.io)
        finally:
            await process.end()

    def _begin(self, given: Assignment, options: Mapping[str, str], scratch: Path) -> Begin:
        spark = self.spark
        return Begin(
            format=FORMAT,
            project=self.how.source,
            code_version=self.code_version,
            spark=SparkPart(
                master=spark.master,
                name=spark.name,
                conf=dict(spark.conf),
                jars_folder=None if spark.jars_folder is None else str(spark.jars_folder),
                log_file=str(scratch / SPARK_LOG),
            ),
            root=self.root,
            options=dict(options),
            parameters=dict(self.parameters),
            at_ms=given.at_ms,
            facts=self._facts(given),
            run=str(given.run),
            task=given.task,
            attempt=given.attempt,
            materialization=str(given.materialization_id),
            tables={
                one.given.parameter: PinnedTable(
                    snapshot_id=one.pinned.snapshot_id, table=None if one.table is None else one.table.document
                )
                for one in given.tables
            },
        )

    def _facts(self, given: Assignment) -> dict[str, AssetFacts]:
        """What is only known at run time of the assets that matter: the values of their dynamic dimensions."""
        keys = {str(given.asset.key), *(str(one.given.asset) for one in given.tables)}
        return {key: AssetFacts(dynamic=found) for key in sorted(keys) if (found := self.snapshot.of(key).dynamic)}


@dataclass(slots=True)
class _Computation:
    process: TaskProcess
    given: Assignment
    io: FileIO
    _done: Computed | None = field(default=None, init=False)

    async def computed(self) -> Computed:
        said = await self.process.answer()
        if not isinstance(said, Made):
            raise InvalidInput("the process of the task is not believed: it wrote files before it was told where")
        self._done = computed_of(said, self.given)
        return self._done

    async def stored(self, table: TableMetadata, aside: TableMetadata | None) -> Stored:
        if self._done is None:
            raise BrokenInvariant("an output was to be stored before it was computed")
        await self.process.send(Store(table=table.document, aside=None if aside is None else aside.document))
        said = await self.process.answer()
        if not isinstance(said, Files):
            raise InvalidInput("the process of the task is not believed: it was asked for files and told of columns")
        # Before its files are looked at: it must not change them while they are.
        await self.process.end()
        return await asyncio.to_thread(Believing(self.given, self._done, self.io).stored, said, table, aside)
