"""Places that clients propose. Arco places tables and views itself, and says in which folder.

Trino gives a table a place below the `location` of its namespace, and stages it only if there is one. What it asks for is a
proposal: the last part of the place is Arco's, so that no raw name is in a path and no two tables share a folder.
"""

from arco.catalog.locations import normal_uri
from arco.catalog.workspace import Workspace
from arco.iceberg.locations import inside, same_place
from arco.storage.keys import tables_folder


def proposable_in(ws: Workspace) -> str:
    """The folder that all tables of a workspace lie in, whatever their namespace."""
    return ws.locations.uri(tables_folder(ws.scope)).rstrip("/")


def is_proposal(ws: Workspace, location: str) -> bool:
    """Whether a place is one that Arco replaces by its own: somewhere below the folder of tables."""
    plain, folder = normal_uri(location), normal_uri(proposable_in(ws))
    return inside(plain, folder) and not same_place(plain, folder)
