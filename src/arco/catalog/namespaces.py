"""Namespaces: create, drop, change their properties."""

import msgspec

from arco.catalog.answers import Answer
from arco.catalog.doubt import doubt
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import Levels
from arco.catalog.once import Begin, once, submit_once
from arco.catalog.operations import ChangeNamespace, CreateNamespace, DropNamespace, Operation
from arco.catalog.proposals import check_namespace_place
from arco.catalog.workspace import Workspace
from arco.iceberg.guardrails import check_properties
from arco.kernel.errors import OutcomeUnknown


async def create_namespace(
    ws: Workspace, levels: Levels, properties: dict[str, str], key: RequestKey, author: Author
) -> None:
    check_properties(properties)
    check_namespace_place(ws, properties)
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
    """Set and remove properties. What was removed is said as the chain has it: by the state that the change was made on."""
    check_properties((*removals, *updates))
    check_namespace_place(ws, updates)
    wanted = tuple(dict.fromkeys(removals))
    operation = ChangeNamespace(key_hash=key.hash, levels=levels, removals=wanted, updates=updates)

    async def act(marker: Marker) -> Answer:
        await ws.committer.submit(operation, since=marker.since, author=author)
        with doubt():
            done = await ws.tier1.recorded(key.hash, marker.since)
        if not isinstance(done, ChangeNamespace):
            raise OutcomeUnknown("this change is not in the chain as it is known here")
        # Before it was recorded, everything counted as removed.
        removed = wanted if done.removed is None else done.removed
        missing = tuple(one for one in wanted if one not in removed)
        return Answer(200, body=msgspec.json.encode(Changes(tuple(sorted(updates)), removed, missing)).decode())

    answer = await once(ws, key, _first(ws, key), act)
    return msgspec.json.decode(answer.body or "", type=Changes)


async def _commit(ws: Workspace, operation: Operation, key: RequestKey, author: Author) -> None:
    await submit_once(ws, key, _first(ws, key), lambda _: operation, author)


def _first(ws: Workspace, key: RequestKey) -> Begin:
    async def begin() -> Marker:
        return ws.markers.fresh(key, ws.tier1.seen.sequence)

    return begin
