"""A name and its pointer, kept in step by whoever meets them out of step.

Tier 1 says what exists, the pointer says at which metadata file. Some things leave the two out of step for a moment, and each
is finished by anybody, to the same end:

  a tombstone of the name's binding    a drop has begun and not reached tier 1: finish it
  a tombstone of an older binding      the name was restored or renamed since: bring the pointer back to life
  a tombstone that cannot be finished  its successor cannot take the name any more: bring the pointer back to life
  a start that the pointer has not     the table was registered: put the pointer at the file that tier 1 names

The order of bindings decides, never the order of arrival. A pointer remembers the binding it was last brought to life for, so
that a drop that slept through a restore cannot strike the restored table, and a start happens once.
"""

from typing import Any, TypeVar

import msgspec

from arco.catalog.manifest import Author
from arco.catalog.model import Entry, Kind, Start
from arco.catalog.operations import Drop
from arco.catalog.pointer import Pointer, Tombstone
from arco.catalog.subject import Facts, Subject
from arco.catalog.workspace import Workspace
from arco.kernel.crash_points import reach
from arco.kernel.errors import CorruptObject, FixRequest, GivenUp, NoSuchTable, OutcomeUnknown, Refresh
from arco.ledger.receipts import Published, Source, SourceKind
from arco.storage.cas import Held, SwapOutcome
from arco.storage.port import Unknown

M = TypeVar("M")

STARTED = "registered"
"""What a pointer that was started from tier 1 says of who made it: no key, so that no staged create adopts it."""


def in_step(entry: Entry, pointer: Held[Pointer] | None) -> bool:
    """Whether a name and its pointer say the same."""
    return pointer is not None and pointer.value.tombstone is None and not _start_is_due(entry.start, pointer.value)


def _start_is_due(start: Start | None, pointer: Pointer) -> bool:
    return start is not None and pointer.binding < start.binding


async def bring_in_step(ws: Workspace, subject: Subject[M, Any, Any], entry: Entry, pointer: Held[Pointer] | None) -> None:
    """Do what is left of a drop, a restore or a registration. Read both again after it."""
    start = entry.start
    if pointer is not None and pointer.value.pending is not None:
        pointer = await ws.pointers.settled(entry.uuid)
    if pointer is None:
        if start is None:
            raise CorruptObject(f"table {entry.full_name} has no pointer", hint="run arco verify")
        await ws.pointers.create(await _started(ws, subject, entry.uuid, start, None))
    elif start is not None and _start_is_due(start, pointer.value):
        await ws.receipts.ensure_published(pointer.value)
        await ws.pointers.swing(pointer, await _started(ws, subject, entry.uuid, start, pointer.value))
    elif pointer.value.tombstone is not None:
        await _settle_tombstone(ws, entry, pointer, pointer.value.tombstone)


async def _settle_tombstone(ws: Workspace, entry: Entry, pointer: Held[Pointer], tombstone: Tombstone) -> None:
    if tombstone.binding < entry.binding:
        await _bring_to_life(ws, entry, pointer)
        return
    since = max(0, ws.tier1.seen.sequence - 1)
    try:
        await finish_drop(ws, entry.uuid, tombstone, since, Author(tombstone.principal))
    except NoSuchTable:
        return  # the name has moved on, and this drop came too late: whoever reads both again will see
    except (FixRequest, Refresh, GivenUp):
        # Its request was given up, or its successor was bound elsewhere meanwhile and can never take this name.
        await _bring_to_life(ws, entry, pointer)


async def _bring_to_life(ws: Workspace, entry: Entry, pointer: Held[Pointer]) -> None:
    await ws.pointers.swing(pointer, msgspec.structs.replace(pointer.value, tombstone=None, binding=entry.binding))


async def bury(ws: Workspace, pointer: Held[Pointer], tombstone: Tombstone) -> SwapOutcome[Pointer]:
    """Swing a pointer to its tombstone. Whatever but success comes of it: read again, and see what stands there."""
    await ws.receipts.ensure_published(pointer.value)
    outcome = await ws.pointers.swing(pointer, msgspec.structs.replace(pointer.value, tombstone=tombstone))
    if isinstance(outcome, Unknown):
        raise OutcomeUnknown(f"the table's pointer did not say whether it was swung: {outcome.reason}")
    reach("drop.tombstone_written")
    return outcome


async def finish_drop(ws: Workspace, uuid: str, tombstone: Tombstone, since: int, author: Author) -> None:
    """Take the name away, as the tombstone says."""
    operation = Drop(
        key_hash=tombstone.key_hash,
        uuid=uuid,
        binding=tombstone.binding,
        drop_id=tombstone.drop_id,
        purge=tombstone.purge,
        principal=tombstone.principal,
        successor=tombstone.successor,
        unregistered=tombstone.unregistered,
    )
    await ws.committer.submit(operation, since=since, author=author)


async def _started(
    ws: Workspace, subject: Subject[M, Any, Any], uuid: str, start: Start, before: Pointer | None
) -> Pointer:
    """The pointer of a registered table. Its commits go on counting, so that nothing old can be taken for new."""
    location = start.metadata_location
    facts = subject.facts(subject.decode(await ws.files.read(location), location))
    number = 0 if before is None else before.commit_number + 1
    previous = None if before is None else before.metadata_location
    source = Source(kind=SourceKind.REGISTER)
    published = Published(ws.ulids.next(), number, location, previous, facts.snapshot_id, facts.at_ms, source)
    return pointer_at(uuid, subject.kind, published, facts, STARTED, start.binding)


def pointer_at(uuid: str, kind: Kind, published: Published, facts: Facts, created_by: str, binding: int = 1) -> Pointer:
    """A live pointer whose last swing was one commit."""
    return Pointer(
        table_uuid=uuid,
        kind=kind,
        commit_number=published.commit_number,
        metadata_location=published.metadata_location,
        previous_metadata_location=published.previous_metadata_location,
        snapshot_id=facts.snapshot_id,
        refs=facts.refs,
        last_sequence_number=facts.last_sequence_number,
        updated_at_ms=facts.at_ms,
        updated_by=published.source,
        published=(published,),
        created_by=created_by,
        binding=binding,
    )
