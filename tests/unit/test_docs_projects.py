"""The project that docs/projects.md writes is one, and the page names what there is."""

import re
from pathlib import Path

import pytest

import arco
from arco.servo.sdk import authoring
from arco.surface.cli.projects import read_project
from fixtures.document_blocks import write_blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "projects.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = write_blocks(PAGE, tmp_path)
    assert len(names) == len(set(names)) >= 10
    return tmp_path


def test_the_page_is_a_project_without_problems(folder: Path) -> None:
    project, problems = read_project(str(folder)).examine()
    assert [one.one_line() for one in problems.found] == []
    assert project is not None
    orders = next(one for key, one in project.assets.items() if str(key) == "shop.orders")
    assert [check.name for check in orders.checks][-1] == "most_orders_are_small"
    assert orders.description.startswith("Every order once.")
    revenue = next(one for key, one in project.assets.items() if str(key) == "shop.revenue")
    assert {one.parameter: one.mapping.describe() for one in revenue.inputs}["customers"] == "all"


def test_every_option_of_an_asset_is_on_the_page() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE.read_text(), re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert named == set(authoring.OPTIONS)


def test_every_name_to_import_is_on_a_page() -> None:
    pages = PAGE.read_text() + (PAGE.parent / "checks.md").read_text()
    types = {"Asset", "Check", "RunContext", "ArcoError", "Severity"}
    assert [name for name in arco.__all__ if not re.search(rf"\b{name}\b", pages) and name not in types] == []
