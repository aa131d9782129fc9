"""One attempt of one built-in task: files of a table written anew by Spark, or its manifests merged, and one commit of it.

The commit asserts the snapshot that was looked at. Others may append meanwhile; whoever deletes rows or removes a file that is
being rewritten has the task fail, and nothing is changed. That the same rows are there before and after is counted before the
commit is sent. What must never enter: deciding what is worth to be rewritten (`rewriting.py`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.io import FileIO
from pyspark.sql import DataFrame

from arco.catalog.catalog import Catalog
from arco.catalog.model import Levels
from arco.fold.spark_threads import SparkThreads
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import BrokenInvariant, Fenced, PartitionsTouched
from arco.quality.gates import Action
from arco.servo.execute.data_files import Written
from arco.servo.execute.file_access import plain_path
from arco.servo.execute.publish import Publication, Publisher
from arco.servo.execute.rewriting import (
    MANIFEST_BYTES_DEFAULT,
    MANIFEST_BYTES_PROPERTY,
    refuse_other_formats,
    target_bytes,
)
from arco.servo.execute.scans import EVERYTHING, Scan, plan_scan
from arco.servo.execute.snapshots import Change, Compact, MergeManifests
from arco.servo.execute.spark_failures import said_of
from arco.servo.execute.spark_read import read_scan
from arco.servo.execute.spark_transforms import parts_of
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Distribution, Target
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.executor import Attempt, Commit, Done, Failed, Outcome, Output
from arco.servo.schedule.publish_keys import snapshot_id

OPERATION = "publish"
FILES, MANIFESTS = "files", "manifests"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceBench:
    """What every attempt works with. `tables` says which table a task's asset is."""

    catalog: Catalog
    io: FileIO
    threads: SparkThreads
    tables: Mapping[str, tuple[Levels, str]]


class MaintenanceExecutor:
    """Runs built-in tasks in one Spark session."""

    def __init__(self, bench: MaintenanceBench) -> None:
        self._bench = bench
        self._publisher = Publisher(bench.catalog)

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        try:
            return await self._go(task, attempt)
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is how the attempt ended
            return Failed(said_of(error))

    async def _go(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        bench, wanted = self._bench, task.inputs[0]
        levels, name = bench.tables[task.asset]
        _, base = await bench.catalog.tables.load(levels, name)
        table = base.metadata
        refuse_other_formats(table)
        written, change = Written(), _merge_of(table)
        if wanted.kind == FILES:
            files = frozenset(plain_path(one) for one in wanted.files)
            written = await self._in_spark(task, attempt, lambda: self._rewritten(table, files, attempt))
            change = Compact(files)
        announced = snapshot_id(attempt.run, attempt.task, attempt.number)
        ticket = await attempt.stage(
            Output(
                action=Action.CONTINUE,
                commit=Commit(OPERATION, table_uuid=table.table_uuid, snapshot_id=announced),
                written={"rows": written.rows, "bytes": written.size_bytes, "files": len(written.files)},
            )
        )
        published = await self._publisher.publish(
            Publication(
                levels=levels,
                name=name,
                base=table,
                files=written.files,
                change=change,
                run_id=str(attempt.run),
                task_id=task.id,
                materialization_id=attempt.materialization_id,
                attempt=attempt.number,
                at_ms=ticket.at_ms,
                snapshot_id=announced,
                facts={"arco.maintenance": wanted.kind},
            )
        )
        return Done(published.snapshot_id)

    async def _in_spark(self, task: PlannedTask, attempt: Attempt, work: Callable[[], Written]) -> Written:
        group = f"{attempt.run}/{task.id}/{attempt.number}"

        def progressed(found: Any) -> None:
            counts = {} if found is None else {"tasks_done": found.tasks_done, "tasks": found.tasks}
            attempt.progress({"phase": "rewriting", **counts})

        return await self._bench.threads.call(group, f"{task.asset}: rewriting", work, progressed)

    def _rewritten(self, table: TableMetadata, files: frozenset[str], attempt: Attempt) -> Written:
        """The rows of some files in new ones, counted."""
        io, spark = self._bench.io, self._bench.threads.session.spark
        everything = plan_scan(table, io)
        chosen = tuple(one for one in everything.files if plain_path(one.location) in files)
        if len(chosen) < len(files):
            raise PartitionsTouched("files that were to be rewritten are no longer in the table")
        scan = replace(everything, files=chosen, where=EVERYTHING)
        target = Target.of(table, attempt.materialization_id, attempt.number, Distribution.AS_IS)
        written = write(_brought_together(read_scan(spark, scan, io), scan, target, target_bytes(table)), target, io)
        before = self._rows_of(scan)
        if written.rows != before:
            raise BrokenInvariant(f"{before} rows were read and {written.rows} written: nothing was committed")
        return written

    def _rows_of(self, scan: Scan) -> int:
        """How many rows there are to be kept: manifests say it, where nothing was deleted."""
        whole = sum(one.described.record_count for one in scan.files if not one.has_deletes)
        rest = tuple(one for one in scan.files if one.has_deletes)
        if not rest:
            return whole
        return whole + read_scan(self._bench.threads.session.spark, replace(scan, files=rest), self._bench.io).count()


def _merge_of(table: TableMetadata) -> Change:
    return MergeManifests(target_bytes(table, MANIFEST_BYTES_PROPERTY, MANIFEST_BYTES_DEFAULT))


def _brought_together(rows: DataFrame, scan: Scan, target: Target, file_bytes: int) -> DataFrame:
    """The rows of a partition in one place; what is too much for one file is cut by the number of its rows."""
    parts = parts_of(target.spec, target.schema)
    if parts:
        return rows.repartition(*(part.value for part in parts))
    size = sum(one.described.file_size_in_bytes for one in scan.files)
    return rows.coalesce(max(1, math.ceil(size / file_bytes)))
