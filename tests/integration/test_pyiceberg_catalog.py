"""PyIceberg on names: namespaces, listings, views, registered tables, refusals, and many writers at once."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from .arco_server import arco_server

ROWS = pa.table({"a": [1, 2, 3]})
# The third looks like the second and is another name: unicode has two forms of it.
ODD = ("with space", "gr\u00f6\u00dfe", "gro\u0308\u00dfe", "a.b", "a/b", "%2F", "q?x#y", "日本", "a+b&c=d")
APPENDERS, APPENDS = 8, 3
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def catalog(shared_address: str) -> Iterator[RestCatalog]:
    with RestCatalog("arco", uri=shared_address) as found:
        yield found


@pytest.fixture
def namespace(catalog: RestCatalog) -> str:
    name = f"names{next(_numbers)}"
    catalog.create_namespace(name)
    return name


# Namespaces


def test_namespaces_have_levels_and_properties(catalog: RestCatalog, namespace: str) -> None:
    inner = (namespace, "with.dot")
    catalog.create_namespace(inner, {"owner": "me", "gone": "x"})
    catalog.create_namespace((*inner, "größe/ß"))
    assert catalog.list_namespaces(namespace) == [inner]
    assert catalog.list_namespaces(inner) == [(*inner, "größe/ß")]
    done = catalog.update_namespace_properties(inner, {"gone", "never"}, {"owner": "you"})
    assert (done.updated, done.removed, done.missing) == (["owner"], ["gone"], ["never"])
    said = catalog.load_namespace_properties(inner)
    assert said.pop("location").endswith("/default/default/data")
    assert said == {"owner": "you"}
    assert catalog.namespace_exists(inner)
    catalog.drop_namespace((*inner, "größe/ß"))
    assert catalog.list_namespaces(inner) == []


def test_what_is_missing_or_taken_is_said(catalog: RestCatalog, namespace: str) -> None:
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(namespace)
    catalog.create_namespace_if_not_exists(namespace)
    for call in (
        lambda: catalog.list_tables("nowhere"),
        lambda: catalog.drop_namespace("nowhere"),
        lambda: catalog.load_namespace_properties("nowhere"),
        lambda: catalog.create_table(("nowhere", "t"), schema=ROWS.schema),
    ):
        with pytest.raises(NoSuchNamespaceError):
            call()
    with pytest.raises(NoSuchTableError):
        catalog.drop_table((namespace, "t"))
    assert not catalog.namespace_exists("nowhere")
    assert not catalog.table_exists((namespace, "t"))


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_are_just_names(catalog: RestCatalog, namespace: str, odd: str) -> None:
    inner = (namespace, odd)
    catalog.create_namespace(inner)
    catalog.create_table((*inner, odd), schema=ROWS.schema).append(ROWS)
    assert catalog.list_namespaces(namespace) == [inner]
    assert catalog.list_tables(inner) == [(*inner, odd)]
    assert catalog.load_table((*inner, odd)).scan().count() == 3
    catalog.rename_table((*inner, odd), (*inner, f"{odd}2"))
    assert catalog.table_exists((*inner, f"{odd}2"))
    catalog.drop_table((*inner, f"{odd}2"))
    catalog.drop_namespace(inner)


def test_long_listings_come_in_pages(catalog: RestCatalog, namespace: str, shared_address: str) -> None:
    for number in range(5):
        catalog.create_table((namespace, f"t{number}"), schema=ROWS.schema)
        catalog.create_namespace((namespace, f"n{number}"))
    with RestCatalog("paged", uri=shared_address, **{"rest-page-size": "2"}) as paged:
        assert paged.list_tables(namespace) == [(namespace, f"t{number}") for number in range(5)]
        assert paged.list_namespaces(namespace) == [(namespace, f"n{number}") for number in range(5)]


def test_a_warehouse_is_a_workspace_of_its_own(catalog: RestCatalog, shared_address: str) -> None:
    with RestCatalog("other", uri=shared_address, warehouse="acme/pyiceberg") as other:
        other.create_namespace("only_here")
        assert other.list_namespaces() == [("only_here",)]
    assert not catalog.namespace_exists("only_here")


def test_a_root_may_have_a_name_with_spaces(tmp_path: Path) -> None:
    (tmp_path / "my lake größe").mkdir()
    with arco_server(tmp_path / "my lake größe") as address, RestCatalog("spaced", uri=address) as spaced:
        spaced.create_namespace("db")
        spaced.create_table("db.t", schema=ROWS.schema).append(ROWS)
        assert spaced.load_table("db.t").scan().count() == 3


# Views


def view_version(namespace: str, sql: str) -> ViewVersion:
    return ViewVersion(
        version_id=1,
        schema_id=1,
        timestamp_ms=1_750_000_000_000,
        summary={"engine-name": "test"},
        representations=[SQLViewRepresentation(type="sql", sql=sql, dialect="spark")],
        default_namespace=[namespace],
    )


def test_a_view_is_created_listed_loaded_and_dropped(catalog: RestCatalog, namespace: str) -> None:
    schema = Schema(NestedField(1, "a", LongType(), required=False))
    made = catalog.create_view((namespace, "v"), schema, view_version(namespace, "SELECT 1 AS a"), properties={"k": "w"})
    assert made.sql_for("spark").sql == "SELECT 1 AS a"
    assert catalog.list_views(namespace) == [(namespace, "v")]
    assert catalog.view_exists((namespace, "v"))
    loaded = catalog.load_view((namespace, "v"))
    assert (loaded.uuid(), loaded.properties) == (made.uuid(), {"k": "w"})
    assert loaded.schema().column_names == ["a"]
    assert catalog.list_tables(namespace) == []
    catalog.drop_view((namespace, "v"))
    with pytest.raises(NoSuchViewError):
        catalog.load_view((namespace, "v"))
    with pytest.raises(NoSuchViewError):
        catalog.drop_view((namespace, "v"))


# Registering


def test_a_table_is_registered_from_its_metadata(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), schema=ROWS.schema)
    table.append(ROWS)
    location = table.metadata_location
    catalog.drop_table((namespace, "t"))
    found = catalog.register_table((namespace, "again"), location)
    assert found.metadata.table_uuid == table.metadata.table_uuid
    found.append(ROWS)
    assert catalog.load_table((namespace, "again")).scan().count() == 6
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table((namespace, "again"), location)


def test_registering_over_a_table_brings_its_past_back(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), schema=ROWS.schema)
    table.append(ROWS)
    before = table.metadata_location
    table.append(ROWS)
    found = catalog.register_table((namespace, "t"), before, overwrite=True)
    assert found.scan().count() == 3
    found.append(pa.table({"a": [9]}))
    assert sorted(catalog.load_table((namespace, "t")).scan().to_arrow()["a"].to_pylist()) == [1, 2, 3, 9]


# Many at once


def append_some(address: str, namespace: str, number: int) -> None:
    """One client of many: append, and try again on what others committed."""
    with RestCatalog("one", uri=address) as catalog:
        for turn in range(APPENDS):
            row = pa.table({"a": [number * APPENDS + turn]})
            while True:
                try:
                    catalog.load_table((namespace, "t")).append(row)
                except CommitFailedException:
                    continue
                break


def test_eight_that_append_lose_and_double_nothing(catalog: RestCatalog, namespace: str, shared_address: str) -> None:
    catalog.create_table((namespace, "t"), schema=ROWS.schema)
    with ThreadPoolExecutor(APPENDERS) as pool:
        list(pool.map(append_some, repeat(shared_address), repeat(namespace), range(APPENDERS)))
    table = catalog.load_table((namespace, "t"))
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == list(range(APPENDERS * APPENDS))
    assert [snapshot.sequence_number for snapshot in table.snapshots()] == list(range(1, APPENDERS * APPENDS + 1))
