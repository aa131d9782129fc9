"""`arco fold` and `arco query` from the shell, as far as they need no Spark."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arco.fold.tables import TABLES
from arco.surface.cli.asking import moment
from arco.surface.cli.main import app

DOCS = Path(__file__).resolve().parents[3] / "docs"


def arco(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_nothing_new_is_said_without_spark(tmp_path: Path) -> None:
    root = str(tmp_path / "lake")
    assert "nothing new" in arco("fold", "--root", root)
    said = json.loads(arco("fold", "--root", root, "--json"))
    assert said["failed"] == {}
    assert set(said["heads"]) == {"execution", "quality", "lineage", "assets", "iceberg", "search"}


def test_an_empty_catalog_has_all_tables_and_no_rows(tmp_path: Path) -> None:
    for table in TABLES:
        said = json.loads(arco("query", f'SELECT * FROM "{table.name}"', "--root", str(tmp_path), "--json"))
        assert said["rows"] == []


@pytest.mark.parametrize("fresh", [[], ["--fresh"]])
def test_a_query_is_printed(tmp_path: Path, fresh: list[str]) -> None:
    query = "SELECT 'shop' AS name, DATE '2025-01-31' AS day, [1, 2] AS several, NULL AS nothing"
    assert arco("query", query, "--root", str(tmp_path), *fresh).split() == [
        "name",
        "day",
        "several",
        "shop",
        "2025-01-31",
        "1,",
        "2",
    ]
    said = json.loads(arco("query", query, "--root", str(tmp_path), "--json", *fresh))
    assert said["rows"] == [{"name": "shop", "day": "2025-01-31", "several": [1, 2], "nothing": None}]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("DROP TABLE runs", "a query is one SELECT"),
        ("SELECT 1; SELECT 2", "a query is one SELECT"),
        ("COPY runs TO 'elsewhere.csv'", "a query is one SELECT"),
        ("SELECT nothing FROM runs", "nothing"),
        ("SELECT * FROM no_such_table", "no_such_table"),
        ("SELEKT", "SELEKT"),
    ],
)
def test_what_is_no_query_is_refused_in_words(tmp_path: Path, query: str, says: str) -> None:
    result = CliRunner().invoke(app, ["query", query, "--root", str(tmp_path)])
    assert result.exit_code != 0
    assert says in str(result.exception)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("yesterday", "'yesterday' is no time"),
        ("01JZ3V5Q0E8Y7M2K4T6B9N1D3F", "there is no snapshot"),
        ("2025-01-31T12:00", "nothing has been published yet"),
    ],
)
def test_a_rebuild_from_no_state_is_refused_before_anything_is_folded(tmp_path: Path, state: str, says: str) -> None:
    result = CliRunner().invoke(app, ["rebuild", "--from", state, "--root", str(tmp_path / "lake")])
    assert result.exit_code != 0
    assert says in str(result.exception)


def test_times_are_utc_unless_they_say_otherwise() -> None:
    assert moment("1970-01-01T00:00:01") == 1000
    assert moment("1970-01-01T01:00:01+01:00") == 1000
    assert moment(None) is None


def test_the_page_on_state_has_every_column() -> None:
    page = (DOCS / "state.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in page.split("\n## ")[1:]}
    assert list(sections) == [table.name for table in TABLES]
    for table in TABLES:
        named = [line.split("|")[1].strip(" *`") for line in sections[table.name].splitlines() if line.startswith("| ")][1:]
        columns = [*table.key, *(column for group in table.groups for column in group.columns)]
        assert named == [column.name for column in columns]
