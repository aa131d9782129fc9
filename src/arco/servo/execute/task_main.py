"""The process of one task: `python -m arco.servo.execute.task_main READ WRITE`, two ends of pipes.

It is told what to compute and gets keys for that and nothing else; it computes in a Spark session of its own, says where the
files are, and is ended by the worker. When the pipe ends, the worker is gone, and so is this process with all that it started.

What must never enter: the catalog, a commit, and keys from anywhere but the pipe.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arco.fold.spark_session import SparkSettings
from arco.fold.spark_threads import SparkThreads
from arco.iceberg.metadata import TableMetadata
from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import BrokenInvariant, Conflict
from arco.kernel.ids import MaterializationId, RunId, clip
from arco.kernel.limits import TASK_LOG_LINE_CHARS_MAX
from arco.kernel.own_memory import keep_to_ourselves
from arco.quality.gates import policy
from arco.servo.execute.computing import Assignment, Computed, Stored
from arco.servo.execute.file_access import file_io
from arco.servo.execute.in_session import InSession
from arco.servo.execute.pinned import Pinned, TableInput
from arco.servo.execute.snapshots import Rewrite
from arco.servo.execute.spark_failures import said_of
from arco.servo.execute.task_messages import (
    Begin,
    Failed,
    Files,
    FromTask,
    Made,
    Progress,
    Said,
    Store,
    ToTask,
    framed,
    read_frame,
    to_task,
)
from arco.servo.execute.task_session import session_of
from arco.servo.execute.tracebacks import traced
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.plan.parameters import overridden
from arco.servo.plan.staleness import World
from arco.servo.plan.versions import Versions
from arco.servo.sdk.definitions import InputKind
from arco.servo.sdk.project import load_project

_CHATTER = ("py4j",)


@dataclass(frozen=True, slots=True)
class Mouth:
    """What this process says, from whatever thread."""

    pipe: int
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def send(self, message: FromTask) -> None:
        data = framed(message)
        with self._turn:
            while data:
                data = data[os.write(self.pipe, data) :]

    # As a `Listener`

    def progress(self, facts: Mapping[str, Any]) -> None:
        self.send(Progress({word: one if isinstance(one, int) else str(one) for word, one in facts.items()}))

    def say(self, text: str, level: str = "info") -> None:
        self.send(Said(level, clip(text, TASK_LOG_LINE_CHARS_MAX)))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Everything that is logged here is this attempt's; what is printed, the worker reads itself."""
        yield


class _Heard(logging.Handler):
    def __init__(self, mouth: Mouth) -> None:
        super().__init__(logging.INFO)
        self._mouth = mouth

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(_CHATTER):
            self._mouth.say(f"{record.name}: {record.getMessage()}", record.levelname.lower())


class _Ears:
    """What this process is told. When nobody is left to tell it anything, it ends with everything that it started."""

    def __init__(self) -> None:
        self._told: asyncio.Queue[ToTask] = asyncio.Queue()

    async def listen(self, pipe: int) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", buffering=0)
        )
        try:
            while True:
                self._told.put_nowait(to_task(await read_frame(reader)))
        except asyncio.IncompleteReadError:
            os.killpg(os.getpgid(0), signal.SIGKILL)

    async def begin(self) -> Begin:
        found = await self._told.get()
        if not isinstance(found, Begin):
            raise BrokenInvariant("a task was told where to write before it was told what")
        return found

    async def store(self) -> Store:
        found = await self._told.get()
        if not isinstance(found, Store):
            raise BrokenInvariant("a task was told to begin twice")
        return found


def assignment(told: Begin) -> tuple[Assignment, Path]:
    """What is to be computed, by the code that is here: it must be the code that the worker has."""
    source = told.project
    project = load_project(
        Path(source.folder), name=source.name, namespace=source.namespace, assets=source.assets, gate=policy(source.gate)
    )
    if project.code_version != told.code_version:
        raise Conflict(
            f"the code is {project.code_version} now, and the worker has loaded {told.code_version}",
            hint="start the worker again",
        )
    world = World(overridden(project.graph, told.parameters), PlanningSnapshot.taken(told.at_ms, told.facts))
    asset = world.graph.assets[AssetKey.parse(told.task.asset)]
    planned = {one.parameter: one for one in told.task.inputs}
    inputs = [(one, planned[one.parameter]) for one in asset.inputs]
    tables = []
    for one, what in inputs:
        if one.kind is InputKind.FILES or one.asset is None:
            continue
        partitioning, fixed = world.partitioning(one.asset), told.tables[one.parameter]
        # Which versions that snapshot has is for whoever publishes.
        none = Versions.of(len(partitioning.axes), [])
        pinned = Pinned(what, partitioning.read(what.partitions), fixed.snapshot_id, none)
        table = None if fixed.table is None else TableMetadata(fixed.table)
        tables.append(TableInput(one, pinned, partitioning, table, what.since))
    found = Assignment(
        run=RunId(told.run),
        task=told.task,
        attempt=told.attempt,
        materialization_id=MaterializationId(told.materialization),
        asset=asset,
        partitioning=world.partitioning(asset.key),
        tables=tuple(tables),
        files=tuple(one for one in inputs if one[0].kind is InputKind.FILES),
        at_ms=told.at_ms,
    )
    return found, project.folder


def made(done: Computed) -> Made:
    return Made(
        columns=done.schema,
        aside_columns=done.aside_schema,
        external=list(done.external),
        full_reads=dict(done.full_reads),
    )


def files(stored: Stored) -> Files:
    new = [one.file_path for one in stored.new.files]
    change = stored.change
    return Files(
        new=new,
        kept=[one.file_path for one in stored.everything.files if one.file_path not in set(new)],
        aside=None if stored.aside is None else [one.file_path for one in stored.aside.files],
        removed=sorted(change.files) if isinstance(change, Rewrite) else None,
        results=[one.document() for one in stored.results],
    )


async def work(ears: _Ears, mouth: Mouth) -> None:
    """Compute, be told where, write."""
    told = await ears.begin()
    given, folder = await asyncio.to_thread(assignment, told)
    spark = told.spark
    settings = SparkSettings(
        spark.master,
        spark.name,
        spark.conf,
        None if spark.jars_folder is None else Path(spark.jars_folder),
        (folder,),
        Path(spark.log_file),
    )
    mouth.progress({"phase": "starting"})
    threads = SparkThreads(await session_of(settings, told.root, told.options), 1)
    compute = InSession(threads, file_io(told.options), folder, told.root)
    async with compute.begun(given, None, mouth) as computation:
        mouth.send(made(await computation.computed()))
        where = await ears.store()
        aside = None if where.aside is None else TableMetadata(where.aside)
        mouth.send(files(await computation.stored(TableMetadata(where.table), aside)))


async def main(read: int, write: int) -> None:
    """Until the worker ends this process. Whatever goes wrong is said in the words of a run's log."""
    mouth, ears = Mouth(write), _Ears()
    logging.getLogger().addHandler(_Heard(mouth))
    logging.getLogger().setLevel(logging.INFO)
    listening = asyncio.ensure_future(ears.listen(read))
    try:
        await work(ears, mouth)
    except Exception as error:  # noqa: BLE001 - whatever the asset's code raises is how the attempt ended
        for line in traced(error):
            mouth.say(line, "error")
        mouth.send(Failed(said_of(error)))
    await listening


if __name__ == "__main__":
    keep_to_ourselves()  # tasks beside this one run as the same user, and this one has keys of its own
    ends = [int(one) for one in sys.argv[1:3]]
    for one in ends:
        os.set_inheritable(one, False)
    asyncio.run(main(*ends))
