"""What Spark sends, and what it makes of our answers: caches, reports, lost replies, and the races it cannot see.

Requests go through a proxy that keeps a record and can spoil answers.
"""

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.servers.fault_proxy import Fault, FaultProxy, running

from .spark_session import Spark


@pytest.fixture(scope="module")
def proxy(shared_address: str) -> Iterator[FaultProxy]:
    with running(shared_address) as found:
        yield found


@pytest.fixture(scope="module")
def watched(spark: Spark, proxy: FaultProxy) -> str:
    """A catalog of Spark that keeps nothing in memory, behind the proxy."""
    return spark.attach("watched", proxy.endpoint, cache_enabled="false")


@pytest.fixture
def t(spark: Spark, db: str, watched: str) -> str:
    t = f"{db.replace('arco.', f'{watched}.', 1)}.t"
    spark(f"CREATE TABLE {t} (id BIGINT)")
    spark(f"INSERT INTO {t} VALUES (1)")
    return t


@pytest.fixture
def elsewhere(shared_address: str, t: str) -> Iterator[RestCatalog]:
    """Another client, past the proxy."""
    with RestCatalog("elsewhere", uri=shared_address) as found:
        yield found


def identifier(t: str) -> tuple[str, str]:
    _, namespace, name = t.split(".")
    return namespace, name


def is_commit(t: str):
    end = f"/tables/{identifier(t)[1]}"
    namespace = f"/namespaces/{identifier(t)[0]}/"

    def match(method: str, path: str, headers: dict[str, str]) -> bool:
        return method == "POST" and path.endswith(end) and namespace in path

    return match


def asked(proxy: FaultProxy, t: str) -> list[tuple[str, str, int]]:
    """The answers about one table, each path without what is before the table's name."""
    mark = f"/namespaces/{identifier(t)[0]}/tables"
    return [(method, path.partition(mark)[2], status) for method, path, status in proxy.answers if mark in path]


# Loading


def test_a_table_that_did_not_change_is_not_sent_again(spark: Spark, proxy: FaultProxy, t: str) -> None:
    spark(f"SELECT * FROM {t}")
    before = len(proxy.answers)
    spark(f"SELECT * FROM {t}")
    loads = [(path, status) for method, path, status in asked(proxy, t)[:] if method == "GET"]
    assert len(proxy.answers) > before
    assert loads[-1] == ("/t?snapshots=all", 304)


def test_a_commit_refreshes_without_a_query(spark: Spark, proxy: FaultProxy, t: str) -> None:
    proxy.answers.clear()
    spark(f"INSERT INTO {t} VALUES (2)")
    seen = [one for one in asked(proxy, t) if "/metrics" not in one[1]]
    assert seen[-3:] == [("GET", "/t", 200), ("POST", "/t", 200), ("GET", "/t", 200)]


def test_only_the_branches_are_loaded_if_that_is_asked_for(
    spark: Spark, proxy: FaultProxy, t: str, shared_address: str
) -> None:
    name = spark.attach("refs", proxy.endpoint, cache_enabled="false", snapshot_loading_mode="refs")
    light = t.replace("watched.", f"{name}.", 1)
    spark(f"INSERT INTO {t} VALUES (2)")
    proxy.answers.clear()
    assert spark.column(f"SELECT id FROM {light}") == [1, 2]
    assert ("GET", "/t?snapshots=refs", 200) in asked(proxy, t)
    assert spark.one(f"SELECT count(*) FROM {light}.snapshots") == 2
    assert "/t?snapshots=all" in {path for _, path, _ in asked(proxy, t)}


def test_the_name_of_a_metadata_table_is_looked_for_as_a_table_first(spark: Spark, proxy: FaultProxy, t: str) -> None:
    proxy.answers.clear()
    spark(f"SELECT * FROM {t}.history")
    namespace = identifier(t)[0]
    probes = [(path, status) for _, path, status in proxy.answers if "/tables/history" in path]
    assert probes
    assert {status for _, status in probes} == {404}
    assert all(f"/namespaces/{namespace}\x1ft/" in path for path, _ in probes)


def test_without_the_cache_spark_sees_what_others_wrote(spark: Spark, t: str, elsewhere: RestCatalog) -> None:
    cached = t.replace("watched.", "arco.", 1)
    assert spark.column(f"SELECT id FROM {cached}") == [1]
    elsewhere.load_table(identifier(t)).append(pa.table({"id": [2]}))
    assert spark.column(f"SELECT id FROM {t}") == [1, 2]
    # Spark keeps tables for 30 seconds unless told; REFRESH TABLE is the other way out.
    spark(f"REFRESH TABLE {cached}")
    assert spark.column(f"SELECT id FROM {cached}") == [1, 2]


# Reports


def test_reports_of_scans_and_commits_are_taken(spark: Spark, proxy: FaultProxy, t: str) -> None:
    proxy.answers.clear()
    spark(f"INSERT INTO {t} VALUES (2)")
    spark(f"SELECT * FROM {t}")
    assert reports(proxy, t, at_least=2) == {204}


