"""Pointers without a name: creations that were given up half way, and tables that were purged.

    never named, made before the boundary     files, then the pointer: that identity can never be created any more
    never named, any other identity           buried: whoever comes with the same identity again finds it taken
    a tombstone without a name                its table was purged: the files go, the tombstone stays
    one of a table that was unregistered      its files are not Arco's any more: everything stays

The boundary of tier 1 is raised before the names are read (U1), and only then is a pointer without a name known to be litter. A
tombstone stays because a request to delete it could arrive after somebody registered the same identity anew: the new table would
lose its pointer. It is some hundred bytes, and keeps the identity from being taken for one that never was.
"""

import msgspec

from arco.catalog.names import Names
from arco.catalog.pointer import GRAVE, Pointer, Tombstone
from arco.kernel.ids import TableUuid
from arco.storage.cas import Held
from arco.storage.keys import PointerKey
from arco.storage.port import Listed
from arco.upkeep.dropped import NAMELESS_KEPT_S, UNREGISTERED
from arco.upkeep.own_files import empty_own_folder
from arco.upkeep.places import Places, is_named
from arco.upkeep.sweep import STRANGE, YOUNG, Sweep


async def collect(sweep: Sweep) -> None:
    known = (await sweep.parts.tier1.current()).names
    nameless: _Nameless | None = None
    async for entry, key in sweep.walk("iceberg_pointers"):
        if not isinstance(key, PointerKey):
            sweep.keep(STRANGE)
        elif is_named(known, key.table):
            sweep.keep("its table has a name, or can be restored")
        elif not sweep.is_older(entry, NAMELESS_KEPT_S):
            sweep.keep(YOUNG)
        else:
            nameless = nameless or _Nameless(sweep, await sweep.names_after_boundary())
            with sweep.apart(entry.key, "its folder could not be emptied"):
                await nameless.collect(entry, key.table)


class _Nameless:
    """Judges pointers by names that no old creation can add to any more."""

    def __init__(self, sweep: Sweep, names: Names) -> None:
        self._sweep = sweep
        self._names = names
        self._places = Places(names, sweep.parts.locations)

    async def collect(self, entry: Listed, uuid: TableUuid) -> None:
        sweep = self._sweep
        if is_named(self._names, uuid):
            sweep.keep("its table has a name, or can be restored")
            return
        pointer: Held[Pointer] | None = None
        with sweep.apart():
            pointer = await sweep.parts.pointers.read(uuid)
        if pointer is None:
            return
        if pointer.value.pending is not None:
            sweep.keep("a transaction has not decided about it")
        elif pointer.value.tombstone is not None and pointer.value.tombstone.unregistered:
            sweep.keep(UNREGISTERED)
        elif pointer.value.tombstone is not None:
            await self._empty(pointer.value, "of a table that was purged")
            sweep.keep("a tombstone: its identity stays taken")
        elif pointer.value.commit_number:
            sweep.keep("it has commits and no name")
            said = f"{entry.key} has {pointer.value.commit_number} commits and no name: nobody drops a table like that"
            sweep.tally.trouble.append(f"{said}; run arco verify, and look whether names were set back")
        else:
            await self._never_named(entry, pointer)

    async def _never_named(self, entry: Listed, pointer: Held[Pointer]) -> None:
        if not self._sweep.is_below_boundary(pointer.value.table_uuid):
            await self._bury(pointer)
            self._sweep.keep("buried: its identity stays taken")
        elif await self._empty(pointer.value, "of a table that was never created"):
            await self._sweep.settle()
            await self._sweep.remove(entry, "no table has it, and none can get it any more")
        else:
            self._sweep.keep("files in its folder are younger than the grace")

    async def _empty(self, pointer: Pointer, why: str) -> bool:
        return await empty_own_folder(self._sweep, self._places, pointer.table_uuid, pointer.metadata_location, why)

    async def _bury(self, pointer: Held[Pointer]) -> None:
        if self._sweep.dry_run:
            return
        tombstone = Tombstone(self._sweep.parts.ulids.next(), pointer.value.binding, True, GRAVE, pointer.value.created_by)
        await self._sweep.parts.pointers.swing(pointer, msgspec.structs.replace(pointer.value, tombstone=tombstone))
        self._sweep.tally.changed += 1
