"""Files of tables through the store, by their locations: inside the root, or in a place that an operator allows."""

from arco.catalog.workspace import Workspace
from arco.kernel.errors import NotFound
from arco.kernel.ids import clip


async def read_located(workspace: Workspace, location: str) -> bytes:
    found = await workspace.files.fetch(location)
    if found is None:
        raise NotFound(f"{clip(location, 300)} is gone", hint="a file of this table was removed by somebody else")
    return found
