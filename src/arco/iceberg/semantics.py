"""What primitive types, transforms and default values mean, as PyIceberg knows it.

PyIceberg is asked through `reference.py`, and only where a rule is really its own: its start-up time is felt by every command,
and stored tables can be read without it. What PyIceberg does not know yet (`variant`, unquoted reference systems of geometries)
is filled in here. What must never enter: the structure of a schema or a spec.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from arco.kernel.limits import COLUMN_TYPE_CHARS_MAX

_SINCE_V1 = frozenset(
    ["boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid", "binary"]
)
_SINCE_V3 = frozenset(["unknown", "variant", "timestamp_ns", "timestamptz_ns", "geometry", "geography"])
_FIXED = re.compile(r"fixed\[([0-9]{1,9})\]")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_GEO = re.compile(r"(?:geometry|geography)\([^()\x00-\x1f]{1,200}\)")
_DECIMAL_PRECISION_MAX = 38

# Width and number of buckets are positive 32-bit numbers; PyIceberg's parser looks for digits anywhere.
_TRANSFORM_TEXT = re.compile(r"identity|void|year|month|day|hour|(?:bucket|truncate)\[[1-9][0-9]{0,8}\]")

# Values of these lie in no order and have no hash: nothing but `void` can be made of them.
_OPAQUE = ("variant", "geometry", "geography")

_INT32, _INT64 = 2**31, 2**63
_DECIMAL_TEXT = re.compile(r"-?[0-9]{1,38}(?:\.[0-9]{1,38})?(?:E[+-]?[0-9]{1,2})?")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,%d})?"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
# Python reads more spellings than Java, and Java refuses a table for a default that it cannot read: what both read.
_TEXTS = {
    "date": re.compile(_DAY),
    "time": re.compile(_CLOCK % 6),
    "timestamp": re.compile(f"{_DAY}T{_CLOCK % 6}"),
    "timestamptz": re.compile(rf"{_DAY}T{_CLOCK % 6}\+00:00"),
    "timestamp_ns": re.compile(f"{_DAY}T{_CLOCK % 9}"),
    "timestamptz_ns": re.compile(rf"{_DAY}T{_CLOCK % 9}\+00:00"),
    "uuid": re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive type that may stand in a schema."""

    text: str
    min_format_version: int


def leaf(text: str) -> Leaf | None:
    """The primitive type of that spelling, or None; PyIceberg's parser takes `decimal(9,2)x` too, so ours is stricter."""
    return _leaf(text) if len(text) <= COLUMN_TYPE_CHARS_MAX else _leaf.__wrapped__(text)


@lru_cache(maxsize=1024)
def _leaf(text: str) -> Leaf | None:
    if text in _SINCE_V1 or _is_fixed(text) or _is_decimal(text):
        return Leaf(text, 1)
    if text in _SINCE_V3 or _GEO.fullmatch(text):
        return Leaf(text, 3)
    return None


def known_transform(text: str) -> bool:
    """Whether files can be laid out by it; a spelling nobody knows would make a table that nobody can write."""
    return _TRANSFORM_TEXT.fullmatch(text) is not None


def can_transform(transform: str, primitive: str) -> bool:
    """Whether values of the primitive type can go through the transform; of what we do not know, nothing can be said."""
    is_short = len(transform) + len(primitive) <= COLUMN_TYPE_CHARS_MAX
    return (_can_transform if is_short else _can_transform.__wrapped__)(transform, primitive)


@lru_cache(maxsize=4096)
def _can_transform(transform: str, primitive: str) -> bool:
    if not known_transform(transform):
        return False
    if is_void(transform):
        return True
    if leaf(primitive) is None or primitive.startswith(_OPAQUE):
        return False
    from arco.iceberg import reference  # noqa: PLC0415 - see above

    return reference.can_transform(transform, primitive)


def is_void(transform: str) -> bool:
    return transform == "void"


def check_default(primitive: str, value: Any) -> bool:
    """Whether a JSON value can be read as a default of the primitive type, by the format's single-value rules."""
    match primitive:
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bound = _INT32 if primitive == "int" else _INT64
            return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound
        case "float" | "double":
            return isinstance(value, float)  # 1.0, not 1: Java's reader takes no whole number for it
        case "string":
            return isinstance(value, str)
        case "binary":
            return isinstance(value, str) and _HEX.fullmatch(value) is not None
        case "date" | "time" | "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns" | "uuid":
            return isinstance(value, str) and _TEXTS[primitive].fullmatch(value) is not None and _exists(primitive, value)
        case _:
            return isinstance(value, str) and _is_parametric_default(primitive, value)


def _exists(primitive: str, value: str) -> bool:
    """Whether there is such a day and such a time of it."""
    from arco.iceberg import reference  # noqa: PLC0415 - see above

    # PyIceberg reads no default of nanoseconds: it is asked without the last three of them.
    micros = re.sub(r"(\.[0-9]{6})[0-9]{1,3}", r"\1", value) if primitive.endswith("_ns") else value
    return reference.can_read(primitive.removesuffix("_ns"), micros)


def _is_parametric_default(primitive: str, value: str) -> bool:
    if fixed := _FIXED.fullmatch(primitive):
        return _HEX.fullmatch(value) is not None and len(value) == 2 * int(fixed[1])
    # unknown, variant, geometry and geography take no default but null.
    decimal = _DECIMAL.fullmatch(primitive)
    return decimal is not None and _is_decimal_default(value, int(decimal[1]), int(decimal[2]))


def _is_decimal_default(value: str, precision: int, scale: int) -> bool:
    """Written with all its digits: 1.50 for two after the point. Java refuses any other scale."""
    if _DECIMAL_TEXT.fullmatch(value) is None:
        return False
    _, digits, exponent = Decimal(value).as_tuple()
    return exponent == -scale and len(digits) <= precision


def _is_fixed(text: str) -> bool:
    found = _FIXED.fullmatch(text)
    return found is not None and int(found[1]) > 0


def _is_decimal(text: str) -> bool:
    found = _DECIMAL.fullmatch(text)
    return found is not None and 1 <= int(found[1]) <= _DECIMAL_PRECISION_MAX
