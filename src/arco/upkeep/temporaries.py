"""What killed processes left of unfinished writes, where the store is a folder. Which is whose, the folder itself knows."""

from typing import Protocol, runtime_checkable

from arco.upkeep.sweep import Sweep


@runtime_checkable
class HasTemporaries(Protocol):
    """A store that writes under temporary names first, and can tell those of the dead."""

    async def sweep_temporaries(self) -> int: ...


async def collect(sweep: Sweep) -> None:
    if isinstance(sweep.store, HasTemporaries) and not sweep.dry_run:
        sweep.tally.changed += await sweep.store.sweep_temporaries()
