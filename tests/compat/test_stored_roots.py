"""What older code wrote, today's code opens: its names, tables and views, and the chain of its commits.

Every stored root goes through the same tests, and so does the root that today's code leaves (`today`): whoever changes a format
learns here what becomes of a bucket that is in use.
"""

import asyncio
import json
from typing import Any, get_args

import msgspec
import pytest

from arco.catalog.catalog import Catalog
from arco.catalog.checkpoint import checkpoint
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author, decode_commit
from arco.catalog.model import Format, Kind, Levels, Sensitivity
from arco.catalog.names import Draft, Names
from arco.catalog.operations import Operation
from arco.catalog.standing import finish_drop
from arco.iceberg import requests
from arco.kernel.errors import CorruptObject, NoSuchTable, NotFound
from arco.kernel.ids import CommitId
from arco.ledger.receipts import Source
from arco.storage.keys import (
    CatalogCommitKey,
    Head,
    HeadKey,
    LeaseKey,
    MarkerKey,
    PointerKey,
    ReceiptKey,
    StagedIntentKey,
    parse,
)
from tests.compat import txn_story
from tests.compat.roots import STORED, Root, chain, receipts_of, with_catalog
from tests.compat.story import BASE_URI, EU, SCOPE, SHOP, SNAPSHOT_ID, tell

# Names


def test_there_is_a_stored_root_of_the_first_version() -> None:
    assert "v1" in STORED


def test_every_object_has_a_name_that_is_known(root: Root) -> None:
    kinds = {type(parse(name)) for name in root.names()}
    wanted = {HeadKey, CatalogCommitKey, LeaseKey, PointerKey, MarkerKey, ReceiptKey, StagedIntentKey}
    assert wanted <= kinds


def test_the_names_are_those_of_the_story(root: Root) -> None:
    async def look(catalog: Catalog) -> None:
        names = (await catalog.parts.tier1.current()).names
        assert sorted(names.namespaces) == [SHOP, EU, ("shop", "us")]
        assert names.namespace(SHOP).properties == {"region": "everywhere"}
        found = {entry.name: (entry.kind, entry.format, entry.binding) for entry in names.inhabitants(SHOP)}
        assert found == {
            "big_orders": (Kind.VIEW, Format.ICEBERG, 1),
            "clicks": (Kind.TABLE, Format.PARQUET, 1),
            "goods": (Kind.TABLE, Format.ICEBERG, 3),
            "leaving": (Kind.TABLE, Format.ICEBERG, 1),
            "orders": (Kind.TABLE, Format.ICEBERG, 1),
            "returned": (Kind.TABLE, Format.ICEBERG, 2),
        }
        assert [(one.entry.name, one.purge, one.principal) for one in names.dropped.values()] == [("old", True, "loader")]
        goods = names.entries[SHOP, "goods"]
        assert [(one.namespace, one.name) for one in goods.former_names] == [(SHOP, "items"), (EU, "items")]

    with_catalog(root, look)


def test_what_people_said_of_tables_is_there(root: Root) -> None:
    async def look(catalog: Catalog) -> None:
        entries = (await catalog.parts.tier1.current()).names.entries
        orders = entries[SHOP, "orders"].governance
        assert (orders.owner, orders.tags, orders.row_count) == ("loader", ("gold",), 3)
        assert (orders.sensitivity, orders.pii_columns) == (Sensitivity.CONFIDENTIAL, {"buyer": "email"})
        clicks = entries[SHOP, "clicks"]
        assert [(one.name, one.type, one.nullable) for one in clicks.columns] == [
            ("page", "string", True),
            ("at", "timestamp", False),
        ]
        assert (clicks.location, clicks.properties) == ("s3://elsewhere/clicks", {"compression": "zstd"})

    with_catalog(root, look)


# Tables and views


@pytest.mark.parametrize(("name", "version", "number"), [("orders", 2, 2), ("goods", 1, 0), ("returned", 3, 1)], ids=str)
def test_a_table_loads(root: Root, name: str, version: int, number: int) -> None:
    async def look(catalog: Catalog) -> None:
        entry, base = await catalog.tables.load(SHOP, name)
        metadata = base.metadata
        assert (metadata.table_uuid, metadata.format_version) == (entry.uuid, version)
        assert [field["name"] for field in metadata.current_schema["fields"]] == ["id", "amount", "day"]
        assert base.pointer.value.commit_number == number

    with_catalog(root, look)


def test_a_snapshot_is_where_it_was(root: Root) -> None:
    async def look(catalog: Catalog) -> None:
        _, base = await catalog.tables.load(SHOP, "orders")
        assert base.pointer.value.refs["main"].snapshot_id == base.pointer.value.snapshot_id == SNAPSHOT_ID
        assert base.metadata.refs["main"]["snapshot-id"] == SNAPSHOT_ID
        assert len(base.metadata.document["metadata-log"]) == 2

    with_catalog(root, look)


def test_a_view_loads(root: Root) -> None:
    async def look(catalog: Catalog) -> None:
        _, base = await catalog.views.load(SHOP, "big_orders")
        assert base.metadata.current_version["representations"][0]["sql"].endswith("amount > 1000")
        assert base.metadata.properties["comment"] == "the large ones"

    with_catalog(root, look)


def test_a_dropped_table_can_be_restored(root: Root) -> None:
    async def restore(catalog: Catalog) -> None:
        dropped = (await catalog.parts.tier1.current()).names.last_dropped(SHOP, "old")
        assert dropped is not None
        key = RequestKey("again", "undrop", "", durable=False)
        await catalog.tables.undrop(dropped, EU, "old", key, Author())
        entry, base = await catalog.tables.load(EU, "old")
        assert (entry.binding, base.pointer.value.binding, base.pointer.value.tombstone) == (2, 2, None)

    with_catalog(root, restore)


