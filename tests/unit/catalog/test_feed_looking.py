"""Looks for what is new, on a store whose listings miss what is written behind them."""

import asyncio

from arco.catalog.feed import Feed
from arco.kernel.limits import FEED_LIST_S
from arco.storage.memory import MemoryStore
from arco.storage.port import Page
from unit.catalog.ground import RECEIPT, Ground, Server, setting, story
from unit.catalog.test_groups import Crowd


class BlindStore(MemoryStore):
    """Listings leave out what a test says, one list of names after the other."""

    def __init__(self, clock) -> None:
        super().__init__(clock)
        self.unseen: list[set[str]] = []

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        page = await super().list_page(prefix, after, limit)
        if "/events/" not in prefix or page.next_after is not None:
            return page
        hidden = self.unseen.pop(0) if self.unseen else set()
        return Page(tuple(one for one in page.entries if one.key not in hidden), None)


class BlindGround(Ground):
    def __init__(self) -> None:
        super().__init__()
        self.store = BlindStore(self.clock)

    def receipt(self, server: Server, uuid: str, number: int) -> str:
        """Where the receipt of a commit lies."""
        found = [
            key
            for key, one in self.store._objects.items()
            if "/committed/" in key and uuid.encode() in one.data and f'"commit_number":{number},'.encode() in one.data
        ]
        (name,) = found
        return name


async def two_tables(ground: BlindGround) -> tuple[Server, str, str]:
    server = ground.server()
    await server.found("a", "b")
    for name in ("a", "b"):
        for change in ("one", "two"):
            await server.commit(name, f"{name} {change}")
    await server.settle()
    return server, (await server.load("a")).uuid, (await server.load("b")).uuid


async def told(feed: Feed) -> list[tuple[str, str]]:
    """Which table was made or changed, in order."""
    events, number = [], 1
    while (page := await feed.page(number)) is not None:
        events += [event["operation"] for event in page.events if "table-uuid" in event["operation"]]
        number += 1
    return [(one["table-uuid"], str(one["updates"])) for one in events if one["operation-type"] == "update-table"]


def in_order(events: list[tuple[str, str]], uuid: str) -> bool:
    mine = [said for table, said in events if table == uuid]
    return len(mine) == 2 and "one" in mine[0] and "two" in mine[1]


@story
async def test_a_receipt_that_a_listing_missed_is_found_by_the_next():
    ground = BlindGround()
    server, a, b = await two_tables(ground)
    ground.store.unseen = [{ground.receipt(server, a, 1)}]
    feed = Feed(ground.server().catalog.parts)
    await feed.refresh()
    events = await told(feed)
    assert in_order(events, a)
    assert in_order(events, b)


@story
async def test_what_only_the_second_listing_shows_has_to_wait_for_a_third():
    ground = BlindGround()
    server, a, b = await two_tables(ground)
    early, late = ground.receipt(server, b, 1), ground.receipt(server, b, 2)
    ground.store.unseen = [{ground.receipt(server, a, 1), early, late}, {early}]
    feed = Feed(ground.server().catalog.parts)
    await feed.refresh()
    events = await told(feed)
    assert in_order(events, a)
    assert not [said for table, said in events if table == b]
    ground.clock.elapsed_s += FEED_LIST_S
    await feed.refresh()
    assert in_order(await told(feed), b)


@story
async def test_what_was_collected_before_the_feed_began_holds_nothing_up():
    ground = BlindGround()
    server, a, _ = await two_tables(ground)
    del ground.store._objects[ground.receipt(server, a, 1)]
    feed = Feed(ground.server().catalog.parts)
    await feed.refresh()
    assert [said for table, said in await told(feed) if table == a and "two" in said]


@story
async def test_a_receipt_that_cannot_be_read_holds_up_nothing_else():
    ground = BlindGround()
    server, a, b = await two_tables(ground)
    broken = ground.receipt(server, a, 2)
    ground.store._store(broken, b"{")
    feed = Feed(ground.server().catalog.parts)
    await feed.refresh()
    assert in_order(await told(feed), b)


@story
async def test_looks_that_are_asked_for_together_are_shared():
    ground = BlindGround()
    await two_tables(ground)
    feed = Feed(ground.server().catalog.parts)
    looks = []
    whole = feed._look

    async def look() -> None:
        looks.append(1)
        await whole()

    feed._look = look
    await asyncio.gather(*(feed.refresh() for _ in range(10)))
    assert len(looks) <= 2


@story
async def test_receipts_of_a_group_that_a_dead_server_left_unwritten_are_written_before_its_last_is_told():
    """Those of one swing are written side by side: the last may be there without the one before it."""
    ground = BlindGround()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await one.commit("a", "first")
    await one.settle()
    uuid = (await one.load("a")).uuid
    crowd = Crowd(one)
    waiting = await crowd.wait(("one", setting("one")), ("two", setting("two")))
    unwritten = one.line.delay("put", RECEIPT)
    await crowd.let_go()
    await asyncio.gather(*waiting)
    await unwritten.holds(one.settle())
    one.line.cut()
    feed = Feed(two.catalog.parts)
    await feed.refresh()
    assert [said for table, said in await told(feed) if table == uuid] == [
        "[{'action': 'set-properties', 'updates': {'last': 'first'}}]",
        "[{'action': 'set-properties', 'updates': {'last': 'one'}}]",
        "[{'action': 'set-properties', 'updates': {'last': 'two'}}]",
    ]


@story
async def test_a_receipt_that_could_not_be_read_is_told_late_and_once():
    ground = BlindGround()
    server, a, _ = await two_tables(ground)
    await server.commit("a", "a three")
    await server.settle()
    broken = ground.receipt(server, a, 2)
    whole = ground.store._objects[broken]
    ground.store._store(broken, b"{")
    await Feed(ground.server().catalog.parts).refresh()
    before = [said for table, said in await told(Feed(ground.server().catalog.parts)) if table == a]
    assert ["three" in said for said in before] == [False, True]
    ground.store._objects[broken] = whole
    for _ in range(2):
        feed = Feed(ground.server().catalog.parts)
        await feed.refresh()
        after = [said for table, said in await told(feed) if table == a]
        assert after[:2] == before
        assert ["two" in said for said in after] == [False, False, True]
