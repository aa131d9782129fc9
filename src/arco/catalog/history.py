"""Has this commit landed? The history of a table answers, never its head alone (hazard 1).

A commit landed if its metadata file is the current one, or its committed receipt exists, or it is in the metadata log. It did
not land, and never can, if the pointer moved past its base without it: invariant R makes the receipts complete below the
head. The pointer is read first, the receipt after it: the other way round, a commit that lands in between is missed.
"""

from enum import Enum, auto
from typing import Any, TypeVar

from arco.catalog.pointer import Pointer
from arco.catalog.subject import Subject
from arco.catalog.workspace import Workspace
from arco.storage.cas import Held

M = TypeVar("M")


class Landing(Enum):
    LANDED = auto()
    NEVER = auto()  # the pointer moved past its base without it
    NOT_YET = auto()  # its base is still current: it may land, or not


async def landing(
    location: str,
    base_commit_number: int,
    pointer: Held[Pointer] | None,
    ws: Workspace,
    subject: Subject[M, Any, Any],
) -> Landing:
    """What became of a commit, judged from a pointer that was read before this call."""
    if pointer is None:
        return Landing.NEVER
    current = pointer.value
    if current.metadata_location == location or any(one.metadata_location == location for one in current.published):
        return Landing.LANDED
    if current.commit_number <= base_commit_number:
        return Landing.NOT_YET
    data = await ws.files.find(location)
    if data is None:
        return Landing.NEVER
    if await ws.receipts.exists(location, base_commit_number + 1, subject.facts(subject.decode(data, location)).at_ms):
        return Landing.LANDED
    latest = subject.decode(await ws.files.read(current.metadata_location), current.metadata_location)
    return Landing.LANDED if location in subject.facts(latest).previous_locations else Landing.NEVER
