"""What makes commands that only look begin at once.

Only the command that is asked for is built with all of its flags; of the others there is what help says of them. Typer works out
the flags of every command before it looks at the first word, which is most of what `arco --help` takes. How the flags of the one
that is asked for are read is in `plain_flags.py`. What must never enter: what any command does.
"""

import atexit
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import typer
from typer.models import CommandInfo, TyperInfo

from arco.surface.cli.plain_flags import PlainCommand, PlainGroup

_OBJECTS_BETWEEN = 500_000


def shortened(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """Without what the words do not ask for. Names and helps stay, so help and mistyped names are answered as before."""
    chosen = words[0] if words else ""
    made = copy(app)
    made.info = _plain_info(app.info)
    made.registered_commands = [_command(one, chosen) for one in app.registered_commands]
    made.registered_groups = [_group(one, chosen) for one in app.registered_groups]
    return made


def _command(one: CommandInfo, chosen: str) -> CommandInfo:
    if one.callback is None:
        return one
    if chosen == (one.name or one.callback.__name__.replace("_", "-")):
        return _plain(one)
    made = copy(one)
    made.callback = _named_like(one.callback)
    return made


def _plain(one: CommandInfo) -> CommandInfo:
    made = copy(one)
    made.cls = PlainCommand
    return made


def _group(one: TyperInfo, chosen: str) -> TyperInfo:
    if one.typer_instance is None:
        return one
    made, below = copy(one), copy(one.typer_instance)
    is_chosen = chosen == one.typer_instance.info.name
    below.registered_commands = [_plain(each) for each in below.registered_commands] if is_chosen else []
    below.registered_groups = below.registered_groups if is_chosen else []
    below.info = _plain_info(below.info)
    made.typer_instance = below
    return made


def _plain_info(one: TyperInfo) -> TyperInfo:
    made = copy(one)
    made.cls = PlainGroup
    return made


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Let garbage lie for the time of a short command: what it imports is a lot, none of it garbage, and looked through often."""
    before = gc.get_threshold()
    gc.freeze()  # what is there by now stays to the end
    gc.set_threshold(_OBJECTS_BETWEEN, *before[1:])
    leave_at_once()
    try:
        yield
    finally:
        gc.freeze()  # or what was made meanwhile is looked through now
        gc.set_threshold(*before)
        gc.unfreeze()


def leave_at_once() -> None:
    """Do not look for garbage at the very end: Python takes a quarter of a plan's time to find that everything is some.

    Only for commands that wrote nothing and ran no asset: nobody's last words are in an object that waits to be found.
    """
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def _named_like(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the same name and description, and without flags."""

    def nothing() -> None: ...

    nothing.__name__, nothing.__doc__ = callback.__name__, callback.__doc__
    return nothing
