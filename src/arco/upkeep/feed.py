"""Checkpoints of the feed of events that newer ones replaced. Pages stay: a cursor may stand at any of them.

A checkpoint that is written again says what is true; nobody looks for one by its number.
"""

from arco.catalog.feed_pages import FeedCheckpoint, decode_fed
from arco.kernel.limits import UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.storage.keys import FeedCheckpointKey
from arco.storage.port import Listed
from arco.upkeep.sweep import STRANGE, Sweep


async def _newest(sweep: Sweep, numbers: list[int]) -> int:
    """The newest one that can be read: whoever starts needs one."""
    for number in sorted(numbers, reverse=True):
        key = str(FeedCheckpointKey(sweep.scope, number))
        with sweep.apart():
            stored = await sweep.store.get(key)
            if stored is not None:
                decode_fed(stored.data, key, FeedCheckpoint)
                return number
    return 0


async def collect(sweep: Sweep) -> None:
    found: list[tuple[int, Listed]] = []
    async for entry, key in sweep.walk("feed", "checkpoints"):
        if isinstance(key, FeedCheckpointKey):
            found.append((key.number, entry))
        else:
            sweep.keep(STRANGE)
    newest = await _newest(sweep, [number for number, _ in found])
    for number, entry in found:
        if number >= newest or not sweep.is_older(entry, UPKEEP_GRACE_S + UPKEEP_CLOCKS_S):
            sweep.keep("whoever starts may read it")
        else:
            await sweep.remove(entry, "a newer one replaced it")
