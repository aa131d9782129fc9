"""The feed looked at again: every page is there and readable, and checkpoints say what the pages say."""

import asyncio
from collections.abc import Callable

import pytest

from arco.catalog.feed_pages import Fed, FeedPage, FeedPages
from arco.catalog.untold import Mark
from arco.catalog.verify_feed import verify_feed
from arco.kernel.entropy import SeededEntropy
from arco.kernel.scope import Scope
from arco.storage.findings import Report
from arco.storage.looking import Look
from arco.storage.memory import MemoryStore
from arco.storage.port import Always
from stand_ins.hand_clock import HandClock

SCOPE = Scope.of()
PAGES = "default/default/_catalog/feed/pages"
CHECKPOINT = "default/default/_catalog/feed/checkpoints/000000000003.json"
Change = Callable[[bytes], bytes]


def page(number: int) -> str:
    return f"{PAGES}/{number:012}.json"


async def fed(store: MemoryStore) -> None:
    """Five pages, and a checkpoint of the first three."""
    clock = HandClock()
    pages, known = FeedPages(store, SCOPE, clock, SeededEntropy("feed")), Fed()
    for number in range(1, 6):
        one = FeedPage(
            number=number, at_ms=number, names=Mark(number, f"commit {number}"), receipts=(f"receipt {number}",),
            tables={"t": number}, events=({"event-id": str(number)},),
        )  # fmt: skip
        await pages.append(one)
        known.take(one)
        if number == 3:
            await pages.write_checkpoint(known)


def verified(name: str | None = None, change: Change | None = None) -> list[tuple[str, str]]:
    """What is found after an object was changed, or taken away."""

    async def story() -> Report:
        store, report = MemoryStore(HandClock()), Report()
        await fed(store)
        if name is not None:
            found = await store.get(name)
            assert found is not None
            if change is None:
                await store.delete(name)
            else:
                await store.put(name, change(found.data), Always())
        await verify_feed(Look(store, SCOPE, report))
        assert report.counts["feed_checkpoints"] == 1 or name == CHECKPOINT
        return report

    return [(one.code, one.subject) for one in asyncio.run(story()).findings]


def test_a_whole_feed_has_no_finding() -> None:
    assert verified() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:40],
        lambda data: data.replace(b'"format_version":1', b'"format_version":99'),
        lambda data: data.replace(b'"number":2', b'"number":7'),
        lambda data: data.replace(b'"receipts"', b'"receipt\xff"'),
    ],
)
def test_a_damaged_page_is_named_and_no_other(change: Change) -> None:
    assert verified(page(2), change) == [("feed_page_unreadable", page(2))]


def test_a_page_that_is_gone_is_named() -> None:
    assert verified(page(2)) == [("feed_page_missing", page(2))]


def test_a_checkpoint_that_cannot_be_read_is_named() -> None:
    assert verified(CHECKPOINT, lambda data: data[:40]) == [("feed_checkpoint_unreadable", CHECKPOINT)]


def test_a_checkpoint_that_says_other_than_its_pages_is_named() -> None:
    changed = verified(CHECKPOINT, lambda data: data.replace(b'"tables":{"t":3}', b'"tables":{"t":4}'))
    assert changed == [("feed_checkpoint_contradicts_pages", CHECKPOINT)]


def test_pages_that_only_a_checkpoint_remembers_are_missed() -> None:
    async def story() -> Report:
        store, report = MemoryStore(HandClock()), Report()
        await fed(store)
        for number in (3, 4, 5):
            await store.delete(page(number))
        await verify_feed(Look(store, SCOPE, report))
        return report

    assert [(one.code, one.subject) for one in asyncio.run(story()).findings] == [("feed_page_missing", page(3))]
