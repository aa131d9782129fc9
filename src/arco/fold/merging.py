"""Merging: deltas become a new base of their table when they pass a cap.

A merge takes long, and folders publish meanwhile. It replaces exactly the files it read: deltas that came since stay, and if
another merge or a rebuild took the base away, the work was for nothing and nothing is published. Tables below their caps are
not touched.
"""

import msgspec

from arco.fold.folding import Folding
from arco.fold.heads import Standing
from arco.fold.manifests import FORMAT, Made, Manifest, TableState
from arco.fold.work import StateFile
from arco.kernel.crash_points import reach
from arco.kernel.errors import Conflict
from arco.kernel.limits import SWAP_ATTEMPTS_MAX
from arco.storage.keys import Head
from arco.storage.readback import pause_s


async def merge(folding: Folding, head: Head, standing: Standing[Manifest] | None = None) -> Standing[Manifest] | None:
    """Merge the tables of a head that have passed a cap. None: there was nothing to do, or others were faster.

    `standing` is the head as the caller has just seen it.
    """
    heads = folding.heads
    standing = standing or await heads.read(head)
    if standing.manifest is None:
        return None
    now_ms, began_ms = heads.clock.now_ms(), standing.manifest.published_ms
    due = [table for table in standing.manifest.tables if folding.settings.caps.passed(table, now_ms)]
    if not due:
        return None
    merged = await folding.work.merge(head, [file for table in due for file in table.files], folding.ulids.next())
    reach("fold.merged")
    for attempt in range(SWAP_ATTEMPTS_MAX):
        if attempt:
            await heads.clock.sleep(pause_s(min(attempt, 6), heads.entropy))
            standing = await heads.read(head)
        manifest = _rebased(folding, standing, due, merged, began_ms)
        if manifest is None:
            return None
        published = await heads.publish(standing, manifest)
        if published is not None:
            return published
    raise Conflict(f"the head {head} was swung by others {SWAP_ATTEMPTS_MAX} times in a row")


def _rebased(
    folding: Folding, standing: Standing[Manifest], due: list[TableState], merged: tuple[StateFile, ...], began_ms: int
) -> Manifest | None:
    """The manifest after a merge, on a head that may have moved since its files were read."""
    before = standing.manifest
    if before is None:
        return None
    tables = {one.table: one for one in before.tables}
    for old in due:
        now = before.table(old.table)
        if now.base != old.base or not set(_keys(old.deltas)) <= set(_keys(now.deltas)):
            return None
        taken = set(_keys(old.deltas))
        left = tuple(file for file in now.deltas if file.key not in taken)
        base = tuple(file for file in merged if file.table == old.table)
        since_ms = began_ms if left else None
        tables[old.table] = TableState(table=old.table, base=base, deltas=left, deltas_since_ms=since_ms)
    place = folding.heads.place(standing, folding.epoch)
    kept = {"format": FORMAT, "made": Made.MERGE, "added": None, "tables": tuple(tables[one] for one in sorted(tables))}
    return msgspec.structs.replace(before, **kept, **place)


def _keys(files: tuple[StateFile, ...]) -> list[str]:
    return [file.key for file in files]
