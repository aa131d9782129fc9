"""Trees, for people: a line for each branch, joined by lines where they are read one below the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from arco.surface.cli.printing import say_painted

Part = tuple[str, str]
"""Words, and their colour."""


@dataclass(slots=True)
class Branch:
    """One line, and what hangs on it."""

    parts: Sequence[Part]
    below: list["Branch"] = field(default_factory=list)


def print_tree(root: Branch) -> None:
    say_painted(*root.parts)
    for joint, parts in _lines(root.below, ""):
        say_painted((joint, "dim"), *parts)


def _lines(branches: Sequence[Branch], before: str) -> Iterator[tuple[str, Sequence[Part]]]:
    for number, one in enumerate(branches, start=1):
        last = number == len(branches)
        yield before + ("└─ " if last else "├─ "), one.parts
        yield from _lines(one.below, before + ("   " if last else "│  "))
