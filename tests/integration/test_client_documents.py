"""The pages of docs/clients and the settings of the page at /, run as they stand, against a server of their own."""

import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import pytest

from tests.servers.launch import SEAWEEDFS_ROLE_ARN, Server, seaweedfs

from .arco_server import arco_server
from .duckdb_session import duckdb_session
from .spark_session import RUNTIME, Spark

PAGES = Path(__file__).resolve().parents[2] / "docs" / "clients"
ADDRESS = "http://127.0.0.1:8181/iceberg"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with arco_server(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        yield server


@contextmanager
def vending(store: Server, folder: str) -> Iterator[str]:
    """A server on S3 that gives clients a session of one table, and its own keys to nobody."""
    options = [part for word, value in store.options.items() for part in ("-o", f"{word}={value}")]
    role = ("--vend", "sts", "--vend-role", SEAWEEDFS_ROLE_ARN, "--vend-endpoint", store.endpoint)
    with arco_server(f"{store.url}/{folder}", *options, *role) as found:
        yield found


@pytest.fixture(params=["a folder", "S3 with vended credentials"])
def any_address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "a folder":
        yield request.getfixturevalue("address")
        return
    with vending(request.getfixturevalue("store"), tmp_path.name) as found:
        yield found


def blocks(page: str, language: str, address: str) -> list[str]:
    """The blocks of one language on a page, with the address of a server that runs."""
    text = (PAGES / page).read_text()
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no {language}"
    return [block.replace(ADDRESS, address) for block in found]


def statements(block: str) -> list[str]:
    return [statement.strip() for statement in re.split(r";\n", f"{block}\n") if statement.strip()]


def test_the_page_of_pyiceberg(any_address: str) -> None:
    names: dict[str, object] = {}
    for block in blocks("pyiceberg.md", "python", any_address):
        exec(block, names)


def test_the_page_of_duckdb(any_address: str, duckdb_extensions: Path) -> None:
    with duckdb_session(duckdb_extensions) as duck:
        for block in blocks("duckdb.md", "sql", any_address):
            for statement in statements(block):
                duck(statement)
        assert duck.column("SELECT name FROM arco.garden.plants") == ["fern", "ivy"]


def follow_the_page_of_spark(address: str, spark: Spark, catalog: str) -> None:
    # The session of all tests has a catalog of that name already: the page's gets another one.
    names: dict[str, object] = {}
    for block in blocks("spark.md", "python", address):
        exec(block.replace("catalog.arco", f"catalog.{catalog}"), names)
    assert names["spark"] is spark.session
    for block in blocks("spark.md", "sql", address):
        for statement in statements(block):
            spark(statement.replace("arco.", f"{catalog}."))
    assert spark.column(f"SELECT id FROM {catalog}.shop.orders") == [1, 2]
    assert spark.column(f"SELECT id FROM {catalog}.shop.large") == [2]
    assert sorted(row[1] for row in spark(f"SHOW TABLES IN {catalog}.shop")) == ["monthly", "orders"]


def test_the_page_of_spark(address: str, spark: Spark) -> None:
    follow_the_page_of_spark(address, spark, "documented")


@pytest.mark.conformance
def test_the_page_of_spark_on_s3_with_vended_credentials(store: Server, cloud_spark: Spark) -> None:
    """The bundle of the cloud is in the session, and the header is what the page says of a server that vends."""
    asked = re.search(r"`(header\.\S+)=(\S+)`", (PAGES / "spark.md").read_text())
    assert asked is not None
    cloud_spark.session.conf.set(f"spark.sql.catalog.documented_s3.{asked[1]}", asked[2])
    with vending(store, "spark") as address:
        follow_the_page_of_spark(address, cloud_spark, "documented_s3")


def test_the_shell_and_python_say_the_same_about_spark(address: str) -> None:
    (shell,), (python,) = blocks("spark.md", "sh", address), blocks("spark.md", "python", address)
    by_shell = dict(re.findall(r"--conf (\S+?)=(\S+)", shell)) | {
        "spark.jars.packages": re.search(r"--packages (\S+)", shell)[1]
    }
    assert by_shell == dict(re.findall(r'\.config\("(.+?)", "(.+?)"\)', python))
    assert by_shell["spark.jars.packages"] == RUNTIME


def test_every_page_is_listed_and_names_the_same_address() -> None:
    pages = {page.name for page in PAGES.glob("*.md")} - {"README.md"}
    listed = set(re.findall(r"\]\((\w+\.md)\)", (PAGES / "README.md").read_text()))
    assert listed == pages
    assert [page for page in pages if ADDRESS not in (PAGES / page).read_text()] == []


# The page at /


def recipes(address: str) -> dict[str, str]:
    """What the page of a server that runs gives to copy, by client."""
    with urllib.request.urlopen(address.removesuffix("/iceberg"), timeout=30) as answer:
        text = answer.read().decode()
    found = re.findall(r"<h3>(\w+)</h3>.*?<pre[^>]*>(.*?)</pre>", text, re.DOTALL)
    return {client: unescape(recipe) for client, recipe in found}


def test_the_page_at_the_root_has_every_client_that_has_a_page(address: str) -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    assert {client.lower() for client in recipes(address)} == pages


def test_what_the_page_at_the_root_says_of_pyiceberg(address: str) -> None:
    names: dict[str, object] = {}
    exec(recipes(address)["PyIceberg"], names)
    assert names["catalog"].list_namespaces() == []


def test_what_the_page_at_the_root_says_of_duckdb(address: str, duckdb_extensions: Path) -> None:
    first, *rest = statements(recipes(address)["DuckDB"])
    assert first == "INSTALL iceberg; LOAD iceberg"  # it is loaded from a package here: nothing is downloaded
    with duckdb_session(duckdb_extensions) as duck:
        for statement in rest:
            duck(statement)
        duck("CREATE SCHEMA arco.garden")
        assert duck.column("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'arco'") == ["garden"]


def test_the_page_at_the_root_and_the_document_say_the_same_about_spark(address: str) -> None:
    (shell,) = blocks("spark.md", "sh", address)
    documented, given = ({*re.findall(r"--(?:packages|conf) \S+", text)} for text in (shell, recipes(address)["Spark"]))
    assert given - documented == {
        "--conf spark.sql.catalog.arco.warehouse=default/default",
        "--conf spark.sql.defaultCatalog=arco",
    }
    assert documented <= given


def test_the_page_at_the_root_and_the_document_say_the_same_about_datafusion(address: str) -> None:
    (documented,) = blocks("datafusion.md", "python", address)
    called = r"(?:SessionContext|load_catalog|load_table|StaticTable\.from_metadata|register_table)\("
    assert {*re.findall(called, recipes(address)["DataFusion"])} == {*re.findall(called, documented)}
