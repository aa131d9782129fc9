"""Documents of partition ranges, compared: whether one holds a partition, whether two share one, how many it names.

    [{"date": ["2025-01-01", "2025-02-01"], "region": [["de", "fr"]]}]

Time is half-open, lists are by value; a dimension that a box does not name is not bounded by it. What must never enter: what
the axes of an asset are today. A document says what it said when it was written.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from arco.kernel.partition_key import PartitionKey, Scalar

Box: TypeAlias = Mapping[str, Any]
Document: TypeAlias = Sequence[Box]

_STEPS = {"hourly": timedelta(hours=1), "daily": timedelta(days=1), "weekly": timedelta(days=7)}


def holds(document: Document, key: str) -> bool:
    """Whether a partition, by the spelling of its key, lies in the ranges of a document."""
    values = _values(key)
    return any(all(_within(stored, values.get(name)) for name, stored in box.items() if name in values) for box in document)


def overlaps(here: Document, there: Document) -> bool:
    """Whether two documents of one asset name a partition in common."""
    return any(all(_meets(box[name], other[name]) for name in box.keys() & other.keys()) for box in here for other in there)


def shared(here: Document, there: Document) -> list[dict[str, Any]]:
    """The partitions of a document that another one names too, by the dimensions that both have."""
    found: list[dict[str, Any]] = []
    for box in here:
        for other in there:
            both = {name: _common(box[name], other[name]) for name in box.keys() & other.keys()}
            if None not in both.values() and (one := {**box, **both}) not in found:
                found.append(one)
    return found


def document_of(key: str, kinds: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """The document that names one partition. A period of a kind that nobody says ends right after it begins: enough to ask what
    it meets.
    """
    box: dict[str, Any] = {}
    for name, value in PartitionKey.parse(key):
        kind = (kinds or {}).get(name, "")
        match value:
            case datetime():
                box[name] = [value.isoformat(), (value + _STEPS.get(kind, timedelta(seconds=1))).isoformat()]
            case date() if kind == "monthly":
                box[name] = [value.isoformat(), (value.replace(day=1) + timedelta(days=31)).replace(day=1).isoformat()]
            case date():
                box[name] = [value.isoformat(), (value + _STEPS.get(kind, timedelta(days=1))).isoformat()]
            case _:
                box[name] = [[value]]
    return [box]


def periods(kind: str, first: str, end: str) -> int:
    """How many periods of a kind there are from one moment to before another."""
    start, stop = _moment(first), _moment(end)
    if kind == "monthly":
        return max(0, (stop.year - start.year) * 12 + stop.month - start.month)
    return max(0, (stop - start) // _STEPS[kind])


def count(document: Document, kinds: Mapping[str, str]) -> int:
    """How many partitions the boxes of a document name; dimensions of a kind that nobody knows count once."""
    total = 0
    for box in document:
        size = 1
        for name, stored in box.items():
            if _is_list(stored):
                size *= len(stored[0])
            elif kinds.get(name) in {*_STEPS, "monthly"}:
                size *= periods(kinds[name], *stored)
        total += size
    return total


@lru_cache(maxsize=1 << 14)
def _values(key: str) -> dict[str, Scalar]:
    return dict(PartitionKey.parse(key))


def _is_list(stored: Any) -> bool:
    return len(stored) == 1


def _within(stored: Any, value: Scalar) -> bool:
    if _is_list(stored):
        return any(_scalar(one) == value and type(_scalar(one)) is type(value) for one in stored[0])
    if not isinstance(value, date):
        return False
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
    return _moment(stored[0]) <= moment < _moment(stored[1])


def _meets(here: Any, there: Any) -> bool:
    if _is_list(here) and _is_list(there):
        return any(one == other and type(one) is type(other) for one in here[0] for other in there[0])
    if _is_list(here) or _is_list(there):
        return False
    return _moment(here[0]) < _moment(there[1]) and _moment(there[0]) < _moment(here[1])


def _common(here: Any, there: Any) -> Any:
    """What two bounds of one dimension share, in the words of the first; None if that is nothing."""
    if not _meets(here, there):
        return None
    if _is_list(here):
        return [[one for one in here[0] if any(one == other and type(one) is type(other) for other in there[0])]]
    first = here[0] if _moment(here[0]) >= _moment(there[0]) else there[0]
    return [first, here[1] if _moment(here[1]) <= _moment(there[1]) else there[1]]


def _scalar(stored: Any) -> Scalar:
    match stored:
        case {"d": str(text)}:
            return date.fromisoformat(text)
        case {"t": str(text)}:
            return _moment(text)
        case _:
            scalar: Scalar = stored
            return scalar


@lru_cache(maxsize=1 << 14)
def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