def test_a_late_drop_does_not_strike_a_restored_table(root: Root) -> None:
    """Somebody who met the tombstone before the restore goes on to finish the drop."""

    async def strike(catalog: Catalog) -> None:
        dropped = (await catalog.parts.tier1.current()).names.last_dropped(SHOP, "old")
        assert dropped is not None
        uuid = dropped.entry.uuid
        met = await catalog.parts.pointers.read(uuid)
        assert met is not None
        assert met.value.tombstone is not None
        key = RequestKey("again", "undrop", "", durable=False)
        await catalog.tables.undrop(dropped, SHOP, "old", key, Author())
        await finish_drop(catalog.parts, uuid, met.value.tombstone, 0, Author())  # in the chain already: nothing to do
        late = msgspec.structs.replace(met.value.tombstone, key_hash="another drop")
        with pytest.raises(NoSuchTable):
            await finish_drop(catalog.parts, uuid, late, 0, Author())
        assert (await catalog.tables.load(SHOP, "old"))[0].uuid == uuid

    with_catalog(root, strike)


def test_a_table_whose_metadata_file_is_gone_does_not_load(root: Root) -> None:
    async def lose(catalog: Catalog) -> None:
        _, base = await catalog.tables.load(SHOP, "orders")
        file = root.folder / base.location.removeprefix(f"{BASE_URI}/")
        file.unlink()
        with pytest.raises(NotFound, match="Failed to open input stream for file"):
            await catalog.tables.load(SHOP, "orders")

    with_catalog(root, lose)


# The chain, and what was folded of it


def test_the_chain_of_commits_is_whole(root: Root) -> None:
    commits = chain(root)
    assert [one.sequence for one in commits] == list(range(len(commits), 0, -1))
    assert len(commits) == len(list((root.folder / "default/default/_catalog/core/commits").iterdir()))


def test_the_stories_have_an_operation_of_every_kind() -> None:
    objects = asyncio.run(tell()).objects | asyncio.run(txn_story.tell())
    commits = [decode_commit(data, key) for key, data in objects.items() if "/core/commits/" in key]
    seen = {type(operation) for commit in commits for operation in commit.operations}
    assert seen == set(get_args(Operation))


def test_a_commit_that_was_changed_is_noticed(root: Root) -> None:
    second = chain(root)[-2]
    path = root.folder / str(CatalogCommitKey(SCOPE, CommitId(second.id)))
    path.write_bytes(path.read_bytes().replace(b'"author":"loader"', b'"author":"cleaner"'))
    with pytest.raises(CorruptObject, match=second.id):
        chain(root)


def test_the_state_is_what_the_commits_add_up_to(root: Root) -> None:
    names = Names()
    for commit in reversed(chain(root)):
        draft = Draft(names)
        for operation in commit.operations:
            draft.apply(operation, commit.at_ms)
        draft.merge()

    async def look(catalog: Catalog) -> None:
        manifest = await catalog.parts.tier1.head.read()
        assert manifest is not None
        assert manifest.value.base is not None
        assert manifest.value.deltas
        assert manifest.value.tail
        loaded = (await catalog.parts.tier1.current()).names
        assert loaded.namespaces == names.namespaces
        assert loaded.entries == names.entries
        assert loaded.dropped == names.dropped

    with_catalog(root, look)


def test_a_state_file_that_was_changed_is_refused(root: Root) -> None:
    head = json.loads((root.folder / str(HeadKey(SCOPE, Head.CATALOG))).read_text())
    path = root.folder / head["base"]["key"]
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(CorruptObject, match="does not match its checksum"):
        with_catalog(root, lambda catalog: catalog.parts.tier1.current())


# Receipts


def test_the_receipts_of_all_commits_below_the_head_exist(root: Root) -> None:
    assert receipts_of(root, "orders") == [0, 1]
    assert receipts_of(root, "big_orders") == [0, 1]


def test_a_table_registered_at_a_file_that_it_had_has_a_receipt_for_each_time(root: Root) -> None:
    async def commit(catalog: Catalog) -> None:
        key = RequestKey("next", "updateTable", "", durable=False)
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
        await catalog.table_commits.commit(SHOP, "returned", requests.parse_commit_table(body), key, Source())

    assert receipts_of(root, "returns") == [0]
    with_catalog(root, commit)
    assert receipts_of(root, "returns") == [0, 1, 2]


# Going on


def test_an_old_root_is_written_on(root: Root) -> None:
    async def write_on(catalog: Catalog) -> None:
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"by": "today"}}]}
        for levels, name in tables(catalog, await catalog.parts.tier1.current()):
            key = RequestKey(f"by today {name}", "updateTable", "", durable=False)
            await catalog.table_commits.commit(levels, name, requests.parse_commit_table(body), key, Source())
        create = requests.parse_create_table({"name": "new", "schema": {"type": "struct", "fields": []}})
        key = RequestKey("new", "createTable", "", durable=False)
        await catalog.tables.create(SHOP, create, key, Source())
        assert await checkpoint(catalog.parts.tier1, catalog.parts.clock, catalog.parts.entropy)

    def tables(catalog: Catalog, seen: Any) -> list[tuple[Levels, str]]:
        return [(one.namespace, one.name) for one in seen.names.members(SHOP, Kind.TABLE) if one.name != "leaving"]

    async def look(catalog: Catalog) -> None:
        seen = await catalog.parts.tier1.current()
        assert (SHOP, "new") in seen.names.entries
        for levels, name in tables(catalog, seen):
            if name != "new":
                assert (await catalog.tables.load(levels, name))[1].metadata.properties["by"] == "today"

    with_catalog(root, write_on)
    with_catalog(root, look)
    assert chain(root)
