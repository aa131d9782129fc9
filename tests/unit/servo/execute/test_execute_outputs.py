"""Where an output goes, and what is refused of it before anything is written."""

from pathlib import Path
from typing import Any

import pytest

from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput, InvalidMetadata
from arco.servo.execute.outputs import Destinations, refuse_other_columns
from arco.servo.sdk.authoring import asset
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.project import assembled
from fixtures.servo.lake import Lake


def defined(**options: Any) -> AssetDefinition:
    @asset(name="orders", **options)
    def one() -> object: ...

    project = assembled([one.written], folder=Path(), name="shop", namespace="db")
    return next(iter(project.assets.values()))


def columns(**kinds: str) -> JsonObject:
    fields = [
        {"id": place, "name": name, "required": False, "type": kind} for place, (name, kind) in enumerate(kinds.items(), 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def test_an_output_without_the_key_that_it_is_merged_by_is_refused() -> None:
    """Where the table has the column, every new row would have the key NULL and replace those of the last output."""
    merged = defined(mode="merge", key=["shop", "id"])
    refuse_other_columns(merged, columns(id="long", shop="string"))
    with pytest.raises(InvalidInput, match=r"merges by 'shop', and the output has no such column"):
        refuse_other_columns(merged, columns(id="long", Shop="string"))


@pytest.mark.parametrize("mode", ["append", "merge", "replace"])
def test_what_is_added_to_under_a_new_name_is_not_begun_anew(mode: str) -> None:
    more = {"key": "id"} if mode == "merge" else {}
    after = defined(mode=mode, renamed_from="purchases", **more)
    with Lake() as lake:
        place = (("db",), "orders")
        lake.create("purchases", columns(id="long"))
        if mode == "replace":  # all of it comes again
            assert lake.run(Destinations(lake.catalog).of(after, place, None, columns(id="long"))).creates
            return
        with pytest.raises(InvalidInput, match=r"db.orders was db.purchases, and what it added so far is in the table"):
            lake.run(Destinations(lake.catalog).of(after, place, None, columns(id="long")))


def test_a_column_of_another_type_is_refused_unless_nothing_is_and_every_row_is_replaced() -> None:
    """`none` refuses nothing, and what a table cannot record takes every row anew: here every row comes anew."""
    with Lake() as lake:
        base = lake.create("orders", columns(id="long", note="int"))
        to, after = (("db",), "orders"), columns(id="long", note="string")
        for options, whole in (({"compatibility": "none"}, False), ({}, True)):
            with pytest.raises(InvalidMetadata, match=r"'note' is int in the table and string in the output") as refused:
                lake.run(Destinations(lake.catalog).of(defined(**options), to, base, after, whole=whole))
            assert 'where every row is replaced, say compatibility="none"' in refused.value.hint
        found = lake.run(Destinations(lake.catalog).of(defined(compatibility="none"), to, base, after, whole=True))
    assert [(one["id"], one["name"], one["type"]) for one in found.written.current_schema["fields"]] == [
        (1, "id", "long"), (3, "note", "string"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "after", [columns(id="long"), columns(id="long", day="string")], ids=["without it", "of another type"]
)
def test_what_a_table_is_laid_out_by_is_said_by_name_where_it_would_go(after: JsonObject) -> None:
    spec = {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "day", "transform": "identity"}]}
    with Lake() as lake:
        base = lake.create("orders", columns(id="long", day="date"), partition_spec=spec)
        place = Destinations(lake.catalog).of(defined(compatibility="none"), (("db",), "orders"), base, after, whole=True)
        with pytest.raises(
            InvalidMetadata, match=r"db.orders is partitioned or sorted by 'day', and the output has no"
        ) as refused:
            lake.run(place)
    assert "arco drop db.orders, then arco run db.orders" in refused.value.hint


def test_rows_that_no_longer_fit_where_rows_are_set_aside_say_which_table_that_is() -> None:
    with Lake() as lake:
        base = lake.create("orders__quarantine", columns(id="long", note="int"))
        place = Destinations(lake.catalog).of(
            defined(), (("db",), "orders__quarantine"), base, columns(id="long", note="string"), plain=True
        )
        with pytest.raises(InvalidMetadata, match=r"db.orders__quarantine, where rows are set aside") as refused:
            lake.run(place)
    assert "rename or drop db.orders__quarantine" in refused.value.hint
