"""Runs that have not ended: what their attempts have written is theirs, however old it is, for they may still publish it.

A run is the note that its files are wanted. Its tasks write into folders that are named after what they make, and so do their
manifests; whose a folder is follows from its name, which says when its run was created.
"""

from collections.abc import Iterable

from arco.kernel.errors import Fenced, NotFound
from arco.kernel.ids import RunId, TaskId
from arco.ledger.materializations import materialization_id
from arco.ledger.outstanding import run_ids
from arco.ledger.run_log import RunLog
from arco.storage.keys import RunClosedKey
from arco.upkeep.sweep import Sweep

_TIME_CHARS = 10
"""How much of a ULID says its time."""


class OpenRuns:
    """What runs under way make. Their names are listed once; only logs are read that can have made something of interest."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._known: dict[str, frozenset[str]] = {}

    async def makes(self, names: Iterable[str]) -> frozenset[str]:
        """Of some names of what runs make, those of runs that have not ended.

        The runs are listed after the files were: whoever wrote one had created its run before. A log that cannot be read is an
        error, and nothing goes.
        """
        wanted = set(names)
        times = {name[:_TIME_CHARS] for name in wanted}
        if not times:
            return frozenset()
        for run in await run_ids(self._sweep.store, self._sweep.scope):
            if run[:_TIME_CHARS] in times and run not in self._known:
                self._known[run] = await self._made_by(run)
        return frozenset(wanted & {one for made in self._known.values() for one in made})

    async def _made_by(self, run: RunId) -> frozenset[str]:
        parts = self._sweep.parts
        if await self._sweep.store.head(str(RunClosedKey(self._sweep.scope, run))) is not None:
            return frozenset()
        try:
            log, _ = await RunLog.open(self._sweep.store, self._sweep.scope, run, parts.clock, parts.entropy)
        except (NotFound, Fenced):
            return frozenset()  # never created, or deleted meanwhile
        if log.state.is_finished:
            return frozenset()
        return frozenset(materialization_id(run, TaskId(task)) for task in log.state.tasks)
