"""PyIceberg against a running server: what a user does on the first day."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.types import LongType

from .arco_server import arco_server

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"]})


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with arco_server(Path(tmp_path_factory.mktemp("lake"))) as found:
        yield found


@pytest.fixture
def catalog(address: str, request: pytest.FixtureRequest) -> RestCatalog:
    found = RestCatalog("arco", uri=address)
    namespace = request.node.name
    found.create_namespace(namespace)
    found.properties["test.namespace"] = namespace
    return found


def name(catalog: RestCatalog, table: str = "t") -> tuple[str, str]:
    return catalog.properties["test.namespace"], table


def test_rows_that_were_appended_are_read(catalog: RestCatalog) -> None:
    table = catalog.create_table(name(catalog), schema=ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    assert catalog.load_table(name(catalog)).scan().to_arrow().num_rows == 4


def test_a_schema_evolves(catalog: RestCatalog) -> None:
    table = catalog.create_table(name(catalog), schema=ROWS.schema)
    table.append(ROWS)
    with table.update_schema() as update:
        update.add_column("c", LongType())
    assert catalog.load_table(name(catalog)).schema().column_names == ["a", "b", "c"]


def test_rows_are_overwritten_and_deleted(catalog: RestCatalog) -> None:
    table = catalog.create_table(name(catalog), schema=ROWS.schema)
    table.append(ROWS)
    table.overwrite(pa.table({"a": [9], "b": ["q"]}))
    table.delete("a = 9")
    assert catalog.load_table(name(catalog)).scan().to_arrow().num_rows == 0


def test_a_table_is_renamed_and_keeps_its_rows(catalog: RestCatalog) -> None:
    catalog.create_table(name(catalog), schema=ROWS.schema).append(ROWS)
    catalog.rename_table(name(catalog), name(catalog, "u"))
    assert catalog.load_table(name(catalog, "u")).scan().to_arrow().num_rows == 2
    with pytest.raises(NoSuchTableError):
        catalog.load_table(name(catalog))


def test_a_dropped_table_is_gone_and_its_name_is_free(catalog: RestCatalog) -> None:
    first = catalog.create_table(name(catalog), schema=ROWS.schema)
    catalog.drop_table(name(catalog))
    assert catalog.list_tables(name(catalog)[:1]) == []
    second = catalog.create_table(name(catalog), schema=ROWS.schema)
    assert first.metadata.table_uuid != second.metadata.table_uuid


def test_taken_and_full_names_are_refused(catalog: RestCatalog) -> None:
    catalog.create_table(name(catalog), schema=ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(name(catalog), schema=ROWS.schema)
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(name(catalog)[:1])
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(name(catalog)[:1])
