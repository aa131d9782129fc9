"""The inventory: tables of every format, what is said of them, and every mutation done once."""

import asyncio
from typing import Any

import pytest

from arco.catalog import listing
from arco.catalog.governance import given_fields
from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Description, DropRef, NewTable
from arco.catalog.listing import Filter
from arco.catalog.model import ColumnNote, Format, Governance, Kind, Sensitivity
from arco.catalog.overview import IcebergTable, IcebergView, overview_of
from arco.catalog.timeline import timeline_of
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import AlreadyExists, ArcoError, InvalidInput, KeyReused, NoSuchTable, NotFound, TooLarge
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import DESCRIPTION_CHARS_MAX, PII_COLUMNS_MAX, TABLE_DOCUMENT_BYTES_MAX, TAG_CHARS_MAX, TAGS_MAX
from stand_ins.hand_clock import NEW_YEAR_2025_MS
from stand_ins.lake import AUTHOR, Lake

EVENTS = (("shop",), "events")
ORDERS = (("shop",), "orders")
ELSEWHERE = (("shop",), "elsewhere")


async def shop() -> Lake:
    lake = Lake()
    await lake.namespace("shop")
    return lake


def durable(lake: Lake, *about: object) -> RequestKey:
    """A key that a client sent, bound to what it asked."""
    key = new_uuid7(lake.clock, lake._entropy)
    return RequestKey(key, "test", request_hash([str(one) for one in about]))


async def said(lake: Lake, place: Any = EVENTS) -> Governance:
    return (await lake.inventory.find(place)).governance


# Governance fields


def test_only_what_is_given_changes_and_null_clears() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.other(*EVENTS)
        await lake.describe(EVENTS, owner="ann", tags=["a", "b", "a"], sensitivity="RESTRICTED", pii_columns={"m": "email"})
        await lake.describe(EVENTS, description="all of them", row_count=5)
        assert await said(lake) == Governance(
            "ann", "all of them", ("a", "b"), Sensitivity.RESTRICTED, {"m": "email"}, row_count=5
        )
        await lake.describe(EVENTS, owner=None, tags=None, sensitivity=None, pii_columns=None, row_count=None)
        assert await said(lake) == Governance(description="all of them")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"mood": "good"}, "mood"),
        ({"owner": 5}, "owner"),
        ({"owner": ""}, "owner"),
        ({"owner": "a\nb"}, "owner"),
        ({"owner": "x" * 256}, "owner"),
        ({"description": "x" * (DESCRIPTION_CHARS_MAX + 1)}, "description"),
        ({"description": "\x1b[31m"}, "description"),
        ({"tags": "gold"}, "tags"),
        ({"tags": [""]}, "tags"),
        ({"tags": ["x" * (TAG_CHARS_MAX + 1)]}, "tags"),
        ({"tags": ["\x00"]}, "tags"),
        ({"tags": [str(number) for number in range(TAGS_MAX + 1)]}, "tags"),
        ({"sensitivity": "high"}, "sensitivity"),
        ({"pii_columns": ["m"]}, "pii_columns"),
        ({"pii_columns": {"": "email"}}, "pii_columns"),
        ({"pii_columns": {"m": ""}}, "pii_columns"),
        ({"pii_columns": {"m\n": "email"}}, "pii_columns"),
        ({"pii_columns": {str(number): "x" for number in range(PII_COLUMNS_MAX + 1)}}, "pii_columns"),
        ({"row_count": -1}, "row_count"),
        ({"row_count": 1.5}, "row_count"),
        ({"row_count": True}, "row_count"),
        ({"size_bytes": "1"}, "size_bytes"),
        ({"last_modified_ms": 2**63}, "last_modified_ms"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(fields: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidInput, match=names):
        given_fields(fields, "table")


def test_a_description_may_have_lines() -> None:
    assert given_fields({"description": "one\ntwo\tthree"}, "table") == {"description": "one\ntwo\tthree"}


def test_a_field_at_its_limit_is_taken() -> None:
    tags = [f"{number:03}".ljust(TAG_CHARS_MAX, "x") for number in range(TAGS_MAX)]
    assert list(given_fields({"tags": tags}, "table")["tags"]) == tags


# Registering


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"format": Format.ICEBERG}, InvalidInput, "Iceberg client"),
        ({"location": " "}, InvalidInput, "location"),
        ({"location": "///"}, InvalidInput, "location"),
        ({"name": ""}, InvalidInput, "name"),
        ({"namespace": ()}, InvalidInput, "namespace"),
        ({"namespace": ("nowhere",)}, NotFound, "Namespace does not exist"),
        ({"properties": {"Arco.x": "1"}}, InvalidInput, "reserved properties"),
        (
            {"columns": (ColumnNote("a", "int"), ColumnNote("a", "int"))},
            InvalidInput,
            r"columns\[1\].name: 'a' is named twice",
        ),
        ({"columns": (ColumnNote("", "int"),)}, InvalidInput, r"columns\[0\].name"),
        ({"columns": (ColumnNote("a", ""),)}, InvalidInput, r"columns\[0\].type"),
        ({"columns": (ColumnNote("a", "int", True, "\x07"),)}, InvalidInput, r"columns\[0\].description"),
        ({"properties": {"a": "x" * TABLE_DOCUMENT_BYTES_MAX}}, TooLarge, "more than"),
    ],
)
def test_a_wrong_registration_is_refused_and_nothing_is_there(
    changes: dict[str, Any], error: type[ArcoError], says: str
) -> None:
    async def story() -> None:
        lake = await shop()
        wanted = {"namespace": ("shop",), "name": "t", "format": Format.CSV, "location": "s3://b/t"} | changes
        with pytest.raises(error, match=says):
            await lake.inventory.create(NewTable(**wanted), lake.key(), AUTHOR)
        assert (await lake.inventory.names()).entries == {}

    asyncio.run(story())


