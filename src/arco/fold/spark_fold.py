"""The fold on Spark: segments to a delta, and files to a base. What is decided about heads and manifests is not known here.

    read and shred (once, kept) → for each table that was touched: join → sort → files

Tables that no event speaks of cost nothing. A small batch is joined in one task without a shuffle, a large one bucket by bucket.
History is not looked at: what a batch costs follows from the batch alone.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from arco.fold.segment_rows import WINDOW_ROWS, SegmentReport
from arco.fold.spark_files import Place, write_files
from arco.fold.spark_join import columns_ddl, joined
from arco.fold.spark_session import Session
from arco.fold.spark_shred import REPORT, Piece, shredded
from arco.fold.spark_threads import SparkThreads
from arco.fold.tables import tables_of
from arco.fold.vocabulary import BUCKETS, Table
from arco.fold.work import Folded, StateFile
from arco.kernel.errors import NotFound, Unavailable
from arco.kernel.ids import clip
from arco.kernel.scope import Scope
from arco.storage.keys import Head
from arco.storage.roots import Root, parse_root

T = TypeVar("T")

_TASKS_PER_CORE = 4
_CORES_UNKNOWN = 4


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much goes into one task and one file."""

    rows_per_part: int = 250_000
    base_file_bytes: int = 64 * 1024 * 1024
    rows_per_file: int = 1_000_000


@dataclass(slots=True)
class SparkFold:
    """Executes the fold of one workspace in a session. `root` and `options` are the lake's, as the executors open it."""

    session: Session
    root: str
    options: Mapping[str, str]
    scope: Scope
    sync: bool = True
    sizes: Sizes = field(default_factory=Sizes)
    tables_at_once: int = 2
    _threads: SparkThreads = field(init=False)

    def __post_init__(self) -> None:
        self._threads = SparkThreads(self.session, self.tables_at_once)

    def close(self) -> None:
        """Let go of the threads. The session is its maker's to stop."""
        self._threads.close()

    async def fold(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        """Read segments by their names, join what their events contribute, write one delta."""
        if not segments:
            return Folded((), 0)
        batch = await self._call(head, into, self._shredded, head, segments)
        try:
            touched = [table for table in tables_of(head) if batch.rows[table.name]]
            made = await asyncio.gather(*(self._call(head, into, self._delta, batch, table, into) for table in touched))
        finally:
            batch.frame.unpersist()
        return batch.folded([file for files in made for file in files])

    async def merge(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        """Join files of one head, base and deltas alike, into a new base."""
        given = [(table, [file for file in files if file.table == table.name]) for table in tables_of(head)]
        made = await asyncio.gather(
            *(self._call(head, into, self._base, table, some, into) for table, some in given if some)
        )
        return tuple(file for some in made for file in some)

    async def _call(self, head: Head, into: str, work: Callable[..., T], *arguments: object) -> T:
        """Something that waits for Spark, on a thread."""
        try:
            return await self._threads.call(
                f"arco-fold-{into}", f"fold {head}", partial(work, *arguments), progressed=lambda _: None
            )
        except PySparkException as error:
            raise Unavailable(f"Spark could not fold {head}: {clip(str(error), 300)}", hint="fold again") from error

    def _shredded(self, head: Head, segments: Sequence[str]) -> "_Batch":
        spark, place = self.session.spark, self._place()
        pieces = [Piece(segment) for segment in segments]
        frame = shredded(spark, head, pieces, place, self._parts(len(pieces))).persist(StorageLevel.MEMORY_AND_DISK)
        reports = _reports(frame)
        gone = [report.segment for report in reports if report.missing]
        if gone:
            frame.unpersist()
            raise NotFound(f"{gone[0]} is no longer there", hint="look again which segments there are")
        more = [
            Piece(report.segment, start)
            for report in reports
            for start in range(WINDOW_ROWS, report.rows_in_all, WINDOW_ROWS)
        ]
        batch = _Batch(frame, reports)
        if more:
            # Not kept: it is large by nature, and few segments have it.
            batch.extra = shredded(spark, head, more, place, self._parts(len(more)))
        return batch

    def _delta(self, batch: "_Batch", table: Table, into: str) -> list[StateFile]:
        parts = min(BUCKETS, -(-batch.rows[table.name] // self.sizes.rows_per_part))
        rows = joined(table, batch.contributions(table), parts)
        return write_files(rows, table, self._place(), into, rows_per_file=self.sizes.rows_per_file)

    def _base(self, table: Table, files: Sequence[StateFile], into: str) -> list[StateFile]:
        root = parse_root(self.root)
        paths = [f"{_spark_root(root)}/{file.key}" for file in files]
        # Names are taken as they are: a folder of the root may have characters that a pattern is made of.
        reader = self.session.spark.read.schema(columns_ddl(table)).option("__globPaths__", "false")
        size = sum(file.bytes for file in files)
        parts = max(1, min(BUCKETS, -(-size // self.sizes.base_file_bytes)))
        made = write_files(
            joined(table, reader.parquet(*paths), parts), table, self._place(), into, rows_per_file=self.sizes.rows_per_file
        )
        first = min((file.first_position for file in files if file.first_position), default=None)
        last = max((file.last_position for file in files if file.last_position), default=None)
        return [msgspec.structs.replace(file, first_position=first, last_position=last) for file in made]

    def _place(self) -> Place:
        return Place(self.root, dict(self.options), self.scope, sync=self.sync)

    def _parts(self, pieces: int) -> int:
        """Tasks for some segments: enough to keep every core busy to the end, and one for each at most."""
        cores = _CORES_UNKNOWN if self.session.is_connect else self.session.spark.sparkContext.defaultParallelism
        return max(1, min(pieces, cores * _TASKS_PER_CORE))


@dataclass(slots=True)
class _Batch:
    """Segments that were read and shredded: kept rows, and what was said of them."""

    frame: DataFrame
    reports: list[SegmentReport]
    extra: DataFrame | None = None
    rows: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for report in self.reports:
            self.rows.update(report.rows)
            # What did not fit into the first window is of any of the tables: each is asked for its share.
            if report.rows_in_all > WINDOW_ROWS:
                self.rows.update(dict.fromkeys(report.rows, report.rows_in_all - WINDOW_ROWS))

    def contributions(self, table: Table) -> DataFrame:
        frames = [self.frame] if self.extra is None else [self.frame, self.extra]
        rows = [one.where(f.col(table.name).isNotNull()).select(f.inline(table.name)) for one in frames]
        return rows[0] if len(rows) == 1 else rows[0].union(rows[1])

    def folded(self, files: Sequence[StateFile]) -> Folded:
        first = min((one.first_position for one in self.reports if one.first_position), default=None)
        last = max((one.last_position for one in self.reports if one.last_position), default=None)
        return Folded(
            tuple(msgspec.structs.replace(file, first_position=first, last_position=last) for file in files),
            sum(one.events for one in self.reports),
            tuple(refused for one in self.reports for refused in one.refused),
            tuple((one.writer_id, one.writer_seq) for one in self.reports if one.writer_id is not None),
        )


def _reports(frame: DataFrame) -> list[SegmentReport]:
    return [msgspec.json.decode(row[REPORT], type=SegmentReport) for row in frame.select(REPORT).collect()]


def _spark_root(root: Root) -> str:
    """The root as Spark's file systems call it."""
    return f"file://{Path(root.path).absolute()}" if root.kind == "file" else str(root)
