"""Commands whose flags of text are read as what they are: text.

Typer has every value checked by a validation library, which takes longer to import than all of its own code. Nearly every flag
here is a text or several, and those have nothing to check; a number that nobody gave is a default of ours, and `--help` that
nobody gave is nothing. Every other value, and every missing one, goes Typer's way, so what is refused is refused in its words.
What must never enter: rules of any flag.
"""

from collections.abc import Callable
from typing import Any, get_args

from typer.core import TyperCommand, TyperGroup

_TEXT = (str, str | None)
_TEXTS = (list[str], list[str] | None)


class PlainCommand(TyperCommand):
    """A command that asks for the validation library only where something is left to validate."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        declared = getattr(self.callback, "__annotations__", {})
        for parameter in self.params:
            kind = (get_args(declared.get(parameter.name)) or (None,))[0]  # of Annotated[kind, …]
            _read_by(_reading(parameter, kind, parameter.process_value), parameter)

    def get_help_option(self, ctx: Any) -> Any:
        return _unless_asked_for(super().get_help_option(ctx))


class PlainGroup(TyperGroup):
    """A group of commands whose only flag is `--help`."""

    def get_help_option(self, ctx: Any) -> Any:
        return _unless_asked_for(super().get_help_option(ctx))


_Read = Callable[[Any, Any], Any]


def _reading(parameter: Any, kind: Any, checked: _Read) -> _Read:
    """How the value of a parameter of this kind is read: at once, or by Typer."""

    def read(context: Any, value: Any) -> Any:
        if parameter.callback is None:
            if value is None and not parameter.required and kind in (*_TEXT, *_TEXTS):
                return None if kind in _TEXT else ()
            if kind in _TEXT and type(value) is str:
                return value
            if kind in _TEXTS and isinstance(value, list | tuple) and value and all(type(one) is str for one in value):
                return list(value)
            if kind is int and value is parameter.default:
                return value
        return checked(context, value)

    return read


def _unless_asked_for(option: Any) -> Any:
    """`--help`, which does nothing unless it is given. It is asked for several times, and is one object."""
    if option is not None and "process_value" not in vars(option):
        checked = option.process_value
        _read_by(lambda context, value: None if value is None else checked(context, value), option)
    return option


def _read_by(read: _Read, parameter: Any) -> None:
    parameter.process_value = read
