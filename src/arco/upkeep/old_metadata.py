"""Metadata files of versions that their table's log no longer names, where the table says that they go.

`write.metadata.delete-after-commit.enabled` is Iceberg's own word for it; `write.metadata.previous-versions-max` says how many
stay. A version goes once the one after it became current longer ago than any marker or receipt is kept, by the store's clock: who
asks later what became of a commit hears that nobody knows (`catalog/history.py`). Its number is below the pointer's, so nothing
can be swung to it (U2); with it go the files of lost commits of its number, and everything older. Where snapshots expire, it
stays until what it named is noted (`named.py`): the files of a snapshot that no later version names are found by that alone.
"""

from arco.catalog.standing import STARTED
from arco.kernel.limits import IDEMPOTENCY_LIFETIME_S, MARKER_GRACE_S, UPKEEP_CLOCKS_S
from arco.upkeep.maintained import DELETE_METADATA, EXPIRE_SNAPSHOTS, Maintained, is_on, maintained
from arco.upkeep.named import Named
from arco.upkeep.places import Places, own_folder
from arco.upkeep.sweep import YOUNG, Sweep
from arco.upkeep.versions import Versions, number_of

_KEPT_S = IDEMPOTENCY_LIFETIME_S + MARKER_GRACE_S + UPKEEP_CLOCKS_S


async def collect(sweep: Sweep) -> None:
    async for table in maintained(sweep, DELETE_METADATA):
        if not is_on(table.metadata, DELETE_METADATA):
            continue  # asking for a table does not say this
        folder = own_folder(sweep.parts, table.entry.uuid, table.pointer.value.metadata_location)
        names = (await sweep.parts.tier1.current()).names
        if folder is None or table.pointer.value.created_by == STARTED:
            sweep.keep("its table lies elsewhere, or was registered: its files are left alone")
        elif Places(names, sweep.parts.locations).is_alone(folder, table.entry.uuid):
            with sweep.apart(table.name, "its files could not be looked at"):
                await _collect(sweep, table, folder)


async def _collect(sweep: Sweep, table: Maintained, folder: str) -> None:
    last: int | None = None
    with sweep.apart(table.name, "which versions its log forgot is not known"):
        last = await _last_forgotten(sweep, table)
        if last is not None and is_on(table.metadata, EXPIRE_SNAPSHOTS):
            last = min(last, await _looked_at(sweep, table, last))
    if last is None:
        return
    async for entry in sweep.files(f"{folder}metadata/"):
        number = number_of(f"/{entry.key}")
        if number is None:
            sweep.keep("no metadata file")
        elif number > last:
            sweep.keep("its table's log names it, or somebody may ask for it")
        elif sweep.is_older(entry, _KEPT_S):
            await sweep.remove(entry, "its table's log no longer names it")
        else:
            sweep.keep(YOUNG)


async def _last_forgotten(sweep: Sweep, table: Maintained) -> int | None:
    """The number of the newest version that the log does not name and nobody can ask for."""
    versions = Versions(sweep, table.pointer.value)
    logged = {str(one["metadata-file"]) for one in table.metadata.document["metadata-log"]}
    async for version, successor in versions.past():
        if version.location not in logged and await versions.is_older(successor, _KEPT_S):
            return number_of(version.location)
    return None


async def _looked_at(sweep: Sweep, table: Maintained, last: int) -> int:
    """Up to which version all that versions named is noted. Mostly `files` has done it; here it is done if it came to nothing."""
    named = await Named.read(sweep, table.entry.uuid)
    noted = named.looked_at
    if noted >= last:
        return noted
    await named.look_back(Versions(sweep, table.pointer.value), table.pointer.value.commit_number)
    return named.looked_at if await named.save() else noted
