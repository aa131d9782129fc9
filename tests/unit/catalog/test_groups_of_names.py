"""Changes of names that share a commit: as many as fit, and each that fits alone is done."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.catalog.operations import ChangeNamespace
from arco.kernel.limits import CAS_OBJECT_BYTES_MAX, COMMIT_GROUP_OPERATIONS_MAX, OPERATION_BYTES_MAX
from unit.catalog.ground import MANIFEST, NAMESPACE, Ground, Server, story

_LARGE = "x" * (OPERATION_BYTES_MAX - 1000)


async def made_together(server: Server, *works: Coroutine[Any, Any, Any]) -> list[Any]:
    """What comes of works that come while another commit is under way."""
    first = server.line.delay("put", MANIFEST)
    making = await first.holds(server.make_namespace("first", "first"))
    waiting = [asyncio.ensure_future(work) for work in works]
    for _ in range(20):
        await asyncio.sleep(0)
    await first.answer()
    _, *results = await asyncio.gather(making, *waiting)
    return results


def large(server: Server, name: str) -> Coroutine[Any, Any, None]:
    """A change that is about as large as one may be."""
    return create_namespace(server.ws, (name,), {"a": _LARGE}, RequestKey(name, "createNamespace", name), Author())


@story
async def test_large_changes_that_come_together_are_all_done():
    server = Ground().server()
    await server.found()
    names = [f"n{number}" for number in range(COMMIT_GROUP_OPERATIONS_MAX)]
    assert len(names) * len(_LARGE) > CAS_OBJECT_BYTES_MAX
    await made_together(server, *(large(server, name) for name in names))
    assert {(name,) for name in names} <= set((await server.ws.tier1.current()).names.namespaces)


@story
async def test_small_changes_that_come_together_share_a_commit():
    server = Ground().server()
    await server.found()
    await made_together(server, *(server.make_namespace(name, name) for name in "abcde"))
    assert len(server.ws.tier1.manifest.tail[-1].operations) == len("abcde")


@story
async def test_two_attempts_of_a_request_that_wait_together_are_done_once():
    server = Ground().server()
    await server.found()
    since = server.ws.tier1.seen.sequence
    change = ChangeNamespace(key_hash="again", levels=NAMESPACE, removals=(), updates={"a": "1"})
    await made_together(server, *(server.ws.committer.submit(change, since=since) for _ in range(2)))
    assert [one.key_hash for commit in server.ws.tier1.manifest.tail for one in commit.operations].count("again") == 1


@story
async def test_what_is_given_up_while_it_waits_for_its_commit_is_done_and_not_refused():
    server = Ground().server()
    await server.found()
    since = server.ws.tier1.seen.sequence
    change = ChangeNamespace(key_hash="late", levels=NAMESPACE, removals=(), updates={"a": "1"})
    committer = server.ws.committer
    works = (committer.submit(change, since=since), committer.give_up("late", since))
    _, is_given_up = await made_together(server, *works)
    assert not is_given_up
    assert await server.ws.tier1.landed_at("late", since) is not None
