"""Dropped tables that are to be purged, once their hold has passed: from then on they cannot be restored (PROTOCOLS N3).

Only tier 1 changes here. Restoring and purging are both operations of tier 1, so one of the two comes first and the other is
refused. The files go later, when the pointer is found without a name (`pointers.py`): whoever dies in between loses nothing.
"""

from arco.catalog.manifest import Author
from arco.catalog.model import Dropped, Format
from arco.catalog.operations import Purge
from arco.catalog.spelling import spelled
from arco.kernel.crash_points import reach
from arco.kernel.errors import NotFound
from arco.kernel.fingerprint import fingerprint
from arco.kernel.limits import UNDROP_HOLD_S, UPKEEP_CLOCKS_S
from arco.upkeep.sweep import Sweep

AUTHOR = Author("arco upkeep")

UNREGISTERED = "it was unregistered: its files are not Arco's any more"


async def collect(sweep: Sweep) -> None:
    for dropped in list((await sweep.parts.tier1.current()).names.dropped.values()):
        sweep.tally.looked_at += 1
        if dropped.unregistered:
            sweep.keep(UNREGISTERED)
        elif not dropped.purge:
            sweep.keep("it was dropped without purge")
        elif sweep.now_ms - dropped.dropped_ms <= (UNDROP_HOLD_S + UPKEEP_CLOCKS_S) * 1000:
            sweep.keep("it can still be restored")
        else:
            with sweep.apart(dropped.entry.full_name, "it could not be purged"):
                await purge(sweep, dropped)


async def purge(sweep: Sweep, dropped: Dropped) -> None:
    """Take a table off the list of what can be restored."""
    entry = dropped.entry
    if dropped.unregistered:
        sweep.keep(UNREGISTERED)
        return
    if entry.format is not Format.ICEBERG:
        sweep.keep("its files are not Arco's")
        return
    sweep.tally.changed += 1
    if sweep.dry_run:
        age_days = (sweep.now_ms - dropped.dropped_ms) // 86_400_000
        sweep.tally.notes.append(f"{spelled(entry.namespace, entry.name)}, dropped {age_days} days ago, would be purged")
        return
    key = fingerprint("purge", entry.uuid, dropped.drop_id)
    since = sweep.parts.tier1.seen.sequence
    try:
        operation = Purge(key_hash=key, uuid=entry.uuid, drop_id=dropped.drop_id)
        await sweep.parts.committer.submit(operation, since=since, author=AUTHOR)
    except NotFound:
        # Restored meanwhile, or purged by another.
        sweep.tally.changed -= 1
        sweep.keep("it was restored or purged by others meanwhile")
    reach("upkeep.purged")
