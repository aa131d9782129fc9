"""First files of creations that never got a pointer, or whose file arrived after their pointer was collected.

Such a folder holds nothing but first metadata files, and its identity says that it was made before the boundary of tier 1:
no creation can give it a name any more. An identity that a client chose says no time, or one that has not come: it is buried, so
that whoever comes with it again finds it taken, and what is in its folder is then a dead table's (`pointers.py`). A folder with
anything else in it was put there by somebody, and is left to them. The folders of tables are passed over without listing their
files.
"""

from collections.abc import AsyncIterator

from arco.catalog.model import Kind
from arco.catalog.names import Names
from arco.catalog.pointer import Pointer
from arco.catalog.subject import Tables, Views
from arco.iceberg.locations import same_place
from arco.kernel.errors import ArcoError, InvalidInput
from arco.kernel.ids import TableUuid
from arco.kernel.limits import UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.storage.keys import PointerKey, StagedIntentKey, TableMetadataKey, ViewMetadataKey, parse, prefix_of
from arco.storage.port import Listed
from arco.upkeep.places import is_named
from arco.upkeep.sweep import Sweep

_KEPT_S = UPKEEP_GRACE_S + 2 * UPKEEP_CLOCKS_S
_FILES_MAX = 4
_BEHIND = "0"
"""The character after the slash: behind everything in a folder, before whatever follows it."""


async def collect(sweep: Sweep) -> None:
    names: Names | None = None
    known = (await sweep.parts.tier1.current()).names
    for place in ("data", "views"):
        async for files in _small_folders(sweep, prefix_of(sweep.scope, place)):
            uuid = _first_files_of(sweep, files)
            if uuid is None or is_named(known, uuid):
                continue
            names = names or await sweep.names_after_boundary()
            if is_named(names, uuid) or not await _is_nobodys(sweep, uuid, files[0]):
                continue
            if not sweep.is_below_boundary(uuid):
                await _bury(sweep, uuid, files[0])
                continue
            for entry in files:
                await sweep.remove(entry, "of a creation that came to nothing")


def _first_files_of(sweep: Sweep, files: list[Listed]) -> str | None:
    """The identity whose first files these are; None if there is anything else among them, or something young."""
    found = set()
    for entry in files:
        try:
            key = parse(entry.key)
        except InvalidInput:
            return None
        if (
            not isinstance(key, TableMetadataKey | ViewMetadataKey)
            or key.commit_number
            or not sweep.is_older(entry, _KEPT_S)
        ):
            return None
        found.add(str(key.table if isinstance(key, TableMetadataKey) else key.view))
    (uuid,) = found
    return uuid


async def _bury(sweep: Sweep, uuid: str, entry: Listed) -> None:
    """Take an identity for good. Whoever creates its table meanwhile was first, or finds it taken."""
    sweep.keep("its identity is taken first, and its files go with the pointer's")
    if sweep.dry_run:
        return
    location = sweep.parts.locations.uri(entry.key)
    kind = Kind.VIEW if isinstance(parse(entry.key), ViewMetadataKey) else Kind.TABLE
    await sweep.parts.pointers.create(Pointer.buried(uuid, kind, location, sweep.now_ms, sweep.parts.ulids.next()))
    sweep.tally.changed += 1


async def _is_nobodys(sweep: Sweep, uuid: str, entry: Listed) -> bool:
    """Whether no note of a staged table and no pointer has this identity, and its file was written for this very place.

    In this order: a note goes when its table has a pointer.
    """
    table = TableUuid(uuid)
    for key in (StagedIntentKey(sweep.scope, table), PointerKey(sweep.scope, table)):
        if await sweep.store.head(str(key)) is not None:
            return False
    stored = await sweep.store.get(entry.key)
    if stored is None:
        return False
    location = sweep.parts.locations.uri(entry.key)
    try:
        return _says(stored.data, location, uuid)
    except ArcoError as error:
        sweep.tell(error)
        return False


def _says(data: bytes, location: str, uuid: str) -> bool:
    place = location.rpartition("/metadata/")[0]
    if "/views/" in location:
        view = Views().decode(data, location)
        return view.view_uuid == uuid and same_place(view.location, place)
    table = Tables().decode(data, location)
    return table.table_uuid == uuid and same_place(table.location, place) and not table.snapshots


async def _small_folders(sweep: Sweep, prefix: str) -> AsyncIterator[list[Listed]]:
    """The files of every folder that has only a few; one that has more is passed over in one step."""
    after, folder = "", ""
    files: list[Listed] = []
    while True:
        page = await sweep.store.list_page(prefix, after)
        for entry in page.entries:
            own = entry.key.removeprefix(prefix).partition("/")[0]
            if own != folder:
                if 0 < len(files) <= _FILES_MAX:
                    yield files
                folder, files = own, []
                sweep.tally.looked_at += 1
            files.append(entry)
        if page.next_after is None:
            break
        after = page.next_after if len(files) <= _FILES_MAX else f"{prefix}{folder}{_BEHIND}"
    if 0 < len(files) <= _FILES_MAX:
        yield files
