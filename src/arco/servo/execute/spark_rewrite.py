"""Rows that stay: what of a table's files has to be written again because whole files are replaced, never rows.

The new rows are on disk already when this is asked, so they are computed once and everything here agrees about their keys. Only
files that hold a row to be replaced are read and written anew; all others stay as they are.
"""

from collections.abc import Sequence
from dataclasses import replace

from pyiceberg.expressions import BooleanExpression
from pyiceberg.io import FileIO
from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as f

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.quality.schemas import quoted
from arco.servo.execute.data_files import Written
from arco.servo.execute.file_access import plain_path
from arco.servo.execute.scans import EVERYTHING, Scan, ScannedFile, columns_in, plan_scan, selected
from arco.servo.execute.snapshots import Matching, Replace, Rewrite
from arco.servo.execute.spark_filters import spark_filter
from arco.servo.execute.spark_own_rows import refuse_outside
from arco.servo.execute.spark_read import open_files, read_scan
from arco.servo.execute.spark_types import spark_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.table_state import state_of
from arco.servo.execute.target import Target, kept_beside

_FILE = "__arco_file"


def merge_by_key(
    spark: SparkSession,
    table: TableMetadata,
    io: FileIO,
    written: Written,
    key: Sequence[str],
    target: Target,
    *,
    ref: str | None = None,
    where: BooleanExpression = EVERYTHING,
) -> tuple[Written, Rewrite]:
    """The new rows instead of those with the same key: all files to add, and the change that adds them.

    Old rows are looked for among those that match `where`. Keys are equal if all their columns are; null equals null.
    """
    known = {field["name"] for field in table.current_schema["fields"]}
    missing = [name for name in key if name not in known]
    if missing or not key:
        raise InvalidInput(f"the table has no key column {clip(', '.join(missing))!r}", hint="merge by columns it has")
    keys = open_files(spark, _fields(target.schema, key), (file.file_path for file in written.files))
    scan = plan_scan(table, io, ref=ref, where=where)
    if not written.files or not scan.files:
        return written, Rewrite(where, frozenset())
    affected = _files_with(spark, scan, io, keys, key)
    kept = read_scan(spark, replace(scan, files=_among(scan, affected), where=EVERYTHING), io)
    kept = kept.join(keys, on=_same(kept, keys, key), how="left_anti")
    return _together(written, kept, target, io, affected), Rewrite(where, affected)


def replace_matching(
    spark: SparkSession,
    table: TableMetadata,
    io: FileIO,
    written: Written,
    where: BooleanExpression,
    target: Target,
    *,
    ref: str | None = None,
) -> tuple[Written, Replace | Rewrite]:
    """The new rows instead of all that match, on any layout: files that hold other rows too are written anew with those."""
    is_proved = refuse_outside(spark, table, written, where)
    scan = plan_scan(table, io, ref=ref, where=where)
    wanted = Matching(where, state_of(table, ref=ref).table)
    mixed = frozenset(plain_path(file.location) for file in scan.files if not wanted.only(file.described))
    if not mixed and is_proved:
        return written, Replace(where)
    kept = read_scan(spark, replace(scan, files=_among(scan, mixed), where=EVERYTHING), io)
    kept = kept.where(~f.coalesce(spark_filter(where, scan.state.schema), f.lit(False)))
    everything = frozenset(plain_path(file.location) for file in scan.files)
    return _together(written, kept, target, io, mixed), Rewrite(where, everything)


def _together(written: Written, kept: DataFrame, target: Target, io: FileIO, affected: frozenset[str]) -> Written:
    if not affected:
        return written
    again = write(kept, replace(target, directory=kept_beside(target.directory)), io)
    return Written((*written.files, *again.files), written.rows + again.rows, written.size_bytes + again.size_bytes)


def _files_with(spark: SparkSession, scan: Scan, io: FileIO, keys: DataFrame, key: Sequence[str]) -> frozenset[str]:
    """The files that hold a row of one of the keys."""
    looked_at = {*key, *columns_in(scan.where, scan.state.schema)}
    only_key = replace(scan, columns=tuple(key), schema=selected(scan.schema, looked_at))
    old = read_scan(spark, only_key, io, file_column=_FILE)
    found = old.join(keys, on=_same(old, keys, key), how="left_semi").select(_FILE).distinct().collect()
    return frozenset(row[0] for row in found)


def _among(scan: Scan, wanted: frozenset[str]) -> tuple[ScannedFile, ...]:
    return tuple(file for file in scan.files if plain_path(file.location) in wanted)


def _same(left: DataFrame, right: DataFrame, key: Sequence[str]) -> list[Column]:
    return [left[quoted((name,))].eqNullSafe(right[quoted((name,))]) for name in key]


def _fields(schema: JsonObject, names: Sequence[str]) -> types.StructType:
    return spark_schema(selected(schema, names))
