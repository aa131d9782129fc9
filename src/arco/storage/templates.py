"""Templates of names: filled with the fields of a key, and read back from a name. What each is a template of is in `keys.py`."""

import re
import string
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import Identifier

_NUMBER_END = 10**20


def filled(template: str, key: object) -> str:
    """A name: the template with what the key has in the place of each field."""
    parts = []
    for literal, field, width in _pieces(template):
        parts.append(literal)
        if field is not None:
            parts.append(_text(getattr(key, field), width))
    return "".join(parts)


@cache
def _pieces(template: str) -> tuple[tuple[str, str | None, str | None], ...]:
    return tuple((literal, field, width) for literal, field, width, _ in string.Formatter().parse(template))


def reader_of(template: str, hints: Mapping[str, Any]) -> re.Pattern[str]:
    """What reads the fields of a name, by the types that they have."""
    parts = []
    for literal, field, width in _pieces(template):
        parts.append(re.escape(literal))
        if field is not None:
            parts.append(f"(?P<{field}>{_field_pattern(hints.get(field), width)})")
    return re.compile("".join(parts))


def values_of(hints: Mapping[str, Any], found: Mapping[str, str]) -> dict[str, Any] | None:
    """The fields that were read, each of its type; None if one of them is not of it. What is derived is left out."""
    try:
        return {field: hints[field](text) for field, text in found.items() if field in hints}
    except (InvalidInput, ValueError):
        return None


def _text(value: object, width: str | None) -> str:
    if isinstance(value, int):
        if not 0 <= value < _NUMBER_END:
            raise InvalidInput("a number in a name is negative or has more than 20 digits", hint="they count from 0")
        return format(value, width or "")
    return str(value)


def _field_pattern(wanted: Any, width: str | None) -> str:
    if wanted is int:
        return f"[0-9]{{{int(width or 1)},20}}"
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return "|".join(re.escape(one.value) for one in wanted)
    if isinstance(wanted, type) and issubclass(wanted, Identifier):
        return wanted.pattern.pattern
    return "[^/]+"
