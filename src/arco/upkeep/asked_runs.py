"""Requests for runs that were decided about, and whose run has begun if there is one; and what kept those. Verdicts stay.

A name that goes may be written again, by a retry that comes late, and harms nobody: its verdict is there, counts, and is read
before anything is done. So nothing has to grow old here, and whoever takes requests lists little.
"""

from arco.kernel.ids import RunId
from arco.ledger.asked_runs import AskedRuns, AskedVerdict
from arco.storage.keys import AskedRunKey, AskedTroubleKey, Key, RunClosedKey, RunLogKey
from arco.storage.port import Listed
from arco.upkeep.sweep import Sweep


async def collect(sweep: Sweep) -> None:
    requests = AskedRuns(sweep.store, sweep.scope, sweep.parts.clock, sweep.parts.entropy)
    async for entry, key in sweep.walk("asked_runs", "open"):
        if isinstance(key, AskedRunKey):
            with sweep.apart():
                await _collect(sweep, entry, await requests.verdict(key.key_hash))
    async for entry, key in sweep.walk("asked_runs", "troubled"):
        if isinstance(key, AskedTroubleKey) and await sweep.store.head(str(AskedRunKey(sweep.scope, key.key_hash))) is None:
            await sweep.remove(entry, "its request is gone")


async def _collect(sweep: Sweep, entry: Listed, verdict: AskedVerdict | None) -> None:
    if verdict is None:
        sweep.keep("waits to be taken")
        return
    places: tuple[Key, ...] = ()
    if verdict.run is not None:
        run = RunId(verdict.run)
        places = (RunLogKey(sweep.scope, run, 1), RunClosedKey(sweep.scope, run))
    if places and not any([await sweep.store.head(str(one)) is not None for one in places]):
        sweep.keep("its run has not begun")
        return
    await sweep.remove(entry, "it was decided about")
