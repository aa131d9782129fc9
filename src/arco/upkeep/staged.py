"""Staged creates that nobody finished: their files first, their note last.

A staged identity says when it was made. Past its time its creation is refused by the boundary of tier 1, also if it comes under a
new key, so what lies in its folder will never be a table's. What was written there a moment ago stays for a grace all the same,
and so does everything of an identity by a clock that was ahead, until the boundary has passed it.
"""

from arco.catalog.names import Names
from arco.catalog.staging import decode_intent
from arco.kernel.limits import STAGED_INTENT_LIFETIME_S, UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.kernel.tallies import Tallied
from arco.storage.keys import StagedIntentKey
from arco.storage.port import Listed
from arco.upkeep.own_files import empty_own_folder
from arco.upkeep.places import Places, is_named
from arco.upkeep.sweep import STRANGE, Sweep

KEPT_S = STAGED_INTENT_LIFETIME_S + UPKEEP_GRACE_S + 2 * UPKEEP_CLOCKS_S


async def collect(sweep: Sweep) -> None:
    names: Names | None = None
    async for entry, key in sweep.walk("iceberg_staged"):
        if not isinstance(key, StagedIntentKey):
            sweep.keep(STRANGE)
        elif not sweep.is_older(entry, KEPT_S):
            sweep.keep("its client may still commit it")
        else:
            names = names or await sweep.names_after_boundary()
            with sweep.apart(entry.key, "its folder could not be emptied"):
                await _collect(sweep, entry, key, names)


async def _collect(sweep: Sweep, entry: Listed, key: StagedIntentKey, names: Names) -> None:
    if is_named(names, key.table):
        await sweep.remove(entry, "its table exists")
        return
    found = await sweep.store.get(entry.key)
    if found is None:
        return
    intent = sweep.decoded(decode_intent, found.data, entry.key)
    if intent is None:
        return
    if not sweep.is_below_boundary(key.table):
        sweep.keep("its identity says a time that has not come: its table can still be created")
        return
    places, file = Places(names, sweep.parts.locations), f"{intent.location}/data/any"
    if not await empty_own_folder(sweep, places, key.table, file, "of a staged table that nobody created"):
        sweep.keep("files in its folder are younger than the grace")
        return
    await sweep.settle()
    await sweep.remove(entry, "nobody created its table in time")
    if not sweep.dry_run:
        sweep.parts.tallies.add(Tallied.STAGED_ABANDONED)
