"""How people write a layout: `partition_by=["day(at)", "bucket(16, customer_id)"]`, `sort_by=["at desc nulls last"]`.

What is written is looked at when the asset is defined. Whether there are such columns is known when there is an output.
"""

import re
from dataclasses import dataclass

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

_CALL = re.compile(r"^(\w+)\s*\(([^()]*)\)$")
_SORT = re.compile(r"^(\S+)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?$", re.IGNORECASE)
_TIMES = {"year", "month", "day", "hour"}
_SIZED = {"bucket", "truncate"}
_TRANSFORMS = "write column, year(…), month(…), day(…), hour(…), bucket(16, …) or truncate(4, …)"


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A column, and one of the table format's transforms of it."""

    column: str
    transform: str


@dataclass(frozen=True, slots=True)
class SortField:
    column: str
    direction: str
    null_order: str


def partition_field(text: str) -> PartitionField:
    called = _CALL.match(text.strip())
    if called is None and text.strip() and not set("()") & set(text):
        return PartitionField(text.strip(), "identity")
    found = None if called is None else _transform(called[1].lower().removesuffix("s"), called[2])
    if found is None:
        raise InvalidInput(f"partition_by {clip(text)!r} is not known", hint=_TRANSFORMS)
    return found


def _transform(word: str, inside: str) -> PartitionField | None:
    arguments = [one.strip() for one in inside.split(",")]
    if word in _TIMES and len(arguments) == 1 and arguments[0]:
        return PartitionField(arguments[0], word)
    sizes = [one for one in arguments if one.isdecimal() and int(one) > 0]
    columns = [one for one in arguments if one and one not in sizes]
    if word in _SIZED and len(sizes) == len(columns) == 1 and len(arguments) == 2:
        return PartitionField(columns[0], f"{word}[{int(sizes[0])}]")
    return None


def sort_field(text: str) -> SortField:
    found = _SORT.match(text.strip())
    if found is None:
        raise InvalidInput(f"sort_by {clip(text)!r} is not a column", hint='write "column", or "column desc nulls last"')
    direction, nulls = (found[2] or "asc").lower(), found[3]
    first = nulls.lower() == "first" if nulls else direction == "asc"
    return SortField(found[1], direction, "nulls-first" if first else "nulls-last")
