"""Transactions in the feed of events: beside damage, and beside what becomes of the names of tables that they made."""

from typing import Any

from arco.catalog.feed import Feed
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.kernel.limits import FEED_LIST_S
from arco.storage.port import Always
from unit.catalog.ground import NAMESPACE, Ground, Server, story
from unit.txn.test_creations import created
from unit.txn.test_rules_of_transactions import ground_of, marks, transact

ALONE = RequestKey("by itself", "any", "0", durable=False)


async def told(feed: Feed) -> list[tuple[str, str]]:
    """What happened to which table, in order."""
    await feed.refresh()
    events: list[dict[str, Any]] = []
    while (page := await feed.page(len(events) + 1)) is not None:
        events.append({"operations": [event["operation"] for event in page.events]})
    happened = [one for page in events for one in page["operations"] if "namespace" not in one]
    return [(one["operation-type"], (one.get("identifier") or one["source"])["name"]) for one in happened]


async def told_by_another(ground: Ground) -> list[tuple[str, str]]:
    return await told(Feed(ground.server().catalog.parts))


async def of(ground: Ground, server: Server, name: str, number: int) -> str:
    """Where the receipt of a commit lies."""
    uuid = (await server.load(name)).uuid.encode()
    found = [key for key, one in ground.store._objects.items() if "/committed/" in key and uuid in one.data]
    (receipt,) = [key for key in found if f'"commit_number":{number},'.encode() in ground.store._objects[key].data]
    return receipt


@story
async def test_a_record_that_cannot_be_read_holds_up_its_own_tables_and_no_other():
    ground, one, _, keys = await ground_of("a", "b", "c")
    key = keys.next()
    await transact(one, key, *marks("x", "a", "b"))
    await one.settle()
    await one.commit("a", "after it")
    await one.commit("c", "beside it")
    await one.settle()
    record = one.ws.records.key(key)
    whole = ground.store._objects[record].data
    for damaged in (b"{nope", whole.replace(b'"format_version":1', b'"format_version":7')):
        await ground.store.put(record, damaged, Always())
        assert [said for said in await told_by_another(ground) if said[0] == "update-table"] == [("update-table", "c")]
    await ground.store.put(record, whole, Always())
    changed = [name for said, name in await told_by_another(ground) if said == "update-table"]
    assert (changed[0], sorted(changed[1:3]), changed[3]) == ("c", ["a", "b"], "a")


@story
async def test_a_part_whose_receipt_cannot_be_read_holds_the_other_tables_up_no_longer_than_a_look():
    ground, one, _, keys = await ground_of("a", "b")
    await transact(one, keys.next(), *marks("x", "a", "b"))
    await one.settle()
    for name in ("a", "b"):
        await one.commit(name, f"{name} after it")
    await one.settle()
    ground.store._store(await of(ground, one, "a", 1), b"{")
    changed = [name for said, name in await told_by_another(ground) if said == "update-table"]
    assert sorted(changed) == ["a", "b", "b"]


@story
async def test_a_pointer_that_cannot_be_read_holds_up_its_own_table_and_what_became_visible_with_it():
    ground, one, two, keys = await ground_of("a", "b", "c")
    await one.commit("c", "beside it")
    await transact(one, keys.next(), *marks("x", "a", "b"))
    await one.settle()
    lost = await of(ground, one, "b", 1)
    pointer = two.ws.pointers.key((await two.load("b")).uuid)
    whole = ground.store._objects[pointer].data
    del ground.store._objects[lost]
    await ground.store.put(pointer, b"{nope", Always())
    assert [name for said, name in await told_by_another(ground) if said == "update-table"] == ["c"]
    await ground.store.put(pointer, whole, Always())
    assert sorted(name for said, name in await told_by_another(ground) if said == "update-table") == ["a", "b", "c"]


@story
async def test_a_table_is_told_as_made_before_it_is_told_as_dropped_whatever_the_clocks_say():
    ground, one, two, keys = await ground_of("a")
    ground.clock.at_ms += 60_000
    await transact(one, keys.next(), created(one, "new"), *marks("x", "a"))
    await one.settle()
    ground.clock.at_ms -= 60_000
    await two.catalog.tables.drop(NAMESPACE, "new", purge=False, key=ALONE, author=Author())
    happened = await told_by_another(ground)
    assert happened.index(("create-table", "new")) < happened.index(("drop-table", "new"))


@story
async def test_a_table_is_told_as_made_before_its_new_name_though_another_server_made_it_since_the_last_listing():
    ground, one, two, keys = await ground_of("a")
    feed = Feed(two.catalog.parts)
    assert await told(feed) == [("create-table", "a")]
    await transact(one, keys.next(), created(one, "new"), *marks("x", "a"))
    await one.settle()
    await one.catalog.tables.rename((NAMESPACE, "new"), (NAMESPACE, "newer"), ALONE, Author())
    await one.settle()
    assert (await told(feed))[-1] == ("rename-table", "new")
    ground.clock.elapsed_s += FEED_LIST_S
    happened = await told(feed)
    assert sorted(happened[1:3]) == [("create-table", "new"), ("update-table", "a")]
    assert happened[3:] == [("rename-table", "new")]
