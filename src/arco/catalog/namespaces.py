"""Namespaces: create, drop, change their properties."""

from arco.catalog.answers import Answer
from arco.catalog.committer import Author
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.model import Levels
from arco.catalog.once import once
from arco.catalog.operations import ChangeNamespace, CreateNamespace, DropNamespace, Operation
from arco.catalog.workspace import Workspace


async def create_namespace(
    ws: Workspace, levels: Levels, properties: dict[str, str], key: RequestKey, author: Author
) -> None:
    operation = CreateNamespace(key_hash=key.hash, id=ws.ulids.next(), levels=levels, properties=properties)
    await _commit(ws, operation, key, author)


async def drop_namespace(ws: Workspace, levels: Levels, key: RequestKey, author: Author) -> None:
    await _commit(ws, DropNamespace(key_hash=key.hash, levels=levels), key, author)


async def change_namespace(
    ws: Workspace, levels: Levels, removals: tuple[str, ...], updates: dict[str, str], key: RequestKey, author: Author
) -> None:
    operation = ChangeNamespace(key_hash=key.hash, levels=levels, removals=removals, updates=updates)
    await _commit(ws, operation, key, author)


async def _commit(ws: Workspace, operation: Operation, key: RequestKey, author: Author) -> None:
    async def act(marker: Marker) -> Answer:
        await ws.committer.submit(operation, since=marker.since, author=author)
        return Answer(200)

    await once(ws, key, ws.markers.fresh(key, ws.tier1.seen.sequence), act)
