"""Where a table may lie that Arco only keeps the name of: anywhere but among Arco's own objects, and in no other table's folder.

Nobody writes to such a place through Arco. But whoever reads the catalog reads and tidies there: a Delta table "at" the catalog's
own folder would have its log and its clean-up among commits and pointers (hazard 18). What must never enter: access to the place.
"""

from collections.abc import Iterator

from arco.catalog.locations import normal_uri
from arco.catalog.model import Entry, Format
from arco.catalog.names import Draft
from arco.catalog.workspace import Workspace
from arco.iceberg.locations import inside, is_winding
from arco.kernel.errors import Conflict, InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import WORKSPACES_LISTED_MAX
from arco.kernel.scope import Scope
from arco.storage.workspaces import workspaces

_CATALOG = "_catalog"
_PLACED = (_CATALOG, "data", "views")
_HINT = "give the folder of the table itself, outside of what Arco keeps"


async def check_foreign_place(ws: Workspace, location: str) -> None:
    """Refuse a place among Arco's own objects. Whether a folder of the root is another workspace is asked of the store."""
    plain, base = _plain(location), _plain(ws.locations.base)
    if is_winding(location) and _store_of(plain) == _store_of(base):
        raise _refused(location, "winds: nobody can say where it lies", "write a plain path")
    if inside(base, plain):
        raise _refused(location, "holds everything that Arco keeps", _HINT)
    if not inside(plain, base):
        return
    steps = plain[len(base) + 1 :].split("/")
    if steps[2:3] == [_CATALOG]:
        raise _refused(location, "is a folder of Arco's own", _HINT)
    ours = [str(ws.scope.tenant), str(ws.scope.workspace)]
    if steps[:2] == ours[: len(steps)]:
        _check_own_folder(location, steps)
    elif (there := await _workspace_at(ws, steps)) is not None:
        raise _refused(location, f"is a place of workspace {there.warehouse}", _HINT)


def check_apart(draft: Draft, location: str, uuid: str) -> None:
    """Refuse the place of another table, one in it and one around it. A look at each name of what is about to be committed."""
    plain = _plain(location)
    path = _path(location)
    for entry in _others(draft):
        there = _path(entry.location)
        # Most are told apart by their text. Only what is alike is spelled in one way and compared as places.
        if not (there.startswith(path) or path.startswith(there)) or entry.uuid == uuid:
            continue
        other = _plain(entry.location)
        if inside(other, plain) or inside(plain, other):
            raise Conflict(
                f"location {clip(location, 300)}: {entry.kind} {entry.full_name} lies at {clip(entry.location, 300)}",
                hint="no table lies in the folder of another: give a folder of its own, or drop the other first",
            )


def _check_own_folder(location: str, steps: list[str]) -> None:
    if len(steps) <= 2:
        raise _refused(location, "holds this workspace", _HINT)
    if steps[2] in _PLACED:
        raise _refused(location, f"is in {steps[2]}/, where Arco places tables and views itself", _HINT)


async def _workspace_at(ws: Workspace, steps: list[str]) -> Scope | None:
    """The workspace that a folder of the root lies in, or one that lies in the folder."""
    if len(steps) == 1:
        there = await workspaces(ws.tier1.store, WORKSPACES_LISTED_MAX)
        return next((scope for scope in there if scope.tenant == steps[0]), None)
    try:
        scope = Scope.of(*steps[:2])
    except InvalidInput:
        return None
    page = await ws.tier1.store.list_page(f"{scope.tenant}/{scope.workspace}/{_CATALOG}/", limit=1)
    return scope if page.entries else None


def _others(draft: Draft) -> Iterator[Entry]:
    """What has files here or elsewhere. Of what was dropped only Iceberg tables: their files are Arco's until they are purged."""
    yield from draft.entries()
    yield from (one.entry for one in draft.reserved())
    for dropped in draft.dropped():
        if dropped.entry.format is Format.ICEBERG and not dropped.unregistered:
            yield dropped.entry


def _plain(location: str) -> str:
    return normal_uri(location).rstrip("/")


def _path(location: str) -> str:
    """A location without its scheme, whatever slashes are around it: for telling apart, not for comparing."""
    scheme, _, rest = location.partition(":")
    return (rest if rest and "/" not in scheme else location).strip("/")


def _store_of(plain: str) -> str:
    """The bucket of a location, or this machine."""
    scheme, _, rest = plain.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _refused(location: str, why: str, hint: str) -> InvalidInput:
    return InvalidInput(f"location {clip(location, 300)} {why}", hint=hint)
