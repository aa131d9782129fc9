"""Requests of long ago, sent again to a stored root: answered as they were, or finished where their server died."""

import json
from typing import Any

import pytest

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey, State
from arco.catalog.manifest import Author
from arco.iceberg import requests
from arco.kernel.errors import Conflict, NoSuchTable, OutcomeUnknown
from arco.kernel.limits import IDEMPOTENCY_TAKEOVER_S
from arco.ledger.receipts import Source
from tests.compat.roots import Root, chain, commit_again, key_of, only_file, receipts_of, the_marker, with_catalog
from tests.compat.story import SHOP
from tests.stand_ins.hand_clock import HandClock

# Requests that are sent again


def test_a_commit_is_answered_again(root: Root) -> None:
    asked = root.asked("append")
    assert with_catalog(root, lambda catalog: commit_again(catalog, asked)) == asked.metadata_location


def test_a_creation_is_answered_again(root: Root) -> None:
    asked = root.asked("create")

    async def again(catalog: Catalog) -> tuple[Any, str]:
        return await catalog.tables.create(SHOP, requests.parse_create_table(asked.body), key_of(asked), Source())

    metadata, location = with_catalog(root, again)
    assert location == asked.metadata_location
    assert not metadata.snapshots


def test_a_refusal_is_heard_again(root: Root) -> None:
    asked = root.asked("refused")
    with pytest.raises(Conflict) as refusal:
        with_catalog(root, lambda catalog: commit_again(catalog, asked))
    assert refusal.value.message == asked.refusal


def test_a_commit_that_landed_and_told_nobody_is_found_and_finished(root: Root) -> None:
    asked = root.asked("unfinished")

    async def again(catalog: Catalog) -> None:
        before = (await catalog.tables.load(SHOP, "orders"))[1]
        assert before.metadata.properties["seen"] == "yes"
        assert (await the_marker(catalog, asked)).state is State.IN_PROGRESS
        assert await commit_again(catalog, asked) == before.location
        after = (await catalog.tables.load(SHOP, "orders"))[1]
        assert after.pointer.value.commit_number == before.pointer.value.commit_number
        assert (await the_marker(catalog, asked)).state is State.COMMITTED

    with_catalog(root, again)
    assert receipts_of(root, "orders") == [0, 1, 2]


def test_a_staged_table_is_created_by_its_commit(root: Root) -> None:
    asked = root.asked("stage")

    async def create(catalog: Catalog) -> None:
        staged = await catalog.staging.stage(SHOP, requests.parse_create_table(asked.body), key_of(asked))
        intent = json.loads(only_file(root, "_catalog/iceberg_staged/").read_text())
        assert (intent["table_uuid"], intent["location"]) == (staged.table_uuid, staged.location)
        commit = requests.parse_commit_table(creating(staged))
        key = RequestKey("creates", "updateTable", "", durable=False)
        await catalog.staging.create_by_commit(SHOP, "staged", commit, key, Source())
        assert (await catalog.tables.load(SHOP, "staged"))[0].uuid == staged.table_uuid

    with_catalog(root, create)


def creating(staged: Any) -> dict[str, Any]:
    document = staged.document
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": staged.table_uuid},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": staged.current_schema},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": document["partition-specs"][0]},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": staged.location},
        ],
    }


# A drop that died after its tombstone


def test_whoever_meets_an_unfinished_drop_finishes_it(root: Root) -> None:
    asked = root.asked("drop")

    async def meet(catalog: Catalog) -> None:
        with pytest.raises(NoSuchTable):
            await catalog.tables.load(SHOP, "leaving")
        names = catalog.parts.tier1.names
        assert (SHOP, "leaving") not in names.entries
        dropped = names.last_dropped(SHOP, "leaving")
        assert dropped is not None
        assert dropped.principal == "loader"
        await catalog.tables.drop(SHOP, "leaving", purge=False, key=key_of(asked), author=Author("loader"))
        assert names.last_dropped(SHOP, "leaving") == dropped

    with_catalog(root, meet)


def test_a_drop_that_is_sent_again_waits_for_its_dead_owner_and_then_takes_over(root: Root) -> None:
    asked = root.asked("drop")

    async def again(catalog: Catalog) -> None:
        clock, tables = catalog.parts.clock, catalog.tables
        assert isinstance(clock, HandClock)
        with pytest.raises(OutcomeUnknown):
            await tables.drop(SHOP, "leaving", purge=False, key=key_of(asked), author=Author("loader"))
        clock.at_ms += IDEMPOTENCY_TAKEOVER_S * 1000 + 1
        await tables.drop(SHOP, "leaving", purge=False, key=key_of(asked), author=Author("loader"))
        assert (await the_marker(catalog, asked)).attempt == 2
        assert (SHOP, "leaving") not in (await catalog.parts.tier1.current()).names.entries

    with_catalog(root, again)
    drops = [one for commit in chain(root) for one in commit.operations if one.key_hash == key_of(asked).hash]
    assert len(drops) == 1
