"""Walking a listing: every key once, one page in memory at a time."""

import asyncio

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import LIST_PAGE_KEYS_MAX
from arco.storage.memory import MemoryStore
from arco.storage.paging import walk
from arco.storage.port import Absent, ObjectStore, Page
from stand_ins.hand_clock import HandClock


class Watched(MemoryStore):
    """Remembers what pages were asked for."""

    def __init__(self) -> None:
        super().__init__(HandClock())
        self.asked: list[tuple[str, str, int]] = []

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        self.asked.append((prefix, after, limit))
        return await super().list_page(prefix, after, limit)


async def filled(count: int, folder: str = "f/") -> Watched:
    store = Watched()
    for number in range(count):
        await store.put(f"{folder}{number:03}", b"x" * number, Absent())
    return store


async def walked(store: ObjectStore, prefix: str = "f/", **how) -> list[str]:
    return [entry.key async for entry in walk(store, prefix, **how)]


@pytest.mark.parametrize("page_keys", [1, 2, 3, 6, 7, 8, 1000, LIST_PAGE_KEYS_MAX])
def test_a_walk_sees_every_key_once_whatever_the_page(page_keys):
    async def scenario() -> None:
        store = await filled(7)
        assert await walked(store, page_keys=page_keys) == [f"f/{number:03}" for number in range(7)]
        assert len(store.asked) == -(-7 // page_keys)
        assert {limit for _, _, limit in store.asked} == {page_keys}

    asyncio.run(scenario())


def test_each_page_begins_where_the_one_before_ended():
    async def scenario() -> None:
        store = await filled(5)
        await walked(store, page_keys=2)
        assert [after for _, after, _ in store.asked] == ["", "f/001", "f/003"]

    asyncio.run(scenario())


def test_a_walk_of_nothing_is_empty():
    async def scenario() -> None:
        assert await walked(await filled(0)) == []
        assert await walked(await filled(3), "other/") == []

    asyncio.run(scenario())


def test_a_walk_begins_after_a_name():
    async def scenario() -> None:
        store = await filled(5)
        assert await walked(store, after="f/002", page_keys=1) == ["f/003", "f/004"]
        assert await walked(store, after="f/0025") == ["f/003", "f/004"]
        assert await walked(store, after="f/999") == []

    asyncio.run(scenario())


def test_a_walk_that_is_left_early_asks_for_no_further_page():
    async def scenario() -> None:
        store = await filled(9)
        entries = walk(store, "f/", page_keys=3)
        assert (await anext(entries)).key == "f/000"
        await entries.aclose()
        assert len(store.asked) == 1

    asyncio.run(scenario())


def test_a_walk_does_not_ask_ahead():
    async def scenario() -> None:
        store = await filled(9)
        seen = 0
        async for _ in walk(store, "f/", page_keys=3):
            assert len(store.asked) == seen // 3 + 1
            seen += 1

    asyncio.run(scenario())


def test_keys_written_ahead_of_the_walk_are_seen_and_those_behind_are_not():
    async def scenario() -> None:
        store = await filled(4)
        found = []
        async for entry in walk(store, "f/", page_keys=2):
            found.append(entry.key)
            if entry.key == "f/001":
                await store.put("f/0005", b"", Absent())
                await store.put("f/0035", b"", Absent())
        assert found == ["f/000", "f/001", "f/002", "f/003", "f/0035"]

    asyncio.run(scenario())


def test_a_key_deleted_under_the_walk_does_not_stop_it():
    async def scenario() -> None:
        store = await filled(6)
        found = []
        async for entry in walk(store, "f/", page_keys=2):
            found.append(entry.key)
            if entry.key == "f/001":
                await store.delete("f/001")
                await store.delete("f/003")
        assert found == ["f/000", "f/001", "f/002", "f/004", "f/005"]

    asyncio.run(scenario())


def test_a_walk_tells_sizes():
    async def scenario() -> None:
        store = await filled(4)
        assert [entry.size_bytes async for entry in walk(store, "f/", page_keys=3)] == [0, 1, 2, 3]

    asyncio.run(scenario())


@pytest.mark.parametrize("page_keys", [0, -1, LIST_PAGE_KEYS_MAX + 1])
def test_a_page_is_neither_empty_nor_unbounded(page_keys):
    async def scenario() -> None:
        store = await filled(1)
        with pytest.raises(InvalidInput, match="a page of"):
            await walked(store, page_keys=page_keys)
        assert store.asked == []

    asyncio.run(scenario())
