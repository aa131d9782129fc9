"""Namespaces: create, drop, change their properties."""

import msgspec

from arco.catalog.committer import Author
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.model import Levels
from arco.catalog.once import submit_once
from arco.catalog.operations import ChangeNamespace, CreateNamespace, DropNamespace, Operation
from arco.catalog.workspace import Workspace
from arco.iceberg.guardrails import check_properties


async def create_namespace(
    ws: Workspace, levels: Levels, properties: dict[str, str], key: RequestKey, author: Author
) -> None:
    check_properties(properties)
    operation = CreateNamespace(key_hash=key.hash, id=ws.ulids.next(), levels=levels, properties=properties)
    await _commit(ws, operation, key, author)


async def drop_namespace(ws: Workspace, levels: Levels, key: RequestKey, author: Author) -> None:
    await _commit(ws, DropNamespace(key_hash=key.hash, levels=levels), key, author)


class Changes(msgspec.Struct, frozen=True):
    """What came of a change of properties."""

    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...]


async def change_namespace(
    ws: Workspace, levels: Levels, removals: tuple[str, ...], updates: dict[str, str], key: RequestKey, author: Author
) -> Changes:
    """Set and remove properties. What was removed and what was missing is said as of the first time it was asked."""
    check_properties((*removals, *updates))
    before = (await ws.tier1.current()).names.namespaces.get(levels)
    had = {} if before is None else before.properties
    wanted = tuple(dict.fromkeys(removals))
    changes = Changes(
        tuple(sorted(updates)), tuple(one for one in wanted if one in had), tuple(one for one in wanted if one not in had)
    )
    operation = ChangeNamespace(key_hash=key.hash, levels=levels, removals=removals, updates=updates)
    body = await _commit(ws, operation, key, author, msgspec.json.encode(changes).decode())
    return msgspec.json.decode(body, type=Changes)


async def _commit(ws: Workspace, operation: Operation, key: RequestKey, author: Author, body: str = "") -> str:
    async def begin() -> Marker:
        return ws.markers.fresh(key, ws.tier1.seen.sequence)

    answer = await submit_once(ws, key, begin, lambda _: operation, author, body)
    return answer.body or ""
