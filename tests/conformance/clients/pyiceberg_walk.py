# SPDX-License-Identifier: Apache-2.0
"""PyIceberg as a user of a catalog: ADDRESS FOLDER. Knows nothing of Arco and imports nothing of it."""

import sys
from importlib.metadata import version

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField, StringType


def main(address: str) -> None:
    catalog = load_catalog("walk", type="rest", uri=address)
    rows = pa.table({"id": [1, 2, 3], "name": ["ant", "bee", "cat"]})

    catalog.create_namespace("outer")
    catalog.create_namespace(("outer", "in.ner"), {"owner": "keeper"})
    assert catalog.list_namespaces("outer") == [("outer", "in.ner")]
    assert catalog.load_namespace_properties(("outer", "in.ner"))["owner"] == "keeper"
    animals = ("outer", "in.ner", "ani/mals")

    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    buckets = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "bucket"))
    table = catalog.create_table(animals, schema, partition_spec=buckets)
    table.append(rows)
    first = table.current_snapshot().snapshot_id
    table.upsert(pa.table({"id": [3, 4], "name": ["cow", "dog"]}), join_cols=["id"])
    table.delete("id = 1")
    assert sorted(table.scan().to_arrow()["name"].to_pylist()) == ["bee", "cow", "dog"]
    assert table.scan(snapshot_id=first).count() == 3

    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("legs", LongType())
        transaction.set_properties({"owner": "keeper"})
    with table.manage_snapshots() as snapshots:
        snapshots.create_branch(first, "past").create_tag(first, "start")
    table.append(pa.table({"id": [9], "name": ["owl"], "legs": [2]}), branch="past")
    assert table.scan().use_ref("past").count() == 4
    assert table.scan().count() == 3

    stale = catalog.load_table(animals)
    table.append(pa.table({"id": [5], "name": ["eel"], "legs": [0]}))
    stale.append(pa.table({"id": [6], "name": ["fox"], "legs": [4]}))  # hears of a conflict, and repeats by itself
    assert catalog.load_table(animals).scan().count() == 5

    with catalog.create_table_transaction(("outer", "staged"), schema=rows.schema) as creation:
        creation.append(rows)
    assert catalog.load_table(("outer", "staged")).scan().count() == 3
    catalog.rename_table(("outer", "staged"), ("outer", "renamed"))
    assert catalog.list_tables("outer") == [("outer", "renamed")]
    assert not catalog.table_exists(("outer", "staged"))

    try:
        catalog.drop_namespace("outer")
    except NamespaceNotEmptyError:
        pass
    else:
        raise AssertionError("a namespace with a table in it was dropped")
    where = catalog.load_table(("outer", "renamed")).metadata_location
    catalog.drop_table(("outer", "renamed"))
    try:
        catalog.load_table(("outer", "renamed"))
    except NoSuchTableError:
        pass
    else:
        raise AssertionError("a dropped table was loaded")
    assert catalog.register_table(("outer", "again"), where).scan().count() == 3
    print(f"PyIceberg {version('pyiceberg')}: all as it should be")


if __name__ == "__main__":
    main(sys.argv[1])
