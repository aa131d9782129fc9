"""What killed processes left of unfinished writes, where the store is a folder. Which is whose, the folder itself knows.

The first write of any process takes it away, so a pass of its own process finds little left: it tells what went with that write,
a dry run too, which writes as every job does to ask for the time.
"""

from typing import Protocol, runtime_checkable

from arco.upkeep.sweep import Sweep


@runtime_checkable
class HasTemporaries(Protocol):
    """A store that writes under temporary names first, and can tell those of the dead."""

    async def sweep_temporaries(self) -> int: ...
    async def swept_unasked(self) -> int: ...


async def collect(sweep: Sweep) -> None:
    if not isinstance(sweep.store, HasTemporaries):
        return
    swept = await sweep.store.swept_unasked()
    if not sweep.dry_run:
        sweep.tally.changed += swept + await sweep.store.sweep_temporaries()
    elif swept:
        sweep.tally.notes.append(f"{swept} unfinished writes of killed processes went with the first write of this one")
