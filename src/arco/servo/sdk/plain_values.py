"""Values that can be written down: the same text in every process, whatever the seed of its hashes.

Settings of assets are such values, and so are the constants that code is fingerprinted with. What must never enter: a text that
holds an address in memory.
"""

import re
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

_ALONE = (
    str, bytes, int, float, complex, bool, type(None), date, time, timedelta, Decimal, Fraction, UUID, PurePath, re.Pattern,
    range,
)  # fmt: skip


def is_plain(value: Any) -> bool:
    """Whether a value is one of Python's own, all the way down."""
    if isinstance(value, tuple | list | set | frozenset):
        return all(is_plain(one) for one in value)
    if isinstance(value, Mapping):
        return all(is_plain(key) and is_plain(one) for key, one in value.items())
    return isinstance(value, _ALONE)


def spelled(value: Any) -> str:
    """A plain value as text: what `repr` says, with the members of a set in order."""
    match value:
        case Mapping():
            return f"{{{', '.join(f'{spelled(key)}: {spelled(one)}' for key, one in value.items())}}}"
        case set() | frozenset():
            return f"{type(value).__name__}({', '.join(sorted(spelled(one) for one in value))})"
        case list():
            return f"[{', '.join(spelled(one) for one in value)}]"
        case tuple():
            return f"({', '.join(spelled(one) for one in value)},)"
        case _:
            return repr(value)
