"""The documents say what the code says."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from arco.kernel import limits
from arco.kernel.errors import ERROR_TABLE
from arco.storage import keys
from arco.surface.cli import names, pipelines, planning_commands, reading_commands
from arco.surface.http.api import api_endpoints
from arco_sim import invariants

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
DECISIONS = sorted(path for path in (DOCS / "adr").glob("*.md") if not path.name.startswith("0000"))
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_invariants_of_the_simulator_are_documented_by_name() -> None:
    named = {value for name, value in vars(invariants).items() if name.isupper()}
    invariants_only = (DOCS / "invariants.md").read_text().partition("\n## ")[0]
    listed = set(re.findall(r"^\| (.+?) \|", invariants_only, re.MULTILINE)) - {"name", "---"}
    assert listed == named


def test_every_object_name_is_documented() -> None:
    page = (DOCS / "formats" / "object-names.md").read_text()
    assert [kind.__name__ for kind in keys.KINDS if f"`{kind.template}`" not in page] == []


def test_every_command_is_documented() -> None:
    page = (DOCS / "cli.md").read_text()
    assert [
        one.__name__
        for one in (*names.COMMANDS, *planning_commands.COMMANDS, *pipelines.COMMANDS, *reading_commands.COMMANDS)
        if f"`arco {one.__name__}" not in page
    ] == []


def test_every_route_of_the_platform_api_is_documented() -> None:
    page = (DOCS / "api.md").read_text()
    endpoints = api_endpoints(None)  # type: ignore[arg-type]
    assert [one.path for one in endpoints if f"`{one.method} {one.path}" not in page] == []


def test_every_code_of_a_problem_is_documented_with_what_to_do() -> None:
    problems = (DOCS / "api.md").read_text().partition("## Problems")[2]
    rows = dict(re.findall(r"^\| ([^|`]+) \| (`.+) \|$", problems, re.MULTILINE))
    listed = {(title, *one) for title, codes in rows.items() for one in re.findall(r"`(\w+)` (\d+)", codes)}
    assert listed == {(one.action.value, one.code, str(one.status)) for one in ERROR_TABLE.values()}


def test_the_tests_that_the_conformance_page_names_are_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "conformance.md").read_text()))
    assert len(named) >= 30
    defined = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert sorted(named - defined) == []


def test_every_finding_of_verify_is_documented() -> None:
    page = (DOCS / "cli.md").read_text()
    sources = (ROOT / "src" / "arco").rglob("verify[._]*py")
    codes = {code for file in sources for code in re.findall(r'(?<!count)[(]\s*"([a-z]+_[a-z_]+)",', file.read_text())}
    assert len(codes) >= 30
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_every_limit_has_its_unit_in_its_name() -> None:
    units = ("_MAX", "_S", "_FIRST", "_THREADS", "_SHARDS")
    assert [name for name in vars(limits) if name.isupper() and not name.endswith(units)] == []


# Links


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made where the repository is read."""
    found: dict[str, int] = {}
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found[plain] = found.get(plain, -1) + 1
    return {name if not number else f"{name}-{number}" for name, last in found.items() for number in range(last + 1)}


def links(page: Path) -> Iterator[str]:
    yield from re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: there is no such heading"


def test_every_format_is_in_the_list_of_formats() -> None:
    pages = {path.name for path in (DOCS / "formats").glob("*.md")} - {"README.md"}
    assert set(links(DOCS / "formats" / "README.md")) == pages


# Architecture


def rooms_in_order() -> list[list[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["arco"])
    return [re.findall(r"\w+", layer) for layer in layers]


def test_the_picture_of_the_rooms_is_the_contract() -> None:
    rooms = rooms_in_order()
    picture = next(block for block in re.findall(r"```\n(.*?)```", ARCHITECTURE, re.DOTALL) if block.startswith("surface"))
    drawn = [re.split(r"\s{2,}", line)[0] for line in picture.splitlines()]
    assert [re.findall(r"\w+", line) for line in drawn] == rooms


def test_the_table_of_rooms_says_which_are_there() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|\n]*) \|$", ARCHITECTURE, re.MULTILINE)
    assert [room for room, _ in rows] == [room for layer in rooms_in_order() for room in layer]
    wrong = [room for room, said in rows if ("not there yet" in said) == (ROOT / "src" / "arco" / room).is_dir()]
    assert not wrong, f"ARCHITECTURE.md says otherwise of {wrong}"


def test_files_that_the_architecture_names_exist() -> None:
    named = re.findall(r"`([\w/.]+/[\w.]*)`", ARCHITECTURE)
    places = (ROOT, ROOT / "src", ROOT / "src" / "arco")
    assert len(named) > 40
    assert not [name for name in named if not any((place / name).exists() for place in places)]


# Decisions


def words_that_resolve() -> set[str]:
    """What a decision may name as its proof: tests, mutants, scenarios, make targets, places to die at."""
    tests = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]
    found = {word for text in tests for word in re.findall(r"def (test_\w+|[a-z]\w+)\(", text)}
    found |= {path.stem for path in (ROOT / "tests" / "simulation" / "mutants").glob("*.toml")}
    found |= {path.stem for path in (ROOT / "src" / "arco_sim" / "scenarios").glob("*.py")}
    found |= {f"make {target}" for target in re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)}
    sources = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    return found | {point for text in sources for point in re.findall(r'\breach\("([^"]+)"\)', text)}


def test_decisions_have_numbers_of_their_own() -> None:
    numbers = [path.name[:4] for path in DECISIONS]
    assert len(set(numbers)) == len(numbers)
    assert [path.name for path in DECISIONS if not path.read_text().startswith(f"# {path.name[:4]}: ")] == []


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_says_what_was_asked_and_decided_and_how_it_is_tested(page: Path) -> None:
    parts = re.findall(r"^\*\*([A-Z][\w ]+)\.\*\*", page.read_text(), re.MULTILINE)
    assert parts[0] in {"Failure", "Question"}
    assert [part for part in parts if part in {"Decision", "Alternatives", "How it is tested"}] == [
        "Decision",
        "Alternatives",
        "How it is tested",
    ]


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_the_proof_of_a_decision_exists(page: Path) -> None:
    proof = page.read_text().partition("**How it is tested.**")[2]
    known = words_that_resolve()
    named = re.findall(r"`([^`]+)`", proof)
    assert not [word for word in named if word not in known and not (ROOT / word).exists()]


# Changes


def test_the_first_thing_a_release_says_is_safety() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert releases
    assert [re.findall(r"^### (\w+)", release, re.MULTILINE)[0] for release in releases] == ["Safety"] * len(releases)
