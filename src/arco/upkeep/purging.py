"""`purge`: what an operator says is old enough to go for good, beyond what upkeep takes by itself."""

from arco.upkeep import dropped, pointers
from arco.upkeep.passes import announced, run_job
from arco.upkeep.report import Report
from arco.upkeep.runs import purge_runs
from arco.upkeep.sweep import Setting, Sweep


async def purge(setting: Setting, older_than_s: float) -> list[Report]:
    """Dropped tables, with or without purge, and runs that ended: those older than that. Files go after their grace."""

    async def tables(sweep: Sweep) -> None:
        for one in list((await sweep.parts.tier1.current()).names.dropped.values()):
            sweep.tally.looked_at += 1
            with sweep.apart(one.entry.full_name, dropped.NOT_PURGED):
                if await dropped.is_older(sweep, one, older_than_s):
                    await dropped.purge(sweep, one)
                else:
                    sweep.keep("it was dropped not so long ago")

    async def runs(sweep: Sweep) -> None:
        await purge_runs(sweep, older_than_s)

    jobs = (("dropped", tables), ("pointers", pointers.collect), ("runs", runs))
    reports = [await run_job(setting, kind, collect) for kind, collect in jobs]
    return await announced(setting, reports)
