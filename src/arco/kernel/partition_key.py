"""The name of one partition: dimension names to scalars, with exactly one spelling per key.

    date=d:2025-01-15,region=s:us-east        name=tag:value, sorted by name in code point order

    s string    i integer    b true or false    d YYYY-MM-DD    t YYYY-MM-DDTHH:MM:SS.ffffffZ    n null

The spelling is part of the stored format: partition identifiers are hashes of it, and other languages produce
it (`tests/fixtures/partition_keys.json`). Distinct keys never share a spelling (hazard 8): names and strings
are percent-encoded by UTF-8 byte, upper-case hex, with only `A-Za-z0-9-._~` left bare, so that no `,` `=` or
`:` of a value can be read as structure. Nothing is normalized: different code points are different keys.

What must never enter: floats, local times, a lenient parser, and any use of the machine's zone or locale.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Self, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import PARTITION_DIMENSIONS_MAX, PARTITION_KEY_BYTES_MAX

Scalar: TypeAlias = str | int | bool | date | datetime | None

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

_ENTRY = re.compile(r"([^=]*)=([^=:]*):([^=]*)")
_ESCAPED = re.compile(r"(?:[A-Za-z0-9\-._~]|%[0-9A-F]{2})*")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PartitionKey:
    """One partition's key; the key without dimensions names the whole of an unpartitioned asset.

    Compared and hashed by spelling alone: to Python `True == 1`, to Arco they are two partitions.
    """

    dimensions: tuple[tuple[str, Scalar], ...] = field(compare=False)
    _canonical: str

    def __init__(self, dimensions: Mapping[str, Scalar]) -> None:
        if len(dimensions) > PARTITION_DIMENSIONS_MAX:
            raise InvalidInput(
                f"partition key has {len(dimensions)} dimensions, more than {PARTITION_DIMENSIONS_MAX}",
                hint="partition by fewer dimensions",
            )
        checked = {_checked_name(name): _checked_value(name, value) for name, value in dimensions.items()}
        ordered = tuple((name, checked[name]) for name in sorted(checked))
        canonical = ",".join(f"{_escape(name)}={_tagged(value)}" for name, value in ordered)
        if len(canonical) > PARTITION_KEY_BYTES_MAX:
            raise _wrong_length()
        object.__setattr__(self, "dimensions", ordered)
        object.__setattr__(self, "_canonical", canonical)

    @classmethod
    def of(cls, dimensions: Mapping[str, Scalar] | None = None, /, **named: Scalar) -> Self:
        """A key from a mapping, from keywords, or from both as long as they do not overlap."""
        given = dimensions or {}
        for name in given.keys() & named.keys():
            raise InvalidInput(f"dimension {clip(name)!r} is given twice", hint="name each dimension once")
        return cls({**given, **named})

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a canonical spelling; any other spelling of the same key is refused, never repaired."""
        if len(text) > PARTITION_KEY_BYTES_MAX:
            raise _wrong_length()
        dimensions: dict[str, Scalar] = {}
        for entry in text.split(",") if text else ():
            name, value = _parse_entry(entry)
            if name in dimensions:
                raise _wrong_text(f"dimension {clip(name)!r} appears twice")
            dimensions[name] = value
        if list(dimensions) != sorted(dimensions):
            raise _wrong_text("its dimensions are not sorted by code point")
        key = cls(dimensions)
        if key._canonical != text:
            raise _wrong_text("characters that stay bare are percent-encoded")
        return key

    def canonical(self) -> str:
        """The spelling, in ASCII; empty for an unpartitioned asset."""
        return self._canonical

    def __iter__(self) -> Iterator[tuple[str, Scalar]]:
        return iter(self.dimensions)

    def __str__(self) -> str:
        return self._canonical

    def __repr__(self) -> str:
        return f"PartitionKey.parse({self._canonical!r})"


# --- values in


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidInput(f"a dimension name is a {type(name).__name__}", hint="use a string")
    if not name:
        raise InvalidInput("a dimension name is empty", hint="give every dimension a name")
    return str.__str__(name)


