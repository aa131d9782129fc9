"""The pages of docs/clients, run as they stand: every block of Python and SQL, in order, against a server of their own."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .arco_server import arco_server
from .duckdb_session import duckdb_session
from .spark_session import RUNTIME, Spark

PAGES = Path(__file__).resolve().parents[2] / "docs" / "clients"
ADDRESS = "http://127.0.0.1:8181/iceberg"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with arco_server(tmp_path) as found:
        yield found


def blocks(page: str, language: str, address: str) -> list[str]:
    """The blocks of one language on a page, with the address of a server that runs."""
    text = (PAGES / page).read_text()
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no {language}"
    return [block.replace(ADDRESS, address) for block in found]


def statements(block: str) -> list[str]:
    return [statement.strip() for statement in re.split(r";\n", f"{block}\n") if statement.strip()]


def test_the_page_of_pyiceberg(address: str) -> None:
    names: dict[str, object] = {}
    for block in blocks("pyiceberg.md", "python", address):
        exec(block, names)


def test_the_page_of_duckdb(address: str, duckdb_extensions: Path) -> None:
    with duckdb_session(duckdb_extensions) as duck:
        for block in blocks("duckdb.md", "sql", address):
            for statement in statements(block):
                duck(statement)
        assert duck.column("SELECT name FROM arco.garden.plants") == ["fern", "ivy"]


def test_the_page_of_spark(address: str, spark: Spark) -> None:
    # The session of all tests has a catalog of that name already: the page's gets another one.
    names: dict[str, object] = {}
    for block in blocks("spark.md", "python", address):
        exec(block.replace("catalog.arco", "catalog.documented"), names)
    assert names["spark"] is spark.session
    for block in blocks("spark.md", "sql", address):
        for statement in statements(block):
            spark(statement.replace("arco.", "documented."))
    assert spark.column("SELECT id FROM documented.shop.orders") == [1, 2]
    assert spark.column("SELECT id FROM documented.shop.large") == [2]
    assert sorted(row[1] for row in spark("SHOW TABLES IN documented.shop")) == ["monthly", "orders"]


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
