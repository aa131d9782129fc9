"""Too many commits for one table: who is sent away has done nothing, and nobody waits for ever."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from arco.catalog import commits as module
from arco.iceberg import requests
from arco.kernel.errors import Busy, OutcomeUnknown
from arco.kernel.limits import TABLE_QUEUE_S_MAX
from arco.ledger.receipts import Source

from .ground import MARKER, METADATA, NAMESPACE, POINTER, Ground, Server, commit_key, setting, story


async def committed(server: Server, key: str, *, durable: bool) -> str:
    """A commit, with a key of its client's or without."""
    body = setting(key)
    made = replace(commit_key(key, body), durable=durable)
    commits = server.catalog.table_commits
    return (await commits.commit(NAMESPACE, "a", requests.parse_commit_table(body), made, Source())).location


async def waiting(server: Server, stack: AsyncExitStack, *commits: Any) -> "list[asyncio.Future[str]]":
    """Commits behind somebody who is at the head of the line until the stack ends."""
    uuid = (await server.load("a")).uuid
    await stack.enter_async_context(server.catalog.table_commits.lines.at_the_head(uuid))
    begun = [asyncio.ensure_future(one) for one in commits]
    for _ in range(20):
        await asyncio.sleep(0)
    assert not any(one.done() for one in begun)
    return begun


def writes(server: Server) -> list[str]:
    return [asked for asked in server.line.asked if asked.startswith("put")]


@pytest.fixture
def small_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLE_QUEUE_MAX", 3)


@pytest.mark.usefixtures("small_queues")
@story
async def test_a_table_takes_so_many_commits_and_the_next_is_sent_away_before_anything_is_done() -> None:
    ground = Ground()
    server = ground.server()
    await server.found("a", "b")
    commits = server.catalog.table_commits
    new = replace(commit_key("N", setting("N")), durable=False)
    async with AsyncExitStack() as stack:
        begun = await waiting(server, stack, *(committed(server, key, durable=True) for key in "KLM"))
        before = writes(server)
        with pytest.raises(Busy):
            commits.require_room(NAMESPACE, "a", new)
        with pytest.raises(OutcomeUnknown):  # it may have been sent before, and have landed (C8)
            commits.require_room(NAMESPACE, "a", replace(new, durable=True))
        commits.require_room(NAMESPACE, "b", new)  # one hot table leaves room for the others
        commits.require_room(NAMESPACE, "not-there", new)
        assert writes(server) == before
        await stack.aclose()
    await asyncio.gather(*begun)
    commits.require_room(NAMESPACE, "a", new)


@story
async def test_who_comes_to_its_turn_too_late_is_sent_away_with_nothing_done() -> None:
    await _too_late(commits=1)


@story
async def test_so_is_a_whole_group() -> None:
    await _too_late(commits=3)


async def _too_late(commits: int) -> None:
    ground = Ground()
    server = ground.server()
    await server.found("a")
    before = len(writes(server))
    async with AsyncExitStack() as stack:
        begun = await waiting(server, stack, *(committed(server, f"K{one}", durable=False) for one in range(commits)))
        await ground.clock.sleep(TABLE_QUEUE_S_MAX + 1)
        await stack.aclose()
        outcomes = await asyncio.gather(*begun, return_exceptions=True)
    assert [type(one) for one in outcomes] == [Busy] * commits
    await server.settle()
    touched = writes(server)[before:]
    assert not [asked for asked in touched if MARKER in asked or METADATA in asked or POINTER in asked]
    assert await committed(server, "later", durable=False)


@story
async def test_with_a_key_it_may_have_been_sent_before_so_nobody_says_that_nothing_was_done() -> None:
    ground = Ground()
    server = ground.server()
    await server.found("a")
    async with AsyncExitStack() as stack:
        (late,) = await waiting(server, stack, committed(server, "K", durable=True))
        await ground.clock.sleep(TABLE_QUEUE_S_MAX + 1)
        await stack.aclose()
        with pytest.raises(OutcomeUnknown):
            await late
    assert await committed(server, "K", durable=True)  # a retry with the same key is done