def _checked_value(name: str, value: object) -> Scalar:
    """The plain value that is stored: equal keys hold equal values of equal types, whatever was passed in."""
    if value is None or isinstance(value, bool):  # before int: a bool is one
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if not _INT64_MIN <= value <= _INT64_MAX:
            raise _wrong_value(name, "an integer outside 64 bits", "use a string")
        return int.__int__(value)
    # Exact types: a subclass may carry more than it shows (nanoseconds), and two keys would become one.
    if type(value) is datetime:
        return _in_utc(name, value)
    if type(value) is date:
        return value
    if isinstance(value, float):
        raise _wrong_value(name, "a float, which has no exact spelling", "use an integer or a string")
    kind = f"{type(value).__module__}.{type(value).__name__}"
    raise _wrong_value(name, f"a {clip(kind)}", "use str, int, bool, None, datetime.date or datetime.datetime")


def _in_utc(name: str, value: datetime) -> datetime:
    if value.utcoffset() is None:
        raise _wrong_value(name, "a timestamp without a time zone", "attach one, for example datetime.UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise _wrong_value(name, "a timestamp outside the years 1 to 9999 in UTC", "use a date within them") from None


def _tagged(value: Scalar) -> str:
    match value:
        case None:
            return "n:null"
        case bool():
            return "b:true" if value else "b:false"
        case str():
            return f"s:{_escape(value)}"
        case int():
            return f"i:{value}"
        case datetime():  # before date: a datetime is one
            return f"t:{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
        case date():
            return f"d:{value.isoformat()}"


def _escape(text: str) -> str:
    if len(text) > PARTITION_KEY_BYTES_MAX:
        raise _wrong_length()
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise InvalidInput(
            f"partition key holds a lone surrogate in {clip(text)!r}", hint="use text that is valid Unicode"
        ) from None


# --- text in


def _parse_entry(entry: str) -> tuple[str, Scalar]:
    parts = _ENTRY.fullmatch(entry)
    if parts is None:
        raise _wrong_text(f"{clip(entry)!r} is not name=tag:value")
    name, tag, value = parts.groups()
    return _unescape(name), _parse_value(tag, value)


def _parse_value(tag: str, value: str) -> Scalar:
    match tag, value:
        case "n", "null":
            return None
        case "b", "true" | "false":
            return value == "true"
        case "s", _:
            return _unescape(value)
        case "i", _ if _INTEGER.fullmatch(value):
            return int(value)
        case "d", _ if _DATE.fullmatch(value):
            return _parse_time(date, value)
        case "t", _ if _TIMESTAMP.fullmatch(value):
            return _parse_time(datetime, value)
        case (("n" | "b" | "i" | "d" | "t"), _):
            raise _wrong_text(f"{clip(value)!r} is not the spelling of a value with tag {tag}")
        case _:
            raise _wrong_text(f"{clip(tag)!r} is not one of the tags s, i, b, d, t, n")


def _parse_time(kind: type[date] | type[datetime], value: str) -> date | datetime:
    try:
        return kind.fromisoformat(value)
    except ValueError:
        raise _wrong_text(f"{value!r} is not a time that exists in the years 1 to 9999") from None


def _unescape(text: str) -> str:
    if not _ESCAPED.fullmatch(text):
        raise _wrong_text(f"{clip(text)!r} is not percent-encoded with upper-case hex")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise _wrong_text(f"{clip(text)!r} does not decode to UTF-8") from None


# --- refusals


def _wrong_value(name: str, what: str, way_out: str) -> InvalidInput:
    return InvalidInput(f"dimension {clip(name)!r} is {what}", hint=way_out)


def _wrong_text(reason: str) -> InvalidInput:
    return InvalidInput(f"not a canonical partition key: {reason}", hint="use the text that Arco wrote, unchanged")


def _wrong_length() -> InvalidInput:
    return InvalidInput(
        f"partition key is longer than {PARTITION_KEY_BYTES_MAX} bytes", hint="use shorter names and strings"
    )
