"""A bucket as root: clients work with the settings that the server hands them, and no others."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.servers.launch import seaweedfs

from .arco_server import arco_server
from .duckdb_session import Duck, duckdb_session
from .spark_session import Spark

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]})


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        options = [part for word, value in server.options.items() for part in ("-o", f"{word}={value}")]
        with arco_server(f"{server.url}/lake", *options) as found:
            yield found


@pytest.fixture
def catalog(address: str) -> Iterator[RestCatalog]:
    with RestCatalog("arco", uri=address) as found:
        yield found


@pytest.fixture
def duck(duckdb_extensions: Path, address: str) -> Iterator[Duck]:
    with duckdb_session(duckdb_extensions) as found:
        found.attach("arco", address)
        yield found


def test_pyiceberg_writes_and_reads(catalog: RestCatalog) -> None:
    catalog.create_namespace("py")
    table = catalog.create_table("py.t", schema=ROWS.schema)
    assert table.location().startswith("s3://")
    table.append(ROWS)
    table.delete("id = 1")
    with catalog.create_table_transaction("py.staged", schema=ROWS.schema) as transaction:
        transaction.append(ROWS)
    assert sorted(catalog.load_table("py.t").scan().to_arrow()["id"].to_pylist()) == [2, 3]
    assert catalog.load_table("py.staged").scan().count() == 3


def test_duckdb_writes_and_reads(duck: Duck) -> None:
    duck("CREATE SCHEMA arco.duck")
    duck("CREATE TABLE arco.duck.t AS SELECT i AS id, 'x' || i AS s FROM range(5) r(i)")
    duck("INSERT INTO arco.duck.t VALUES (9, 'y')")
    duck("DELETE FROM arco.duck.t WHERE id = 0")
    assert duck.column("SELECT id FROM arco.duck.t") == [1, 2, 3, 4, 9]


def test_what_one_wrote_the_other_reads(catalog: RestCatalog, duck: Duck) -> None:
    catalog.create_namespace("both")
    catalog.create_table("both.t", schema=ROWS.schema).append(ROWS)
    assert duck("SELECT * FROM arco.both.t ORDER BY id") == [(1, "a"), (2, "b"), (3, "c")]
    duck("INSERT INTO arco.both.t VALUES (4, 'd')")
    assert sorted(catalog.load_table("both.t").scan().to_arrow()["s"].to_pylist()) == ["a", "b", "c", "d"]


@pytest.mark.conformance
def test_spark_writes_and_reads(cloud_spark: Spark, address: str, catalog: RestCatalog) -> None:
    spark = cloud_spark
    spark.attach("arco", address)
    spark("CREATE NAMESPACE arco.spark")
    spark("CREATE TABLE arco.spark.t USING iceberg AS SELECT id FROM range(5)")
    spark("INSERT INTO arco.spark.t VALUES (9)")
    spark("DELETE FROM arco.spark.t WHERE id = 0")
    assert spark.column("SELECT id FROM arco.spark.t") == [1, 2, 3, 4, 9]
    assert sorted(catalog.load_table("spark.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 9]
