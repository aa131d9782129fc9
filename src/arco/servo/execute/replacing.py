"""What an output does to its table, as far as its asset alone says it. What must never enter: Spark, the store."""

from collections.abc import Mapping

from pyiceberg.expressions import BooleanExpression

from arco.iceberg.shape import JsonObject
from arco.servo.execute.computing import Assignment
from arco.servo.execute.partition_filters import where
from arco.servo.execute.snapshots import Append, AppendNext
from arco.servo.sdk.definitions import AssetDefinition, InputKind, WriteMode


def replaces_all(asset: AssetDefinition, full_reads: Mapping[str, str]) -> bool:
    """Without partitions a replacement is of everything. So is an append that had to read what was appended before."""
    mode = asset.write.mode
    if mode is WriteMode.APPEND:
        return bool(full_reads)
    return mode is WriteMode.FULL or (mode is WriteMode.REPLACE and not asset.partitions.axes)


def appended(asset: AssetDefinition) -> Append:
    return AppendNext() if any(one.kind is InputKind.CHANGES for one in asset.inputs) else Append()


def own_rows(given: Assignment, schema: JsonObject) -> BooleanExpression:
    """The rows of the partitions that a task makes."""
    return where(given.partitioning, given.selected, schema, str(given.asset.key))
