"""What one task of the fold does: segments to joined files of a head, or files of a table to those of a new base.

A task works in Python and Arrow alone and sees nothing that it is not given, so it is the same wherever it runs. What it holds is
bounded: rows become columns some thousands at a time, and columns become a file when there are enough of them. Files of two
tasks, and two files of one, may both have a row of a key: a delta is any set of files, and their join is what was folded.
What must never enter: Spark, heads and manifests.
"""

import gc
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arco.fold.arrow_joins import joined
from arco.fold.arrow_rows import arrow_table, conformed
from arco.fold.contributions import Contribution
from arco.fold.segment_rows import SegmentReport, shred_segment
from arco.fold.tables import tables_of
from arco.fold.task_files import Lake, Place
from arco.fold.vocabulary import BUCKET, Row, Table
from arco.fold.work import StateFile
from arco.storage.keys import Head

_COLUMNS_AT_ROWS = 4_096
_RUN_BYTES_MAX = 128 * 1024 * 1024
_GARBAGE_AFTER = 50_000


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a task says at its end. `gone` and `damaged` are names of objects that it could not read."""

    files: tuple[StateFile, ...] = ()
    reports: tuple[SegmentReport, ...] = ()
    gone: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


class Task(Protocol):
    def run(self) -> Said: ...


@dataclass(frozen=True, slots=True)
class FoldTask:
    """Segments to files of the tables that their events speak of; another file of a table every `rows_max` rows."""

    head: Head
    segments: tuple[str, ...]
    place: Place
    rows_max: int

    def run(self) -> Said:
        reports, gone = [], []
        with self.place.opened() as lake, _rarely_collected():
            run = _Run(lake, {table.name: table for table in tables_of(self.head)}, self.rows_max)
            for name, data in lake.read(self.segments):
                if data is None:
                    gone.append(name)
                else:
                    reports.append(shred_segment(self.head, name, data, run.add))
            if not gone:
                run.write()
            return Said(files=tuple(lake.files), reports=tuple(reports), gone=tuple(gone))


@dataclass(slots=True)
class _Run:
    """Contributions on their way into files: rows, then columns, then joined."""

    lake: Lake
    tables: Mapping[str, Table]
    rows_max: int
    _rows: defaultdict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    _columns: defaultdict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))
    _waiting: int = 0
    _held: int = 0
    _held_bytes: int = 0

    def add(self, contributed: Sequence[Contribution]) -> None:
        for table, row in contributed:
            self._rows[table.name].append(row)
        self._waiting += len(contributed)
        if self._waiting >= _COLUMNS_AT_ROWS:
            self._to_columns()
            if self._held >= self.rows_max or self._held_bytes >= _RUN_BYTES_MAX:
                self.write()

    def write(self) -> None:
        """One file for each table that has rows."""
        self._to_columns()
        for name in sorted(self._columns):
            table = self.tables[name]
            self.lake.write(table, joined(table, pa.concat_tables(self._columns[name])))
        self._columns.clear()
        self._held = self._held_bytes = 0

    def _to_columns(self) -> None:
        for name, rows in self._rows.items():
            columns = arrow_table(self.tables[name], rows)
            self._columns[name].append(columns)
            self._held_bytes += columns.nbytes
        self._held += self._waiting
        self._rows.clear()
        self._waiting = 0


@dataclass(frozen=True, slots=True)
class MergeTask:
    """The rows of some buckets, from files of one table, as one file. `buckets` are the first and the one after the last.

    `files` are names with their checksums.
    """

    table: Table
    files: Mapping[str, str]
    buckets: tuple[int, int]
    place: Place

    def run(self) -> Said:
        with self.place.opened() as lake:
            found, gone, damaged = [], [], []
            for key, data in lake.read(tuple(self.files)):
                if data is None:
                    gone.append(key)
                elif hashlib.sha256(data).hexdigest() != self.files[key]:
                    damaged.append(key)
                else:
                    found.append(conformed(self.table, _rows_in(data, *self.buckets)))
            if gone or damaged:
                return Said(gone=tuple(gone), damaged=tuple(damaged))
            rows = joined(self.table, pa.concat_tables(found))
            if rows.num_rows:
                lake.write(self.table, rows)
            return Said(files=tuple(lake.files))


def _rows_in(data: bytes, first: int, end: int) -> pa.Table:
    """The rows of some buckets: groups of rows that have none of them are not decoded."""
    file = pq.ParquetFile(pa.BufferReader(data))
    column = file.schema_arrow.get_field_index(BUCKET)
    groups = []
    for number in range(file.num_row_groups):
        has = file.metadata.row_group(number).column(column).statistics
        if has.min < end and has.max >= first:
            groups.append(number)
    rows = file.read_row_groups(groups, use_threads=False)
    buckets = rows.column(BUCKET)
    return rows.filter(pc.and_(pc.greater_equal(buckets, first), pc.less(buckets, end)))


@contextmanager
def _rarely_collected() -> Iterator[None]:
    """Rows are many small objects without cycles. Looking for some after every few hundred takes a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(_GARBAGE_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
