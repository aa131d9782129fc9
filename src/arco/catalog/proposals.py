"""Places that clients propose. Arco places tables and views itself, and says in which folder.

Trino gives a table a place below the `location` of its namespace, and stages it only if there is one. What it asks for is a
proposal: the last part of the place is Arco's, so that no raw name is in a path and no two tables share a folder.
"""

from collections.abc import Mapping

from arco.catalog.locations import normal_uri
from arco.catalog.workspace import Workspace
from arco.iceberg.locations import inside, is_winding, same_place
from arco.iceberg.shape import listed
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.storage.keys import tables_folder

_LOCATION = "location"


def proposable_in(ws: Workspace) -> str:
    """The folder that all tables of a workspace lie in, whatever their namespace."""
    return ws.locations.uri(tables_folder(ws.scope)).rstrip("/")


def is_proposal(ws: Workspace, location: str) -> bool:
    """Whether a place is one that Arco replaces by its own: somewhere below the folder of tables."""
    plain, folder = normal_uri(location), normal_uri(proposable_in(ws))
    return inside(plain, folder) and not same_place(plain, folder)


def check_namespace_place(ws: Workspace, properties: Mapping[str, str]) -> None:
    """Refuse a namespace a `location` in which no table of it could ever lie: clients propose places below it, and people
    would look for their tables there."""
    if _LOCATION not in properties:
        return
    wanted, folder = properties[_LOCATION], proposable_in(ws)
    if not is_winding(wanted) and (inside(normal_uri(wanted), normal_uri(folder)) or ws.policy.allows(wanted)):
        return
    others = ws.policy.prefixes
    raise InvalidInput(
        f"{_LOCATION} {clip(wanted)} of a namespace is not allowed: no table could lie there",
        hint=f"leave it out, tables lie in {folder}; the server allows {listed(others) if others else 'no other place'}"
        " (arco serve --allow-location)",
    )
