"""From the partitions that a table has to those that its asset is said to have.

A source declares dimensions; its table is partitioned by transforms of columns. The two line up if every dimension is a column
that the table is partitioned by, as finely as the dimension or finer: days make weeks and months, hours make days. What else the
table is partitioned by does not matter. Then each partition has a version of its own, made of those that lie in it. Where they
do not line up, all of the table has one version, and any change of it is a change of everything; a note says so.

Rows without a value in a dimension belong to no partition.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.servo.execute.sources import PartField, PartitionVersion
from arco.servo.partitions.axes import Axis, Period, TimeAxis
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FITS: dict[str, set[Period]] = {
    "moment": set(Period),
    "hour": set(Period),
    "day": {Period.DAILY, Period.WEEKLY, Period.MONTHLY},
    "month": {Period.MONTHLY},
}


_Choice = tuple[tuple[int, str], ...]
"""For each dimension the field of a spec that tells it, and how much one of its values stands for."""


def versions_by_partition(
    partitioning: Partitioning, whole: PartitionSet, found: Sequence[PartitionVersion]
) -> tuple[list[dict[str, Any]], str] | str:
    """The document of versions with a note; or, if the two do not line up, only why."""
    choices: dict[tuple[PartField, ...], _Choice] = {}
    for fields in dict.fromkeys(one.fields for one in found):
        chosen = _chosen(partitioning, fields)
        if isinstance(chosen, str):
            return chosen
        choices[fields] = chosen
    marks: dict[tuple[int, ...], list[str]] = defaultdict(list)
    strangers = 0
    for one in found:
        place = _place(partitioning, choices[one.fields], one)
        if place is None:
            strangers += 1
        elif PartitionSet.point(place) <= whole:
            marks[place].append(one.version)
    if found and strangers == len(found):
        return "none of the table's partitions is one of those that are declared"
    versions = [
        {"partitions": partitioning.document(PartitionSet.point(place)), "version": _together(marks[place])}
        for place in sorted(marks)
    ]
    note = f"{strangers} of the table's {len(found)} partitions are none of those that are declared" if strangers else ""
    return versions, note


def _together(versions: list[str]) -> str:
    return versions[0] if len(versions) == 1 else fingerprint("source partition", *sorted(versions))[:32]


def _chosen(partitioning: Partitioning, fields: tuple[PartField, ...]) -> _Choice | str:
    """Which field tells which dimension; or why none does."""
    chosen = []
    for axis in partitioning.axes:
        fitting = (
            (at, kind) for at, field in enumerate(fields) if field.column == axis.name and (kind := _kind(axis, field))
        )
        first = next(fitting, None)
        if first is None:
            said = ", ".join(f"{field.transform}({field.column})" for field in fields) or "nothing"
            return f"dimension {axis.name} is {axis.kind}, and the table is partitioned by {said}"
        chosen.append(first)
    return tuple(chosen)


def _kind(axis: Axis, field: PartField) -> str | None:
    """How much one value of a field stands for, if that is no more than one of the dimension."""
    if not isinstance(axis, TimeAxis):
        return "value" if field.transform == "identity" else None
    kind: str | None = field.transform if field.transform in {"hour", "day", "month"} else None
    if field.transform == "identity":
        kind = {"date": "day", "timestamp": "moment", "timestamptz": "moment"}.get(field.type)
    return kind if kind is not None and axis.period in _FITS[kind] else None


def _place(partitioning: Partitioning, choice: _Choice, one: PartitionVersion) -> tuple[int, ...] | None:
    """The ordinals that a partition of the table lies at; None if it is none of the asset's."""
    place = []
    for axis, (at, kind) in zip(partitioning.axes, choice, strict=True):
        value = one.values[at]
        if isinstance(axis, TimeAxis):
            ordinal = None if value is None else axis.containing(_moment(kind, value))
        else:
            ordinal = _listed(axis, value)
        if ordinal is None:
            return None
        place.append(ordinal)
    return tuple(place)


def _listed(axis: Axis, value: Any) -> int | None:
    try:
        return axis.ordinal(value)
    except InvalidInput:
        return None


def _moment(kind: str, value: Any) -> datetime:
    """The first moment that a value stands for. Times without a zone are read as UTC, as everywhere."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if kind == "month":
        return _EPOCH.replace(year=1970 + value // 12, month=value % 12 + 1)
    return _EPOCH + (timedelta(hours=value) if kind == "hour" else timedelta(days=value))
