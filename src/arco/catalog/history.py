"""Has this commit landed? The history of a table answers, never its head alone (hazard 1).

A commit landed if its metadata file is the current one, or its committed receipt exists, or it is in the metadata log. It did
not land, and never can, if the pointer moved past its base without it: invariant R makes the receipts complete below the
head, for as long as they are kept. The pointer is read first, the receipt after it: the other way round, a commit that lands
in between is missed.
"""

import asyncio
from enum import Enum, auto
from typing import Any, TypeVar

from arco.catalog.idempotency import Tried
from arco.catalog.pointer import Pointer
from arco.catalog.subject import Subject
from arco.catalog.workspace import Workspace
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.limits import HISTORY_KNOWN_S, SNAPSHOT_LEAD_MS_MAX, UPKEEP_CLOCKS_S
from arco.storage.cas import Held

M = TypeVar("M")

_DAY_MS = 86_400_000


class Landing(Enum):
    LANDED = auto()
    NEVER = auto()  # the pointer moved past its base without it
    NOT_YET = auto()  # its base is still current: it may land, or not


async def landing(
    tried: Tried | None, pointer: Held[Pointer] | None, ws: Workspace, subject: Subject[M, Any, Any]
) -> Landing:
    """What became of a commit, judged from a pointer that was read before this call."""
    if pointer is None or tried is None:
        return Landing.NEVER
    current, location = pointer.value, tried.location
    if current.metadata_location == location or any(one.metadata_location == location for one in current.published):
        return Landing.LANDED
    if current.commit_number <= tried.base_number:
        return Landing.NOT_YET
    data = await ws.files.find(location)
    if data is None:
        # Never written; or its table deletes metadata files some time after their commits.
        _need_memory(ws, tried.begun_ms)
        return Landing.LANDED if await _has_receipt(ws, tried) else Landing.NEVER
    if await ws.receipts.exists(location, tried.number, subject.facts(subject.decode(data, location)).at_ms):
        return Landing.LANDED
    latest = subject.decode(await ws.files.read(current.metadata_location), current.metadata_location)
    if location in subject.facts(latest).previous_locations:
        return Landing.LANDED
    written_ms = await ws.files.written_ms(location)
    _need_memory(ws, tried.begun_ms if written_ms is None else written_ms)
    return Landing.NEVER


async def _has_receipt(ws: Workspace, tried: Tried) -> bool:
    """Whether a commit has its receipt, under whatever day: only its file would say which, and engines delete files that the log
    no longer names right after a commit (PyIceberg does)."""
    last_ms = ws.clock.now_ms() + SNAPSHOT_LEAD_MS_MAX
    days = range(tried.begun_ms - UPKEEP_CLOCKS_S * 1000, last_ms + _DAY_MS, _DAY_MS)
    return any(await asyncio.gather(*(ws.receipts.exists(tried.location, tried.number, at_ms) for at_ms in days)))


def _need_memory(ws: Workspace, since_ms: int) -> None:
    """Receipts are collected after a while: that there is none says nothing of a commit that was prepared before."""
    if ws.clock.now_ms() - since_ms > HISTORY_KNOWN_S * 1000:
        raise OutcomeUnknown(
            "this commit was begun so long ago that its record may be gone", hint="look at the table's history"
        )
