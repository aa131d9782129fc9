"""Google's and Microsoft's dialects as root: clients work with the settings that the server hands them, and no others.

DuckDB is not here. Its iceberg extension takes no address for either: test_client_property_names.py looks.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.types import LongType

from tests.servers.launch import Server, azurite, gcsd

from .arco_server import arco_server
from .azure_file_io import AccountApart
from .spark_session import Spark

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]})
PYARROW_ON_AZURE = f"{AccountApart.__module__}.{AccountApart.__name__}"


@contextmanager
def served(store: Callable[[Path], AbstractContextManager[Server]], folder: Path) -> Iterator[str]:
    """The address of a catalog whose root lies in a store."""
    with store(folder) as server:
        options = [part for word, value in server.options.items() for part in ("-o", f"{word}={value}")]
        with arco_server(f"{server.url}/lake", *options) as address:
            yield address


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(gcsd, tmp_path_factory.mktemp("gcs")) as address:
        yield address


@pytest.fixture(scope="module")
def microsoft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(azurite, tmp_path_factory.mktemp("azure")) as address:
        yield address


@pytest.mark.stores
def test_pyiceberg_on_google(google: str) -> None:
    with RestCatalog("arco", uri=google) as catalog:
        assert use(catalog, "py").startswith("gs://")


@pytest.mark.stores
def test_pyiceberg_on_azure(microsoft: str) -> None:
    with RestCatalog("arco", uri=microsoft) as catalog:
        assert use(catalog, "adlfs").startswith("abfss://")


@pytest.mark.stores
def test_pyiceberg_with_pyarrow_on_azure(microsoft: str) -> None:
    with RestCatalog("arco", uri=microsoft, **{"py-io-impl": PYARROW_ON_AZURE}) as catalog:
        assert use(catalog, "arrow").startswith("abfss://")


@pytest.mark.stores
def test_pyiceberg_itself_leads_pyarrow_to_no_container_of_azure(microsoft: str) -> None:
    # Once this fails, azure_file_io.py is not needed any more, and docs/clients/pyiceberg.md is out of date.
    with RestCatalog("arco", uri=microsoft, **{"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}) as catalog:
        catalog.create_namespace("astray")
        table = catalog.create_table("astray.t", schema=ROWS.schema)
        with pytest.raises(OSError, match="InvalidResourceName"):
            table.append(ROWS)
        assert catalog.load_table("astray.t").snapshots() == []


def use(catalog: RestCatalog, namespace: str) -> str:
    """What people do with a table: make, fill, read, evolve, delete from. Returns its location."""
    catalog.create_namespace(namespace)
    table = catalog.create_table((namespace, "t"), schema=ROWS.schema)
    table.append(ROWS)
    assert sorted(catalog.load_table((namespace, "t")).scan(row_filter="id > 1").to_arrow()["s"].to_pylist()) == ["b", "c"]
    with table.update_schema() as change:
        change.add_column("n", LongType())
    table.append(pa.table({"id": [4], "s": ["d"], "n": [40]}))
    table.delete("id = 1")
    with catalog.create_table_transaction((namespace, "staged"), schema=ROWS.schema) as transaction:
        transaction.append(ROWS)
    # Again, by a client that remembers nothing.
    with RestCatalog(
        "again", **{name: value for name, value in catalog.properties.items() if name in {"uri", "py-io-impl"}}
    ) as again:
        rows = again.load_table((namespace, "t")).scan().to_arrow().sort_by("id")
        assert rows.to_pydict() == {"id": [2, 3, 4], "s": ["b", "c", "d"], "n": [None, None, 40]}
        assert again.load_table((namespace, "staged")).scan().count() == 3
    return table.location()


@pytest.mark.conformance
@pytest.mark.parametrize("cloud", ["google", "microsoft"])
def test_spark_writes_and_reads(request: pytest.FixtureRequest, cloud_spark: Spark, cloud: str) -> None:
    spark = cloud_spark
    name = spark.attach(cloud, request.getfixturevalue(cloud))
    spark(f"CREATE NAMESPACE {name}.spark")
    spark(f"CREATE TABLE {name}.spark.t USING iceberg AS SELECT id FROM range(5)")
    spark(f"INSERT INTO {name}.spark.t VALUES (9)")
    spark(f"ALTER TABLE {name}.spark.t ADD COLUMN s STRING")
    spark(f"DELETE FROM {name}.spark.t WHERE id = 0")
    assert spark(f"SELECT id, s FROM {name}.spark.t ORDER BY id") == [(1, None), (2, None), (3, None), (4, None), (9, None)]
