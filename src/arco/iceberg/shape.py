"""JSON values read into typed ones, with one precise line for whatever is wrong.

Two rules hold everywhere in this room. An explicit `null` of an optional field is the same as an absent field, because
clients send both. A value of the wrong type is refused, never converted: `"1"`, `1.0` and `true` are not the number 1.

What must never enter: knowledge of one particular request, and messages that repeat a long value.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, TypeAlias, TypeVar, get_args

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

JsonObject: TypeAlias = dict[str, Any]

# Ids of schemas, specs, orders and view versions; -1 stands for "the one added last in this request".
Id: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
IdOrLast: TypeAlias = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]
Long: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]

LAST_ADDED = -1

T = TypeVar("T")

_MESSAGE_CHARS_MAX = 300
_NAMES_SHOWN_MAX = 20


def read(value: object, kind: type[T], what: str) -> T:
    """`value` as a `kind`; `what` names the thing for the person who sent it."""
    return read_with_nulls(without_nulls(value), kind, what)


def read_with_nulls(value: object, kind: type[T], what: str) -> T:
    """The same where a null says something: that a field is to be cleared."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason = _reason(str(error))
        raise InvalidInput(clip(f"{what}: {reason}", _MESSAGE_CHARS_MAX), hint=_allowed(kind, reason)) from None


def without_nulls(value: object) -> object:
    """An object without the fields that are null; anything else as it is."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    return value


def listed(names: Iterable[str]) -> str:
    """Names for a message: in order of appearance, each once, short enough for one line."""
    unique = list(dict.fromkeys(names))
    shown = ", ".join(clip(name) for name in unique[:_NAMES_SHOWN_MAX])
    return shown if len(unique) <= _NAMES_SHOWN_MAX else f"{shown} and {len(unique) - _NAMES_SHOWN_MAX} more"


def _allowed(kind: object, reason: str) -> str | None:
    """The words that a field takes, where one was sent that it does not."""
    field, _, problem = reason.partition(": ")
    if not problem.startswith("Invalid enum value") or not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return None
    found = next((one.type for one in msgspec.structs.fields(kind) if one.encode_name == field), None)
    kinds = (found, *get_args(found))
    words = [str(word) for one in kinds if isinstance(one, type) and issubclass(one, StrEnum) for word in one]
    return f"it is one of {', '.join(words)}" if words else None


def _reason(message: str) -> str:
    problem, at, place = message.rpartition(" - at `$")
    if not at:
        return message.replace("`", "")
    path = place.rstrip("`").lstrip(".")
    return f"{path}: {problem}".replace("`", "")
