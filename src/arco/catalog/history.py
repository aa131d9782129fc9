"""Has this commit landed? The history of a table answers, never its head alone (hazard 1).

A commit landed if its metadata file is the current one, or its committed receipt exists, or it is in the metadata log. It did
not land, and never can, if the pointer moved past its base without it: invariant R makes the receipts complete below the
head. The pointer is read first, the receipt after it: the other way round, a commit that lands in between is missed.
"""

from enum import Enum, auto

from arco.catalog.metadata_files import MetadataFiles
from arco.catalog.pointer import Pointer
from arco.catalog.receipts import Receipts
from arco.iceberg import table
from arco.kernel.errors import NotFound
from arco.storage.cas import Held


class Landing(Enum):
    LANDED = auto()
    NEVER = auto()  # the pointer moved past its base without it
    NOT_YET = auto()  # its base is still current: it may land, or not


async def landing(
    location: str, base_commit_number: int, pointer: Held[Pointer] | None, files: MetadataFiles, receipts: Receipts
) -> Landing:
    """What became of a commit, judged from a pointer that was read before this call."""
    if pointer is None:
        return Landing.NEVER
    current = pointer.value
    if current.metadata_location == location or any(one.metadata_location == location for one in current.published):
        return Landing.LANDED
    if current.commit_number <= base_commit_number:
        return Landing.NOT_YET
    data = await files.find(location)
    if data is None:
        return Landing.NEVER
    if await receipts.exists(location, table.decode(data, location).last_updated_ms):
        return Landing.LANDED
    return Landing.LANDED if await _in_metadata_log(location, current, files) else Landing.NEVER


async def _in_metadata_log(location: str, current: Pointer, files: MetadataFiles) -> bool:
    data = await files.find(current.metadata_location)
    if data is None:
        raise NotFound(f"the current metadata file {current.metadata_location} is missing")
    log = table.decode(data, current.metadata_location).document.get("metadata-log", ())
    return any(entry.get("metadata-file") == location for entry in log)