def test_what_is_said_of_a_table_cannot_grow_without_end() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.other(*EVENTS)
        half = "x" * (TABLE_DOCUMENT_BYTES_MAX // 2)
        await lake.inventory.describe(EVENTS, Description(updates={"a": half}), lake.key(), AUTHOR)
        with pytest.raises(TooLarge):
            await lake.inventory.describe(EVENTS, Description(updates={"b": half}), lake.key(), AUTHOR)
        await lake.inventory.describe(EVENTS, Description(updates={"a": half}), lake.key(), AUTHOR)
        many = tuple(ColumnNote(f"c{number}", "x" * 1000) for number in range(TABLE_DOCUMENT_BYTES_MAX // 2000))
        with pytest.raises(TooLarge):
            await lake.inventory.describe(EVENTS, Description(columns=many), lake.key(), AUTHOR)

    asyncio.run(story())


def test_columns_that_were_changed_are_there_for_a_process_that_just_started() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.other(*EVENTS)
        columns = (ColumnNote("n", "bigint", False, "how many"), ColumnNote("at", "date"))
        saying = durable(lake, "columns")
        await lake.inventory.describe(EVENTS, Description(columns=columns), saying, AUTHOR)
        await lake.inventory.describe(EVENTS, Description(columns=()), lake.key(), AUTHOR)
        # Sent again, it has been done already.
        await lake.inventory.describe(EVENTS, Description(columns=columns), saying, AUTHOR)
        assert (await lake.inventory.find(EVENTS)).columns == ()
        await lake.inventory.describe(EVENTS, Description(columns=columns), lake.key(), AUTHOR)
        await lake.describe(EVENTS, owner="ann")
        lake.restart()
        assert (await lake.inventory.find(EVENTS)).columns == columns
        await lake.checkpoint()
        lake.restart()
        assert (await lake.inventory.find(EVENTS)).columns == columns

    asyncio.run(story())


def test_properties_of_an_iceberg_table_are_left_to_its_metadata() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.table(*ORDERS)
        with pytest.raises(InvalidInput, match="properties"):
            await lake.inventory.describe(ORDERS, Description(updates={"a": "1"}), lake.key(), AUTHOR)
        await lake.describe(ORDERS, owner="ann")
        assert (await said(lake, ORDERS)).owner == "ann"

    asyncio.run(story())


def test_a_table_that_comes_back_is_the_same_asset_also_for_a_process_that_just_started() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.other(*EVENTS)
        before = await lake.inventory.find(EVENTS)
        await lake.drop(EVENTS)
        lake.restart()
        await lake.other(*EVENTS)
        after = await lake.inventory.find(EVENTS)
        assert after.uuid != before.uuid
        assert after.asset_id == before.asset_id

    asyncio.run(story())


# Once


def test_every_mutation_is_done_once_and_answered_alike() -> None:
    async def story() -> None:
        lake = await shop()
        inventory = lake.inventory
        table = NewTable(("shop",), "events", Format.CSV, "s3://b/t")
        creating = durable(lake, "create")
        uuid = await inventory.create(table, creating, AUTHOR)
        saying = durable(lake, "describe")
        await inventory.describe(EVENTS, Description({"owner": "ann"}), saying, AUTHOR)
        renaming = durable(lake, "rename")
        await inventory.rename(EVENTS, ELSEWHERE, renaming, AUTHOR)
        dropping = durable(lake, "drop")
        await inventory.drop(ELSEWHERE, purge=False, key=dropping, author=AUTHOR)
        restoring = durable(lake, "undrop")
        lost = DropRef(ELSEWHERE)
        assert await inventory.undrop(lost, EVENTS, restoring, AUTHOR) == EVENTS
        await lake.settle()
        before = await lake.manifest()
        lake.restart()
        again = lake.inventory
        assert await again.create(table, creating, AUTHOR) == uuid
        await again.describe(EVENTS, Description({"owner": "ann"}), saying, AUTHOR)
        await again.rename(EVENTS, ELSEWHERE, renaming, AUTHOR)
        await again.drop(ELSEWHERE, purge=False, key=dropping, author=AUTHOR)
        assert await again.undrop(lost, EVENTS, restoring, AUTHOR) == EVENTS
        assert await lake.manifest() == before

    asyncio.run(story())


def test_a_restore_of_an_iceberg_table_is_answered_alike_after_it_was_dropped_again() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.table(*ORDERS, commits=1)
        await lake.drop(ORDERS)
        key = durable(lake, "undrop")
        assert await lake.inventory.undrop(DropRef(ORDERS), None, key, AUTHOR) == ORDERS
        await lake.settle()
        await lake.drop(ORDERS)
        assert await lake.inventory.undrop(DropRef(ORDERS), None, key, AUTHOR) == ORDERS
        with pytest.raises(NoSuchTable):
            await lake.inventory.find(ORDERS)

    asyncio.run(story())


def test_a_key_of_one_mutation_does_nothing_else() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.other(*EVENTS)
        key = durable(lake, "describe")
        await lake.inventory.describe(EVENTS, Description({"owner": "ann"}), key, AUTHOR)
        await lake.settle()
        other = RequestKey(key.key, "test", request_hash(["rename"]))
        with pytest.raises(KeyReused):
            await lake.inventory.rename(EVENTS, ELSEWHERE, other, AUTHOR)

    asyncio.run(story())


# Restoring


def test_the_last_drop_of_a_name_is_restored_whoever_asks() -> None:
    """A process that followed the drops and one that loads them from a checkpoint say the same."""

    async def story() -> None:
        lake = await shop()
        uuids = []
        for _ in range(6):
            uuids.append(await lake.table(*ORDERS))
            await lake.drop(ORDERS)
        assert (await lake.inventory.dropped(DropRef(ORDERS))).entry.uuid == uuids[-1]
        await lake.checkpoint()
        lake.restart()
        assert (await lake.inventory.dropped(DropRef(ORDERS))).entry.uuid == uuids[-1]

    asyncio.run(story())


def test_when_the_last_drop_was_restored_the_one_before_is_the_last() -> None:
    async def story() -> None:
        lake = await shop()
        first = await lake.table(*ORDERS)
        await lake.drop(ORDERS)
        await lake.table(*ORDERS)
        await lake.drop(ORDERS)
        await lake.inventory.undrop(DropRef(ORDERS), ELSEWHERE, lake.key(), AUTHOR)
        assert await lake.inventory.undrop(DropRef(ORDERS), None, lake.key(), AUTHOR) == ORDERS
        assert (await lake.inventory.find(ORDERS)).uuid == first

    asyncio.run(story())


def test_a_drop_is_restored_by_its_id_and_only_as_what_it_was() -> None:
    async def story() -> None:
        lake = await shop()
        first = await lake.table(*ORDERS, commits=1)
        await lake.drop(ORDERS)
        drop_id = (await lake.inventory.dropped(DropRef(ORDERS))).drop_id
        await lake.table(*ORDERS)
        with pytest.raises(NotFound):
            await lake.inventory.undrop(DropRef(EVENTS, drop_id), None, lake.key(), AUTHOR)
        with pytest.raises(AlreadyExists):
            await lake.inventory.undrop(DropRef(None, drop_id), None, lake.key(), AUTHOR)
        await lake.inventory.undrop(DropRef(ORDERS, drop_id), ELSEWHERE, lake.key(), AUTHOR)
        restored = await overview_of(lake.catalog, ELSEWHERE)
        assert restored.uuid == first
        assert isinstance(restored.iceberg, IcebergTable)
        assert restored.iceberg.commit_number == 1
        with pytest.raises(NotFound, match="cannot be restored"):
            await lake.inventory.undrop(DropRef(None, "01ARZ3NDEKTSV4RRFFQ69G5FAV"), None, lake.key(), AUTHOR)

    asyncio.run(story())


# Listing


def test_a_listing_is_in_the_order_of_names_and_filtered() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.namespace("shop", "raw")
        await lake.namespace("shop2")
        await lake.table(("shop2",), "a")
        await lake.table(("shop", "raw"), "clicks")
        await lake.other(("shop",), "z")
        await lake.view(("shop",), "b")
        names = await lake.inventory.names()

        def listed(**wanted: Any) -> list[str]:
            return [entry.full_name for entry in listing.tables(names, Filter(**wanted))]

        assert listed() == ["shop.b", "shop.raw.clicks", "shop.z", "shop2.a"]
        assert listed(namespace=("shop",)) == ["shop.b", "shop.raw.clicks", "shop.z"]
        assert listed(namespace=("shop", "raw")) == ["shop.raw.clicks"]
        assert listed(kind=Kind.VIEW) == ["shop.b"]
        assert listed(format=Format.DELTA) == ["shop.z"]
        assert listed(kind=Kind.VIEW, format=Format.DELTA) == []
        assert listing.namespaces(names, ("shop",)) == [("shop",), ("shop", "raw")]
        with pytest.raises(NotFound):
            listed(namespace=("nowhere",))

    asyncio.run(story())


# Overviews and timelines

SNAPSHOT = {
    "snapshot-id": 7, "sequence-number": 1, "timestamp-ms": NEW_YEAR_2025_MS, "manifest-list": "file:///lake/m.avro",
    "schema-id": 0,
    "summary": {
        "operation": "append", "added-records": "2", "total-records": "2", "total-files-size": "99", "total-data-files": "1",
    },
}  # fmt: skip


async def written(lake: Lake) -> None:
    """A table with one snapshot."""
    await lake.table(*ORDERS)
    await lake.commit(
        ORDERS,
        {"action": "add-snapshot", "snapshot": SNAPSHOT | {"timestamp-ms": lake.clock.now_ms()}},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    )


def test_the_overview_of_an_iceberg_table_shows_what_its_metadata_says() -> None:
    async def story() -> None:
        lake = await shop()
        await written(lake)
        await lake.describe(ORDERS, owner="ann", row_count=1000)
        found = await overview_of(lake.catalog, ORDERS)
        assert (found.owner, found.row_count, found.binding, found.format) == ("ann", 1000, 1, Format.ICEBERG)
        assert [(one.path, one.type, one.nullable, one.field_id) for one in found.columns] == [("a", "long", True, 1)]
        iceberg = found.iceberg
        assert isinstance(iceberg, IcebergTable)
        assert (iceberg.snapshot_id, iceberg.row_count, iceberg.size_bytes, iceberg.file_count) == (7, 2, 99, 1)
        assert iceberg.refs == {"main": 7}
        assert iceberg.metadata_location.rpartition("/")[2].startswith("00001-")

    asyncio.run(story())


def test_counts_that_a_writer_made_up_are_not_counts() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.table(*ORDERS)
        summary = {"operation": "append", "total-records": "many", "total-files-size": "-1", "total-data-files": "1" * 40}
        await lake.commit(
            ORDERS,
            {"action": "add-snapshot", "snapshot": SNAPSHOT | {"summary": summary}},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
        )
        iceberg = (await overview_of(lake.catalog, ORDERS)).iceberg
        assert isinstance(iceberg, IcebergTable)
        assert (iceberg.row_count, iceberg.size_bytes, iceberg.file_count) == (None, None, None)

    asyncio.run(story())


def test_the_overview_of_a_view_shows_its_words() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.view(("shop",), "report")
        iceberg = (await overview_of(lake.catalog, (("shop",), "report"))).iceberg
        assert isinstance(iceberg, IcebergView)
        assert [(one.dialect, one.sql) for one in iceberg.representations] == [("spark", "select 1 as a")]

    asyncio.run(story())


def test_the_overview_of_another_format_shows_what_was_said_of_it() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.other(*EVENTS, columns=(ColumnNote("m", "string", False, "who"),), properties={"a": "1"})
        found = await overview_of(lake.catalog, EVENTS)
        assert found.iceberg is None
        assert found.properties == {"a": "1"}
        assert [(one.path, one.type, one.nullable, one.description) for one in found.columns] == [
            ("m", "string", False, "who")
        ]

    asyncio.run(story())


def test_a_timeline_is_newest_first_and_whole() -> None:
    async def story() -> None:
        lake = await shop()
        await lake.table(*ORDERS)
        await lake.drop(ORDERS)
        await written(lake)
        await lake.rename(ORDERS, ELSEWHERE)
        await lake.rename(ELSEWHERE, ORDERS)
        told, _ = await timeline_of(lake.catalog, ORDERS)
        assert [one.at_ms for one in told] == sorted((one.at_ms for one in told), reverse=True)
        assert [one.what for one in told if one.what != "snapshot"] == [
            "renamed", "renamed", "committed", "committed", "created", "dropped",
        ]  # fmt: skip
        assert told[0].facts == {"from": ["shop", "elsewhere"], "to": ["shop", "orders"]}
        assert [one.facts["current"] for one in told if one.what == "committed"] == [True, False]
        assert [one.facts["added_rows"] for one in told if one.what == "snapshot"] == [2]
        assert "earlier_table" in told[-1].facts

    asyncio.run(story())


def test_a_dropped_table_still_tells_its_story() -> None:
    async def story() -> None:
        lake = await shop()
        await written(lake)
        await lake.drop(ORDERS)
        told, _ = await timeline_of(lake.catalog, ORDERS)
        assert told[0].what == "dropped"
        assert told[0].author == AUTHOR
        assert "earlier_table" not in told[0].facts
        assert {one.what for one in told} == {"dropped", "committed", "snapshot", "created"}
        with pytest.raises(NoSuchTable):
            await timeline_of(lake.catalog, EVENTS)

    asyncio.run(story())
