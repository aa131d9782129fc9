"""What primitive types, transforms and default values mean, as PyIceberg knows it.

The one file of this room that imports PyIceberg. It takes half a second to load, so it is loaded when it is first asked:
most commands have no question for it. A server loads it before it listens. What PyIceberg does not know yet (`variant`,
unquoted reference systems of geometries) is filled in here. What must never enter: the structure of a schema or a spec.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.transforms import Transform
    from pyiceberg.types import PrimitiveType

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
_NANO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?")


@cache
def _pyiceberg(module: str) -> Any:
    return import_module(f"pyiceberg.{module}")


def load() -> None:
    """Load PyIceberg now, so that no request waits for it."""
    for module in ("conversions", "transforms", "types"):
        _pyiceberg(module)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive type that may stand in a schema."""

    text: str
    min_format_version: int


@lru_cache(maxsize=1024)
def leaf(text: str) -> Leaf | None:
    """The primitive type of that spelling, or None; PyIceberg's parser takes `decimal(9,2)x` too, so ours is stricter."""
    if text in _SINCE_V1 or _is_fixed(text) or _is_decimal(text):
        return Leaf(text, 1)
    if text in _SINCE_V3 or _GEO.fullmatch(text):
        return Leaf(text, 3)
    return None


@lru_cache(maxsize=1024)
def known_transform(text: str) -> bool:
    """Whether files can be laid out by it; a spelling nobody knows would make a table that nobody can write."""
    return _transform(text) is not None


@lru_cache(maxsize=4096)
def can_transform(transform: str, primitive: str) -> bool:
    """Whether values of the primitive type can go through the transform; of what we do not know, nothing can be said."""
    function = _transform(transform)
    if function is None:
        return False
    if is_void(transform):
        return True
    if leaf(primitive) is None or primitive.startswith(_OPAQUE):
        return False
    return function.can_transform(_pyiceberg_type(primitive))


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
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "binary":
            return isinstance(value, str) and _HEX.fullmatch(value) is not None
        case "timestamp_ns" | "timestamptz_ns":
            found = _NANO.fullmatch(value) if isinstance(value, str) else None
            return found is not None and (found[1] is not None) == (primitive == "timestamptz_ns")
        case "date" | "time" | "timestamp" | "timestamptz" | "uuid":
            return isinstance(value, str) and _reads(primitive, value)
        case _:
            return isinstance(value, str) and _is_parametric_default(primitive, value)


def _is_parametric_default(primitive: str, value: str) -> bool:
    if fixed := _FIXED.fullmatch(primitive):
        return _HEX.fullmatch(value) is not None and len(value) == 2 * int(fixed[1])
    # unknown, variant, geometry and geography take no default but null.
    return _DECIMAL.fullmatch(primitive) is not None and _DECIMAL_TEXT.fullmatch(value) is not None


def _reads(primitive: str, value: str) -> bool:
    try:
        _pyiceberg("conversions").from_json(_pyiceberg_type(primitive), value)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _is_fixed(text: str) -> bool:
    found = _FIXED.fullmatch(text)
    return found is not None and int(found[1]) > 0


def _is_decimal(text: str) -> bool:
    found = _DECIMAL.fullmatch(text)
    return found is not None and 1 <= int(found[1]) <= _DECIMAL_PRECISION_MAX


def _pyiceberg_type(primitive: str) -> "PrimitiveType":
    types = _pyiceberg("types")
    parsed = types.IcebergType.model_validate(primitive)
    if not isinstance(parsed, types.PrimitiveType):
        raise TypeError(f"{primitive} is not primitive")
    primitive_type: PrimitiveType = parsed
    return primitive_type


def _transform(text: str) -> "Transform[Any, Any] | None":
    if not _TRANSFORM_TEXT.fullmatch(text):
        return None
    transforms = _pyiceberg("transforms")
    parsed: Transform[Any, Any] = transforms.parse_transform(text)
    return None if isinstance(parsed, transforms.UnknownTransform) else parsed
