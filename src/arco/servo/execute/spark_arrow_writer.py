"""Files written by PyArrow on the executors, with ids at every depth: for schemas that Spark's own writer cannot tag.

Every task writes its rows to files of its own and says at its end which. Only what tasks that Spark counts as done have said
is taken: a task that was repeated, or run twice, leaves files that nobody names. Needs this package and PyArrow on the
executors.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from arco.iceberg.shape import JsonObject
from arco.kernel.entropy import SystemEntropy
from arco.servo.execute.data_files import NewFile
from arco.servo.execute.partition_text import NULL_NUMBER, parse_value
from arco.servo.execute.table_state import pyiceberg_schema
from arco.servo.execute.target import Target

_GROUP_BYTES = 64 * 1024 * 1024
_GROUP_ROWS = 1_000_000


class _Report(msgspec.Struct, frozen=True):
    """One file of a task."""

    location: str
    size_bytes: int
    partition: list[str]


def write_with_arrow(rows: DataFrame, target: Target, hidden: list[str], kinds: list[str], io: FileIO) -> list[NewFile]:
    """Write rows that are sorted by their hidden columns; the files of the tasks that counted."""
    task = _Task(arrow_schema(target.schema), target.directory, hidden, target.rows_per_file, io)

    def written(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return task.run(batches)

    written.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    # Not deterministic: Spark may neither drop it nor run it twice for one row.
    write_udf = f.arrow_udf(written, "string").asNondeterministic()  # type: ignore[attr-defined]
    columns = [f.col(f"`{name.replace('`', '``')}`") for name in rows.columns]
    done = rows.select(write_udf(f.struct(*columns)).alias("report")).agg(f.collect_list("report").alias("reports"))
    reports = [one for text in done.collect()[0]["reports"] for one in msgspec.json.decode(text, type=list[_Report])]
    files = [
        NewFile(
            one.location,
            one.size_bytes,
            tuple(parse_value(kind, text) for kind, text in zip(kinds, one.partition, strict=True)),
        )
        for one in reports
    ]
    return sorted(files, key=lambda file: file.location)


def arrow_schema(schema: JsonObject) -> pa.Schema:
    """The schema of the files: with every id, and nothing required (what is required is checked in the footers)."""
    return schema_to_pyarrow(pyiceberg_schema({**schema, "fields": [_optional(field) for field in schema["fields"]]}))


def _optional(field: JsonObject) -> JsonObject:
    return {**field, "required": False, "type": _optional_type(field["type"])}


def _optional_type(kind: Any) -> Any:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        return {**kind, "fields": [_optional(field) for field in kind["fields"]]}
    if kind["type"] == "list":
        return {**kind, "element-required": False, "element": _optional_type(kind["element"])}
    key, value = _optional_type(kind["key"]), _optional_type(kind["value"])
    return {**kind, "value-required": False, "key": key, "value": value}


class _Task:
    """What one Spark task does. It travels to the executors, so it holds only what can be sent."""

    def __init__(self, schema: pa.Schema, directory: str, hidden: list[str], rows_per_file: int | None, io: FileIO) -> None:
        self._schema = schema
        self._directory = directory
        self._hidden = hidden
        self._rows_per_file = rows_per_file
        self._io = io

    def run(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """As many values as rows, all null but one: the report. So the last rows are held back until the files are closed."""
        files = _Files(self._schema, self._directory, self._rows_per_file, self._io)
        held = 0
        for batch in batches:
            if held:
                yield pa.nulls(held, pa.string())
            held = len(batch)
            for partition, part in self._parts(batch):
                files.add(partition, part)
        reports = files.close()
        if held:
            yield pa.array([msgspec.json.encode(reports).decode(), *([None] * (held - 1))], pa.string())

    def _parts(self, batch: pa.Array) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
        """The rows of each partition, as runs: rows come sorted."""
        columns = dict(zip((field.name for field in batch.type), batch.flatten(), strict=True))
        data = pa.table({field.name: columns[field.name] for field in self._schema}).cast(self._schema)
        if not self._hidden:
            yield (), data
            return
        keys = pc.binary_join_element_wise(*(_text(columns[name]) for name in self._hidden), "/")
        runs = pc.run_end_encode(keys)
        start = 0
        for end, key in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
            yield tuple(key.split("/")), data.slice(start, end - start)
            start = end


def _text(hidden: pa.Array) -> pa.Array:
    """The values of a hidden column as the names of folders are."""
    return hidden if pa.types.is_string(hidden.type) else pc.fill_null(hidden.cast(pa.string()), NULL_NUMBER)


class _Files:
    """The files of one task, one open at a time."""

    def __init__(self, schema: pa.Schema, directory: str, rows_per_file: int | None, io: FileIO) -> None:
        self._schema = schema
        self._directory = directory
        self._rows_per_file = rows_per_file
        self._io = io
        self._token = SystemEntropy().token_bytes(16).hex()
        self._reports: list[_Report] = []
        self._partition: tuple[str, ...] | None = None
        self._location = ""
        self._stream: Any = None
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._rows = 0

    def add(self, partition: tuple[str, ...], rows: pa.Table) -> None:
        is_full = self._rows_per_file is not None and self._rows >= self._rows_per_file
        if partition != self._partition or is_full:
            self._finish()
            self._begin(partition)
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> list[_Report]:
        self._finish()
        return self._reports

    def _begin(self, partition: tuple[str, ...]) -> None:
        folder = "".join(f"__p{place}={text}/" for place, text in enumerate(partition))
        self._location = f"{self._directory}/{folder}{self._token}-{len(self._reports):05}.parquet"
        self._partition, self._rows = partition, 0
        self._stream = self._io.new_output(self._location).create()
        self._writer = pq.ParquetWriter(self._stream, self._schema, compression="zstd", store_decimal_as_integer=True)

    def _flush(self) -> None:
        if self._waiting and self._writer is not None:
            # One row group for many batches: a group for each would be tiny.
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=_GROUP_ROWS)
            self._waiting, self._waiting_bytes = [], 0

    def _finish(self) -> None:
        if self._writer is None or self._partition is None:
            return
        self._flush()
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        self._reports.append(_Report(self._location, size, list(self._partition)))
        self._writer, self._partition = None, None