def test_a_report_comes_before_its_table_exists(spark: Spark, proxy: FaultProxy, t: str) -> None:
    made = f"{t.rpartition('.')[0]}.made"
    proxy.answers.clear()
    spark(f"CREATE TABLE {made} USING iceberg AS SELECT 1 AS a")
    assert reports(proxy, made, at_least=1) == {204}


def reports(proxy: FaultProxy, t: str, at_least: int) -> set[int]:
    """What reports about a table were answered. Spark sends them when it finds the time."""
    path = f"/{identifier(t)[1]}/metrics"
    while (
        len(found := [status for method, where, status in asked(proxy, t) if (method, where) == ("POST", path)]) < at_least
    ):
        time.sleep(0.05)
    return set(found)


# Lost and refused commits


@pytest.mark.parametrize(
    "fault",
    [
        Fault.STATUS_409_BEFORE,
        Fault.STATUS_429_BEFORE,
        Fault.STATUS_503_BEFORE,
        Fault.REFUSE_BEFORE,
        Fault.STATUS_500_AFTER,
        Fault.STATUS_503_AFTER,
        Fault.CUT_AFTER,
        Fault.RESET_AFTER,
        Fault.HALF_AFTER,
    ],
)
def test_a_commit_whose_answer_is_spoilt_lands_once(spark: Spark, proxy: FaultProxy, t: str, fault: Fault) -> None:
    plan = proxy.plan(is_commit(t), fault)
    spark(f"INSERT INTO {t} VALUES (2)")
    assert plan.remaining == 0
    assert spark.column(f"SELECT id FROM {t}") == [1, 2]


def test_a_commit_that_never_arrived_leaves_no_trace(spark: Spark, proxy: FaultProxy, t: str) -> None:
    proxy.plan(is_commit(t), Fault.REFUSE_BEFORE, times=10)
    with pytest.raises(Exception, match=r"RESTException|CommitStateUnknown"):
        spark(f"INSERT INTO {t} VALUES (2)")
    assert spark.column(f"SELECT id FROM {t}") == [1]


def test_an_append_that_meets_another_is_based_on_it(
    spark: Spark, proxy: FaultProxy, t: str, elsewhere: RestCatalog
) -> None:
    between(proxy, t, lambda: elsewhere.load_table(identifier(t)).append(pa.table({"id": [2]})))
    spark(f"INSERT INTO {t} VALUES (3)")
    assert spark.column(f"SELECT id FROM {t}") == [1, 2, 3]


def test_a_delete_that_meets_an_append_keeps_the_new_rows(
    spark: Spark, proxy: FaultProxy, t: str, elsewhere: RestCatalog
) -> None:
    between(proxy, t, lambda: elsewhere.load_table(identifier(t)).append(pa.table({"id": [2]})))
    spark(f"DELETE FROM {t} WHERE id = 1")
    assert spark.column(f"SELECT id FROM {t}") == [2]


def test_a_merge_that_meets_an_append_is_refused(spark: Spark, proxy: FaultProxy, t: str, elsewhere: RestCatalog) -> None:
    between(proxy, t, lambda: elsewhere.load_table(identifier(t)).append(pa.table({"id": [2]})))
    with pytest.raises(Exception, match="Found conflicting files"):
        spark(f"MERGE INTO {t} USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 100")
    assert spark.column(f"SELECT id FROM {t}") == [1, 2]


def test_a_replace_does_not_see_an_append_that_it_overtakes(
    spark: Spark, proxy: FaultProxy, t: str, elsewhere: RestCatalog
) -> None:
    # Spark asks for no snapshot when it replaces a table, so no catalog can refuse: docs/clients/spark.md says so.
    between(proxy, t, lambda: elsewhere.load_table(identifier(t)).append(pa.table({"id": [2]})))
    spark(f"CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT 9L AS id")
    assert spark.column(f"SELECT id FROM {t}") == [9]
    kept = {snapshot.snapshot_id for snapshot in elsewhere.load_table(identifier(t)).snapshots()}
    assert len(kept) == 3


def between(proxy: FaultProxy, t: str, act) -> None:
    """Do something else after Spark's first commit was sent and before it arrives."""
    is_ours, done = is_commit(t), []

    def match(method: str, path: str, headers: dict[str, str]) -> bool:
        if is_ours(method, path, headers) and not done:
            done.append(True)
            act()
        return False

    proxy.plan(match, Fault.SLOW)


# Headers


def test_headers_of_a_catalog_are_sent_with_every_request(spark: Spark, proxy: FaultProxy) -> None:
    seen: list[dict[str, str]] = []
    proxy.plan(lambda method, path, headers: bool(seen.append(headers)), Fault.SLOW)
    options = {"header.X-Iceberg-Access-Delegation": "vended-credentials", "token": "abc"}
    name = spark.attach("headed", proxy.endpoint, **options)
    spark(f"SHOW NAMESPACES IN {name}")
    assert len(seen) >= 2
    assert {headers.get("x-iceberg-access-delegation") for headers in seen} == {"vended-credentials"}
    assert {headers.get("authorization") for headers in seen} == {"Bearer abc"}
    assert all("iceberg" in headers["x-client-version"].lower() for headers in seen)
