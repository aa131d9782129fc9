"""The Spark half of one attempt: run the asset's code on its inputs, write what it made, check what was written.

It works in whatever session and with whatever keys it is given, in a worker's own process or in one that was started for this
task alone. What must never enter: finding tables, deciding about a failed check, and any commit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyiceberg.io import FileIO
from pyspark.sql import DataFrame, SparkSession

from arco.fold.spark_session import Session
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import BrokenInvariant
from arco.servo.execute.computing import Assignment, Computed, Stored
from arco.servo.execute.data_files import Written
from arco.servo.execute.outputs import refuse_other_columns
from arco.servo.execute.replacing import appended, own_rows, replaces_all
from arco.servo.execute.snapshots import Change, ReplaceAll
from arco.servo.execute.spark_code import computed
from arco.servo.execute.spark_guard import Guard, is_worth_watching
from arco.servo.execute.spark_inputs import Frames, frames
from arco.servo.execute.spark_own_rows import refuse_outside, without_what_lies_between
from arco.servo.execute.spark_plans import refuse_undeclared, tables_and_files_read
from arco.servo.execute.spark_quarantine import Split, Stamp, split
from arco.servo.execute.spark_read import open_files
from arco.servo.execute.spark_rewrite import merge_by_key, replace_matching
from arco.servo.execute.spark_types import iceberg_schema, spark_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from arco.servo.sdk.definitions import WriteMode
from arco.servo.sdk.run_context import RunContext


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where tasks are computed: a session, access to the same files, the project's folder, and the lake's root."""

    session: Session
    io: FileIO
    folder: Path
    root: str


@dataclass(slots=True)
class SparkTask:
    """One attempt. `tell` hears how far it is, on the thread that works."""

    given: Assignment
    at: Workplace
    tell: Callable[[Mapping[str, Any]], None]
    _frames: Frames | None = field(default=None, init=False)
    _split: Split | None = field(default=None, init=False)
    _session: SparkSession | None = field(default=None, init=False)

    def compute(self) -> Computed:
        """Run the code. Rows are computed already only if some are set aside."""
        given, asset = self.given, self.given.asset
        spark = self._spark()
        found = self._frames = frames(spark, self.at.io, asset, given.tables, given.files, self.at.folder)
        rows = computed(asset, found.inputs, self._context(spark))
        schema = iceberg_schema(rows.schema)
        refuse_other_columns(asset, schema)
        rows = without_what_lies_between(rows, schema, given.partitioning, given.selected, str(asset.key))
        declared = {path for one in found.inputs.values() for path in tables_and_files_read(one).paths}
        external = refuse_undeclared(rows, asset=asset, root=self.at.root, declared=declared)
        sides = self._split = split(asset.checks, rows, Stamp(str(given.run), given.task.id, given.at_ms))
        aside = None if sides.bad is None else iceberg_schema(sides.bad.schema)
        return Computed(schema, aside, external, dict(found.full_reads))

    def store(self, table: TableMetadata, aside: TableMetadata | None) -> Stored:
        """Write what was computed, and check what was written."""
        if self._frames is None or self._split is None:
            raise BrokenInvariant("an output was to be stored before it was computed")
        given, found, sides, io = self.given, self._frames, self._split, self.at.io
        spark = self._spark()
        target = Target.of(table, given.materialization_id, given.attempt)
        guard = Guard(given.asset.checks, target.schema, logical_time_ms=given.at_ms, known=sides.results)
        good = sides.good
        new = write(guard.watch(good) if is_worth_watching(self._rows_expected(sides)) else good, target, io)
        kept = None
        if aside is not None and sides.bad is not None:
            kept = write(sides.bad, Target.of(aside, given.materialization_id, given.attempt), io)
        sides.verify(new.rows, 0 if kept is None else kept.rows)
        self.tell({"phase": "checking", "rows": new.rows})

        def read_back() -> DataFrame:
            if not new.files:
                return spark.createDataFrame([], spark_schema(target.schema, ids=False))
            return open_files(spark, spark_schema(target.schema), [one.file_path for one in new.files])

        results = guard.results(new, read_back, found.checked)
        everything, change = self._change(new, found, table, target)
        return Stored(new, everything, change, kept, results)

    def release(self) -> None:
        """Let go of what was kept for the second step."""
        if self._split is not None:
            self._split.release()

    def _spark(self) -> SparkSession:
        """The attempt's own: what its code registers or sets there, code that runs at the same time does not see."""
        if self._session is None:
            self._session = self.at.session.apart(self.given.asset.spark)
        return self._session

    def _context(self, spark: Any) -> RunContext:
        given = self.given
        return RunContext(
            run_id=str(given.run),
            asset=str(given.asset.key),
            partitioning=given.partitioning,
            selected=given.selected,
            params=given.asset.parameters,
            spark=spark,
            logical_time_ms=given.at_ms,
            attempt=given.attempt,
        )

    def _rows_expected(self, sides: Split) -> int | None:
        """Those that were counted, or else those of the last publishes; None while there was none."""
        return self.given.task.estimate.rows or None if sides.rows is None else sides.rows - sides.rows_aside

    def _change(self, new: Written, found: Frames, table: TableMetadata, target: Target) -> tuple[Written, Change]:
        """What the output does to the table, and the files that takes."""
        asset, spark, io = self.given.asset, self._spark(), self.at.io
        if replaces_all(asset, found.full_reads):
            return new, ReplaceAll()
        match asset.write.mode:
            case WriteMode.APPEND:
                refuse_outside(spark, table, new, own_rows(self.given, target.schema))
                return new, appended(asset)
            case WriteMode.MERGE:
                rows = own_rows(self.given, target.schema)
                refuse_outside(spark, table, new, rows)
                return merge_by_key(spark, table, io, new, asset.write.key, target, where=rows)
            case _:
                return replace_matching(spark, table, io, new, own_rows(self.given, target.schema), target)
