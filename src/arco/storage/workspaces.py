"""Which workspaces a root holds, found without walking through their objects.

Every name begins with tenant and workspace, and listings are in the order of names: after the first object of a workspace the
next question is for what comes behind all of it. So it is one request a workspace, however much lies in each. Folders that are
none of ours are passed over the same way.
"""

from arco.kernel.errors import InvalidInput
from arco.kernel.scope import Scope
from arco.storage.port import ObjectStore

_BEHIND = "0"
"""The character after the slash: behind everything in a folder, before whatever follows it."""


async def workspaces(store: ObjectStore, requests_max: int) -> list[Scope]:
    """The workspaces that hold an object, in order; no more than can be found with so many requests."""
    found: list[Scope] = []
    after = ""
    for _ in range(requests_max):
        page = await store.list_page("", after, 1)
        if not page.entries:
            break
        scope, after = _first_of(page.entries[0].key)
        if scope is not None:
            found.append(scope)
    return found


def _first_of(key: str) -> tuple[Scope | None, str]:
    """The workspace that an object lies in, if any, and the place behind it."""
    tenant, _, rest = key.partition("/")
    workspace, _, name = rest.partition("/")
    if rest and not _is_scope(tenant):
        return None, f"{tenant}{_BEHIND}"
    if not name:
        return None, key
    behind = f"{tenant}/{workspace}{_BEHIND}"
    return (Scope.of(tenant, workspace) if _is_scope(tenant, workspace) else None), behind


def _is_scope(*names: str) -> bool:
    try:
        Scope.of(*names)
    except InvalidInput:
        return False
    return True
