"""PyIceberg on tables: evolution, every way of writing, branches, the past, transactions, versions of the format."""

import datetime as dt
import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.expressions import GreaterThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, YearTransform
from pyiceberg.types import DateType, DecimalType, IntegerType, LongType, NestedField, StringType, StructType

ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
DATED = Schema(NestedField(1, "a", LongType(), required=False), NestedField(2, "d", DateType(), required=False))
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def catalog(shared_address: str) -> Iterator[RestCatalog]:
    with RestCatalog("arco", uri=shared_address) as found:
        yield found


@pytest.fixture
def namespace(catalog: RestCatalog) -> str:
    name = f"py{next(_numbers)}"
    catalog.create_namespace(name)
    return name


@pytest.fixture
def t(catalog: RestCatalog, namespace: str) -> Table:
    table = catalog.create_table((namespace, "t"), schema=ROWS.schema)
    table.append(ROWS)
    return table


def values(table: Table, column: str = "a", **scan) -> list:
    return sorted(table.scan(**scan).to_arrow()[column].to_pylist())


# Evolution


def test_columns_are_added_renamed_widened_moved_and_dropped(catalog: RestCatalog, namespace: str) -> None:
    schema = Schema(
        NestedField(1, "i", IntegerType()),
        NestedField(2, "n", DecimalType(9, 2)),
        NestedField(3, "p", StructType(NestedField(4, "x", IntegerType()))),
        NestedField(5, "gone", StringType()),
    )
    table = catalog.create_table((namespace, "t"), schema=schema)
    with table.update_schema() as update:
        update.add_column("c", StringType(), doc="new")
        update.add_column(("p", "y"), StringType())
        update.rename_column("n", "amount")
        update.update_column("i", field_type=LongType())
        update.update_column("n", field_type=DecimalType(18, 2))
        update.move_first("c")
        update.delete_column("gone")
    found = catalog.load_table((namespace, "t")).schema()
    assert [field.name for field in found.fields] == ["c", "i", "amount", "p"]
    assert found.find_type("p.y") == StringType()
    assert (found.find_type("i"), found.find_type("amount")) == (LongType(), DecimalType(18, 2))
    assert found.find_field("c").doc == "new"
    assert found.find_field("amount").field_id == 2
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.make_column_optional("i")
    assert len(catalog.load_table((namespace, "t")).schemas()) == 2


def test_old_rows_have_the_new_columns(t: Table) -> None:
    with t.update_schema() as update:
        update.add_column("c", LongType())
        update.rename_column("b", "text")
    t.append(pa.table({"a": [4], "text": ["w"], "c": [7]}))
    assert [tuple(row.values()) for row in t.scan().to_arrow().sort_by("a").to_pylist()] == [
        (1, "x", None),
        (2, "y", None),
        (3, "z", None),
        (4, "w", 7),
    ]


def test_two_who_change_the_schema_do_not_undo_each_other(catalog: RestCatalog, t: Table) -> None:
    other = catalog.load_table(t.name())
    with t.update_schema() as update:
        update.add_column("mine", LongType())
    with pytest.raises(CommitFailedException, match="current schema changed"), other.update_schema() as update:
        update.add_column("yours", LongType())
    assert catalog.load_table(t.name()).schema().column_names == ["a", "b", "mine"]


def test_partitions_evolve(catalog: RestCatalog, namespace: str) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, DayTransform(), "d_day"))
    table = catalog.create_table((namespace, "t"), schema=DATED, partition_spec=spec)
    with table.update_spec() as update:
        update.remove_field("d_day")
        update.add_field("d", YearTransform(), "year")
        update.add_field("a", BucketTransform(4), "part")
    with table.update_spec() as update:
        update.rename_field("part", "bucket")
    found = catalog.load_table((namespace, "t"))
    assert [(field.name, str(field.transform)) for field in found.spec().fields] == [
        ("year", "year"),
        ("bucket", "bucket[4]"),
    ]
    assert len(found.specs()) == 3


