"""The rows, bytes and files of each partition of a publish, from what its event counted by the table's own partition fields.

A table is laid out by the asset's dimensions unless somebody said otherwise: a field is then called like its dimension, or like
it with a transform (`at_day`). Where it is laid out in another way the counts say nothing of partitions, and nothing is made up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from arco.kernel.partition_boxes import TIMES, period_of
from arco.kernel.partition_key import PartitionKey, Scalar

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Size:
    """What one partition holds. None is not known."""

    rows: int | None
    bytes: int | None
    files: int | None


UNKNOWN, EMPTY = Size(None, None, None), Size(0, 0, 0)


def sizes_of(
    partitions: Sequence[PartitionKey], counts: Sequence[Mapping[str, Any]], grain: Mapping[str, str], whole: Size
) -> list[Size]:
    """The size of each partition, in their order."""
    if len(partitions) == 1:
        return [whole]
    wanted = {_label(key): place for place, key in enumerate(partitions)}
    found: list[Size] = [EMPTY] * len(partitions)
    if not counts:
        return [UNKNOWN] * len(partitions)
    for count in counts:
        place = wanted.get(_counted(count, grain) or ())
        if place is None:
            return [UNKNOWN] * len(partitions)
        size = found[place]
        found[place] = Size(
            (size.rows or 0) + int(count["rows"]),
            (size.bytes or 0) + int(count["bytes"]),
            (size.files or 0) + int(count["files"]),
        )
    return found


def places_of(
    partitions: Sequence[PartitionKey], several: Sequence[Mapping[str, Any]], grain: Mapping[str, str]
) -> list[int | None]:
    """Which partition each of some tuples of the table's partition fields is; None where they do not say."""
    if len(partitions) == 1:
        return [0] * len(several)
    wanted = {_label(key): place for place, key in enumerate(partitions)}
    return [wanted.get(_counted({"partition": one}, grain) or ()) for one in several]


_Label = tuple[tuple[str, str], ...]


def _label(key: PartitionKey) -> _Label:
    return tuple((name, str(value)) for name, value in key)


def _counted(count: Mapping[str, Any], grain: Mapping[str, str]) -> _Label | None:
    """The partition that a count belongs to, or None where its fields do not say."""
    fields = count["partition"]
    try:
        return tuple((name, str(_value(name, grain[name], fields))) for name in sorted(grain))
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        return None


def _value(name: str, kind: str, fields: Mapping[str, Any]) -> Scalar:
    if kind not in TIMES:
        stored: str | None = fields[name]
        return stored
    for unit in ("", "_hour", "_day", "_month"):
        if name + unit in fields:
            return period_of(kind, _moment(unit, fields[name + unit]))
    raise KeyError(name)


def _moment(unit: str, text: str) -> datetime:
    if not text.lstrip("-").isdecimal():
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    number = int(text)
    if unit == "_month":
        return datetime(1970 + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    return _EPOCH + (timedelta(hours=number) if unit == "_hour" else timedelta(days=number))
