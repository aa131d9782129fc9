"""Which partitions an asset should have by now: from its dimensions, as its definition has them, and the time.

A period is expected once it is over. Dynamic dimensions have no fixed values, so nothing is expected of an asset with one.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import islice, product
from typing import Any

from arco.kernel.limits import EXPECTED_PARTITIONS_MAX
from arco.kernel.partition_key import PartitionKey, Scalar

_STEPS = {"hourly": timedelta(hours=1), "daily": timedelta(days=1), "weekly": timedelta(days=7)}


def expected_keys(axes: Sequence[dict[str, Any]], now_ms: int) -> list[str] | None:
    """The keys that should be there, newest periods first; None where nobody can tell. An asset without dimensions has one."""
    if any(axis["kind"] == "dynamic" for axis in axes):
        return None
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    # The dimension of time varies slowest, so that the newest partitions are looked at first.
    ordered = sorted(axes, key=lambda axis: axis["kind"] == "static")
    values = [list(islice(_values(axis, now), EXPECTED_PARTITIONS_MAX)) for axis in ordered]
    names = [axis["name"] for axis in ordered]
    found = islice(product(*values), EXPECTED_PARTITIONS_MAX)
    return [PartitionKey(dict(zip(names, some, strict=True))).canonical() for some in found]


def _values(axis: dict[str, Any], now: datetime) -> Iterator[Scalar]:
    if axis["kind"] == "static":
        yield from axis.get("values", ())
        return
    begin, end = _moment(axis["start"]), now if axis.get("end") is None else min(now, _moment(axis["end"]))
    at = _last(axis["kind"], begin, end)
    while at >= begin:
        yield at if axis["kind"] == "hourly" else at.date()
        at = _before(axis["kind"], at)


def _last(kind: str, begin: datetime, end: datetime) -> datetime:
    """The first moment of the last period that is over."""
    if kind == "monthly":
        return _before(kind, datetime(end.year, end.month, 1, tzinfo=UTC))
    return begin + ((end - begin) // _STEPS[kind] - 1) * _STEPS[kind]


def _before(kind: str, at: datetime) -> datetime:
    if kind == "monthly":
        return at.replace(year=at.year - (at.month == 1), month=(at.month - 2) % 12 + 1)
    return at - _STEPS[kind]


def _moment(text: str) -> datetime:
    if len(text) == len("2025-01-01"):
        day = date.fromisoformat(text)
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
