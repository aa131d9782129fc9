"""A table as a DataFrame, pinned to a snapshot: Spark reads the files itself, by field id, without any Iceberg jar.

Renamed, added and widened columns are right because ids are; rows that were deleted are taken out by an anti-join on file and
row number. Everything that the manifests say was decided in `scans.py`; here it becomes a plan of Spark.
"""

import re
from collections.abc import Iterable
from functools import reduce
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io import FileIO
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as f

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.schemas import columns_by_id
from arco.quality.schemas import quoted
from arco.servo.execute.file_access import read_bytes
from arco.servo.execute.name_mapping import Names
from arco.servo.execute.scans import EVERYTHING, Scan, ScannedFile, plan_changes, plan_scan
from arco.servo.execute.spark_filters import spark_filter
from arco.servo.execute.spark_types import spark_schema, spark_type
from arco.servo.execute.values import arrow_values

_PATTERN = re.compile(r"[{}\[\]*?\\]")
_POSITION_DELETES = types.StructType().add("file_path", types.StringType()).add("pos", types.LongType())
_PATH = "__arco_path"
_ROW = "__arco_row"


def read_table(
    spark: SparkSession,
    table: TableMetadata,
    io: FileIO,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    columns: Iterable[str] | None = None,
    where: BooleanExpression = EVERYTHING,
) -> DataFrame:
    """The rows of a snapshot (or of a ref) that match `where`. Only files that may hold such rows are opened."""
    scan = plan_scan(table, io, snapshot_id=snapshot_id, ref=ref, columns_wanted=columns, where=where)
    return read_scan(spark, scan, io)


def read_changes(
    spark: SparkSession,
    table: TableMetadata,
    io: FileIO,
    *,
    since: int,
    until: int,
    columns: Iterable[str] | None = None,
    where: BooleanExpression = EVERYTHING,
) -> DataFrame | str:
    """The rows appended after snapshot `since`, up to `until`; or, as a text, why only a full read will do."""
    scan = plan_changes(table, io, since=since, until=until, columns_wanted=columns, where=where)
    return scan if isinstance(scan, str) else read_scan(spark, scan, io)


def read_scan(spark: SparkSession, scan: Scan, io: FileIO, *, file_column: str | None = None) -> DataFrame:
    """The rows of a planned scan; with the file each row is in, where a column is named for that."""
    parts = [_read_group(spark, scan, io, names, files, file_column) for names, files in scan.groups()]
    # Without the ids in the columns' metadata: they say how these files are read, and would travel into other outputs.
    wanted = [f.col(quoted((name,))).alias(name, metadata={}) for name in scan.columns]
    if not parts:
        return spark.createDataFrame([], spark_schema(scan.schema, ids=False)).select(*wanted)
    rows = reduce(DataFrame.union, parts)
    if not isinstance(scan.where, AlwaysTrue):
        rows = rows.where(spark_filter(scan.where, scan.state.schema))
    return rows.select(*wanted, *([] if file_column is None else [f.col(file_column)]))


def _read_group(
    spark: SparkSession,
    scan: Scan,
    io: FileIO,
    names: Names | None,
    files: tuple[ScannedFile, ...],
    file_column: str | None,
) -> DataFrame:
    schema = spark_schema(scan.schema) if names is None else spark_schema(names.schema, ids=False)
    rows = open_files(spark, schema, (file.location for file in files))
    if files[0].has_deletes or files[0].constants or file_column is not None:
        rows = rows.select("*", _file_path().alias(_PATH), f.col("_metadata.row_index").alias(_ROW))
    if files[0].has_deletes:
        rows = rows.join(_deleted(spark, scan, io), on=[_PATH, _ROW], how="left_anti")
    if names is not None:
        rows = _renamed(rows, scan, names)
    if files[0].constants:
        rows = _filled(spark, rows, scan, files)
    columns = [f.col(quoted((field["name"],))) for field in scan.schema["fields"]]
    return rows.select(*columns, *([] if file_column is None else [f.col(_PATH).alias(file_column)]))


