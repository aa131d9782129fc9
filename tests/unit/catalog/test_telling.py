"""Telling the ledger of names: everything once in effect, in order, and at the cost of what is new."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from arco.catalog.telling import Teller
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.ledger.envelope import Event
from arco.ledger.segment import decode_segment
from arco.storage.keys import SegmentKey, parse
from arco.storage.profile import INSTANT, ProfiledStore, operation
from stand_ins.lake import AUTHOR, MANIFEST, SCOPE, Lake, commit_object

ORDERS, LINES = (("shop",), "orders"), (("shop",), "lines")
TOLD = "default/default/_catalog/core/told.json"
CREATED, DROPPED = "catalog.table_created.v1", "catalog.table_dropped.v1"


def story(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def teller(lake: Lake, name: str = "teller", **more: int) -> Teller:
    return Teller(ProfiledStore(lake.store, INSTANT, lake.clock), SCOPE, lake.clock, SeededEntropy(name), **more)


async def told(lake: Lake) -> list[Event]:
    """The events in the ledger, in the order they were appended by one teller."""
    found: list[Event] = []
    for name in await lake.keys("/ledger/catalog/"):
        key = parse(name)
        assert isinstance(key, SegmentKey)
        found += decode_segment(key, await lake.bytes_of(name)).events
    return found


async def shop() -> Lake:
    lake = Lake()
    await lake.namespace("shop")
    return lake


@story
async def test_everything_that_happens_to_a_name_is_told_in_order() -> None:
    lake = await shop()
    uuid = await lake.table(*ORDERS)
    await lake.describe(ORDERS, owner="ann", tags=["raw"], row_count=5)
    await lake.rename(ORDERS, LINES)
    await lake.drop(LINES)
    gone = (await lake.catalog.parts.tier1.current()).names.last_dropped(*LINES)
    assert gone is not None
    await lake.catalog.tables.undrop(gone, *LINES, lake.key(), AUTHOR)
    view = await lake.view(("shop",), "recent")
    await teller(lake).tell()
    events = await told(lake)
    kinds = ["created", "described", "renamed", "dropped", "restored", "created"]
    assert [one.type for one in events] == [f"catalog.table_{kind}.v1" for kind in kinds]
    assert [one.subject for one in events] == [uuid] * 5 + [view]
    assert [one.data["sequence"] for one in events] == [2, 3, 4, 5, 6, 7]
    assert events[1].data["fields"] == {"owner": "ann", "tags": ["raw"]}, "what a client measured is not people's word"
    assert (events[2].data["namespace"], events[2].data["name"]) == (["shop"], "lines")
    assert (events[3].data["who"], events[3].data["drop_id"]) == ("ann", gone.drop_id)
    assert events[5].data["kind"] == "view"


@story
async def test_nothing_is_told_twice_and_a_look_is_one_request() -> None:
    lake = await shop()
    await lake.table(*ORDERS)
    one, other = teller(lake, "one"), teller(lake, "other")
    assert len(await one.tell()) == 1
    assert await other.tell() == ()
    assert await cost(one) == {"head": 1}
    await lake.drop(ORDERS)
    assert len(await other.tell()) == 1
    assert await one.tell() == ()
    assert [event.type for event in await told(lake)] == [CREATED, DROPPED]


async def cost(who: Teller) -> dict[str, int]:
    """The requests of one look."""
    with operation("tell") as seen:
        await who.tell()
    return dict(seen.requests)


@story
async def test_the_cost_is_that_of_what_is_new() -> None:
    """Commits that a checkpoint took out of the manifest are read back to the mark, however long the chain is."""
    costs = []
    for before in (3, 60):
        lake = await shop()
        for number in range(before):
            await lake.other(("shop",), f"t{number}")
        await teller(lake).tell()
        for number in range(5):
            await lake.other(("shop",), f"new{number}")
        await lake.checkpoint()
        costs.append((await cost(teller(lake)), len(await told(lake)) - before))
    assert costs[0] == costs[1]
    # The mark twice, the manifest, five commits; one page of names that come after the mark; a segment and the mark.
    assert costs[0] == ({"head": 1, "get": 8, "list": 1, "put": 2}, 5)


@story
async def test_the_tail_of_the_manifest_is_told_without_reading_commits() -> None:
    lake = await shop()
    await lake.other(*ORDERS)
    assert await cost(teller(lake)) == {"head": 1, "get": 3, "put": 2}


@story
async def test_a_long_chain_is_told_in_groups_oldest_first() -> None:
    lake = await shop()
    for number in range(10):
        await lake.other(("shop",), f"t{number}")
    await lake.checkpoint()
    assert len(await teller(lake, commits_max=3).tell()) == 4
    assert [event.data["name"] for event in await told(lake)] == [f"t{number}" for number in range(10)]


@story
async def test_what_changes_only_namespaces_moves_the_mark_alone() -> None:
    lake = await shop()
    assert await teller(lake).tell() == ()
    assert await lake.keys(TOLD) == [TOLD]
    assert await told(lake) == []


@story
async def test_an_empty_root_is_told_nothing() -> None:
    lake = Lake()
    assert await teller(lake).tell() == ()
    assert await lake.keys() == []


@story
async def test_a_table_that_takes_its_own_name_again_is_not_dropped() -> None:
    """Registered over itself, at another place: one table, which lies elsewhere."""
    lake = await shop()
    uuid = await lake.table(*ORDERS)
    location = (await lake.catalog.tables.load(*ORDERS))[1].location
    await lake.catalog.registering.register(*ORDERS, location, overwrite=True, key=lake.key(), author=AUTHOR)
    await teller(lake).tell()
    events = await told(lake)
    assert {event.subject for event in events} == {uuid}
    assert [event.type for event in events] == [CREATED, CREATED]


@story
async def test_a_damaged_commit_is_named_and_nothing_after_it_is_told() -> None:
    lake = await shop()
    await lake.other(*ORDERS)
    await lake.other(*LINES)
    await lake.checkpoint()
    damaged = (await lake.chain())[1].id
    await lake.edit(commit_object(damaged), lambda document: document.update(author="eve"))
    with pytest.raises(CorruptObject, match=damaged):
        await teller(lake).tell()
    assert await told(lake) == []
    assert await lake.keys(TOLD) == []


@story
async def test_a_manifest_that_was_put_back_is_not_told_on_top_of_another_history() -> None:
    lake = await shop()
    before = await lake.bytes_of(MANIFEST)
    await lake.other(*ORDERS)
    await teller(lake).tell()
    await lake.put(MANIFEST, before)
    with pytest.raises(CorruptObject, match="the ledger was told of 2 commits, and the catalog has 1"):
        await teller(lake).tell()
    lake.restart()
    await lake.other(*LINES)
    with pytest.raises(CorruptObject, match="which was told"):
        await teller(lake).tell()


@story
async def test_a_mark_of_a_later_version_is_refused() -> None:
    lake = await shop()
    await teller(lake).tell()
    await lake.edit(TOLD, lambda document: document.update(format_version=2))
    with pytest.raises(UnknownFormat):
        await teller(lake).tell()
