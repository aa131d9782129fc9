"""The inputs of a task as DataFrames, each pinned.

Rows appended since the last publish (`changes_of`) are read as such only where the table's history shows nothing but appends;
otherwise all of it is read, and whoever writes the output hears why: rows that were there before would be appended twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.io import FileIO
from pyspark.sql import DataFrame, SparkSession

from arco.kernel.errors import InvalidInput, NotFound
from arco.servo.execute.partition_filters import where
from arco.servo.execute.pinned import TableInput
from arco.servo.execute.spark_read import as_named, read_changes, read_table
from arco.servo.execute.spark_types import spark_schema
from arco.servo.execute.table_state import state_of
from arco.servo.plan.document import PlannedInput
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition, InputKind


@dataclass(frozen=True, slots=True)
class Frames:
    """What an asset's code gets, what its checks compare with, and why changes were read in full, if they were."""

    inputs: Mapping[str, DataFrame]
    checked: Mapping[str, DataFrame]
    full_reads: Mapping[str, str]


def frames(
    spark: SparkSession,
    io: FileIO,
    asset: AssetDefinition,
    tables: Sequence[TableInput],
    files: Sequence[tuple[InputDefinition, PlannedInput]],
    folder: Path,
) -> Frames:
    """Every input of a task. Changes are read as changes only if all of them can be."""
    changes = {one.given.parameter: _changes(spark, io, one) for one in tables if one.given.kind is InputKind.CHANGES}
    full = {parameter: found for parameter, found in changes.items() if isinstance(found, str)}
    inputs: dict[str, DataFrame] = {}
    checked: dict[str, DataFrame] = {}
    for one in tables:
        appended = changes.get(one.given.parameter)
        if one.given.kind is InputKind.CHECK:
            if one.table is not None and one.pinned.snapshot_id is not None:
                checked[str(one.given.asset)] = _whole(spark, io, one, asset)
        elif isinstance(appended, DataFrame) and not full:
            inputs[one.given.parameter] = appended
        else:
            inputs[one.given.parameter] = _whole(spark, io, one, asset)
    for given, planned in files:
        inputs[given.parameter] = _files(spark, asset, given, planned, folder)
    return Frames(inputs, checked, full)


def _changes(spark: SparkSession, io: FileIO, one: TableInput) -> DataFrame | str:
    """The rows since the last publish, or why all have to be read."""
    if one.since is None:
        return "there is no publish to go on from: it is the first one, its code changed, or it was forced"
    if one.table is None or one.pinned.snapshot_id is None:
        return "it has no rows"
    return read_changes(spark, one.table, io, since=one.since, until=one.pinned.snapshot_id)


def _whole(spark: SparkSession, io: FileIO, one: TableInput, asset: AssetDefinition) -> DataFrame:
    name = str(one.given.asset)
    if one.table is None:
        raise NotFound(
            f"{asset.where}: {asset.key} reads {name}, which has no table",
            hint=f"make it first: arco run {name}" if one.pinned.planned.versions else "load it, or select what makes it",
        )
    if one.pinned.snapshot_id is None:
        # It had no rows when the plan was made. What came since has no version in the plan, and is read by the next one.
        return spark.createDataFrame([], spark_schema(one.table.current_schema, ids=False))
    schema = state_of(one.table, snapshot_id=one.pinned.snapshot_id).schema
    rows = where(one.partitioning, one.pinned.needed, schema, name)
    return read_table(spark, one.table, io, snapshot_id=one.pinned.snapshot_id, where=rows)


def _files(
    spark: SparkSession, asset: AssetDefinition, given: InputDefinition, planned: PlannedInput, folder: Path
) -> DataFrame:
    reader = spark.read.format(given.format or "parquet")
    options = dict(given.options)
    schema = options.pop("schema", None)
    if schema is not None:
        reader = reader.schema(schema)
    elif not planned.files:
        raise InvalidInput(
            f"{asset.where}: {asset.key} reads files({given.path!r}), and no file matches",
            hint="put a file there, or say what its columns are: files(…, schema=…)",
        )
    reader = reader.options(**options)
    if not planned.files:
        return spark.createDataFrame([], schema or "")
    return reader.load([as_named(one if "://" in one else str(folder / one)) for one in planned.files])
