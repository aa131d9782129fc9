"""What an operation answers: a status and bytes, or where the bytes can be made again from."""

import msgspec


class Answer(msgspec.Struct, frozen=True):
    """`metadata_location` stands for a body that the table's metadata file gives again, byte for byte."""

    status: int
    body: str | None = None
    metadata_location: str | None = None


class Refusal(msgspec.Struct, frozen=True):
    """A deterministic no, as it was said the first time."""

    code: str
    message: str
