"""What the footers of an output prove: checks that need no pass over the rows at all.

A footer counts rows and nulls exactly, and bounds the values of a column. Where the bounds lie within what a check allows, no
row can fail it; where they do not, how many rows fail is not known, and nothing is said. Listed values are proved where all
that lies between the bounds is listed: whole numbers without a gap, or one value alone. What is said here is what counting
would say: a comparison that Spark makes in another type is left to Spark, and so are floats, whose NaN no bound shows.

What must never enter: Spark, and a guess.
"""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.types import NestedField, PrimitiveType

from arco.iceberg.schemas import Column, columns
from arco.iceberg.shape import JsonObject
from arco.quality.checks import Check
from arco.quality.kinds import AcceptedValues, Fresh, InRange, NotNull, RowCount
from arco.quality.results import CheckResult, judged_count, judged_freshness, judged_rows
from arco.servo.execute.data_files import Written
from arco.servo.execute.values import python_value

_DAY_MS = 86_400_000
_WHOLE = {"int", "long"}
_MOMENTS = {"date", "timestamp", "timestamptz"}


def proved(
    checks: Iterable[Check], written: Written, schema: JsonObject, *, logical_time_ms: int
) -> tuple[CheckResult, ...]:
    """The results that need no counting. Checks that set rows aside have theirs from whoever split them."""
    facts = _Facts(written, schema, logical_time_ms)
    found = (facts.result(check) for check in checks if not check.quarantine_rows)
    return tuple(result for result in found if result is not None)


def needs_rows(check: Check, schema: JsonObject) -> bool:
    """Whether no footer can ever prove it: then it is worth counting in the pass that writes."""
    named = _by_name(columns(schema))
    match check:
        case RowCount():
            return False
        case NotNull():
            return not all(name in named and named[name].is_leaf for name in check.columns)
        case InRange():
            column = named.get(check.column)
            return column is None or not _all_comparable(check, column)
        case AcceptedValues():
            column = named.get(check.column)
            return column is None or not _is_without_gap(check, column)
        case Fresh():
            column = named.get(check.column)
            return column is None or column.type not in _MOMENTS
        case _:
            return True


class _Facts:
    """What is known of one output."""

    def __init__(self, written: Written, schema: JsonObject, logical_time_ms: int) -> None:
        self._files = written.files
        self._rows = written.rows
        self._columns = _by_name(columns(schema))
        self._logical_time_ms = logical_time_ms

    def result(self, check: Check) -> CheckResult | None:
        match check:
            case RowCount():
                return judged_count(check, rows=self._rows)
            case NotNull():
                return self._not_null(check)
            case InRange():
                return self._in_range(check)
            case AcceptedValues():
                return self._accepted(check)
            case Fresh():
                return self._fresh(check)
            case _:
                return None

    def _not_null(self, check: NotNull) -> CheckResult | None:
        counts = [self._nulls(name) for name in check.columns]
        known = [count for count in counts if count is not None]
        # Nulls of two columns may be in the same rows: then their sum says nothing.
        if len(known) < len(counts) or sum(count > 0 for count in known) > 1:
            return None
        return judged_rows(check, failed_rows=max(known), total_rows=self._rows)

    def _in_range(self, check: InRange) -> CheckResult | None:
        column = self._columns.get(check.column)
        nulls = self._nulls(check.column)
        if column is None or nulls is None or not _all_comparable(check, column):
            return None
        if nulls and not check.allow_null:
            return None
        for file in self._files:
            found = _bounds(file, column)
            if found is None or not _within(check, *found):
                return None
        return judged_rows(check, failed_rows=0, total_rows=self._rows)

    def _accepted(self, check: AcceptedValues) -> CheckResult | None:
        column = self._columns.get(check.column)
        nulls = self._nulls(check.column)
        if column is None or nulls is None or (nulls and not check.allow_null):
            return None
        if not all(_is_of(column.type, value) for value in check.values):
            return None
        listed = set(check.values)
        for file in self._files:
            found = _bounds(file, column)
            if found is None or not _all_listed(listed, *found):
                return None
        return judged_rows(check, failed_rows=0, total_rows=self._rows)

    def _fresh(self, check: Fresh) -> CheckResult | None:
        column = self._columns.get(check.column)
        if column is None or column.type not in _MOMENTS:
            return None
        newest: int | None = None
        for file in self._files:
            bound = (file.upper_bounds or {}).get(column.field_id)
            if bound is None:
                if (file.null_value_counts or {}).get(column.field_id) != file.record_count:
                    return None
                continue
            stored = _stored(column, bound)
            moment_ms = stored * _DAY_MS if column.type == "date" else stored // 1000
            newest = moment_ms if newest is None else max(newest, moment_ms)
        return judged_freshness(check, latest_ms=newest, logical_time_ms=self._logical_time_ms)

    def _nulls(self, name: str) -> int | None:
        column = self._columns.get(name)
        if column is None or not column.is_leaf:
            return None
        counts = [(file.null_value_counts or {}).get(column.field_id) for file in self._files]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


