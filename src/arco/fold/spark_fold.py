"""The fold on Spark: segments to a delta, and files to a base. What is decided about heads and manifests is not known here.

    read and shred (one job, kept) → for each table that was touched: join → sort → files (one job for all)

Tables that no event speaks of cost nothing. A small batch has one task a table without a shuffle, a large one several by bucket.
History is not looked at: what a batch costs follows from the batch alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
_AT_ONCE = 2  # a fold and a merge


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
    _threads: SparkThreads = field(init=False)

    def __post_init__(self) -> None:
        self._threads = SparkThreads(self.session, _AT_ONCE)

    def close(self) -> None:
        """Let go of the threads. The session is its maker's to stop."""
        self._threads.close()

    async def fold(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        """Read segments by their names, join what their events contribute, write one delta."""
        if not segments:
            return Folded((), 0)
        return await self._call(head, into, self._folded, head, segments, into)

    async def merge(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        """Join files of one head, base and deltas alike, into a new base."""
        return await self._call(head, into, self._merged, head, files, into)

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

    def _folded(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        batch = self._shredded(head, segments)
        try:
            touched = [table for table in tables_of(head) if batch.rows[table.name]]
            return batch.folded(self._written([(table, self._delta(batch, table)) for table in touched], into))
        finally:
            batch.frame.unpersist()

    def _delta(self, batch: "_Batch", table: Table) -> DataFrame:
        parts = min(BUCKETS, -(-batch.rows[table.name] // self.sizes.rows_per_part))
        return joined(table, batch.contributions(table), parts)

    def _merged(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        given = {table: [file for file in files if file.table == table.name] for table in tables_of(head)}
        made = self._written([(table, self._base(table, some)) for table, some in given.items() if some], into)
        bounds = {table.name: _positions(some) for table, some in given.items()}
        return tuple(msgspec.structs.replace(file, **bounds[file.table]) for file in made)

    def _base(self, table: Table, files: Sequence[StateFile]) -> DataFrame:
        root = _spark_root(parse_root(self.root))
        # Names are taken as they are: a folder of the root may have characters that a pattern is made of.
        reader = self.session.spark.read.schema(columns_ddl(table)).option("__globPaths__", "false")
        size = sum(file.bytes for file in files)
        parts = max(1, min(BUCKETS, -(-size // self.sizes.base_file_bytes)))
        return joined(table, reader.parquet(*(f"{root}/{file.key}" for file in files)), parts)

    def _written(self, states: Sequence[tuple[Table, DataFrame]], into: str) -> list[StateFile]:
        if not states:
            return []
        return write_files(states, self._place(), into, rows_per_file=self.sizes.rows_per_file)

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
        bounds = _positions(self.reports)
        return Folded(
            tuple(msgspec.structs.replace(file, **bounds) for file in files),
            sum(one.events for one in self.reports),
            tuple(refused for one in self.reports for refused in one.refused),
            tuple((one.writer_id, one.writer_seq) for one in self.reports if one.writer_id is not None),
        )


def _reports(frame: DataFrame) -> list[SegmentReport]:
    return [msgspec.json.decode(row[REPORT], type=SegmentReport) for row in frame.select(REPORT).collect()]


def _positions(said: Iterable[SegmentReport | StateFile]) -> dict[str, str | None]:
    """The first and the last position of some segments or files."""
    known = list(said)
    return {
        "first_position": min((one.first_position for one in known if one.first_position), default=None),
        "last_position": max((one.last_position for one in known if one.last_position), default=None),
    }


def _spark_root(root: Root) -> str:
    """The root as Spark's file systems call it."""
    return f"file://{Path(root.path).absolute()}" if root.kind == "file" else str(root)
