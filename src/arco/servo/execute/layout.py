"""How an asset's table is laid out: the partition fields and the order of a table that is created.

By default a table is partitioned as its asset is, so that replacing a partition replaces whole files. `partition_by` and
`sort_by` say something else: `["day(at)", "bucket(16, customer_id)"]`, `["customer_id", "at desc"]`. A table that exists keeps
its own.
"""

from typing import Any

from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.servo.partitions.axes import Axis, Period, TimeAxis
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.layouts import partition_field, sort_field

_BY_PERIOD = {Period.HOURLY: "hour", Period.DAILY: "day", Period.WEEKLY: "day", Period.MONTHLY: "month"}


def partition_spec(asset: AssetDefinition, schema: JsonObject) -> JsonObject:
    """The partition fields of a new table."""
    columns = {field["name"]: field for field in schema["fields"]}
    by = asset.write.partition_by
    if by is None:
        wanted = [_of_axis(axis, columns, asset) for axis in asset.partitions.axes]
    else:
        wanted = [_of_text(text, columns, asset) for text in by]
    fields = [
        {"name": _name(column, transform), "transform": transform, "source-id": columns[column]["id"]}
        for column, transform in wanted
    ]
    return {"spec-id": 0, "fields": [{**field, "field-id": 1000 + place} for place, field in enumerate(fields)]}


def sort_order(asset: AssetDefinition, schema: JsonObject) -> JsonObject:
    """The order of rows within the files of a new table."""
    columns = {field["name"]: field for field in schema["fields"]}
    fields = []
    for one in map(sort_field, asset.write.sort_by):
        _need(one.column, columns, asset, "sort_by")
        fields.append(
            {
                "transform": "identity",
                "source-id": columns[one.column]["id"],
                "direction": one.direction,
                "null-order": one.null_order,
            }
        )
    return {"order-id": 1 if fields else 0, "fields": fields}


def _of_axis(axis: Axis, columns: dict[str, JsonObject], asset: AssetDefinition) -> tuple[str, str]:
    _need(axis.name, columns, asset, "partitions")
    kind = columns[axis.name]["type"]
    if isinstance(axis, TimeAxis) and kind in {"timestamp", "timestamptz"}:
        return axis.name, _BY_PERIOD[axis.period]
    if isinstance(axis, TimeAxis) and axis.period is Period.MONTHLY and kind == "date":
        return axis.name, "month"
    return axis.name, "identity"


def _of_text(text: str, columns: dict[str, JsonObject], asset: AssetDefinition) -> tuple[str, str]:
    found = partition_field(text)
    _need(found.column, columns, asset, "partition_by")
    return found.column, found.transform


def _name(column: str, transform: str) -> str:
    return column if transform == "identity" else f"{column}_{transform.partition('[')[0]}"


def _need(column: str, columns: dict[str, Any], asset: AssetDefinition, what: str) -> None:
    if column not in columns:
        raise InvalidInput(
            f"{asset.where}: {asset.key}: {what} names {clip(column)!r}, and the output has no such column",
            hint=f"it has {', '.join(columns)}",
        )