def _by_name(found: Iterable[Column]) -> Mapping[str, Column]:
    """Columns outside of lists and maps, by their path; a path that could be two columns is none."""
    named: dict[str, list[Column]] = {}
    for column in found:
        if _has_one_value_a_row(column):
            named.setdefault(column.full_name, []).append(column)
    return {name: same[0] for name, same in named.items() if len(same) == 1}


def _has_one_value_a_row(column: Column) -> bool:
    above = column.parent
    while above is not None:
        if above.type["type"] != "struct":
            return False
        above = above.parent
    return True


def _all_comparable(check: InRange, column: Column) -> bool:
    return all(_comparable(column.type, bound, check) for bound in (check.min, check.max) if bound is not None)


def _comparable(kind: Any, bound: Any, check: InRange) -> bool:
    """Whether Python compares as Spark does. A bound that is a float makes Spark compare floats: rounding moves no value
    across a bound, but it may move one onto it."""
    match bound:
        case bool():
            return False
        case int() | Decimal():
            return kind in _WHOLE or _is_decimal(kind)
        case float():
            return (kind in _WHOLE or _is_decimal(kind)) and check.inclusive
        case str():
            return bool(kind == "string")
        case datetime():
            return bool(kind == ("timestamp" if bound.tzinfo is None else "timestamptz"))
        case date():
            return bool(kind == "date")
        case _:
            return False


def _is_of(kind: Any, value: Any) -> bool:
    """Whether a value is of a column's own type, so that Spark casts neither."""
    match value:
        case bool() | datetime():
            return False
        case int():
            return kind in _WHOLE
        case str():
            return bool(kind == "string")
        case date():
            return bool(kind == "date")
        case _:
            return False


def _is_without_gap(check: AcceptedValues, column: Column) -> bool:
    """Whether bounds can prove it of whole numbers that differ. The values are sorted, and none is there twice."""
    if not all(type(value) is int and _is_of(column.type, value) for value in check.values):
        return False
    return int(check.values[-1]) - int(check.values[0]) == len(check.values) - 1  # type: ignore[arg-type]


def _all_listed(listed: set[Any], lowest: Any, highest: Any) -> bool:
    """Whether every value that can lie between two bounds is listed."""
    if lowest is None or lowest == highest:
        return lowest is None or lowest in listed
    if type(lowest) is not int or highest - lowest >= len(listed):
        return False
    return all(value in listed for value in range(lowest, highest + 1))


def _is_decimal(kind: Any) -> bool:
    return isinstance(kind, str) and kind.startswith("decimal")


def _within(check: InRange, lowest: Any, highest: Any) -> bool:
    if lowest is None:
        return True  # nothing but nulls, which were looked at before
    if check.inclusive:
        return (check.min is None or lowest >= check.min) and (check.max is None or highest <= check.max)
    return (check.min is None or lowest > check.min) and (check.max is None or highest < check.max)


def _bounds(file: DataFile, column: Column) -> tuple[Any, Any] | None:
    """The lowest and the highest value, or bounds of them; two Nones where every value is null."""
    low = (file.lower_bounds or {}).get(column.field_id)
    high = (file.upper_bounds or {}).get(column.field_id)
    if low is None or high is None:
        nulls = (file.null_value_counts or {}).get(column.field_id)
        return (None, None) if nulls == file.record_count else None
    return python_value(column.type, _stored(column, low)), python_value(column.type, _stored(column, high))


def _stored(column: Column, bound: bytes) -> Any:
    kind = NestedField.model_validate({"id": 1, "name": "one", "required": False, "type": column.type}).field_type
    return from_bytes(kind, bound) if isinstance(kind, PrimitiveType) else None
