"""The history of a table: who did what, and with which client."""

import asyncio

import pytest

from arco.catalog.checkpoint import checkpoint
from arco.catalog.inventory import Description, DropRef
from arco.catalog.manifest import Author
from arco.catalog.model import Reservation
from arco.catalog.name_changes import changes_of
from arco.catalog.operations import Reserve
from arco.catalog.timeline import timeline_of
from arco.iceberg import requests
from arco.kernel.ids import new_uuid4
from arco.ledger.receipts import Source
from stand_ins.lake import AUTHOR, Lake

EVENTS = (("shop",), "events")
ORDERS = (("shop",), "orders")
ELSEWHERE = (("shop",), "elsewhere")
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


async def shop() -> Lake:
    lake = Lake()
    await lake.namespace("shop")
    return lake


def test_a_timeline_says_who_did_what_and_with_which_client() -> None:
    async def story() -> None:
        lake = await shop()
        place, wanted = ORDERS, requests.parse_create_table({"name": "orders", "schema": SCHEMA})
        maker, writer = Source(principal="eve", client="Trino 476"), Source(principal="bob", client="PyIceberg 0.12")
        await lake.catalog.tables.create(("shop",), wanted, lake.key(), maker)
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
        await lake.catalog.table_commits.commit(*place, requests.parse_commit_table(change), lake.key(), writer)
        for number, work in enumerate(
            (
                lambda who: lake.inventory.describe(place, Description({"owner": "ann", "tags": ["a"]}), lake.key(), who),
                lambda who: lake.inventory.rename(place, ELSEWHERE, lake.key(), who),
                lambda who: lake.inventory.drop(ELSEWHERE, purge=False, key=lake.key(), author=who),
                lambda who: lake.inventory.undrop(DropRef(ELSEWHERE), place, lake.key(), who),
                lambda who: lake.inventory.drop(place, purge=False, key=lake.key(), author=who),
            )
        ):
            await work(Author(f"person {number}", f"client {number}"))
        await lake.settle()
        told, in_all = await timeline_of(lake.catalog, place)
        people = [Author(f"person {number}", f"client {number}") for number in (4, 3, 3, 2, 1, 0)]
        expected = [*people, Author("bob", "PyIceberg 0.12"), *[Author("eve", "Trino 476")] * 2]
        words = ["dropped", "restored", "renamed", "dropped", "renamed", "described", "committed", "committed", "created"]
        assert [(one.what, one.author) for one in told] == list(zip(words, expected, strict=True))
        assert next(one.facts for one in told if one.what == "described") == {"fields": ["owner", "tags"]}
        assert (await timeline_of(lake.catalog, place, 2)) == (told[:2], in_all)
        parts = lake.catalog.parts
        await checkpoint(parts.tier1, parts.clock, parts.entropy)
        assert not parts.tier1.manifest.tail
        assert (await timeline_of(lake.catalog, place)) == (told, in_all)

    asyncio.run(story())


def test_what_lies_further_back_than_is_looked_is_told_without_who(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arco.catalog.name_changes.HISTORY_COMMITS_MAX", 3)

    async def story() -> None:
        lake = await shop()
        await lake.other(*EVENTS)
        await lake.rename(EVENTS, ELSEWHERE)
        for _ in range(3):
            await lake.describe(ELSEWHERE, owner="ann")
        told, _ = await timeline_of(lake.catalog, ELSEWHERE)
        assert [one.author for one in told[-3:]] == [AUTHOR, None, None]
        assert [one.what for one in told[-3:]] == ["described", "renamed", "created"]

    asyncio.run(story())


def test_a_name_that_a_transaction_keeps_was_asked_for_by_who_had_it_kept() -> None:
    async def story() -> None:
        lake = await shop()
        entry = lake.catalog.tables.new_entry(new_uuid4(lake.catalog.parts.entropy), ("shop",), "kept", "s3://b/t", 1)
        reservation = Reservation(entry=entry, tx_id="t", attempt=1, metadata_location="s3://b/t/m")
        eve, submit = Author("eve", "Spark"), lake.catalog.parts.committer.submit
        await submit(Reserve(key_hash="r", reservation=reservation, minted_ms=lake.clock.at_ms), since=0, author=eve)
        changes = await changes_of(lake.catalog.parts.tier1, entry.uuid)
        assert [(type(one.operation), one.author) for one in changes] == [(Reserve, eve)]

    asyncio.run(story())
