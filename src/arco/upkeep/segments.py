"""Segments of the ledger that every head has consumed, moved to the archive (PROTOCOLS F3, hazard 15).

A move is a copy, then a delete, and may stop anywhere: the consumed set decides what was folded, wherever a segment lies. The
copy is proved byte for byte before the original goes. A segment's name is a ULID that is drawn once; should a slow writer store
it again, it is the same segment, folded under the same event ids, and moved again. No segment is ever deleted.
"""

from arco.fold.archiving import copy_aside, movable
from arco.kernel.crash_points import reach
from arco.kernel.limits import UPKEEP_GRACE_S
from arco.storage.keys import Domain, SegmentKey
from arco.upkeep.sweep import Sweep


async def collect(sweep: Sweep) -> None:
    # What was written a moment ago stays where readers list it.
    before_ms = sweep.now_ms - UPKEEP_GRACE_S * 1000
    for domain in Domain:
        with sweep.apart(f"segments of {domain.value}", "what was consumed of them is not known"):
            async for key in movable(sweep.heads, sweep.lists, domain, before_ms):
                sweep.tally.looked_at += 1
                with sweep.apart(kept="it was not copied"):
                    await _move(sweep, key)


async def _move(sweep: Sweep, key: SegmentKey) -> None:
    if sweep.dry_run or await copy_aside(sweep.heads, key):
        reach("upkeep.segment_copied")
        await sweep.moved(str(key))
        sweep.tally.changed += 1
