"""What every answer has, and how rows become answers. Moments are UTC with their zone, documents are read, not texts of JSON."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What every answer says of itself: the same snapshot always gives the same answer, unless it is fresh.

    `fresh`: what was not folded yet is in it too. `warning`: what may be missing. Before the first fold the snapshot is "".
    """

    snapshot_id: str = msgspec.field(name="snapshot")
    fresh: bool = False
    warning: str | None = None


def shaped(kind: type[T], row: Mapping[str, Any], **more: Any) -> T:
    """A row as a struct, by the names of its fields; what the row lacks must be given or have a default."""
    fields = {name: plain(row[name]) for name in kind.__struct_fields__ if name in row}
    return kind(**(fields | more))


def plain(value: Any) -> Any:
    """A value of DuckDB as answers have it."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    if isinstance(value, list):
        return tuple(value)
    return value


def document(text: str | None) -> Any:
    """What a column says as JSON; nothing where it says nothing."""
    return None if text is None else msgspec.json.decode(text)
