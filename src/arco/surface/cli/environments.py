"""`--workspace` and `--defer-to` for every command of a project: declared once, and put on each where it is registered."""

import inspect
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from arco.surface.cli.flags import DeferTo, Workspace

_FLAGS = {"workspace": Workspace, "defer_to": DeferTo}


def in_environment(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that also takes the flags; what it opens is in the workspace that they name."""

    @wraps(command)
    def wrapped(*args: Any, workspace: str | None = None, defer_to: str | None = None, **flags: Any) -> Any:
        with import_module("arco.surface.cli.settings").chosen_environment(workspace, defer_to):
            return command(*args, **flags)

    signature = inspect.signature(command)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _FLAGS.items()
    ]
    wrapped.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {**command.__annotations__, **_FLAGS}
    return wrapped
