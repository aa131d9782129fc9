"""Which workspaces a root holds, found without walking through their objects.

Every name begins with tenant and workspace, and listings are in the order of names: after the first object of a workspace the
next question is for what comes behind all of it. So it is one request a workspace, however much lies in each. Folders that are
none of ours are passed over the same way.
"""

from arco.kernel.errors import InvalidInput
from arco.kernel.scope import Scope
from arco.storage.keys import prefix_of
from arco.storage.port import ObjectStore

_BEHIND = "0"
"""The character after the slash: behind everything in a folder, before whatever follows it."""

_OF_REQUESTS = (
    "_catalog/iceberg_idempotency",
    "_catalog/iceberg_pointers",
    "_catalog/iceberg_staged",
    "_catalog/iceberg_transactions",
    "data",
    "views",
)
"""Where refused requests leave their records, and what was prepared for them. It counts for nothing before there is a catalog."""


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


async def is_in_use(store: ObjectStore, scope: Scope) -> bool:
    """Whether anything of a workspace counts: refusals alone, to requests that named it wrongly, do not make one.

    One request if it is: a catalog, a ledger and runs lie before all that requests leave, or behind it.
    """
    folder, after = prefix_of(scope), ""
    for _ in range(len(_OF_REQUESTS) + 1):
        page = await store.list_page(folder, after, 1)
        if not page.entries:
            return False
        first = page.entries[0].key
        passed = next((one for one in _OF_REQUESTS if first.startswith(f"{folder}{one}/")), None)
        if passed is None:
            return True
        after = f"{folder}{passed}{_BEHIND}"
    return False


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
