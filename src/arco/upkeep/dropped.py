"""Dropped tables that are to be purged, once their hold has passed: from then on they cannot be restored (PROTOCOLS N3).

Only tier 1 changes here. Restoring and purging are both operations of tier 1, so one of the two comes first and the other is
refused. The files go later, when the pointer is found without a name (`pointers.py`): whoever dies in between loses nothing.
"""

from arco.catalog.manifest import Author
from arco.catalog.model import Dropped, Entry, Format, Kind
from arco.catalog.operations import Purge
from arco.catalog.spelling import spelled
from arco.catalog.subject import Tables
from arco.kernel.crash_points import reach
from arco.kernel.errors import NotFound
from arco.kernel.fingerprint import fingerprint
from arco.kernel.limits import UNDROP_HOLD_S, UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.upkeep.maintained import FORBIDDEN, forbids_garbage
from arco.upkeep.own_files import empty_own_folder
from arco.upkeep.places import Places, own_folder
from arco.upkeep.sweep import Sweep

AUTHOR = Author("arco upkeep")

NOT_PURGED = "it could not be purged"
NAMELESS_KEPT_S = UPKEEP_GRACE_S + 2 * UPKEEP_CLOCKS_S
"""How long a pointer without a name stays, and the files of its table with it."""

UNREGISTERED = "it was unregistered: its files are not Arco's any more"


async def collect(sweep: Sweep) -> None:
    for dropped in list((await sweep.parts.tier1.current()).names.dropped.values()):
        sweep.tally.looked_at += 1
        if dropped.unregistered:
            sweep.keep(UNREGISTERED)
        elif not dropped.purge:
            sweep.keep("it was dropped without purge")
        else:
            with sweep.apart(dropped.entry.full_name, NOT_PURGED):
                if await is_older(sweep, dropped, UNDROP_HOLD_S + UPKEEP_CLOCKS_S):
                    await purge(sweep, dropped)
                else:
                    sweep.keep("it can still be restored")


async def is_older(sweep: Sweep, dropped: Dropped, seconds: float) -> bool:
    """Whether a table was dropped so long ago, by what its drop says and by the store's clock: its tombstone was written then."""
    if sweep.now_ms - dropped.dropped_ms <= seconds * 1000:
        return False
    tombstone = await sweep.store.head(sweep.parts.pointers.key(dropped.entry.uuid))
    return tombstone is None or sweep.now_ms - tombstone.modified_ms > seconds * 1000


async def purge(sweep: Sweep, dropped: Dropped) -> None:
    """Take a table off the list of what can be restored. A dry run tells the files that would go in the same pass."""
    entry = dropped.entry
    if dropped.unregistered:
        sweep.keep(UNREGISTERED)
        return
    if entry.format is not Format.ICEBERG:
        sweep.keep("its files are not Arco's")
        return
    pointer = await sweep.parts.pointers.read(entry.uuid)
    location = "" if pointer is None else pointer.value.metadata_location
    if await _forbids_it(sweep, entry, location):
        sweep.keep(FORBIDDEN)
        return
    later = await _files_go_in_s(sweep, entry, location)
    if sweep.dry_run:
        sweep.tally.changed += 1
        if not later:
            places = Places(sweep.parts.tier1.names, sweep.parts.locations)
            await empty_own_folder(sweep, places, entry.uuid, location, "of a table that would be purged")
        age_days = (sweep.now_ms - dropped.dropped_ms) // 86_400_000
        sweep.tally.notes.append(f"{spelled(entry.namespace, entry.name)}, dropped {age_days} days ago, would be purged")
        _say_when(sweep, entry, later)
        return
    key = fingerprint("purge", entry.uuid, dropped.drop_id)
    since = sweep.parts.tier1.seen.sequence
    try:
        operation = Purge(key_hash=key, uuid=entry.uuid, drop_id=dropped.drop_id)
        await sweep.parts.committer.submit(operation, since=since, author=AUTHOR)
        sweep.tally.changed += 1
        _say_when(sweep, entry, later)
    except NotFound:
        # Restored meanwhile, or purged by another.
        sweep.keep("it was restored or purged by others meanwhile")
    reach("upkeep.purged")


async def _files_go_in_s(sweep: Sweep, entry: Entry, location: str) -> int:
    """How long the files of a table that is purged now still stay: as long as its tombstone is young (`pointers.py`)."""
    tombstone = await sweep.store.head(sweep.parts.pointers.key(entry.uuid))
    if tombstone is None or own_folder(sweep.parts, entry.uuid, location) is None:
        return 0
    return 0 if sweep.is_older(tombstone, NAMELESS_KEPT_S) else max(1, NAMELESS_KEPT_S - sweep.age_s(tombstone))


def _say_when(sweep: Sweep, entry: Entry, later_s: int) -> None:
    if later_s:
        name, hours = spelled(entry.namespace, entry.name), -(-later_s // 3600)
        sweep.tally.notes.append(f"files of {name} stay for {hours} more hours, and go with the upkeep that comes then")


async def _forbids_it(sweep: Sweep, entry: Entry, location: str) -> bool:
    """Whether files would go that the table itself says are to stay."""
    if entry.kind is not Kind.TABLE or own_folder(sweep.parts, entry.uuid, location) is None:
        return False
    data = await sweep.parts.files.fetch(location)
    return data is not None and forbids_garbage(Tables().decode(data, location))
