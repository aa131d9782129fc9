"""Which partitions a document of ranges names, one by one, from the document and the kind of each dimension alone.

    [{"date": ["2025-01-01", "2025-02-01"], "region": [["de", "fr"]]}]   with   {"date": "daily", "region": "static"}

Events carry ranges, so that a year of days is one line; state has a row a partition, so that each can have its own answer. Time
is a half-open range of first moments in UTC, lists are by their values, the boxes of one document may overlap. The partitioning
of an asset writes the same documents (`servo/partitions`), and knows more: where an axis begins, which values there are today.
What must never enter: that. An event stays what it was when its asset is partitioned otherwise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, partial
from itertools import product
from typing import Any

from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.ids import clip
from arco.kernel.limits import PARTITIONS_OF_AN_EVENT_MAX
from arco.kernel.partition_key import PartitionKey, Scalar

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY = datetime(1969, 12, 29, tzinfo=UTC)
_HOUR, _DAY, _WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
_STEPS = {"hourly": (_EPOCH, _HOUR), "daily": (_EPOCH, _DAY), "weekly": (_MONDAY, _WEEK)}
_LISTS = {"static", "dynamic"}

TIMES = frozenset({*_STEPS, "monthly"})
KINDS = TIMES | _LISTS


def partitions_in(
    document: Sequence[Mapping[str, Any]], grain: Mapping[str, str], *, most: int = PARTITIONS_OF_AN_EVENT_MAX
) -> list[PartitionKey]:
    """Every partition of a document once, in the order of its boxes. More than `most` are refused before any is made."""
    for kind in grain.values():
        if kind not in KINDS:
            raise InvalidInput(f"{clip(kind)!r} is no kind of dimension", hint=f"one of {', '.join(sorted(KINDS))}")
    found: dict[PartitionKey, None] = {}
    room = most
    for box in document:
        if box.keys() != grain.keys():
            raise InvalidInput(
                f"a range over {clip(', '.join(box)) or 'nothing'}, and the grain is of {', '.join(grain) or 'nothing'}"
            )
        axes = [_axis(name, grain[name], box[name]) for name in grain]
        size = 1
        for axis in axes:
            size *= len(axis)
        room -= size
        if room < 0:
            raise TooLarge(f"ranges over more than {most} partitions", hint="say them in several events")
        for values in product(*(axis.values() for axis in axes)):
            found[PartitionKey(dict(zip(grain, values, strict=True)))] = None
    return list(found)


def need_ranges(document: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a document whose boxes are no ranges, whatever the kinds of its dimensions are."""
    for box in document:
        for name, stored in box.items():
            if not _is_range(stored):
                raise InvalidInput(
                    f"{clip(name)}={clip(str(stored))} is no range",
                    hint='two moments, ["2025-01-01", "2025-02-01"], or the values in a list, [["de", "fr"]]',
                )


def _is_range(stored: Any) -> bool:
    match stored:
        case [list(listed)]:
            return all(map(partial(_parses, _scalar), listed))
        case [str(first), str(end)]:
            return _parses(datetime.fromisoformat, first) and _parses(datetime.fromisoformat, end)
        case _:
            return False


def _parses(parse: Callable[[Any], object], stored: Any) -> bool:
    try:
        parse(stored)
    except ValueError:
        return False
    return True


def period_of(kind: str, moment: datetime) -> Scalar:
    """The value of the period that a moment lies in."""
    return _named(kind, _first_moment(kind, _ordinal(kind, moment)))


class _Times:
    """A range of periods."""

    def __init__(self, kind: str, first: int, end: int) -> None:
        self._kind, self._ordinals = kind, range(first, end)

    def __len__(self) -> int:
        return len(self._ordinals)

    def values(self) -> Iterator[Scalar]:
        return (_named(self._kind, _first_moment(self._kind, one)) for one in self._ordinals)


class _Values:
    """Values that are listed."""

    def __init__(self, listed: Sequence[Scalar]) -> None:
        self._listed = listed

    def __len__(self) -> int:
        return len(self._listed)

    def values(self) -> Iterator[Scalar]:
        return iter(self._listed)


def _axis(name: str, kind: str, stored: Any) -> _Times | _Values:
    try:
        if kind in TIMES:
            first, end = stored
            return _Times(kind, _place(name, kind, first), _place(name, kind, end))
        (listed,) = stored
        return _Values([_scalar(one) for one in listed])
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{clip(name)}={clip(str(stored))} is not a range that is {kind}") from None


@lru_cache(maxsize=1 << 14)
def _place(name: str, kind: str, text: str) -> int:
    """The ordinal of a first moment as text."""
    value = datetime.fromisoformat(text)
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    ordinal = _ordinal(kind, moment)
    if _first_moment(kind, ordinal) != moment:
        raise InvalidInput(f"{clip(name)}={clip(text)} does not begin a period that is {kind}")
    return ordinal


def _ordinal(kind: str, moment: datetime) -> int:
    if kind == "monthly":
        return moment.year * 12 + moment.month - 1
    zero, step = _STEPS[kind]
    return (moment - zero) // step


@lru_cache(maxsize=1 << 14)
def _first_moment(kind: str, ordinal: int) -> datetime:
    if kind == "monthly":
        return datetime(ordinal // 12, ordinal % 12 + 1, 1, tzinfo=UTC)
    zero, step = _STEPS[kind]
    return zero + ordinal * step


def _named(kind: str, moment: datetime) -> Scalar:
    return moment if kind == "hourly" else moment.date()


def _scalar(stored: Any) -> Scalar:
    match stored:
        case {"d": str(text)}:
            return date.fromisoformat(text)
        case {"t": str(text)}:
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        case None | bool() | int() | str():
            return stored
        case _:
            raise ValueError(stored)
