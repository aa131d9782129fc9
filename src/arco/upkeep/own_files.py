"""Emptying a folder that belonged to one table: everything in it is looked at before the first object goes."""

from arco.kernel.limits import UPKEEP_GRACE_S
from arco.storage.paging import walk
from arco.upkeep.places import Places, own_folder
from arco.upkeep.sweep import YOUNG, Sweep


async def empty_own_folder(sweep: Sweep, places: Places, uuid: str, file: str, why: str) -> bool:
    """Empty the folder of an identity, known by one of its files. True if nothing is left that is its own."""
    folder = own_folder(sweep.parts, uuid, file)
    if folder is None or not places.is_alone(folder, uuid):
        return True
    return await _empty(sweep, folder, why)


async def _empty(sweep: Sweep, folder: str, why: str) -> bool:
    """Take away what is in a folder and older than the grace. True if nothing is left.

    The folder is walked twice, so that a table of millions of files is not held in memory.
    """
    young = 0
    async for entry in walk(sweep.store, folder):
        young += not sweep.is_older(entry, UPKEEP_GRACE_S)
    async for entry in sweep.files(folder):
        if sweep.is_older(entry, UPKEEP_GRACE_S):
            await sweep.remove(entry, why)
        else:
            sweep.keep(YOUNG)
    return not young
