"""Checks as expressions of Spark: the verdict of a row, and what an aggregate counts.

A verdict is true for a row that is right; false and NULL are failures, so rows that pass are counted and the rest has failed.
Built-in kinds look at the column's type first: what Spark could only compare by a cast that fails on some row is refused here,
so that none of them can stop a job half-way. What must never enter: running a job.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as f

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.quality.checks import Check, Level
from arco.quality.kinds import (
    AcceptedValues,
    ColumnCheck,
    Fresh,
    InRange,
    Matches,
    NotNull,
    RowCount,
    SqlPredicate,
    ValueCheck,
)
from arco.quality.results import CheckResult, judged_count, judged_freshness, judged_rows
from arco.quality.schemas import quoted

_MOMENTS = (types.DateType, types.TimestampType, types.TimestampNTZType)
_LONG_MAX = 2**63 - 1
# A group that is repeated can exhaust Java's stack on a long text.
_REPEATED_GROUP = re.compile(r"\)[*+{]")


def is_own_code(check: Check) -> bool:
    """Whether the rule of a row was written by the project: what it does to which columns is not known here."""
    return isinstance(check, (SqlPredicate, ColumnCheck))


def cannot_raise(check: Check) -> bool:
    """Whether measuring it can be left to the job that writes: a check that raises there would take the output with it."""
    if check.level not in {Level.ROW, Level.AGGREGATE} or is_own_code(check):
        return False
    return not (isinstance(check, Matches) and _REPEATED_GROUP.search(check.regex))


def verdict(check: Check, rows: DataFrame) -> Column:
    """True for a row that is right. Raises where the check does not fit the rows."""
    match check:
        case NotNull():
            return reduce(and_, (find(rows.schema, name)[0].isNotNull() for name in check.columns))
        case InRange():
            return _or_null(check, rows, _in_range)
        case AcceptedValues():
            return _or_null(check, rows, _accepted)
        case Matches():
            return _or_null(check, rows, _matches)
        case SqlPredicate():
            return f.expr(check.predicate)
        case ColumnCheck():
            return _called(check, rows)
        case _:
            raise InvalidInput(f"{check.kind} has no verdict for a row")


def aggregate(check: Check, rows: DataFrame) -> Column:
    """The one number that an aggregate over the rows finds for a row rule or an aggregate; `judged` knows what it means."""
    match check:
        case RowCount():
            return f.count(f.lit(1))
        case Fresh():
            return _newest(check, rows)
        case _:
            return f.count_if(verdict(check, rows))


def judged(check: Check, number: int | None, *, total_rows: int, logical_time_ms: int) -> CheckResult:
    """What `aggregate` found, judged."""
    match check:
        case RowCount():
            return judged_count(check, rows=number or 0)
        case Fresh():
            latest_ms = None if number is None else number // 1000
            return judged_freshness(check, latest_ms=latest_ms, logical_time_ms=logical_time_ms)
        case _:
            found = judged_rows(check, failed_rows=total_rows - (number or 0), total_rows=total_rows)
            # Rows that are counted here are in the output: only who splits them off may say that they are set aside.
            return replace(found, quarantined_rows=0)


def _newest(check: Fresh, rows: DataFrame) -> Column:
    """The newest value, as microseconds. A date is its first moment in UTC, which is the zone of every session."""
    value, kind = find(rows.schema, check.column)
    if not isinstance(kind, _MOMENTS):
        raise InvalidInput(f"column {clip(check.column)!r} is {kind.simpleString()}, neither a time nor a date")
    return f.unix_micros(f.max(value).cast("timestamp"))


def find(schema: types.StructType, name: str) -> tuple[Column, types.DataType]:
    """A column and its type. A name with dots is a path into structs, unless there is a column of that very name."""
    top = _field(schema, name)
    path: list[str] = []
    found: types.DataType = schema
    for part in (name,) if top is not None else name.split("."):
        field = _field(found, part) if isinstance(found, types.StructType) else None
        if field is None:
            raise InvalidInput(f"there is no column {clip(name)!r}")
        path.append(field.name)
        found = field.dataType
    return f.col(quoted(tuple(path))), found


def _field(schema: types.StructType, name: str) -> types.StructField | None:
    same = [one for one in schema.fields if one.name == name]
    # As Spark itself: letter case does not count, as long as it leaves no doubt.
    alike = same or [one for one in schema.fields if one.name.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else None


def _or_null(check: ValueCheck, rows: DataFrame, rule: Callable[[Any, Column, types.DataType], Column]) -> Column:
    value, kind = find(rows.schema, check.column)
    right = rule(check, value, kind)
    # Said in full: Spark takes a whole number for less than a decimal beyond its type without looking whether it is NULL.
    return value.isNull() | right if check.allow_null else value.isNotNull() & right


def _in_range(check: InRange, value: Column, kind: types.DataType) -> Column:
    parts = []
    if check.min is not None:
        low = literal(check.min, kind, check.column)
        parts.append(value >= low if check.inclusive else value > low)
    if check.max is not None:
        high = literal(check.max, kind, check.column)
        parts.append(value <= high if check.inclusive else value < high)
    elif isinstance(kind, (types.FloatType, types.DoubleType)):
        # To Spark NaN is greater than every number. It is in no range.
        parts.append(~f.isnan(value))
    return reduce(and_, parts)


def _accepted(check: AcceptedValues, value: Column, kind: types.DataType) -> Column:
    return value.isin([literal(one, kind, check.column) for one in check.values])


def _matches(check: Matches, value: Column, kind: types.DataType) -> Column:
    if not isinstance(kind, types.StringType):
        raise InvalidInput(f"column {clip(check.column)!r} is {kind.simpleString()}, not text")
    return value.rlike(check.whole)


def literal(value: Any, kind: types.DataType, column: str) -> Column:
    """A value to compare a column of this type with, without a cast of the column that could fail."""
    match value:
        case bool():
            fits, made = isinstance(kind, types.BooleanType), f.lit(value)
        case int() | float() | Decimal():
            fits, made = isinstance(kind, types.NumericType), _number(value, kind)
        case str():
            fits, made = isinstance(kind, types.StringType), f.lit(value)
        case datetime():
            fits, made = isinstance(kind, _MOMENTS), _moment(value)
        case date():
            fits, made = isinstance(kind, _MOMENTS), f.lit(value.isoformat()).cast("date")
        case _:
            fits, made = False, f.lit(None)
    if not fits:
        raise InvalidInput(
            f"column {clip(column)!r} is {kind.simpleString()}, which is not compared with {clip(repr(value))}",
            hint="compare it with values of its own type",
        )
    return made


def _number(value: float | Decimal, kind: types.DataType) -> Column:
    if isinstance(value, int) and abs(value) > _LONG_MAX:
        value = Decimal(value)
    # 0.1 as a float is not 0.1 as a double: in a column of floats it is the float that is meant.
    return f.lit(value).cast("float") if isinstance(kind, types.FloatType) else f.lit(value)


def _moment(value: datetime) -> Column:
    """As text: PySpark would take a time without a zone for one of the machine's own zone."""
    if value.tzinfo is None:
        return f.lit(value.isoformat(" ")).cast("timestamp_ntz")
    return f.lit(f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}Z").cast("timestamp")


def _called(check: ColumnCheck, rows: DataFrame) -> Column:
    made = call(check.function, rows)
    if not isinstance(made, Column):
        raise InvalidInput(f"{check.name} returned {type(made).__name__}, not a Column", hint="return a Spark Column")
    return made


def call(function: Callable[..., Any], rows: DataFrame) -> Any:
    """A function of the project's own takes the rows, or nothing."""
    return function(rows) if inspect.signature(function).parameters else function()
