"""Partitions as people write and read them: `date=2025-01-31,region=de` for the stored `date=d:2025-01-31,region=s:de`.

The stored spelling is always understood too, and is what is printed where the short one could mean something else.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.partition_key import PartitionKey, Scalar

_PLAIN = re.compile(r"[\w.~:+\-]+")
_DATE_CHARS = len("2025-01-01")


def spelled_key(key: str | None) -> str:
    """A stored key as it is shown."""
    if not key:
        return ""
    parts = [(name, _shown(value)) for name, value in PartitionKey.parse(key)]
    if all(_PLAIN.fullmatch(name) and _PLAIN.fullmatch(value) for name, value in parts):
        return ",".join(f"{name}={value}" for name, value in parts)
    return key


def key_of(text: str, axes: Sequence[Mapping[str, Any]]) -> str:
    """The stored key of what somebody wrote, by the dimensions of the asset. Ids and stored keys stay as they are."""
    if text.startswith("part_") or _is_stored(text):
        return text
    known = {axis["name"]: axis for axis in axes}
    found: dict[str, Scalar] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name not in known:
            raise InvalidInput(f"{clip(part)!r} names no dimension of it", hint=_example(axes))
        found[name] = _value(known[name], value)
    return PartitionKey(found).canonical()


def spelled_ranges(document: Sequence[Mapping[str, Any]]) -> str:
    """A document of ranges; days as first and last, both included."""
    return "; ".join(
        ", ".join(f"{name}={_range(stored)}" for name, stored in sorted(box.items())) for box in document if box
    )


def _is_stored(text: str) -> bool:
    try:
        PartitionKey.parse(text)
    except InvalidInput:
        return False
    return True


def _shown(value: Scalar) -> str:
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat(timespec="minutes" if not value.second else "seconds")
        case _:
            return str(value)


def _value(axis: Mapping[str, Any], text: str) -> Scalar:
    match axis["kind"]:
        case "static":
            return next((one for one in axis.get("values", ()) if str(one) == text), text)
        case "dynamic":
            return text
        case "hourly":
            return _time(axis["name"], text)
        case _:
            return _time(axis["name"], text).date()


def _time(name: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{clip(text)!r} is no time for {name}", hint=f"write {name}=2025-01-31, or {name}=2025-01-31T12:00"
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _example(axes: Sequence[Mapping[str, Any]]) -> str:
    if not axes:
        return "it has no partitions: leave --partition out"
    shapes = {"static": "VALUE", "dynamic": "VALUE", "hourly": "2025-01-31T12:00"}
    return "write " + ",".join(f"{axis['name']}={shapes.get(axis['kind'], '2025-01-31')}" for axis in axes)


def _range(stored: Any) -> str:
    if len(stored) == 1:
        return ",".join(_listed(one) for one in stored[0])
    first, end = stored
    if len(first) != _DATE_CHARS or len(end) != _DATE_CHARS:
        return f"{first} until before {end}"
    last = (date.fromisoformat(end) - timedelta(days=1)).isoformat()
    return first if last == first else f"{first}..{last}"


def _listed(stored: Any) -> str:
    return str(next(iter(stored.values()))) if isinstance(stored, dict) else str(stored)
