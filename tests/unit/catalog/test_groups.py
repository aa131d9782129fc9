"""Commits that land in one swing (rule C10): each is whole, each once, and none of them rests on one that is not there.

A group is those who wait while somebody else is at the head of the line.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from arco.catalog import groups as module
from arco.catalog.idempotency import State
from arco.iceberg import requests
from arco.kernel.errors import Conflict, OutcomeUnknown, RetryLater
from arco.ledger.receipts import Source
from arco.storage.port import Lost
from stand_ins.shared_store import Delayed

from .ground import MARKER, METADATA, NAMESPACE, POINTER, RECEIPT, Ground, Server, commit_key, new_column, setting, story


class Crowd:
    """Commits to table `a` that wait for their turn, which the test gives."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._stack = AsyncExitStack()

    async def wait(self, *commits: tuple[str, dict[str, Any]]) -> "list[asyncio.Future[str]]":
        uuid = (await self.server.load("a")).uuid
        await self._stack.enter_async_context(self.server.catalog.table_commits.lines.at_the_head(uuid))
        waiting = [asyncio.ensure_future(self.server.commit("a", key, body)) for key, body in commits]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
        return waiting

    async def let_go(self) -> None:
        await self._stack.aclose()


def plain(*keys: str) -> list[tuple[str, dict[str, Any]]]:
    return [(key, setting(key)) for key in keys]


def marked(key: str) -> dict[str, Any]:
    """A commit that leaves a property of its own: nobody's is written over."""
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {key: "here"}}]}


async def unkeyed(server: Server, key: str) -> str:
    """A commit without a key of its client's: it has no marker, and may be in one group after the other."""
    body = marked(key)
    made = replace(commit_key(key, body), durable=False)
    commits = server.catalog.table_commits
    return (await commits.commit(NAMESPACE, "a", requests.parse_commit_table(body), made, Source())).location


async def numbers(ground: Ground, server: Server, commits: Sequence[tuple[str, dict[str, Any]]]) -> list[list[int]]:
    """The commit numbers under which each request is in the table's history."""
    await server.settle()
    found = await ground.audit()
    assert not found.gaps
    return [[number for _, number in found.landings(server.file_of(key, body))] for key, body in commits]


