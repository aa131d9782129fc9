"""Files of state, written by the tasks: each under a name of its own, measured and hashed as it is made.

A task says at its end which files it has written. Only what tasks that Spark counts as done have said is taken: a task that was
killed, repeated or run twice leaves files that nobody names. They go through the store like every object, so on a folder they are
on the disk before anybody can name them, and no bucket sees a rename. Needs this package on the executors.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from arco.fold.arrow_rows import arrow_schema
from arco.fold.vocabulary import BUCKET, Table
from arco.fold.work import StateFile
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.scope import Scope
from arco.storage.keys import FileName, StateFileKey, Word
from arco.storage.port import Absent, Landed, ObjectStore
from arco.storage.readback import put_settled
from arco.storage.roots import open_root

ROW_GROUP_ROWS = 50_000
"""What a browser reads at least of a file that has a row it wants."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where files go: the lake, and the words that open it on an executor."""

    root: str
    options: Mapping[str, str]
    scope: Scope
    sync: bool = True

    def store(self) -> ObjectStore:
        return open_root(self.root, self.options, SystemClock(), SystemEntropy(), sync=self.sync)

    def put(self, key: str, data: bytes) -> None:
        asyncio.run(self._put(key, data))

    async def _put(self, key: str, data: bytes) -> None:
        clock, entropy, store = SystemClock(), SystemEntropy(), self.store()
        try:
            outcome = await put_settled(store, key, data, Absent(), clock=clock, entropy=entropy)
        finally:
            await store.close()
        if not isinstance(outcome, Landed):
            raise OutcomeUnknown(f"{key} may not be stored: {outcome.reason}", hint="fold again")


def write_files(
    states: Sequence[tuple[Table, DataFrame]], place: Place, into: str, *, rows_per_file: int
) -> list[StateFile]:
    """Write rows that are sorted by bucket and key, of several tables in one job; the files of the tasks that counted."""
    written = [_written(rows, _Task(table, place, into, rows_per_file)) for table, rows in states]
    said = reduce(DataFrame.union, written).where("said is not null").collect()
    files = [file for row in said for file in msgspec.json.decode(row["said"], type=list[StateFile])]
    return sorted(files, key=lambda file: file.key)


def _written(rows: DataFrame, task: "_Task") -> DataFrame:
    """As many rows as are given, with what the task says in one of them."""

    def write(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return task.run(batches)

    write.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    # Not deterministic: Spark may neither drop it nor run it twice for one row.
    write_udf = f.arrow_udf(write, "string").asNondeterministic()  # type: ignore[attr-defined]
    return rows.select(write_udf(f.struct(*task.table.column_names)).alias("said"))


@dataclass(frozen=True, slots=True)
class _Task:
    """What one Spark task does. It travels to the executors, so it holds only what can be sent."""

    table: Table
    place: Place
    into: str
    rows_per_file: int

    def run(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """As many values as rows, all null but one: the report. So the last rows are held back until the files are stored."""
        files = _Files(self)
        held = 0
        for batch in batches:
            if held:
                yield pa.nulls(held, pa.string())
            held = len(batch)
            files.add(pa.Table.from_arrays(batch.flatten(), schema=arrow_schema(self.table)))
        made = files.close()
        if held:
            yield pa.array([msgspec.json.encode(made).decode(), *([None] * (held - 1))], pa.string())


class _Files:
    """The files of one task, one open at a time. A file ends between two buckets once it has enough rows."""

    def __init__(self, task: _Task) -> None:
        self._task = task
        self._schema = arrow_schema(task.table)
        self._token = SystemEntropy().token_bytes(8).hex()
        self._made: list[StateFile] = []
        self._open: _OpenFile | None = None

    def add(self, rows: pa.Table) -> None:
        while rows.num_rows:
            if self._open is None:
                self._open = _OpenFile(self._schema, self._task.table.key_names)
            end = self._end(self._open, rows)
            self._open.add(rows.slice(0, end))
            if end < rows.num_rows:
                self._finish(self._open)
                self._open = None
            rows = rows.slice(end)

    def close(self) -> list[StateFile]:
        if self._open is not None:
            self._finish(self._open)
        return self._made

    def _end(self, file: "_OpenFile", rows: pa.Table) -> int:
        """How many of the rows go into the open file: all, or those up to the end of the bucket that fills it."""
        room = self._task.rows_per_file - file.rows
        if room >= rows.num_rows:
            return int(rows.num_rows)
        bucket = file.last_bucket if room <= 0 else rows.column(BUCKET)[room - 1]
        later = pc.index(pc.greater(rows.column(BUCKET), bucket), value=True).as_py()
        return int(rows.num_rows) if later < 0 else int(later)

    def _finish(self, file: "_OpenFile") -> None:
        task = self._task
        data = file.close()
        name = FileName(f"{task.into}-{self._token}-{len(self._made):04}.parquet")
        key = str(StateFileKey(task.place.scope, task.table.head, Word(task.table.name), name))
        task.place.put(key, data)
        self._made.append(
            StateFile(
                table=task.table.name,
                key=key,
                checksum=hashlib.sha256(data).hexdigest(),
                rows=file.rows,
                bytes=len(data),
                buckets=tuple(sorted(file.buckets)),
                least=tuple(file.least[name] for name in task.table.key_names),
                greatest=tuple(file.greatest[name] for name in task.table.key_names),
            )
        )


class _OpenFile:
    """A file that is being made, in memory: state files are small."""

    def __init__(self, schema: pa.Schema, key: tuple[str, ...]) -> None:
        self._key = key
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd", store_schema=False)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self.rows = 0
        self.last_bucket: pa.Scalar | None = None
        self.buckets: set[int] = set()
        self.least: dict[str, Any] = {}
        self.greatest: dict[str, Any] = {}

    def add(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self.rows += rows.num_rows
        self.last_bucket = rows.column(BUCKET)[-1]
        if self._waiting_rows >= ROW_GROUP_ROWS:
            self._flush()

    def close(self) -> bytes:
        self._flush()
        self._writer.close()
        return bytes(self._sink.getvalue())

    def _flush(self) -> None:
        if not self._waiting:
            return
        group = pa.concat_tables(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        self.buckets.update(pc.unique(group.column(BUCKET)).to_pylist())
        for name in self._key:
            found = pc.min_max(group.column(name)).as_py()
            self.least[name] = min(self.least.get(name, found["min"]), found["min"])
            self.greatest[name] = max(self.greatest.get(name, found["max"]), found["max"])
        self._writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
