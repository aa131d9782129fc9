"""Values of partitions as Python has them, without Arrow, whose start-up time is felt where only a plan is wanted.

The format keeps dates as days, timestamps as microseconds, and everything else as itself; people want dates.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock without a zone, as the type says


def python_value(kind: str, value: Any) -> Any:
    """A stored value as Python has it."""
    if value is None:
        return None
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=value)
    if kind == "timestamp":
        return _EPOCH + timedelta(microseconds=value)
    if kind == "timestamptz":
        return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=UTC)
    return value