async def has_receipts(ground: Ground, server: Server, commits: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether any of these commits has its receipt."""
    objects = (await ground.audit()).objects
    hashes = [server.digits_of(key, body).encode() for key, body in commits]
    return any(one in data for key, data in objects.items() if RECEIPT in key for one in hashes)


def swings(server: Server) -> int:
    return sum(asked.startswith("put") and POINTER in asked for asked in server.line.asked)


@story
async def test_rule_c10_each_commit_of_a_group_has_its_own_version_in_the_order_they_came():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    commits = plain("K1", "K2", "K3")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    before = swings(one)
    await crowd.let_go()
    locations = await asyncio.gather(*waiting)
    assert swings(one) == before + 1
    assert await numbers(ground, one, commits) == [[1], [2], [3]]
    # Each was answered with its own version, and the table is at the last.
    for (key, _), location in zip(commits, locations, strict=True):
        metadata = one.catalog.parts.files.kept(location)
        assert f'"last":"{key}"'.encode() in metadata
    assert (await one.properties("a"))["last"] == "K3"
    pointer = await one.ws.pointers.read((await one.load("a")).uuid)
    assert pointer is not None
    assert [commit.metadata_location for commit in pointer.value.published] == locations


@story
async def test_rule_c10_the_next_swing_ensures_the_receipts_of_all():
    """The server dies after the swing of a group, before any receipt: whoever commits next writes them all."""
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    commits = plain("K1", "K2")
    crowd = Crowd(one)
    await crowd.wait(*commits)
    swung = asyncio.Event()

    async def dies() -> None:
        one.line.cut()
        swung.set()

    one.line.after("put", POINTER, dies)
    await crowd.let_go()
    await swung.wait()
    assert not await has_receipts(ground, one, commits)
    await two.commit("a", "next")
    assert await has_receipts(ground, one, commits)
    assert await numbers(ground, two, [*commits, ("next", setting("next"))]) == [[1], [2], [3]]


@story
async def test_who_stands_behind_a_key_that_is_in_use_begins_anew():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.commit("a", "K2")
    await two.settle()
    commits = plain("K1", "K2", "K3", "K4")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    await crowd.let_go()
    await asyncio.gather(*waiting)
    assert await numbers(ground, one, commits) == [[2], [1], [3], [4]]


@story
async def test_the_same_key_twice_in_one_group_is_done_once():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    commits = plain("K1", "K", "K", "K4")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    await crowd.let_go()
    done = await asyncio.gather(*waiting)
    assert done[1] == done[2]
    assert [len(found) for found in await numbers(ground, one, commits)] == [1, 1, 1, 1]


@story
async def test_a_request_that_does_not_apply_behind_the_others_is_judged_by_itself():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    taken, late = ("C1", new_column(1, "x")), ("C2", new_column(1, "y"))
    commits = [*plain("K1"), taken, late, *plain("K2")]
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    before = swings(one)
    await crowd.let_go()
    with pytest.raises(Conflict):
        await waiting[2]
    await asyncio.gather(waiting[0], waiting[1], waiting[3])
    assert swings(one) == before + 1
    assert await numbers(ground, one, commits) == [[1], [2], [], [3]]


@story
async def test_a_swing_of_a_group_whose_reply_is_lost_is_found_by_each():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    commits = plain("K1", "K2", "K3")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    one.line.lose("put", POINTER)
    await crowd.let_go()
    await asyncio.gather(*waiting)
    assert await numbers(ground, one, commits) == [[1], [2], [3]]


@story
async def test_a_group_that_loses_its_base_to_another_process_begins_anew():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    commits = plain("K1", "K2", "K3")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)

    async def rival() -> None:
        await two.commit("a", "rival")
        await two.settle()

    one.line.before("put", POINTER, rival)
    await crowd.let_go()
    await asyncio.gather(*waiting)
    assert [len(found) for found in await numbers(ground, one, commits)] == [1, 1, 1]


@story
async def test_a_write_that_fails_is_its_own_trouble_and_the_rest_begin_anew():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    commits = plain("K1", "K2", "K3")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    one.line.fail("put", METADATA, times=20, skip=1)
    await crowd.let_go()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(results[1], RetryLater | OutcomeUnknown)
    one.line._rules.clear()
    assert (await numbers(ground, one, commits))[1] == []


async def dies_before_its_swing(ground: Ground, one: Server, *commits: tuple[str, dict[str, Any]]) -> Delayed:
    """A server dies with the swing of a group on its way; so long ago that its keys may be taken over."""
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    swing = one.line.delay("put", POINTER)
    await crowd.let_go()
    await swing.holds(asyncio.gather(*waiting))
    one.line.cut()
    ground.long_after()
    return swing


@pytest.mark.parametrize("again", ["K1", "K2", "K3"])
def test_rule_c10_who_takes_a_commit_of_a_group_over_makes_it_by_itself_once(again: str):
    """Whichever retry comes first: none of the others comes with it, and the late swing finds its pointer moved."""

    @story
    async def told() -> None:
        ground = Ground()
        one, two = ground.server(), ground.server()
        await one.found("a")
        commits = plain("K1", "K2", "K3")
        swing = await dies_before_its_swing(ground, one, *commits)
        await two.commit("a", again)
        assert isinstance(await swing.land(), Lost)
        found = await numbers(ground, two, commits)
        assert found == [[1] if key == again else [] for key, _ in commits]
        assert [(await two.properties("a"))["last"]] == [again]
        for key, _ in commits:
            await two.commit("a", key)
        assert [len(one) for one in await numbers(ground, two, commits)] == [1, 1, 1]

    told()


@story
async def test_rule_c10_a_refused_commit_does_not_come_back_with_the_one_behind_it():
    """K1 is refused by its retry, and that is told. The retry of K2, which stood behind it, must not bring it."""
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    first, second = ("K1", new_column(1, "x")), ("K2", setting("K2"))
    swing = await dies_before_its_swing(ground, one, first, second)
    await two.commit("a", "other", new_column(1, "y"))
    with pytest.raises(Conflict):
        await two.commit("a", *first)
    await two.commit("a", *second)
    assert isinstance(await swing.land(), Lost)
    assert await numbers(ground, two, [first, second]) == [[], [2]]


@story
async def test_rule_c10_the_swing_of_a_group_that_lands_before_the_retry_looks_is_found():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    commits = plain("K1", "K2", "K3")
    swing = await dies_before_its_swing(ground, one, *commits)
    # The retry has read the pointer, and not touched it yet.
    two.line.before("put", POINTER, swing.land)
    await two.commit("a", "K2")
    assert await numbers(ground, two, commits) == [[1], [2], [3]]


@story
async def test_rule_c10_behind_another_commit_the_same_request_is_another_file():
    """Bytes that were computed on what never landed are not adopted, though number and request are the same."""
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.commit("a", "X")
    await two.commit("a", "since")
    await two.settle()
    # X is in use, so B and C begin anew: behind D, who came meanwhile, and so at the places that they had before.
    crowd = Crowd(one)
    claim = one.line.delay("put", MARKER)
    waiting = await crowd.wait(("X", setting("X")))
    waiting += [asyncio.ensure_future(unkeyed(one, key)) for key in ("B", "C")]
    for _ in range(20):
        await asyncio.sleep(0)
    await crowd.let_go()
    claiming = await claim.holds(asyncio.gather(*waiting))
    late = asyncio.ensure_future(one.commit("a", "D", marked("D")))
    for _ in range(20):
        await asyncio.sleep(0)
    await claim.answer()
    await asyncio.gather(claiming, late)
    commits = [(key, marked(key)) for key in "DBC"]
    assert await numbers(ground, one, commits) == [[3], [4], [5]]
    assert {"D", "B", "C"} <= set(await one.properties("a"))


@story
async def test_rule_c10_the_receipt_of_one_does_not_stand_for_the_group():
    """The reply to a group's swing is lost: each finds by itself that it landed. Only the last comes to write its receipt."""
    ground = Ground()
    one = ground.server()
    await one.found("a")
    await one.commit("a", "first")
    await one.settle()
    commits = plain("K1", "K2", "K3")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    one.line.lose("put", POINTER)
    one.line.fail("put", RECEIPT, times=50)
    await crowd.let_go()
    await asyncio.gather(*waiting)
    await one.settle()
    one.line._rules.clear()
    assert not await has_receipts(ground, one, commits)
    uuid = (await one.load("a")).uuid
    pointer = await one.ws.pointers.read(uuid)
    assert pointer is not None
    await one.catalog.table_commits.swings.write_receipts(uuid, pointer.value.published[-1:])
    await one.commit("a", "next")
    assert await numbers(ground, one, commits) == [[2], [3], [4]]


@story
async def test_rule_c10_a_group_does_not_follow_a_table_to_another_name():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    commits = plain("K1", "K2")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    await two.rename("a", "b", "rename")
    again = await two.create("a", "again")
    await crowd.let_go()
    await asyncio.gather(*waiting)
    await one.settle()
    found = await ground.audit()
    assert [[uuid for uuid, _ in found.landings(one.file_of(key))] for key, _ in commits] == [[again], [again]]


def test_a_group_has_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "GROUP_COMMITS_MAX", 2)

    @story
    async def told() -> None:
        ground = Ground()
        one = ground.server()
        await one.found("a")
        commits = plain("K1", "K2", "K3", "K4", "K5")
        crowd = Crowd(one)
        waiting = await crowd.wait(*commits)
        before = swings(one)
        await crowd.let_go()
        await asyncio.gather(*waiting)
        assert swings(one) == before + 3
        assert await numbers(ground, one, commits) == [[1], [2], [3], [4], [5]]

    told()


@story
async def test_who_was_just_answered_is_waited_for():
    """Two who commit again and again share every swing, instead of taking turns."""
    ground = Ground()
    one = ground.server()
    await one.found("a")

    async def commit(name: str) -> None:
        for number in range(10):
            await one.commit("a", f"{name}{number}")

    before = swings(one)
    await asyncio.gather(commit("x"), commit("y"))
    assert swings(one) - before <= 12
    commits = plain(*(f"{name}{number}" for name in "xy" for number in range(10)))
    assert all(len(found) == 1 for found in await numbers(ground, one, commits))


@story
async def test_markers_of_a_group_are_finished():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    commits = plain("K1", "K2")
    crowd = Crowd(one)
    waiting = await crowd.wait(*commits)
    await crowd.let_go()
    done = await asyncio.gather(*waiting)
    await one.settle()
    markers = [await one.ws.markers.existing(commit_key(key, body)) for key, body in commits]
    assert [held.value.state for held in markers] == [State.COMMITTED, State.COMMITTED]
    one.line.asked.clear()
    assert [await one.commit("a", key) for key, _ in commits] == done
    assert swings(one) == 0