def open_files(spark: SparkSession, schema: types.StructType, locations: Iterable[str]) -> DataFrame:
    """Files by their names."""
    return spark.read.schema(schema).parquet(*map(as_named, locations))


def as_named(location: str) -> str:
    """A file as Spark takes it for that one: a { or a * in its name is not a pattern."""
    return _PATTERN.sub(r"\\\g<0>", location)


def _file_path() -> Column:
    """The file of a row in one spelling. Spark reports it percent-encoded; a plus stands for itself."""
    path = f.col("_metadata.file_path")
    return _spelled(f.url_decode(f.regexp_replace(path, r"\+", "%2B")))


def _spelled(path: Column) -> Column:
    """`file:/a`, `file:///a` and `/a` are one file; so are `s3a://b` and `s3://b` (as `file_access.plain_path`)."""
    return f.regexp_replace(f.regexp_replace(path, r"^(?:file:)?/+", "file:///"), r"^s3[an]:", "s3:")


def _deleted(spark: SparkSession, scan: Scan, io: FileIO) -> DataFrame:
    """The rows that are gone: file and row number."""
    parts = []
    if scan.position_deletes:
        parts.append(open_files(spark, _POSITION_DELETES, scan.position_deletes))
    if scan.deletion_vectors:
        parts.append(spark.createDataFrame(_vectors(io, scan.deletion_vectors)))
    rows = reduce(DataFrame.union, parts)
    return rows.select(_spelled(f.col("file_path")).alias(_PATH), f.col("pos").alias(_ROW))


def _vectors(io: FileIO, locations: Iterable[str]) -> pa.Table:
    tables = []
    for location in locations:
        for vector in deletion_vectors_from_puffin_file(PuffinFile(read_bytes(io, location))):
            rows = pa.chunked_array(vector.to_vector().chunks, pa.int64())
            path = pa.array([vector.referenced_data_file], pa.string()).take(pa.array([0] * len(rows), pa.int32()))
            tables.append(pa.table({"file_path": path, "pos": rows}))
    return pa.concat_tables(tables)


def _renamed(rows: DataFrame, scan: Scan, names: Names) -> DataFrame:
    """Under the table's names, at every depth: a cast between structs goes by place, and the places are the same."""
    wanted = spark_schema(scan.schema)
    found = names.schema["fields"]
    renamed = [
        f.col(quoted((inside["name"],))).cast(field.dataType).alias(field.name)
        for inside, field in zip(found, wanted.fields, strict=True)
    ]
    return rows.select(*renamed, *(name for name in (_PATH, _ROW) if name in rows.columns))


def _filled(spark: SparkSession, rows: DataFrame, scan: Scan, files: tuple[ScannedFile, ...]) -> DataFrame:
    """Columns that a file lacks get the value of its partition."""
    by_id = columns_by_id(scan.schema)
    sources = sorted({source for file in files for source, _ in file.constants})
    names = {source: f"__arco_constant_{source}" for source in sources}
    table: dict[str, Any] = {"__arco_file": pa.array([file.location for file in files])}
    kinds = types.StructType([types.StructField("__arco_file", types.StringType())])
    for source, name in names.items():
        table[name] = arrow_values(by_id[source].type, [dict(file.constants).get(source) for file in files])
        # Said in full: by itself Spark takes a timestamp without zone for one with.
        kinds = kinds.add(name, spark_type(by_id[source].type, by_id[source].name))
    known = spark.createDataFrame(pa.table(table), kinds).withColumn("__arco_file", _spelled(f.col("__arco_file")))
    joined = rows.join(f.broadcast(known), on=rows[_PATH] == known["__arco_file"], how="left")
    by_name = {by_id[source].name: name for source, name in names.items()}
    filled = [
        f.coalesce(f.col(quoted((field["name"],))), f.col(by_name[field["name"]])).alias(field["name"])
        if field["name"] in by_name
        else f.col(quoted((field["name"],)))
        for field in scan.schema["fields"]
    ]
    return joined.select(*filled, _PATH)
