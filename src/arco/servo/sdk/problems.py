"""Everything that is wrong with a project, instead of the first thing: problems are kept while the rest is looked at.

`arco validate` prints them all; loading a project raises the first. Both look with the same eyes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from arco.kernel.errors import ArcoError, InvalidInput


class Problems:
    """What was found so far, in the order of finding."""

    def __init__(self) -> None:
        self.found: list[ArcoError] = []

    def add(self, message: str, *, hint: str = "") -> None:
        self.found.append(InvalidInput(message, hint=hint or None))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What is wrong inside this block is kept, and the block is left."""
        try:
            yield
        except ArcoError as error:
            self.found.append(error)

    def raise_first(self) -> None:
        if not self.found:
            return
        first, more = self.found[0], len(self.found) - 1
        others = f"{more} more problem{'s' if more > 1 else ''}: arco validate lists {'them' if more > 1 else 'it'}"
        hints = [own_hint(first), others if more else ""]
        raise InvalidInput(first.message, hint="; ".join(filter(None, hints))) from first


def own_hint(error: ArcoError) -> str:
    """What an error says to do. What every error of its kind says is about requests, and nobody sent one."""
    return "" if error.hint == error.default_hint else error.hint
