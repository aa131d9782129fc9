"""Partition transforms as Spark expressions, equal to the table format's for every value (tests compare them with PyIceberg).

Times are counted from 1970 in UTC by arithmetic, not through Spark's calendar, so that no session setting can move a row to
another day. Hashes: Spark's `hash` is the format's murmur for numbers when its seed is 0, and `hash(k)` is 0 for one k; for
bytes the two differ, so texts are hashed by Python on the executors. What has no equal here is refused with the reason.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mmh3
import pyarrow as pa
from pyiceberg.utils.decimal import decimal_to_bytes
from pyspark.sql import Column
from pyspark.sql import functions as f

from arco.iceberg.schemas import columns_by_id
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.quality.schemas import quoted
from arco.servo.execute.partition_text import kind_of

_SEED_ZERO = -1693959553  # hash(this int) is 0
_HOUR_US = 3_600_000_000
_TIMES = {"date", "timestamp", "timestamptz"}
_WITH_WIDTH = re.compile(r"(bucket|truncate)\[(\d+)]")


@dataclass(frozen=True, slots=True)
class Part:
    """One field of a partition spec: its value as the table format stores it (days, microseconds), and its type."""

    name: str
    value: Column
    kind: str


def parts_of(spec: JsonObject, schema: JsonObject) -> list[Part]:
    """The fields of a partition spec, in order."""
    columns = columns_by_id(schema)
    found = []
    for field in spec["fields"]:
        source = columns.get(field["source-id"])
        if field["transform"] == "void" or source is None:
            found.append(Part(field["name"], f.lit(None).cast("int"), "void"))
            continue
        value, kind = transformed(field["transform"], f.col(quoted(source.path)), source.type, field["name"])
        found.append(Part(field["name"], _stored(field["transform"], value, kind), kind))
    return found


def sorts_of(order: JsonObject, schema: JsonObject) -> list[Column]:
    """The fields of a sort order, in order."""
    columns = columns_by_id(schema)
    found = []
    for place, field in enumerate(order["fields"]):
        source = columns[field["source-id"]]
        value, _ = transformed(field["transform"], f.col(quoted(source.path)), source.type, f"sort field {place}")
        first = field["null-order"] == "nulls-first"
        if field["direction"] == "asc":
            found.append(value.asc_nulls_first() if first else value.asc_nulls_last())
        else:
            found.append(value.desc_nulls_first() if first else value.desc_nulls_last())
    return found


def _stored(transform: str, value: Column, kind: str) -> Column:
    if transform != "identity" or kind not in _TIMES:
        return value
    return f.unix_date(value) if kind == "date" else f.unix_micros(value.cast("timestamp"))


def transformed(transform: str, column: Column, kind: str, name: str) -> tuple[Column, str]:
    """A transform of a column of a type, and the type of its result."""
    plain = kind.replace(" ", "")
    width = _WITH_WIDTH.fullmatch(transform)
    if width is not None and width[1] == "bucket":
        return _bucket(column, plain, int(width[2]), name), kind_of(transform, plain)
    if width is not None:
        return _truncate(column, plain, int(width[2]), name), kind_of(transform, plain)
    if transform == "identity":
        if plain in {"float", "double"}:
            raise _refusal(name, transform, plain, "one value can have several representations")
        return column, kind_of(transform, plain)
    if transform in {"year", "month", "day", "hour"} and plain in _TIMES:
        return _time(transform, column, plain, name), kind_of(transform, plain)
    raise _refusal(name, transform, plain, "Spark has no equal of it")


def _time(transform: str, column: Column, kind: str, name: str) -> Column:
    if transform == "hour":
        return _hours(column, kind, name)
    days = _periods(column, 24 * _HOUR_US) if kind == "timestamptz" else f.unix_date(column.cast("date"))
    if transform == "day":
        return days
    date = f.date_from_unix_date(days)
    years = f.year(date) - 1970
    return years if transform == "year" else years * 12 + f.month(date) - 1


def _hours(column: Column, kind: str, name: str) -> Column:
    if kind == "timestamptz":
        return _periods(column, _HOUR_US)
    if kind == "timestamp":
        return f.unix_date(column.cast("date")) * 24 + f.hour(column)
    raise _refusal(name, "hour", kind, "a date has no hours")


def _periods(column: Column, period_us: int) -> Column:
    """Whole periods since 1970, rounded down before it too."""
    micros, period = f.unix_micros(column), f.lit(period_us).cast("long")
    return f.call_function("div", micros - f.pmod(micros, period), period).cast("int")


def _bucket(column: Column, kind: str, buckets: int, name: str) -> Column:
    if kind in {"int", "long"}:
        hashed = _hash_long(column.cast("long"))
    elif kind == "date":
        hashed = _hash_long(f.unix_date(column).cast("long"))
    elif kind in _TIMES:
        # Without a zone it counts as UTC, which is what the session's zone is fixed to.
        hashed = _hash_long(f.unix_micros(column.cast("timestamp")))
    elif kind in {"string", "binary"}:
        hashed = _hash_bytes(column.cast("binary"))
    elif kind.startswith("decimal"):
        hashed = _hash_decimal(column)
    else:
        raise _refusal(name, f"bucket[{buckets}]", kind, "its hash has no equal in Spark")
    # A hash of null is the seed's, not null.
    return f.when(column.isNotNull(), f.pmod(hashed.bitwiseAND(f.lit(2**31 - 1)), f.lit(buckets)))


def _hash_long(value: Column) -> Column:
    return f.hash(f.lit(_SEED_ZERO), value)


def _truncate(column: Column, kind: str, width: int, name: str) -> Column:
    if kind in {"int", "long"}:
        return column - f.pmod(column, f.lit(width).cast(kind if kind == "int" else "long"))
    if kind == "string":
        return f.substring(column, 1, width)
    if kind == "binary":
        return f.substring(column, 1, width)
    if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        step = f.lit(width).cast(f"decimal({decimal[1]},0)") if decimal[2] == "0" else _scaled(width, kind, int(decimal[2]))
        return (column - f.pmod(column, step)).cast(kind)
    raise _refusal(name, f"truncate[{width}]", kind, "Spark has no equal of it")


def _scaled(width: int, kind: str, scale: int) -> Column:
    whole, part = divmod(width, 10**scale)
    return f.lit(f"{whole}.{part:0{scale}}").cast(kind)


def _python_hash(work: Callable[[Any], int]) -> Callable[[pa.Array], pa.Array]:
    def hashed(values: pa.Array) -> pa.Array:
        # Many rows share a value where buckets are worth having: each is hashed once.
        encoded = values.dictionary_encode()
        known = [None if one is None else work(one) for one in encoded.dictionary.to_pylist()]
        return pa.array(known, pa.int32()).take(encoded.indices)

    return hashed


def _hash_bytes(column: Column) -> Column:
    return f.arrow_udf(_python_hash(mmh3.hash), "int")(column)  # type: ignore[attr-defined, no-any-return]


def _hash_decimal(column: Column) -> Column:
    hashed = _python_hash(lambda value: mmh3.hash(decimal_to_bytes(value)))
    return f.arrow_udf(hashed, "int")(column)  # type: ignore[attr-defined, no-any-return]


def _refusal(name: str, transform: str, kind: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"partition field {clip(name)!r} is {transform} of a {kind}, which cannot be written: {reason}",
        hint="partition by another transform or type",
    )
