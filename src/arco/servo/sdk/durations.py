"""Lengths of time as people write them: 90s, 15m, 6h, 7d."""

import re

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"([0-9]+)\s*([smhdw])")


def seconds(text: str | float) -> int:
    """The seconds of a duration; a bare number is seconds already."""
    if isinstance(text, int | float):
        if text <= 0:
            raise InvalidInput(f"a duration of {text} seconds", hint="more than zero")
        return int(text)
    found = _DURATION.fullmatch(text.strip())
    if found is None or found[1].strip("0") == "":
        raise InvalidInput(f"{clip(text)!r} is not a duration", hint="write 90s, 15m, 6h or 7d")
    return int(found[1]) * _SECONDS[found[2]]
