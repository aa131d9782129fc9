"""Which bytes a client wants of something (RFC 9110, section 14). One range is answered; of several, or of what is no range,
the whole is: a client must expect that anyway, and nobody has to put pieces together."""

import re
from dataclasses import dataclass

_ONE = re.compile(r"bytes=(?:([0-9]{1,19})-([0-9]{0,19})|-([0-9]{1,19}))")


@dataclass(frozen=True, slots=True)
class Part:
    """From a byte on, so many."""

    start: int
    length: int


class NoSuchPart:
    """It begins where there is nothing any more."""


def part_of(header: str | None, size: int) -> Part | NoSuchPart | None:
    """What a Range header asks for; None is everything."""
    found = _ONE.fullmatch((header or "").strip())
    if found is None:
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        length = min(int(suffix), size)
        return Part(size - length, length) if length else NoSuchPart()
    start = int(first)
    end = int(last) if last else size - 1
    if end < start and last:
        return None  # not a range at all
    return Part(start, min(end, size - 1) - start + 1) if start < size else NoSuchPart()
