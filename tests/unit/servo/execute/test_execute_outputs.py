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


def test_rows_that_no_longer_fit_where_rows_are_set_aside_say_which_table_that_is() -> None:
    with Lake() as lake:
        base = lake.create("orders__quarantine", columns(id="long", note="int"))
        place = Destinations(lake.catalog).of(
            defined(), (("db",), "orders__quarantine"), base, columns(id="long", note="string"), plain=True
        )
        with pytest.raises(InvalidMetadata, match=r"db.orders__quarantine, where rows are set aside") as refused:
            lake.run(place)
    assert "rename or drop db.orders__quarantine" in refused.value.hint
