"""How a person writes a full name in one text, and how Arco writes it back: `shop.orders`.

Levels are joined by dots. A part that holds a dot or a quote is written in double quotes, and a quote inside it twice, as in
SQL: `"eu.west".orders`. What `spelled` writes, `parse_parts` reads back, whatever the names are.
"""

import re

from arco.catalog.model import Levels
from arco.iceberg.requests import check_name, check_namespace
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

_HINT = "write shop.orders; a part with a dot in double quotes: '\"eu.west\".orders'"
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def parse_name(text: str) -> tuple[Levels, str]:
    """The namespace and the name of a table or view."""
    parts = parse_parts(text)
    if len(parts) < 2:
        raise InvalidInput(f"{clip(text)!r} has no namespace", hint=_HINT)
    check_namespace(parts[:-1])
    check_name(parts[-1], "name")
    return parts[:-1], parts[-1]


def parse_namespace(text: str) -> Levels:
    levels = parse_parts(text)
    check_namespace(levels)
    return levels


def parse_parts(text: str) -> tuple[str, ...]:
    """The parts of a name, without their quotes."""
    parts: list[str] = []
    at = 0
    while True:
        found = _PART.match(text, at)
        if found is None:
            raise InvalidInput(f"{clip(text)!r} is not a name", hint=_HINT)
        quoted, plain = found.groups()
        parts.append(plain if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            raise InvalidInput(f"{clip(text)!r} is not a name", hint=_HINT)
        at += 1


def spelled(levels: Levels, name: str | None = None) -> str:
    """A name as it can be given back."""
    return ".".join(_part(one) for one in (levels if name is None else (*levels, name)))


def _part(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""')) if "." in text or '"' in text else text
