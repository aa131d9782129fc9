"""One dimension of an asset's partitions, as a line of whole numbers.

Every kind of dimension is an axis: a value has an ordinal, and neighbours have neighbouring ordinals. So sets of partitions are
ranges of numbers whatever they are partitioned by, and a year of days is one range. Time is UTC; a period is named by its
first moment. An axis is open where its definition has no end: how far it reaches is asked with a time.

What must never enter: lists of partitions where a range would do, and any zone but UTC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Protocol

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.partition_key import Scalar

Bounds = tuple[int, int]
"""From an ordinal to one before another."""

_EPOCH = date(1970, 1, 1)
_DAYS_TO_MONDAY = 3  # 1970-01-01 was a Thursday; weeks begin on Monday


class Axis(Protocol):
    """A dimension."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str:
        """A word for documents: hourly, daily, weekly, monthly, static, dynamic."""
        ...

    def bounds(self, now_ms: int) -> Bounds:
        """Which ordinals there are at a time. Periods that have not ended are not there yet."""
        ...

    def ordinal(self, value: Scalar) -> int: ...

    def value(self, ordinal: int) -> Scalar: ...

    def parse(self, text: str) -> Scalar:
        """A value as people write it on a command line."""
        ...

    def describe(self) -> dict[str, object]:
        """The definition as a document, for manifests and fingerprints."""
        ...


class Period(StrEnum):
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Periods of one length, from `start` on, to `end` if there is one. Keys of hours are timestamps, all others dates."""

    name: str
    period: Period
    start: date | datetime
    end: date | datetime | None = None

    @property
    def kind(self) -> str:
        return self.period.value

    def bounds(self, now_ms: int) -> Bounds:
        first = self.ordinal(self.start)
        # The period of `now` is under way; it is there when it is over.
        last = self.containing(datetime.fromtimestamp(now_ms / 1000, UTC))
        if self.end is not None:
            last = min(last, self.ordinal(self.end))
        return first, max(first, last)

    def ordinal(self, value: Scalar) -> int:
        moment = self.moment(value)
        ordinal = self.containing(moment)
        if self.first_moment(ordinal) != moment:
            raise InvalidInput(f"{self.name}={value} does not begin a period that is {self.period}")
        return ordinal

    def value(self, ordinal: int) -> Scalar:
        moment = self.first_moment(ordinal)
        return moment if self.period is Period.HOURLY else moment.date()

    def parse(self, text: str) -> Scalar:
        try:
            if self.period is Period.HOURLY:
                moment = datetime.fromisoformat(text)
                return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
            return date.fromisoformat(f"{text}-01" if self.period is Period.MONTHLY and len(text) == 7 else text)
        except ValueError:
            raise InvalidInput(f"{self.name}={clip(text)} is not a {self._unit}", hint="write it as ISO 8601") from None

    def describe(self) -> dict[str, object]:
        end = None if self.end is None else self.end.isoformat()
        return {"name": self.name, "kind": self.kind, "start": self.start.isoformat(), "end": end}

    @property
    def _unit(self) -> str:
        return "time" if self.period is Period.HOURLY else "date"

    def moment(self, value: Scalar) -> datetime:
        match value:
            case datetime():
                return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
            case date():
                return datetime(value.year, value.month, value.day, tzinfo=UTC)
            case _:
                raise InvalidInput(f"{self.name}={value!r} is not a {self._unit}")

    def containing(self, moment: datetime) -> int:
        """The period that a moment lies in."""
        days = (moment.date() - _EPOCH).days
        match self.period:
            case Period.HOURLY:
                return days * 24 + moment.hour
            case Period.DAILY:
                return days
            case Period.WEEKLY:
                return (days + _DAYS_TO_MONDAY) // 7
            case Period.MONTHLY:
                return (moment.year - 1970) * 12 + moment.month - 1

    def last_moment(self, ordinal: int) -> datetime:
        return self.first_moment(ordinal + 1) - timedelta(microseconds=1)

    def first_moment(self, ordinal: int) -> datetime:
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        match self.period:
            case Period.HOURLY:
                return epoch + timedelta(hours=ordinal)
            case Period.DAILY:
                return epoch + timedelta(days=ordinal)
            case Period.WEEKLY:
                return epoch + timedelta(days=ordinal * 7 - _DAYS_TO_MONDAY)
            case Period.MONTHLY:
                return epoch.replace(year=1970 + ordinal // 12, month=ordinal % 12 + 1)


@dataclass(frozen=True, slots=True)
class ListAxis:
    """Values in a fixed order: those of the definition, or those that are known of a dynamic dimension."""

    name: str
    values: tuple[Scalar, ...]
    dynamic: bool = False

    @property
    def kind(self) -> str:
        return "dynamic" if self.dynamic else "static"

    def bounds(self, now_ms: int) -> Bounds:
        return 0, len(self.values)

    def ordinal(self, value: Scalar) -> int:
        for place, known in enumerate(self.values):
            # To Python True == 1; to a partition key they are two values.
            if known == value and type(known) is type(value):
                return place
        raise InvalidInput(f"{self.name}={value!r} is not one of its partitions", hint=_listed(self.values))

    def value(self, ordinal: int) -> Scalar:
        return self.values[ordinal]

    def parse(self, text: str) -> Scalar:
        for known in self.values:
            if _written(known) == text:
                return known
        raise InvalidInput(f"{self.name}={clip(text)} is not one of its partitions", hint=_listed(self.values))

    def describe(self) -> dict[str, object]:
        # What a dynamic dimension holds is a fact, not part of the definition.
        values = [] if self.dynamic else [_written(value) for value in self.values]
        return {"name": self.name, "kind": self.kind, "values": values}


def _written(value: Scalar) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case date():  # a datetime is one as well
            return value.isoformat()
        case _:
            return str(value)


def _listed(values: Sequence[Scalar]) -> str:
    shown = ", ".join(_written(value) for value in values[:8])
    return f"one of {shown}{', …' if len(values) > 8 else ''}" if values else "it has no values yet"
