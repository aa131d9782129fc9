"""Runs that ended long ago, when an operator asks for it: log, claims and plan. A closed marker stays in their place.

The marker is written before the first object goes (PROTOCOLS P3): whoever still appends to the run looks for it after writing,
and hears that the run was deleted, also where a number is free again. A run that has not ended, or whose events are not all in
the ledger, is left alone.
"""

from arco.kernel.errors import AskOperator, Fenced, NotFound
from arco.kernel.ids import RunId
from arco.ledger.outstanding import run_ids
from arco.ledger.run_log import RunLog
from arco.storage.keys import RunClosedKey
from arco.upkeep.sweep import Sweep


async def purge_runs(sweep: Sweep, older_than_s: float) -> None:
    """Delete the runs that ended longer ago than that."""
    for run in await run_ids(sweep.store, sweep.scope):
        sweep.tally.looked_at += 1
        closed = str(RunClosedKey(sweep.scope, run))
        if await sweep.store.head(closed) is None and not await _closed_now(sweep, run, older_than_s):
            continue
        async for entry, _ in sweep.walk("runs", run):
            sweep.tally.looked_at -= 1
            if entry.key != closed:
                await sweep.remove(entry, "its run ended long ago")


async def _closed_now(sweep: Sweep, run: RunId, older_than_s: float) -> bool:
    parts = sweep.parts
    try:
        log, _ = await RunLog.open(sweep.store, sweep.scope, run, parts.clock, parts.entropy)
    except Fenced:
        return True
    except NotFound:
        sweep.keep("it was planned and never created")
        return False
    except AskOperator as error:
        sweep.keep("it cannot be read")
        sweep.tell(error)
        return False
    ended_ms = log.state.run.ended_ms
    if ended_ms is None:
        sweep.keep("it has not ended")
    elif log.state.owed:
        sweep.keep("its events are not all in the ledger")
    elif sweep.now_ms - ended_ms <= older_than_s * 1000:
        sweep.keep("it ended not so long ago")
    else:
        if not sweep.dry_run:
            await log.close()
        sweep.tally.changed += 1
        return True
    return False
