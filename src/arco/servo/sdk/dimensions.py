"""How a project says what its assets are partitioned by: daily("date", start="2025-01-01"), static("region", [...])."""

from collections.abc import Iterable
from datetime import UTC, date, datetime

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.partition_key import PartitionKey, Scalar
from arco.servo.partitions.axes import Axis, ListAxis, Period, TimeAxis
from arco.servo.partitions.partitioning import UNPARTITIONED, Partitioning

Moment = str | date | datetime


def hourly(name: str = "hour", *, start: Moment, end: Moment | None = None) -> TimeAxis:
    """One partition an hour, UTC, named by its first moment."""
    return _time(name, Period.HOURLY, start, end)


def daily(name: str = "date", *, start: Moment, end: Moment | None = None) -> TimeAxis:
    """One partition a day, UTC."""
    return _time(name, Period.DAILY, start, end)


def weekly(name: str = "week", *, start: Moment, end: Moment | None = None) -> TimeAxis:
    """One partition a week, named by its Monday."""
    return _time(name, Period.WEEKLY, start, end)


def monthly(name: str = "month", *, start: Moment, end: Moment | None = None) -> TimeAxis:
    """One partition a month, named by its first day."""
    return _time(name, Period.MONTHLY, start, end)


def static(name: str, values: Iterable[Scalar]) -> ListAxis:
    """One partition for each of these values."""
    if isinstance(values, str):
        raise InvalidInput(
            f"the values of dimension {name} are one text, {clip(values)!r}", hint=f"list them: [{values!r}]"
        )
    listed = tuple(values)
    if not listed:
        raise InvalidInput(f"dimension {name} has no values", hint="name some, or use dynamic()")
    keys = [PartitionKey({name: value}) for value in listed]
    if len(set(keys)) != len(keys):
        raise InvalidInput(f"dimension {name} names a value twice")
    return ListAxis(name, listed)


def dynamic(name: str) -> ListAxis:
    """One partition for each value that is known when the plan is made (`arco partitions add`)."""
    PartitionKey({name: "x"})
    return ListAxis(name, (), dynamic=True)


def partitioned(by: Axis | Iterable[Axis] | None) -> Partitioning:
    """One dimension, several, or none."""
    if by is None:
        return UNPARTITIONED
    if isinstance(by, TimeAxis | ListAxis):
        return Partitioning((by,))
    return Partitioning(tuple(by))  # type: ignore[arg-type]


def _time(name: str, period: Period, start: Moment, end: Moment | None) -> TimeAxis:
    axis = TimeAxis(name, period, _moment(start, period), None if end is None else _moment(end, period))
    PartitionKey({name: axis.value(axis.ordinal(axis.start))})
    if axis.end is not None and axis.ordinal(axis.end) <= axis.ordinal(axis.start):
        raise InvalidInput(f"dimension {name} ends before it begins")
    return axis


def _moment(value: Moment, period: Period) -> date | datetime:
    parsed = value
    if isinstance(value, str):
        probe = TimeAxis("start", period, date(1970, 1, 1))
        parsed = probe.parse(value)  # type: ignore[assignment]
    if period is not Period.HOURLY and isinstance(parsed, datetime):
        return parsed.date()
    if period is Period.HOURLY and not isinstance(parsed, datetime):
        return datetime(parsed.year, parsed.month, parsed.day, tzinfo=UTC)  # type: ignore[union-attr]
    return parsed  # type: ignore[return-value]
