"""What makes commands that only look begin at once.

Only the command that is asked for is built with all of its flags; of the others there is what help says of them. Typer works out
the flags of every command before it looks at the first word, which is most of what `arco --help` takes. What must never enter:
what any command does.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

_OBJECTS_BETWEEN = 100_000


def shorten(app: typer.Typer, words: Sequence[str]) -> None:
    """Leave out what the words do not ask for. Names and helps stay, so help and mistyped names are answered as before."""
    chosen = words[0] if words else ""
    for command in app.registered_commands:
        if command.callback is not None and chosen != (command.name or command.callback.__name__.replace("_", "-")):
            command.callback = _named_like(command.callback)
    for group in app.registered_groups:
        below = group.typer_instance
        if below is not None and chosen != below.info.name:
            below.registered_commands.clear()
            below.registered_groups.clear()


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Let garbage lie for the time of a short command: what it imports is a lot, none of it garbage, and looked through often."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _named_like(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the same name and description, and without flags."""

    def nothing() -> None: ...

    nothing.__name__, nothing.__doc__ = callback.__name__, callback.__doc__
    return nothing
