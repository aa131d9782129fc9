"""What makes commands that only look begin at once.

Only the command that is asked for is built with all of its flags; of the others there is what help says of them. Typer works out
the flags of every command before it looks at the first word, which is most of what `arco --help` takes. What must never enter:
what any command does.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import typer
from typer.models import CommandInfo, TyperInfo

_OBJECTS_BETWEEN = 100_000


def shortened(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """Without what the words do not ask for. Names and helps stay, so help and mistyped names are answered as before."""
    chosen = words[0] if words else ""
    made = copy(app)
    made.registered_commands = [_command(one, chosen) for one in app.registered_commands]
    made.registered_groups = [_group(one, chosen) for one in app.registered_groups]
    return made


def _command(one: CommandInfo, chosen: str) -> CommandInfo:
    if one.callback is None or chosen == (one.name or one.callback.__name__.replace("_", "-")):
        return one
    made = copy(one)
    made.callback = _named_like(one.callback)
    return made


def _group(one: TyperInfo, chosen: str) -> TyperInfo:
    if one.typer_instance is None or chosen == one.typer_instance.info.name:
        return one
    made, below = copy(one), copy(one.typer_instance)
    below.registered_commands, below.registered_groups = [], []
    made.typer_instance = below
    return made


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
