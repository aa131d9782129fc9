"""Whose files lie where. A folder is swept only if it belongs to one table and to nobody else (trap T8).

A table's own folder is the one that Arco made for its identity in this workspace: `data/<slug>-<uuid>/` or
`views/<slug>-<uuid>/`. What lies anywhere else was put there by somebody, and is left to them: a table of another workspace that
was registered here has the same identity in both, and its folder is the other's.
"""

from bisect import bisect_left
from collections.abc import Iterable

from arco.catalog.locations import Locations
from arco.catalog.model import Entry
from arco.catalog.names import Names
from arco.catalog.workspace import Workspace
from arco.kernel.errors import InvalidInput
from arco.storage.keys import TableFileKey, TableMetadataKey, ViewMetadataKey, parse, table_folder, view_folder


def own_folder(parts: Workspace, uuid: str, file: str) -> str | None:
    """The folder of an identity, from the location of one of its files; None if that file lies in no folder of its own."""
    try:
        name = parts.locations.key(file)
        key = None if name is None else parse(name)
    except InvalidInput:
        return None
    here = parts.scope
    match key:
        case TableMetadataKey(scope, slug, table) | TableFileKey(scope, slug, table) if (scope, table) == (here, uuid):
            return table_folder(scope, slug, table)
        case ViewMetadataKey(scope, slug, view) if (scope, view) == (here, uuid):
            return view_folder(scope, slug, view)
        case _:
            return None


def is_named(names: Names, uuid: str) -> bool:
    """Whether an identity has a name, can get its name back, or may get one by a transaction."""
    return uuid in names.places or uuid in names.dropped or _is_reserved(names, uuid)


def _is_reserved(names: Names, uuid: str) -> bool:
    return any(one.entry.uuid == uuid for one in names.reserved.values())


class Places:
    """Where every table and view lies that has a name or can be restored."""

    def __init__(self, names: Names, locations: Locations) -> None:
        self._owners: dict[str, set[str]] = {}
        for entry in _everything(names):
            try:
                key = locations.key(entry.location)
            except InvalidInput:
                continue
            if key is not None:
                self._owners.setdefault(f"{key}/", set()).add(entry.uuid)
        self._sorted = sorted(self._owners)

    def is_alone(self, folder: str, uuid: str) -> bool:
        """Whether nobody else lies in this folder, above it or at it."""
        parts = folder.split("/")
        around = ("/".join(parts[:length]) + "/" for length in range(1, len(parts)))
        return not any(self._others(place, uuid) for place in (*around, *self._inside(folder)))

    def _inside(self, folder: str) -> Iterable[str]:
        for place in self._sorted[bisect_left(self._sorted, folder) :]:
            if not place.startswith(folder):
                return
            yield place

    def _others(self, place: str, uuid: str) -> bool:
        return bool(self._owners.get(place, set()) - {uuid})


def _everything(names: Names) -> Iterable[Entry]:
    yield from names.entries.values()
    yield from (one.entry for one in names.dropped.values())
    yield from (one.entry for one in names.reserved.values())
