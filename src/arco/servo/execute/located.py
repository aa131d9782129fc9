"""Files of tables through the store, by their locations. A location that lies outside the root is no business of the store's."""

from arco.catalog.workspace import Workspace
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import clip


def key_of(workspace: Workspace, location: str) -> str:
    key = workspace.locations.key(location)
    if key is None:
        raise InvalidInput(f"{clip(location, 300)} lies outside the root", hint="publish to a table inside it")
    return key


async def read_located(workspace: Workspace, location: str) -> bytes:
    found = await workspace.tier1.store.get(key_of(workspace, location))
    if found is None:
        raise NotFound(f"{clip(location, 300)} is gone", hint="a file of this table was removed by somebody else")
    return found.data
