"""Partitions as people read them: `date=2025-01-31,region=de` for the stored `date=d:2025-01-31,region=s:de`.

The stored spelling is what is printed where the short one could mean something else. What people write `read/partition_names.py`
reads.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

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


def spelled_ranges(document: Sequence[Mapping[str, Any]]) -> str:
    """A document of ranges; days as first and last, both included."""
    return "; ".join(
        ", ".join(f"{name}={_range(stored)}" for name, stored in sorted(box.items())) for box in document if box
    )


def _shown(value: Scalar) -> str:
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat(timespec="minutes" if not value.second else "seconds")
        case _:
            return str(value)


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
