"""What Spark asks for, statement by statement, as a proxy between it and the server sees it.

docs/conformance.md lists what was found out about Spark, and the test of each.
"""

from collections.abc import Iterator

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.servers.fault_proxy import Fault, FaultProxy, running

from .spark_session import Spark

NOT_FOR_SPARK = ("/transactions/commit", "/credentials", "/tasks", "/plan")


@pytest.fixture
def proxy(shared_address: str) -> Iterator[FaultProxy]:
    with running(shared_address) as found:
        yield found


@pytest.fixture
def near(spark: Spark, db: str, proxy: FaultProxy) -> str:
    """The test's namespace through a catalog that keeps nothing in memory, behind the proxy."""
    name = spark.attach(f"near_{namespace(db)}", proxy.endpoint, cache_enabled="false")
    return f"{name}.{namespace(db)}"


@pytest.fixture
def catalog(shared_address: str) -> Iterator[RestCatalog]:
    with RestCatalog("other", uri=shared_address) as found:
        yield found


def namespace(db: str) -> str:
    return db.rpartition(".")[2]


def asked(proxy: FaultProxy, method: str, end: str) -> list[int]:
    """What the requests whose path ends like this were answered."""
    return [status for how, path, status in proxy.answers if how == method and path.endswith(end)]


# Beginning


def test_a_catalog_begins_with_one_question(spark: Spark, db: str, proxy: FaultProxy) -> None:
    name = spark.attach(f"begun_{namespace(db)}", proxy.endpoint, warehouse="acme/begun", token="abc")
    for _ in range(2):
        assert spark(f"SHOW NAMESPACES IN {name}") == []
    first, *others = proxy.answers
    assert first == ("GET", "/iceberg/v1/config?warehouse=acme%2Fbegun", 200)
    assert others
    assert all(path.startswith("/iceberg/v1/acme.begun/namespaces?") for _, path, _ in others)


# Does it exist?


def test_a_namespace_is_asked_for_with_head(spark: Spark, near: str, proxy: FaultProxy) -> None:
    catalog, _, name = near.partition(".")
    proxy.answers.clear()
    spark(f"CREATE NAMESPACE IF NOT EXISTS {near}")
    assert set(asked(proxy, "HEAD", f"/namespaces/{name}")) == {204}
    spark(f"CREATE NAMESPACE {catalog}.{name}_new")
    assert set(asked(proxy, "HEAD", f"/namespaces/{name}_new")) == {404}
    assert (f"{name}_new",) in spark(f"SHOW NAMESPACES IN {catalog}")


def test_a_table_is_asked_for_with_head_if_spark_keeps_none(spark: Spark, near: str, proxy: FaultProxy) -> None:
    proxy.answers.clear()
    spark(f"CREATE TABLE {near}.t (id BIGINT)")
    spark(f"CREATE TABLE IF NOT EXISTS {near}.t (other STRING)")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark(f"CREATE TABLE {near}.t (other STRING)")
    first, *later = asked(proxy, "HEAD", "/tables/t")
    assert (first, set(later)) == (404, {204})
    assert spark(f"SELECT id FROM {near}.t") == []


def test_a_table_is_loaded_to_see_if_it_exists_otherwise(spark: Spark, db: str, proxy: FaultProxy) -> None:
    name = spark.attach(f"keeping_{namespace(db)}", proxy.endpoint)
    spark(f"CREATE TABLE {name}.{namespace(db)}.t (id BIGINT)")
    assert asked(proxy, "GET", "/tables/t?snapshots=all") == [404]
    assert asked(proxy, "HEAD", "/tables/t") == []


def test_a_namespace_is_asked_for_again_and_again_when_a_table_is_created(
    spark: Spark, near: str, proxy: FaultProxy
) -> None:
    # test_round_trips.py has what that costs: one question to the store, and no bytes.
    proxy.answers.clear()
    spark(f"CREATE TABLE {near}.t (id BIGINT)")
    times = asked(proxy, "GET", f"/namespaces/{namespace(near)}")
    assert len(times) > 1
    assert set(times) == {200}


# Create


