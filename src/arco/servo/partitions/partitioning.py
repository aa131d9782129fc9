"""How an asset is partitioned: its axes, in order, and how sets of its partitions are written down.

A document names values, never ordinals: `[{"date": ["2025-01-01", "2025-02-01"], "region": [["de", "fr"]]}]`, a list of boxes,
time as a half-open range of first moments, lists by their values. So a document stays right when a list of values grows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from typing import Any, Self

import msgspec

from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import CorruptObject, InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import PARTITION_DIMENSIONS_MAX
from arco.kernel.partition_key import PartitionKey, Scalar
from arco.servo.partitions.axes import Axis, ListAxis, Period, TimeAxis
from arco.servo.partitions.sets import PartitionSet

Document = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The dimensions of an asset. None: the asset is one whole."""

    axes: tuple[Axis, ...] = ()

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if len(set(names)) != len(names):
            raise InvalidInput(f"two dimensions have one name: {', '.join(names)}")
        if len(names) > PARTITION_DIMENSIONS_MAX:
            raise InvalidInput(f"{len(names)} dimensions", hint=f"at most {PARTITION_DIMENSIONS_MAX}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    def with_values(self, known: Mapping[str, Sequence[Scalar]]) -> Self:
        """The same with what is known of its dynamic dimensions."""
        filled = tuple(
            ListAxis(axis.name, tuple(known.get(axis.name, ())), dynamic=True)
            if isinstance(axis, ListAxis) and axis.dynamic
            else axis
            for axis in self.axes
        )
        return type(self)(filled)

    def without_dynamic(self) -> Self:
        """The dimensions whose values are known from the definition."""
        return type(self)(tuple(axis for axis in self.axes if not (isinstance(axis, ListAxis) and axis.dynamic)))

    def everything(self, now_ms: int) -> PartitionSet:
        """All partitions there are at a time."""
        return PartitionSet.box([axis.bounds(now_ms) for axis in self.axes])

    def key(self, ordinals: Sequence[int]) -> PartitionKey:
        return PartitionKey({axis.name: axis.value(one) for axis, one in zip(self.axes, ordinals, strict=True)})

    def point(self, key: PartitionKey) -> PartitionSet:
        values = dict(key)
        if set(values) != set(self.names):
            raise InvalidInput(f"partition {key} does not name {', '.join(self.names) or 'no dimension'}")
        return PartitionSet.point([axis.ordinal(values[axis.name]) for axis in self.axes])

    def describe(self) -> list[dict[str, object]]:
        return [axis.describe() for axis in self.axes]

    # Selections, as people write them: {"date": "2025-01-01..2025-01-31", "region": "de,fr"}

    def select(self, wanted: Mapping[str, str], now_ms: int) -> PartitionSet:
        """The partitions that a command line asks for; a dimension that is not named is taken whole."""
        unknown = sorted(set(wanted) - set(self.names))
        if unknown:
            raise InvalidInput(f"no dimension {clip(unknown[0])!r}", hint=f"it has {', '.join(self.names) or 'none'}")
        result = self.everything(now_ms)
        for place, axis in enumerate(self.axes):
            if axis.name in wanted:
                ranges = [_span(axis, part, now_ms) for part in _parts(axis, wanted[axis.name])]
                boxes = [
                    [span if at == place else other.bounds(now_ms) for at, other in enumerate(self.axes)] for span in ranges
                ]
                result &= PartitionSet.of(len(self.axes), boxes)
        return result

    # Documents

    def document(self, partitions: PartitionSet) -> Document:
        """A set as values, in one canonical way."""
        if len(self.axes) == 1:
            axis = self.axes[0]
            return [{axis.name: _values(axis, one.first, one.end)} for one in partitions.ranges]
        return [
            {axis.name: _values(axis, *bounds) for axis, bounds in zip(self.axes, box, strict=True)}
            for box in partitions.boxes()
        ]

    def canonical(self, partitions: PartitionSet) -> str:
        """The text that task ids are made of."""
        return self.spelled(self.document(partitions))

    def spelled(self, document: Document) -> str:
        """A document of this partitioning in its one spelling. Names and periods in ASCII have only one."""
        if all(isinstance(axis, TimeAxis) and axis.name.isascii() for axis in self.axes):
            return msgspec.json.encode(document, order="sorted").decode()
        return canonical_bytes(document).decode()  # type: ignore[arg-type]

    def read(self, document: Document) -> PartitionSet:
        """A set from its document. Values of a list that are no longer there are left out."""
        return self._set([box for one in document for box in self._boxes(one)])

    def recorded(self, document: Document) -> PartitionSet:
        """What a document of the past says of today's partitions: nothing, where the asset was partitioned otherwise."""
        return self._set([box for one in document for box in self._boxes_or_none(one) or ()])

    def is_of_today(self, document: Document) -> bool:
        """Whether a document of the past was written when the asset was partitioned as it is, as far as it shows."""
        return all(self._boxes_or_none(one) is not None for one in document)

    def gone(self, documents: Iterable[Document]) -> dict[str, list[Scalar]]:
        """The values of lists that documents of the past name, and that are not there any more, by dimension."""
        found: dict[str, list[Scalar]] = {}
        for box in (box for one in documents for box in one):
            for axis in self.axes:
                if isinstance(axis, ListAxis) and len(box.get(axis.name, ())) == 1:
                    lost = [_scalar(one) for one in box[axis.name][0] if not _is_known(axis, one)]
                    if lost:
                        found.setdefault(axis.name, []).extend(lost)
        return found

    def _boxes(self, box: Mapping[str, Any]) -> list[list[tuple[int, int]]]:
        if box.keys() != set(self.names):
            raise CorruptObject(f"a set of partitions is not by {', '.join(self.names) or 'nothing'}: {clip(str(box))}")
        return product([_spans(axis, box[axis.name]) for axis in self.axes])

    def _boxes_or_none(self, box: Mapping[str, Any]) -> list[list[tuple[int, int]]] | None:
        try:
            return self._boxes(box)
        except (CorruptObject, InvalidInput):
            return None

    def _set(self, boxes: list[list[tuple[int, int]]]) -> PartitionSet:
        return PartitionSet.box(boxes[0]) if len(boxes) == 1 else PartitionSet.of(len(self.axes), boxes)

    def text(self, partitions: PartitionSet, limit: int = 3) -> str:
        """For people: `date 2025-01-01 to 2025-01-31 (31 partitions)`."""
        if not self.axes:
            return "all of it" if partitions else "nothing"
        shown = [
            " ".join(_said(axis, *bounds) for axis, bounds in zip(self.axes, box, strict=True))
            for box in partitions.boxes()
        ]
        more = "" if len(shown) <= limit else f" and {len(shown) - limit} more ranges"
        count = partitions.count()
        return f"{'; '.join(shown[:limit])}{more} ({count} partition{'s' if count != 1 else ''})" if shown else "nothing"


UNPARTITIONED = Partitioning()


def _parts(axis: Axis, text: str) -> list[str]:
    """What a text asks for, one by one. A value of a list may have a comma of its own."""
    return [text] if _is_value(axis, text) else [part.strip() for part in text.split(",") if part.strip()]


def _span(axis: Axis, text: str, now_ms: int) -> tuple[int, int]:
    first, dots, last = (text, "", "") if _is_value(axis, text) else text.partition("..")
    low, high = axis.bounds(now_ms)
    begin, after = _containing(axis, first) if first else (low, low + 1)
    if not dots:
        return begin, after
    end = _containing(axis, last)[1] if last else high
    if end <= begin and not last:
        raise InvalidInput(f"{axis.name}={clip(text)} begins after the last partition that there is", hint="begin earlier")
    if end <= begin:
        raise InvalidInput(f"{axis.name}={clip(text)} ends before it begins", hint="write the earlier one first")
    return begin, end


def _is_value(axis: Axis, text: str) -> bool:
    """Whether a text as it is names one value of a list."""
    if not isinstance(axis, ListAxis):
        return False
    try:
        axis.parse(text)
    except InvalidInput:
        return False
    return True


def _containing(axis: Axis, text: str) -> tuple[int, int]:
    """The partitions of a value: one day may select assets that are hourly, daily, weekly and monthly at once."""
    if not isinstance(axis, TimeAxis):
        place = axis.ordinal(axis.parse(text))
        return place, place + 1
    day = _day(text) if axis.period is Period.HOURLY else None
    moment = axis.moment(axis.parse(text) if day is None else day)
    last = moment if day is None else moment + timedelta(hours=23)
    return axis.containing(moment), axis.containing(last) + 1


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _values(axis: Axis, first: int, end: int) -> list[Any]:
    if isinstance(axis, TimeAxis):
        return [_period(axis, first), _period(axis, end)]
    return [[_plain(axis.value(one)) for one in range(first, end)]]


def _spans(axis: Axis, stored: Any) -> list[tuple[int, int]]:
    try:
        match axis, stored:
            case TimeAxis(), [first, end]:
                return [(_place(axis, first), _place(axis, end))]
            case ListAxis(), [list() as listed]:
                known = [one for one in listed if _is_known(axis, one)]
                return _runs(sorted(axis.ordinal(_scalar(one)) for one in known))
            case _:
                raise CorruptObject(f"a set of partitions is not one: {clip(str(stored))}")
    except (TypeError, ValueError) as error:
        raise CorruptObject(f"a set of partitions is not one: {clip(str(stored))}") from error


@lru_cache(maxsize=1 << 16)
def _period(axis: TimeAxis, ordinal: int) -> str:
    return _iso(axis.value(ordinal))


@lru_cache(maxsize=1 << 16)
def _place(axis: TimeAxis, text: str) -> int:
    return axis.ordinal(axis.parse(text))


def _is_known(axis: Axis, stored: Any) -> bool:
    try:
        axis.ordinal(_scalar(stored))
    except InvalidInput:
        return False
    return True


def _runs(ordinals: Iterable[int]) -> list[tuple[int, int]]:
    runs = []
    for _, group in groupby(enumerate(ordinals), lambda pair: pair[1] - pair[0]):
        members = [one for _, one in group]
        runs.append((members[0], members[-1] + 1))
    return runs


def product(spans: Sequence[Sequence[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    """Every combination of one span an axis."""
    boxes: list[list[tuple[int, int]]] = [[]]
    for one in spans:
        boxes = [[*box, span] for box in boxes for span in one]
    return boxes


def _iso(value: Scalar) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _plain(value: Scalar) -> Any:
    """A value of a list as JSON; dates carry a tag, or they would come back as text."""
    if isinstance(value, datetime):
        return {"t": value.isoformat()}
    return {"d": value.isoformat()} if isinstance(value, date) else value


def _scalar(stored: Any) -> Scalar:
    match stored:
        case {"d": str(text)}:
            return date.fromisoformat(text)
        case {"t": str(text)}:
            return datetime.fromisoformat(text)
        case None | bool() | int() | str():
            return stored
        case _:
            raise ValueError(stored)


def _said(axis: Axis, first: int, end: int) -> str:
    last = _iso(axis.value(end - 1))
    begin = _iso(axis.value(first))
    return f"{axis.name} {begin}" if end - first == 1 else f"{axis.name} {begin} to {last}"
