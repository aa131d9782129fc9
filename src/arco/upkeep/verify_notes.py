"""What upkeep notes for itself, looked at again. Nothing depends on it: one that is damaged makes a job due too often at most, or
a table wait for its upkeep until it is deleted."""

import msgspec

from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.storage.keys import UpkeepKey
from arco.storage.looking import Look
from arco.storage.port import Object
from arco.upkeep.named import NAME

_FORMATS = ("arco.upkeep_clock", "arco.upkeep_done", "arco.upkeep_told", NAME)
_TODO = "delete it: nothing depends on it, and upkeep writes it anew"


class _Note(msgspec.Struct, frozen=True):
    format: str
    format_version: int
    said: str = ""


async def verify_notes(look: Look) -> None:
    await look.each("upkeep_note_unreadable", "upkeep_notes", {UpkeepKey: _judge}, "upkeep", todo=_TODO)


def _judge(key: UpkeepKey, found: Object) -> None:
    try:
        note = msgspec.json.decode(found.data, type=_Note)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is no note of upkeep: {error}") from error
    if note.format not in _FORMATS:
        raise CorruptObject(f"{key} is {note.format!r}, and no note of upkeep")
    if note.format_version != 1:
        raise UnknownFormat(f"{key} has format version {note.format_version}")
