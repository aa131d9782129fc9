"""How an asset's table is laid out: the partition fields and the order of a table that is created.

By default a table is partitioned as its asset is, so that replacing a partition replaces whole files. `partition_by` and
`sort_by` say something else: `["day(at)", "bucket(16, customer_id)"]`, `["customer_id", "at desc"]`. A table that exists keeps
its own.
"""

import re
from typing import Any

from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.servo.partitions.axes import Axis, Period, TimeAxis
from arco.servo.sdk.definitions import AssetDefinition

_CALL = re.compile(r"^(\w+)\s*\(([^()]*)\)$")
_SORT = re.compile(r"^(\S+)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?$", re.IGNORECASE)
_TIMES = {"year", "month", "day", "hour"}
_SIZED = {"bucket", "truncate"}
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
    for text in asset.write.sort_by:
        found = _SORT.match(text.strip())
        if found is None:
            raise _refusal(asset, f"sort_by {clip(text)!r} is not a column", 'write "column", or "column desc nulls last"')
        column, direction, nulls = found[1], (found[2] or "asc").lower(), found[3]
        _need(column, columns, asset, "sort_by")
        first = nulls.lower() == "first" if nulls else direction == "asc"
        fields.append(
            {
                "transform": "identity",
                "source-id": columns[column]["id"],
                "direction": direction,
                "null-order": "nulls-first" if first else "nulls-last",
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
    called = _CALL.match(text.strip())
    if called is None:
        _need(text.strip(), columns, asset, "partition_by")
        return text.strip(), "identity"
    word, arguments = called[1].lower().removesuffix("s"), [one.strip() for one in called[2].split(",")]
    column, transform = _transform(word, arguments)
    if transform is None:
        known = "column, year(…), month(…), day(…), hour(…), bucket(16, …) or truncate(4, …)"
        raise _refusal(asset, f"partition_by {clip(text)!r} is not known", f"write {known}")
    _need(column, columns, asset, "partition_by")
    return column, transform


def _transform(word: str, arguments: list[str]) -> tuple[str, str | None]:
    if word in _TIMES and len(arguments) == 1:
        return arguments[0], word
    if word in _SIZED and len(arguments) == 2:
        sizes = [one for one in arguments if one.isdecimal() and int(one) > 0]
        columns = [one for one in arguments if one not in sizes]
        if len(sizes) == 1:
            return columns[0], f"{word}[{int(sizes[0])}]"
    return "", None


def _name(column: str, transform: str) -> str:
    return column if transform == "identity" else f"{column}_{transform.partition('[')[0]}"


def _need(column: str, columns: dict[str, Any], asset: AssetDefinition, what: str) -> None:
    if column not in columns:
        raise _refusal(
            asset, f"{what} names {clip(column)!r}, and the output has no such column", f"it has {', '.join(columns)}"
        )


def _refusal(asset: AssetDefinition, message: str, hint: str) -> InvalidInput:
    return InvalidInput(f"{asset.where}: {asset.key}: {message}", hint=hint)
