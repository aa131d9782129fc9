"""Which rows of a table belong to a set of partitions, as an expression of the table format.

A dimension is a column of the same name. Time is a half-open range of it, a list is its values; a date, a timestamp with or
without a zone and an ISO text can all be time. What must never enter: Spark.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from pyiceberg import expressions
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or
from pyiceberg.expressions.literals import literal
from pyiceberg.types import NestedField

from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.partition_key import Scalar
from arco.servo.partitions.axes import Axis, Period, TimeAxis
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet

# Models whose positional arguments type checkers do not see.
_rule: Any = expressions


def where(partitioning: Partitioning, partitions: PartitionSet, schema: JsonObject, table: str) -> BooleanExpression:
    """The rows of these partitions; every row for what has no dimensions."""
    if not partitioning.axes:
        return AlwaysTrue() if partitions else AlwaysFalse()
    kinds = {field["name"]: field["type"] for field in schema["fields"]}
    boxes = [
        reduce(And, (_within(axis, *span, kinds, table) for axis, span in zip(partitioning.axes, box, strict=True)))
        for box in partitions.boxes()
    ]
    return _any(boxes)


def _any(parts: list[BooleanExpression]) -> BooleanExpression:
    """Joined like a tree, not like a chain: a thousand ranges would otherwise be a thousand levels deep."""
    if not parts:
        return AlwaysFalse()
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return Or(_any(parts[:middle]), _any(parts[middle:]))


def _within(axis: Axis, first: int, end: int, kinds: Mapping[str, Any], table: str) -> BooleanExpression:
    kind = kinds.get(axis.name)
    if kind is None:
        raise InvalidInput(
            f"{table} is partitioned by {axis.name} and has no column of that name",
            hint=f"write the column {axis.name}, or name the dimension as the column is named",
        )
    if isinstance(axis, TimeAxis):
        low, high = (_moment(axis, one, kind, table) for one in (first, end))
        return And(_rule.GreaterThanOrEqual(axis.name, low), _rule.LessThan(axis.name, high))
    values = [axis.value(one) for one in range(first, end)]
    _refuse_other_types(axis, values, kind, table)
    known = [_literal(one) for one in values if one is not None]
    parts: list[BooleanExpression] = [] if None not in values else [_rule.IsNull(axis.name)]
    if known:
        parts.append(_rule.EqualTo(axis.name, known[0]) if len(known) == 1 else _rule.In(axis.name, known))
    return _any(parts)


def _refuse_other_types(axis: Axis, values: list[Scalar], kind: Any, table: str) -> None:
    """Values that a column of this type can not hold. Texts are read as the column's type, as everywhere in the format."""
    try:
        wanted = NestedField.model_validate({"id": 1, "name": axis.name, "required": False, "type": kind}).field_type
        for value in values:
            if value is not None:
                literal(_literal(value)).to(wanted)
    except (TypeError, ValueError) as error:
        said, listed = kind if isinstance(kind, str) else kind["type"], ", ".join(map(repr, values[:3]))
        raise InvalidInput(
            f"{table} has partitions by {axis.name}, such as {clip(listed)}, and {axis.name} is a column of type {said}",
            hint=f"cast the column, or list values of type {said}",
        ) from error


def _moment(axis: TimeAxis, ordinal: int, kind: Any, table: str) -> str:
    moment = axis.first_moment(ordinal)
    if kind == "timestamptz":
        return moment.isoformat()
    if kind == "timestamp":
        return moment.replace(tzinfo=None).isoformat()
    if kind == "date" and axis.period is not Period.HOURLY:
        return moment.date().isoformat()
    if kind == "string" and axis.period in {Period.DAILY, Period.WEEKLY}:
        return moment.date().isoformat()
    said = kind if isinstance(kind, str) else kind["type"]
    wanted = "a timestamp" if axis.period is Period.HOURLY else "a date or a timestamp"
    raise InvalidInput(
        f"{table} is {axis.period.value} by {axis.name}, which is a column of type {said}", hint=f"make it {wanted}"
    )


def _literal(value: Scalar) -> Any:
    """As the table format writes it: dates and times as text."""
    return value if isinstance(value, bool | int | str) else value.isoformat() if value is not None else None
