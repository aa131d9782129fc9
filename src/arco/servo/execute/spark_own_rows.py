"""The rows of an output beside the partitions that its task makes: what lies between them goes, what lies outside is refused.

A task may make partitions that have others between them: the days before and after one that is published. Its code is told one
range of time and the values of each dimension (`run.start`, `run.end`, `run.values`), so it may make what lies between as well,
which nobody asked for. Rows anywhere else are a mistake of the code: no later publish would replace them, and whoever reads the
partition that they lie in would never hear of them.

What must never enter: which partitions a task makes.
"""

from itertools import product

from pyiceberg.expressions import BooleanExpression
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.servo.execute.data_files import Written
from arco.servo.execute.output_schema import with_new_ids
from arco.servo.execute.partition_filters import where
from arco.servo.execute.scans import columns_in, selected
from arco.servo.execute.snapshots import Matching
from arco.servo.execute.spark_filters import spark_filter
from arco.servo.execute.spark_read import open_files
from arco.servo.execute.spark_types import spark_schema
from arco.servo.partitions.axes import TimeAxis
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet


def without_what_lies_between(
    rows: DataFrame, output: JsonObject, partitioning: Partitioning, made: PartitionSet, asset: str
) -> DataFrame:
    """The rows of an output, without those of partitions that only lie between the ones that are made."""
    between = _told(partitioning, made) - made
    if not between or not set(partitioning.names) <= set(rows.columns):
        return rows
    schema = with_new_ids(output)
    return rows.where(_is_outside(where(partitioning, between, schema, asset), schema))


def refuse_outside(spark: SparkSession, table: TableMetadata, written: Written, rows: BooleanExpression) -> bool:
    """Refuse an output with rows that do not match. True if the footers prove that there are none; otherwise they were read."""
    wanted = Matching(rows, table)
    doubtful = [file.file_path for file in written.files if not wanted.only(file)]
    if not doubtful:
        return True
    schema = selected(table.current_schema, columns_in(rows, table.current_schema))
    found = open_files(spark, spark_schema(schema), doubtful).where(_is_outside(rows, schema)).take(1)
    if found:
        said = ", ".join(f"{name} = {value}" for name, value in found[0].asDict().items())
        raise InvalidInput(
            f"the output holds rows outside the partitions that are made: {clip(said, 200)}",
            hint="filter the output by the run's partitions: run.start and run.end, or run.values(…)",
        )
    return False


def _is_outside(rows: BooleanExpression, schema: JsonObject) -> Column:
    return ~f.coalesce(spark_filter(rows, schema), f.lit(False))


def _told(partitioning: Partitioning, made: PartitionSet) -> PartitionSet:
    """What code takes its partitions for: one range of each dimension of time, and the values of the others."""
    boxes = list(made.boxes())
    ranges = []
    for place, axis in enumerate(partitioning.axes):
        spans = [box[place] for box in boxes]
        if isinstance(axis, TimeAxis):
            ranges.append([(min(first for first, _ in spans), max(end for _, end in spans))])
        else:
            ranges.append(sorted(set(spans)))
    return PartitionSet.of(len(partitioning.axes), [list(one) for one in product(*ranges)])
