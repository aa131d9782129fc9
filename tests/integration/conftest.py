"""One server and one Spark for all tests of clients; each test works in a namespace of its own."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from .arco_server import arco_server
from .duckdb_session import Duck, duckdb_session
from .spark_session import Spark, spark_session

# What Spark needs beside Iceberg's runtime on each cloud, large; they need not be of the runtime's version.
CLOUD_BUNDLES = (
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    "org.apache.iceberg:iceberg-gcp-bundle:1.11.0",
    "org.apache.iceberg:iceberg-azure-bundle:1.10.0",
)
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the shared server serves."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def shared_address(lake: Path) -> Iterator[str]:
    with arco_server(lake) as address:
        yield address


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, shared_address: str) -> Iterator[Spark]:
    """Spark with the shared server as catalog `arco`."""
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        found = Spark(session)
        found.attach("arco", shared_address)
        yield found


@pytest.fixture(scope="session")
def cloud_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """Spark for tables in buckets. Not in one process with the other: jars are on its class path only if it starts with them."""
    with spark_session(tmp_path_factory.mktemp("cloud-spark"), *CLOUD_BUNDLES) as session:
        yield Spark(session)


@pytest.fixture
def db(spark: Spark) -> str:
    """A namespace for one test, by its name in Spark."""
    name = f"arco.db{next(_numbers)}"
    spark(f"CREATE NAMESPACE {name}")
    return name


@pytest.fixture(scope="session")
def duckdb_extensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("duckdb")


@pytest.fixture
def duck(duckdb_extensions: Path, shared_address: str) -> Iterator[Duck]:
    """DuckDB with the shared server as catalog `arco`."""
    with duckdb_session(duckdb_extensions) as found:
        found.attach("arco", shared_address)
        yield found