def test_ids_that_begin_at_0_are_given_anew_for_tables_and_kept_for_views(
    spark: Spark, near: str, catalog: RestCatalog
) -> None:
    spark(f"CREATE TABLE {near}.t (id BIGINT NOT NULL, p STRUCT<x: INT>, d DATE) PARTITIONED BY (days(d), bucket(4, id))")
    spark(f"CREATE VIEW {near}.v AS SELECT id, d FROM {near}.t")
    table = catalog.load_table((namespace(near), "t"))
    by_name = {field.name: field.field_id for field in table.schema().fields}
    assert sorted(table.schema().field_ids) == [1, 2, 3, 4]
    assert [field.source_id for field in table.spec().fields] == [by_name["d"], by_name["id"]]
    view = catalog.load_view((namespace(near), "v"))
    assert [field.field_id for field in view.schema().fields] == [0, 1]


def test_a_table_of_a_query_is_staged_and_then_committed(spark: Spark, near: str, proxy: FaultProxy) -> None:
    proxy.answers.clear()
    spark(f"CREATE TABLE {near}.t USING iceberg AS SELECT 1 AS a")
    end = f"/namespaces/{namespace(near)}/tables"
    assert asked(proxy, "POST", end) == [200]
    assert asked(proxy, "POST", f"{end}/t") == [200]
    order = [path.rpartition("/namespaces/")[2] for method, path, _ in proxy.answers if method == "POST"]
    name = namespace(near)
    assert order.index(f"{name}/tables") < order.index(f"{name}/tables/t")


def test_a_change_has_a_key(spark: Spark, near: str, proxy: FaultProxy) -> None:
    keys: dict[str, str | None] = {}

    def note(method: str, path: str, headers: dict[str, str]) -> bool:
        if method in {"POST", "DELETE"} and not path.endswith("/metrics"):
            keys[f"{method} {path.rpartition('/')[2]}"] = headers.get("idempotency-key")
        return False

    proxy.plan(note, Fault.SLOW)
    spark(f"CREATE TABLE {near}.t (id BIGINT)")
    spark(f"INSERT INTO {near}.t VALUES (1)")
    spark(f"DROP TABLE {near}.t")
    assert set(keys) == {"POST tables", "POST t", "DELETE t"}
    assert None not in keys.values()


# Views


def test_what_is_no_table_is_looked_for_as_a_view(spark: Spark, near: str, proxy: FaultProxy) -> None:
    spark(f"CREATE TABLE {near}.t USING iceberg AS SELECT 1 AS a")
    spark(f"CREATE VIEW {near}.v AS SELECT a FROM {near}.t")
    proxy.answers.clear()
    assert spark(f"SELECT * FROM {near}.v") == [(1,)]
    assert set(asked(proxy, "GET", "/tables/v?snapshots=all")) == {404}
    assert set(asked(proxy, "GET", "/views/v")) == {200}
    spark(f"CREATE OR REPLACE TABLE {near}.t USING iceberg AS SELECT 2 AS a")
    assert set(asked(proxy, "HEAD", "/views/t")) == {404}
    spark(f"SHOW VIEWS IN {near}")
    assert asked(proxy, "GET", f"/namespaces/{namespace(near)}/views?pageToken=") == [200]


# What is not there


def test_spark_plans_itself_unless_it_is_told_to_leave_that_to_the_server(
    spark: Spark, near: str, proxy: FaultProxy
) -> None:
    spark(f"CREATE TABLE {near}.t USING iceberg AS SELECT id FROM range(5)")
    assert spark.column(f"SELECT id FROM {near}.t WHERE id > 2") == [3, 4]
    # Told so, it does not plan itself instead: docs/clients/spark.md says not to.
    name = spark.attach(f"planning_{namespace(near)}", proxy.endpoint, scan_planning_mode="server")
    with pytest.raises(Exception, match=r"does not support endpoint POST \S+/plan"):
        spark(f"SELECT * FROM {name}.{namespace(near)}.t")
    assert [path for _, path, _ in proxy.answers if path.endswith("/plan")] == []


def test_spark_asks_for_nothing_that_the_server_does_not_offer(spark: Spark, near: str, proxy: FaultProxy) -> None:
    spark(f"CREATE TABLE {near}.t USING iceberg AS SELECT id, id % 2 AS k FROM range(4)")
    spark(f"ALTER TABLE {near}.t ADD PARTITION FIELD k")
    spark(f"MERGE INTO {near}.t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    spark(f"CREATE OR REPLACE TABLE {near}.t USING iceberg AS SELECT 9L AS id")
    spark(f"SELECT * FROM {near}.t.history")
    spark(f"DROP TABLE {near}.t")
    assert [path for _, path, _ in proxy.answers if path.endswith(NOT_FOR_SPARK)] == []
    assert {status for _, _, status in proxy.answers} <= {200, 204, 304, 404}
