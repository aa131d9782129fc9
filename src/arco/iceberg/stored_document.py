"""What is wrong with a stored document, in words for whoever has to mend it.

Documents are looked into without asking first, because they are read on every commit: what is missing shows as Python's own
error. Here it becomes a sentence. What must never enter: names of Python's, and values of more than a few characters.
"""

from collections.abc import Container

from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput

WRONG = (KeyError, TypeError, ValueError, AttributeError, StopIteration, InvalidInput)
"""What looking into a document that is not what it should be ends with."""


class _Wrong(ValueError):
    """Said by us, in words."""


def expect(holds: bool, key: str) -> None:  # noqa: FBT001 - an assertion with a name
    if not holds:
        raise _Wrong(f"its {key} is not what it has to be")


def find(document: JsonObject, entries: str, number: str, wanted: str, value: object) -> JsonObject:
    """The entry of a list that another field names."""
    found: JsonObject | None = next((one for one in document[entries] if one[number] == value), None)
    if found is None:
        raise _Wrong(f"its {wanted} {value} is not among its {entries}")
    return found


def in_words(error: Exception, fields: Container[str]) -> str:
    """What is wrong; `fields` are those that the document itself has to have, others are of its parts."""
    match error:
        case InvalidInput():
            return error.message
        case _Wrong():
            return str(error)
        case KeyError():
            key = error.args[0] if error.args else "field"
            return f"it has no {key}" if key in fields else f"a part of it has no {key}"
        case _:
            return "a part of it is of another type than it has to be"