def test_rows_of_old_and_new_partitions_are_found(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), schema=DATED)
    days = [dt.date(2026, 1, day) for day in (1, 2, 3)]
    rows = pa.table({"a": [1, 2, 3], "d": days})
    table.append(rows)
    with table.update_spec() as update:
        update.add_identity("d")
    table.append(rows)
    assert values(table, row_filter="d = '2026-01-02'") == [2, 2]
    table.dynamic_partition_overwrite(pa.table({"a": [9], "d": days[1:2]}))
    assert values(catalog.load_table((namespace, "t"))) == [1, 1, 3, 3, 9]


def test_a_sort_order_is_kept_and_changed(catalog: RestCatalog, namespace: str) -> None:
    order = SortOrder(SortField(1, IdentityTransform()))
    table = catalog.create_table((namespace, "t"), schema=DATED, sort_order=order)
    assert [field.source_id for field in table.sort_order().fields] == [1]
    with table.update_sort_order() as update:
        update.desc("d", IdentityTransform())
    found = catalog.load_table((namespace, "t")).sort_order()
    assert [(field.source_id, field.direction.value) for field in found.fields] == [(2, "desc")]


def test_properties_are_set_and_removed(catalog: RestCatalog, t: Table) -> None:
    with t.transaction() as transaction:
        transaction.set_properties({"k": "v", "gone": "x"})
    with t.transaction() as transaction:
        transaction.remove_properties("gone")
    found = catalog.load_table(t.name()).properties
    assert (found["k"], "gone" in found) == ("v", False)


# Writing


def test_an_overwrite_replaces_what_a_filter_says(t: Table) -> None:
    t.overwrite(pa.table({"a": [10], "b": ["new"]}), overwrite_filter=GreaterThan("a", 1))
    assert values(t) == [1, 10]


def test_rows_are_inserted_or_updated_by_their_key(catalog: RestCatalog, t: Table) -> None:
    done = t.upsert(pa.table({"a": [3, 4], "b": ["Z", "new"]}), join_cols=["a"])
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    assert values(catalog.load_table(t.name()), "b") == ["Z", "new", "x", "y"]


def test_a_delete_takes_whole_files_or_parts_of_them(t: Table) -> None:
    t.delete("a = 2")
    assert values(t) == [1, 3]
    t.delete("a > 0")
    assert values(t) == []
    assert [snapshot.summary.operation.value for snapshot in t.snapshots()] == ["append", "overwrite", "delete"]


def test_files_that_lie_in_the_table_are_added(t: Table) -> None:
    path = Path(t.location().removeprefix("file://")) / "data" / "brought.parquet"
    pq.write_table(pa.table({"a": [7], "b": ["brought"]}), path)
    t.add_files([f"file://{path}"])
    assert values(t) == [1, 2, 3, 7]


def test_several_changes_are_one_commit(catalog: RestCatalog, t: Table) -> None:
    before = len(t.metadata.metadata_log)
    with t.transaction() as transaction:
        transaction.append(pa.table({"a": [4], "b": ["w"]}))
        with transaction.update_schema() as update:
            update.add_column("c", LongType())
        transaction.set_properties({"k": "v"})
    found = catalog.load_table(t.name())
    assert len(found.metadata.metadata_log) == before + 1
    assert values(found) == [1, 2, 3, 4]
    assert (found.schema().column_names[-1], found.properties["k"]) == ("c", "v")


def test_a_transaction_that_is_left_by_an_error_changes_nothing(catalog: RestCatalog, t: Table) -> None:
    with suppress(ZeroDivisionError), t.transaction() as transaction:
        transaction.append(ROWS)
        _ = 1 / 0
    assert values(catalog.load_table(t.name())) == [1, 2, 3]


def test_a_table_is_created_with_its_first_rows(catalog: RestCatalog, namespace: str) -> None:
    with catalog.create_table_transaction((namespace, "t"), schema=ROWS.schema) as transaction:
        transaction.append(ROWS)
        with transaction.update_schema() as update:
            update.add_column("c", LongType())
        with pytest.raises(NoSuchTableError):
            catalog.load_table((namespace, "t"))
    found = catalog.load_table((namespace, "t"))
    assert values(found) == [1, 2, 3]
    assert found.schema().column_names == ["a", "b", "c"]


