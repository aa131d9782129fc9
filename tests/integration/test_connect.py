"""Tables in a program: what PyIceberg wrote through a server, read from the root without one, by Arrow, Spark and DuckDB."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import EqualTo
from pyspark.sql import SparkSession

import arco
from arco.fold.spark_session import Session
from arco.kernel.errors import InvalidInput, NoSuchTable, NotFound
from arco.testing import assert_same_rows, local_spark
from fixtures.servo.frames import MARKS
from tests.servers.launch import seaweedfs

from .arco_server import arco_server

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

FIRST = [{"id": 1, "region": "de"}, {"id": 2, "region": "fr"}]
THIRD = {"id": 3, "region": "de"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """shop.orders with two snapshots, shop.empty with none; the server is gone before anybody reads."""
    place = tmp_path_factory.mktemp("connect")
    with arco_server(place) as address:
        catalog = RestCatalog("arco", uri=address)
        catalog.create_namespace("shop")
        rows = pa.Table.from_pylist(FIRST)
        table = catalog.create_table("shop.orders", rows.schema)
        table.append(rows)
        table.append(pa.Table.from_pylist([THIRD]))
        catalog.create_table("shop.empty", rows.schema)
        snapshots = [one.snapshot_id for one in table.snapshots()]
    return place, snapshots


def test_arrow(root: tuple[Path, list[int]]) -> None:
    orders = arco.connect(str(root[0])).table("shop.orders")
    assert sorted(orders.to_arrow().to_pylist(), key=repr) == [*FIRST, THIRD]
    assert orders.columns == ["id", "region"]
    assert orders.snapshot_id == root[1][-1]
    assert orders.to_arrow(["id"], "region = 'fr'").to_pylist() == [{"id": 2}]
    assert orders.to_arrow(where=EqualTo("id", 3)).to_pylist() == [THIRD]
    assert orders.to_arrow(limit=1).num_rows == 1


def test_versions(root: tuple[Path, list[int]]) -> None:
    lake = arco.connect(f"file://{root[0]}", "default/default")
    first, _ = root[1]
    assert lake.table("shop.orders", snapshot_id=first).to_arrow().num_rows == 2
    assert lake.table("shop.orders", ref="main").to_arrow().num_rows == 3
    assert lake.table("shop.orders").to_arrow(snapshot_id=first).num_rows == 2
    metadata = lake.table("shop.orders")._state.table
    between = datetime.fromtimestamp(metadata.document["snapshot-log"][0]["timestamp-ms"] / 1000, UTC)
    assert lake.table("shop.orders", as_of=between).snapshot_id == first
    assert lake.table("shop.orders", as_of=between.replace(tzinfo=None).isoformat()).snapshot_id == first
    with pytest.raises(NotFound, match="had no snapshot at"):
        lake.table("shop.orders", as_of=between - timedelta(days=1))
    with pytest.raises(InvalidInput, match="each name one version"):
        lake.table("shop.orders", as_of=between, ref="main")
    with pytest.raises(InvalidInput, match="is not a time"):
        lake.table("shop.orders", as_of="yesterday")


def test_duckdb(root: tuple[Path, list[int]]) -> None:
    orders = arco.connect(str(root[0])).table("shop.orders").to_duckdb()
    assert orders.aggregate("region, count(*)").order("region").fetchall() == [("de", 2), ("fr", 1)]
    with duckdb.connect() as own:
        arco.connect(str(root[0])).table("shop.orders").to_duckdb(own, where="id > 1").create_view("orders")
        assert own.sql("select sum(id) from orders").fetchall() == [(5,)]


def test_a_table_without_rows(root: tuple[Path, list[int]], session: Session) -> None:
    empty = arco.connect(str(root[0])).table("shop.empty")
    assert empty.snapshot_id is None
    assert empty.to_arrow().num_rows == 0
    assert_same_rows(empty.to_spark(session.spark), [])


def test_spark(root: tuple[Path, list[int]], session: Session) -> None:
    orders = arco.connect(str(root[0])).table("shop.orders")
    assert_same_rows(orders.to_spark(session.spark), [*FIRST, THIRD])
    assert_same_rows(orders.to_spark(session.spark, snapshot_id=root[1][0]), FIRST)
    assert_same_rows(orders.to_spark(session.spark, columns=["region"], where="id >= 2"), [("fr",), ("de",)])


def test_a_session_that_runs_is_used_and_left(session: Session) -> None:
    with local_spark() as spark:
        assert spark is session.spark
        assert_same_rows(spark.sql("select timestamp'2025-01-01 12:00' as at"), [(datetime(2025, 1, 1, 12, tzinfo=UTC),)])
    assert SparkSession.getActiveSession() is session.spark
    assert session.spark.range(3).count() == 3


def test_names(root: tuple[Path, list[int]]) -> None:
    lake = arco.connect(str(root[0]))
    assert lake.tables() == ["shop.empty", "shop.orders"]
    with pytest.raises(NoSuchTable):
        lake.table("shop.nothing")
    with pytest.raises(InvalidInput, match="has no namespace"):
        lake.table("orders")
    orders = lake.table("shop.orders")
    with pytest.raises(InvalidInput, match="has no column 'price'"):
        orders.to_arrow(["price"])
    with pytest.raises(InvalidInput, match="is not a filter"):
        orders.to_arrow(where="id >")


def test_in_a_notebook_where_a_loop_runs_already(root: tuple[Path, list[int]]) -> None:
    async def cell() -> int:
        return int(arco.connect(str(root[0])).table("shop.orders").to_arrow().num_rows)

    assert asyncio.run(cell()) == 3


def test_the_root_of_the_environment(root: tuple[Path, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCO_ROOT", str(root[0]))
    assert arco.connect().tables() == ["shop.empty", "shop.orders"]


def test_a_bucket(tmp_path: Path) -> None:
    """The options are those of the command line; the server is gone before anybody reads."""
    with seaweedfs(tmp_path) as server:
        options = [part for word, value in server.options.items() for part in ("-o", f"{word}={value}")]
        with arco_server(f"{server.url}/lake", *options) as address:
            catalog = RestCatalog("arco", uri=address)
            catalog.create_namespace("shop")
            rows = pa.Table.from_pylist(FIRST)
            catalog.create_table("shop.orders", rows.schema).append(rows)
        lake = arco.connect(f"{server.url}/lake", **server.options)
        assert lake.tables() == ["shop.orders"]
        assert sorted(lake.table("shop.orders").to_arrow().to_pylist(), key=repr) == FIRST
        assert lake.table("shop.orders").to_duckdb(where="id = 2").fetchall() == [(2, "fr")]
    assert all(value not in repr(lake) for word, value in server.options.items() if "secret" in word)


def test_several_tables_are_read_as_they_were_at_one_moment(root: tuple[Path, list[int]]) -> None:
    place, snapshots = root
    orders, empty = arco.connect(str(place)).together("shop.orders", "shop.empty")
    assert (orders.snapshot_id, empty.snapshot_id) == (snapshots[-1], None)
    assert orders.to_arrow().num_rows == 3
