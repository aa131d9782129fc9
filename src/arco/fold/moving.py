"""Moving aside what was consumed, when much of it lies in the ledger (PROTOCOLS F3).

The failure this prevents, in order:
  1. every round lists the ledger whole, because a late segment may have any name
  2. nobody runs upkeep, and what was consumed stays where it is
  3. after a year a round that finds nothing new lists a million names, for every head
So past a limit the fold does what upkeep would have done: it moves segments to the archive that every head has consumed and that
are older than upkeep's grace, by the store's own clock. A move is a copy, then a delete, and may stop anywhere (hazard 15).

What must never enter: deleting anything of which no copy is proved.
"""

import asyncio
from collections.abc import Mapping

from arco.fold.archiving import copy_aside, movable
from arco.fold.folding import Folding, Round
from arco.fold.tables import FOLDED_FROM
from arco.kernel.crash_points import reach
from arco.kernel.limits import FOLD_MOVES_MAX, FOLD_READS_MAX
from arco.storage.keys import Domain, Head, SegmentKey


async def move_crowd(folding: Folding, rounds: Mapping[Head, Round]) -> int:
    """Move segments of the domains in which rounds found more than the limit; how many were moved."""
    before_ms: dict[Domain, int] = {}
    for head, done in rounds.items():
        for domain in FOLDED_FROM[head] if done.crowd.segments > folding.settings.crowd_max else ():
            before_ms[domain] = max(done.crowd.before_ms, before_ms.get(domain, 0))
    return sum([await _move(folding, domain, before_ms[domain]) for domain in sorted(before_ms)])


async def _move(folding: Folding, domain: Domain, before_ms: int) -> int:
    found: list[SegmentKey] = []
    async for key in movable(folding.heads, folding.lists, domain, before_ms):
        found.append(key)
        if len(found) == FOLD_MOVES_MAX:
            break  # the next pass goes on
    for start in range(0, len(found), FOLD_READS_MAX):
        await asyncio.gather(*(_move_one(folding, key) for key in found[start : start + FOLD_READS_MAX]))
    return len(found)


async def _move_one(folding: Folding, key: SegmentKey) -> None:
    if await copy_aside(folding.heads, key):
        reach("fold.segment_copied")
        await folding.heads.store.delete(str(key))
