"""What an operation answers: a status and bytes, or where the bytes can be made again from."""

import msgspec

from arco.kernel.errors import ArcoError, Conflict


class Answer(msgspec.Struct, frozen=True):
    """`metadata_location` stands for a body that the table's metadata file gives again, byte for byte."""

    status: int
    body: str | None = None
    metadata_location: str | None = None


class Refusal(msgspec.Struct, frozen=True):
    """A deterministic no, as it was said the first time."""

    code: str
    message: str
    hint: str | None = None

    @classmethod
    def of(cls, error: ArcoError) -> "Refusal":
        return cls(error.code, error.message, error.own_hint)


def replayed_error(refusal: Refusal) -> ArcoError:
    """The error that a marker remembers."""
    for cls in _error_classes(ArcoError):
        if cls.code == refusal.code:
            return cls(refusal.message, hint=refusal.hint)
    return Conflict(refusal.message, hint=refusal.hint)


def _error_classes(cls: type[ArcoError]) -> list[type[ArcoError]]:
    return [cls, *(below for sub in cls.__subclasses__() for below in _error_classes(sub))]