def test_of_two_who_stage_one_name_one_wins(catalog: RestCatalog, namespace: str) -> None:
    first, second = (catalog.create_table_transaction((namespace, "t"), schema=ROWS.schema) for _ in range(2))
    first.append(ROWS)
    second.append(ROWS)
    first.commit_transaction()
    with pytest.raises(CommitFailedException, match="already exists"):
        second.commit_transaction()
    assert values(catalog.load_table((namespace, "t"))) == [1, 2, 3]


# The past


def test_the_past_is_read_by_version_by_time_and_by_steps(t: Table) -> None:
    first = t.current_snapshot()
    t.append(pa.table({"a": [4], "b": ["w"]}))
    assert values(t, snapshot_id=first.snapshot_id) == [1, 2, 3]
    assert t.snapshot_as_of_timestamp(first.timestamp_ms).snapshot_id == first.snapshot_id
    assert len(t.history()) == 2
    steps = t.incremental_append_scan(from_snapshot_id_exclusive=first.snapshot_id)
    assert steps.to_arrow()["a"].to_pylist() == [4]


def test_branches_and_tags(catalog: RestCatalog, t: Table) -> None:
    at = t.current_snapshot().snapshot_id
    with t.manage_snapshots() as manage:
        manage.create_branch(at, "audit", max_ref_age_ms=86_400_000).create_tag(at, "closed")
    assert catalog.load_table(t.name()).refs()["audit"].max_ref_age_ms == 86_400_000
    t.append(pa.table({"a": [4], "b": ["w"]}), branch="audit")
    t.delete("a = 1", branch="audit")
    t.append(pa.table({"a": [5], "b": ["v"]}))
    found = catalog.load_table(t.name())
    assert values(found) == [1, 2, 3, 5]
    assert sorted(found.scan().use_ref("audit").to_arrow()["a"].to_pylist()) == [2, 3, 4]
    assert sorted(found.scan().use_ref("closed").to_arrow()["a"].to_pylist()) == [1, 2, 3]
    with found.manage_snapshots() as manage:
        manage.remove_branch("audit").remove_tag("closed")
    assert set(catalog.load_table(t.name()).refs()) == {"main"}


def test_a_table_goes_back_and_forgets(catalog: RestCatalog, t: Table) -> None:
    first = t.current_snapshot().snapshot_id
    t.append(pa.table({"a": [4], "b": ["w"]}))
    with t.manage_snapshots() as manage:
        manage.rollback_to_snapshot(first)
    assert values(catalog.load_table(t.name())) == [1, 2, 3]
    t.refresh().append(pa.table({"a": [5], "b": ["v"]}))
    t.maintenance.expire_snapshots().by_id(first).commit()
    assert first not in {snapshot.snapshot_id for snapshot in catalog.load_table(t.name()).snapshots()}


def test_what_a_table_is_made_of_can_be_inspected(t: Table) -> None:
    t.append(ROWS)
    assert t.inspect.snapshots().num_rows == 2
    assert t.inspect.files().num_rows == 2
    assert t.inspect.metadata_log_entries().num_rows == 3
    assert t.inspect.refs()["name"].to_pylist() == ["main"]


# Versions of the format


@pytest.mark.parametrize("version", ["1", "2"])
def test_tables_of_both_old_versions_are_written_and_read(catalog: RestCatalog, namespace: str, version: str) -> None:
    table = catalog.create_table((namespace, "t"), schema=ROWS.schema, properties={"format-version": version})
    table.append(ROWS)
    table.delete("a = 1")
    found = catalog.load_table((namespace, "t"))
    assert (found.format_version, values(found)) == (int(version), [2, 3])


def test_a_table_is_upgraded_and_not_back(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), schema=ROWS.schema, properties={"format-version": "1"})
    table.append(ROWS)
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    table.append(ROWS)
    assert catalog.load_table((namespace, "t")).format_version == 2
    assert len(values(table)) == 6


def test_a_table_of_version_3_is_created_and_read(catalog: RestCatalog, namespace: str) -> None:
    # PyIceberg writes no rows of version 3 yet: test_clients_together.py has rows of Spark's.
    table = catalog.create_table((namespace, "t"), schema=ROWS.schema, properties={"format-version": "3"})
    assert table.format_version == 3
    assert table.metadata.next_row_id == 0
    assert values(catalog.load_table((namespace, "t"))) == []
