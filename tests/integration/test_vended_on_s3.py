"""Vended credentials on a real store: clients work with them alone, and they open one table and no other.

The server's own keys never reach a client: it has a session of one table, for a while.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
import requests
from obstore.exceptions import BaseError
from obstore.store import S3Store
from pyiceberg.catalog.rest import RestCatalog

from tests.servers.launch import BUCKET, REGION, SEAWEEDFS_ROLE_ARN, SECRET_ACCESS_KEY, Server, seaweedfs

from .arco_server import arco_server
from .duckdb_session import Duck, duckdb_session
from .spark_session import Spark

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]})
DELEGATED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
PREFIX = "v1/default.default/namespaces"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        yield server


def serving(store: Server, folder: str, *flags: str) -> Any:
    options = [part for word, value in store.options.items() for part in ("-o", f"{word}={value}")]
    role = ("--vend", "sts", "--vend-role", SEAWEEDFS_ROLE_ARN, "--vend-endpoint", store.endpoint)
    return arco_server(f"{store.url}/{folder}", *options, *role, *flags)


@pytest.fixture(scope="module")
def address(store: Server) -> Iterator[str]:
    with serving(store, "lake") as found:
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


class Session:
    """What a credential lets its holder do."""

    def __init__(self, store: Server, credential: dict[str, Any]) -> None:
        config = credential["config"]
        self.prefix = credential["prefix"].removeprefix(f"s3://{BUCKET}/")
        self._store = S3Store(
            BUCKET,
            config={
                "endpoint": store.endpoint,
                "region": REGION,
                "access_key_id": config["s3.access-key-id"],
                "secret_access_key": config["s3.secret-access-key"],
                "session_token": config["s3.session-token"],
            },
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )

    def may_read(self, key: str) -> bool:
        return self._may(lambda: obstore.get(self._store, key))

    def may_write(self, key: str) -> bool:
        return self._may(lambda: obstore.put(self._store, key, b"x"))

    def may_delete(self, key: str) -> bool:
        return self._may(lambda: obstore.delete(self._store, key))

    def may_list(self, prefix: str) -> bool:
        return self._may(lambda: obstore.list(self._store, prefix).collect())

    def _may(self, act: Any) -> bool:
        try:
            act()
        except BaseError as error:
            if "AccessDenied" not in str(error):
                raise
            return False
        return True


def made(address: str, name: str) -> dict[str, Any]:
    """A table with one file, as its create was answered."""
    requests.post(f"{address}/{PREFIX}", json={"namespace": ["ns"]}, timeout=60)
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    answer = requests.post(
        f"{address}/{PREFIX}/ns/tables", json={"name": name, "schema": schema}, headers=DELEGATED, timeout=60
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_credential_for_one_table_is_refused_on_anothers_files(store: Server, address: str) -> None:
    mine, other = made(address, "mine"), made(address, "other")
    session = Session(store, mine["storage-credentials"][0])
    theirs = other["metadata"]["location"].removeprefix(f"s3://{BUCKET}/")
    own, foreign = f"{session.prefix}data/f", f"{theirs}/data/f"
    assert Session(store, other["storage-credentials"][0]).may_write(foreign)
    assert session.may_write(own)
    assert session.may_read(own)
    assert session.may_list(session.prefix)
    assert session.may_delete(own)
    for act in (session.may_read, session.may_write, session.may_delete):
        assert not act(foreign)
        assert not act("lake/default/default/_catalog/manifests/catalog.manifest.json")
        assert not act("lake")
    for prefix in (f"{theirs}/", "lake/", "lake/default/default/data/", ""):
        assert not session.may_list(prefix)


def test_a_server_for_readers_hands_out_what_only_reads(store: Server, address: str) -> None:
    writer = Session(store, made(address, "read")["storage-credentials"][0])
    assert writer.may_write(f"{writer.prefix}data/f")
    with serving(store, "lake", "--vend-read-only") as readers:
        answer = requests.get(f"{readers}/{PREFIX}/ns/tables/read/credentials", timeout=60).json()
    reader = Session(store, answer["storage-credentials"][0])
    assert reader.may_read(f"{reader.prefix}data/f")
    assert reader.may_list(reader.prefix)
    assert not reader.may_write(f"{reader.prefix}data/g")
    assert not reader.may_delete(f"{reader.prefix}data/f")


@pytest.mark.parametrize(("folder", "alike"), [("w*", "wx"), ("d${aws:username}", "darco"), ("ü b", "u b")])
def test_a_root_with_an_unkind_name_opens_nothing_else(store: Server, folder: str, alike: str) -> None:
    """Where a store knows no way to write a star that is a star, a session opens nothing at all."""
    with serving(store, folder) as found:
        one, two = (Session(store, made(found, name)["storage-credentials"][0]) for name in ("a", "b"))
    assert one.may_write(f"{one.prefix}f") == (folder == "ü b")
    assert not one.may_write(f"{two.prefix}f")
    assert not one.may_write(f"{one.prefix.replace(folder, alike)}f")
    assert not one.may_list("")


def test_the_servers_own_keys_stay_with_it(address: str) -> None:
    created = made(address, "keys")
    unasked = requests.get(f"{address}/{PREFIX}/ns/tables/keys", timeout=60).text
    assert SECRET_ACCESS_KEY not in unasked + str(created)
    assert "s3.secret-access-key" not in unasked
    (credential,) = created["storage-credentials"]
    assert credential["config"].items() <= created["config"].items()


def test_pyiceberg_writes_and_reads_with_them(catalog: RestCatalog) -> None:
    catalog.create_namespace("py")
    table = catalog.create_table("py.t", schema=ROWS.schema)
    assert table.io.properties["s3.session-token"]
    table.append(ROWS)
    table.delete("id = 1")
    with catalog.create_table_transaction("py.staged", schema=ROWS.schema) as transaction:
        transaction.append(ROWS)
    assert sorted(catalog.load_table("py.t").scan().to_arrow()["id"].to_pylist()) == [2, 3]
    assert catalog.load_table("py.staged").scan().count() == 3


def test_duckdb_writes_and_reads_with_them(duck: Duck) -> None:
    duck("CREATE SCHEMA arco.duck")
    duck("CREATE TABLE arco.duck.t AS SELECT i AS id, 'x' || i AS s FROM range(5) r(i)")
    duck("INSERT INTO arco.duck.t VALUES (9, 'y')")
    duck("DELETE FROM arco.duck.t WHERE id = 0")
    assert duck.column("SELECT id FROM arco.duck.t") == [1, 2, 3, 4, 9]


def test_keys_are_passed_on_where_that_was_declared(store: Server) -> None:
    options = [part for word, value in store.options.items() for part in ("-o", f"{word}={value}")]
    with arco_server(f"{store.url}/static", *options, "--vend", "static") as found:
        created = made(found, "t")
        (credential,) = created["storage-credentials"]
        assert credential["config"]["s3.secret-access-key"] == SECRET_ACCESS_KEY
        assert credential["config"].items() <= created["config"].items()
        assert SECRET_ACCESS_KEY not in requests.get(f"{found}/{PREFIX}/ns/tables/t", timeout=60).text
        with RestCatalog("arco", uri=found) as catalog:
            catalog.create_table("ns.rows", schema=ROWS.schema).append(ROWS)
            assert catalog.load_table("ns.rows").scan().count() == 3


@pytest.mark.conformance
def test_spark_writes_and_reads_with_them(cloud_spark: Spark, address: str, catalog: RestCatalog) -> None:
    spark = cloud_spark
    spark.attach("vended", address, **{"header.X-Iceberg-Access-Delegation": "vended-credentials"})
    spark("CREATE NAMESPACE vended.spark")
    spark("CREATE TABLE vended.spark.t USING iceberg AS SELECT id FROM range(5)")
    spark("INSERT INTO vended.spark.t VALUES (9)")
    spark("DELETE FROM vended.spark.t WHERE id = 0")
    assert spark.column("SELECT id FROM vended.spark.t") == [1, 2, 3, 4, 9]
    assert sorted(catalog.load_table("spark.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 9]
