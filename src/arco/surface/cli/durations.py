"""Lengths of time as people write them: 30s, 10m, 2h, 7d; and as numbers of seconds, of which not every float is one."""

import math
import re

from arco.kernel.errors import InvalidInput

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_WRITTEN = re.compile(r"([0-9]{1,6})([smhd])")


def is_time(seconds: float) -> bool:
    """Whether somebody can wait so long. `nan` is a float that is neither too small nor too large."""
    return 0 < seconds < math.inf


def seconds_of(text: str) -> int:
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise InvalidInput(f"{text!r} is no length of time", hint="write it like 30s, 10m, 2h or 7d")
    return int(found[1]) * _UNITS_S[found[2]]
