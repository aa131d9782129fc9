"""Segments to contributions on the executors: one row a segment, with its report and an array of rows for each table.

Tasks read segments through the store, some side by side: nothing is listed or looked at by the driver, and a bucket needs no
connector for it. A task holds few segments and the rows of one at a time. Needs this package on the executors.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from arco.fold.arrow_rows import arrow_schema, arrow_struct
from arco.fold.segment_rows import SegmentReport, Shredded, shred_segment
from arco.fold.spark_files import Place
from arco.fold.spark_join import columns_ddl
from arco.fold.tables import tables_of
from arco.fold.vocabulary import Table
from arco.storage.keys import Head
from arco.storage.port import ObjectStore

REPORT = "report"
_READS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows of a segment from one of them on."""

    segment: str
    start: int = 0


def shredded(spark: SparkSession, head: Head, pieces: Sequence[Piece], place: Place, parts: int) -> DataFrame:
    """A row for each piece: `report`, and a column for each table of the head with the rows that it contributes."""
    task = _Task(head, tuple(pieces), place)

    def shred(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return task.run(batches)

    shred.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    fields = [f"{table.name}: array<struct<{columns_ddl(table, ': ')}>>" for table in tables_of(head)]
    shred_udf = f.arrow_udf(shred, f"struct<{REPORT}: string, {', '.join(fields)}>")  # type: ignore[attr-defined]
    return spark.range(0, len(pieces), 1, parts).select(shred_udf("id").alias("one")).select("one.*")


@dataclass(frozen=True, slots=True)
class _Task:
    """What one Spark task does. It travels to the executors, so it holds only what can be sent."""

    head: Head
    pieces: tuple[Piece, ...]
    place: Place

    def run(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        with asyncio.Runner() as runner:
            store = self.place.store()
            try:
                for batch in batches:
                    pieces = [self.pieces[number] for number in batch.to_pylist()]
                    for at in range(0, len(pieces), _READS_AT_ONCE):
                        some = pieces[at : at + _READS_AT_ONCE]
                        for piece, data in zip(some, runner.run(_read(store, some)), strict=True):
                            yield self._one(piece, data)
            finally:
                runner.run(store.close())

    def _one(self, piece: Piece, data: bytes | None) -> pa.StructArray:
        if data is None:
            found = Shredded({}, SegmentReport(segment=piece.segment, missing=True))
        else:
            found = shred_segment(self.head, piece.segment, data, piece.start)
        tables = tables_of(self.head)
        columns = [pa.array([msgspec.json.encode(found.report).decode()], pa.string())]
        for table in tables:
            rows = found.rows.get(table.name)
            columns.append(pa.nulls(1, _list_type(table)) if rows is None else _one_list(arrow_struct(table, rows)))
        return pa.StructArray.from_arrays(columns, names=[REPORT, *(table.name for table in tables)])


async def _read(store: ObjectStore, pieces: Sequence[Piece]) -> list[bytes | None]:
    found = await asyncio.gather(*(store.get(piece.segment) for piece in pieces))
    return [None if one is None else one.data for one in found]


def _list_type(table: Table) -> pa.DataType:
    return pa.list_(pa.struct(list(arrow_schema(table))))


def _one_list(values: pa.StructArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
