"""Each planted bug removes one guard, and each must be caught. A survivor means that nothing tests that guard."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput
from arco_sim.mutants import Mutant, load_all
from arco_sim.workshop import Workshop

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src"
pytestmark = pytest.mark.campaign
MUTANTS = load_all(HERE / "mutants")


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    with Workshop(SOURCE) as shop:
        yield shop


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_caught(workshop: Workshop, mutant: Mutant) -> None:
    catch = workshop.hunt(mutant)
    assert catch.caught, f"{mutant.guard}: removed, and {mutant.watch} noticed nothing"
    print(f"{mutant.name}: caught at seed {catch.seed} by {catch.violation}")


def test_the_table_of_rules_names_what_exists() -> None:
    """docs/invariants.md says which planted bug proves which rule: each must be there, and each test with that beginning."""
    page = (ROOT / "docs" / "invariants.md").read_text()
    cells = [line.rsplit("|", 2)[1] for line in page.partition("### C:")[2].splitlines() if line.startswith("|")]
    named = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    rooms = [ROOT / "tests" / "unit" / room for room in ("catalog", "fold", "read", "txn", "upkeep")]
    files = [path for room in rooms for path in room.glob("test_*.py")]
    tests = "\n".join(path.read_text() for path in files)
    known = {mutant.name for mutant in MUTANTS} | {path.name for path in files}
    missing = {name for name in named if name not in known and f"def {name.rstrip('…')}" not in tests}
    assert len(named) > 50
    assert not missing


def test_every_planted_bug_is_written_down() -> None:
    """In the tables of docs/invariants.md, or in the decision that it belongs to."""
    pages = [ROOT / "docs" / "invariants.md", *(ROOT / "docs" / "adr").glob("*.md")]
    written = "\n".join(page.read_text() for page in pages)
    assert [mutant.name for mutant in MUTANTS if f"`{mutant.name}`" not in written] == []


def test_a_planted_bug_that_takes_a_rule_away_stands_beside_that_rule() -> None:
    rows = [line for line in (ROOT / "docs" / "invariants.md").read_text().splitlines() if line.startswith("|")]
    ruled = [(mutant.name, rule) for mutant in MUTANTS for rule in _rules(mutant)]
    assert len(ruled) > 50
    missing = [(name, rule) for name, rule in ruled if not any(_is_of(rule, row) and f"`{name}`" in row for row in rows)]
    assert missing == []


def _rules(mutant: Mutant) -> list[str]:
    """The rules that a guard names: `(rule C8)`, `(rules P2 and N1)`."""
    named = re.search(r"\(([^()]*\brules? [^()]*)\)", mutant.guard)
    return re.findall(r"\b[CNTUFP][0-9]+\b", named[1]) if named else []


def _is_of(rule: str, row: str) -> bool:
    return re.search(rf"^\|[^|]*\b{rule}\b", row) is not None


@pytest.mark.parametrize("file", ["arco/kernel/errors.py", "arco/storage/cas.py", "arco/catalog/commits.py"])
def test_a_change_that_changes_nothing_is_not_noticed(workshop: Workshop, file: str) -> None:
    """What is imported anew fits what is not."""
    text = (SOURCE / file).read_text()
    harmless = Mutant("harmless", "none", file, text, f"{text}\n", "table_commits", 3)
    test = "tests/unit/catalog/test_rules_of_commits.py"
    assert not workshop.hunt(harmless).caught
    assert not workshop.hunt(replace(harmless, scenario="", test=test)).caught


def test_there_are_planted_bugs() -> None:
    assert len(MUTANTS) >= 15


def test_a_mutant_whose_text_is_gone_is_an_error(workshop: Workshop) -> None:
    stale = Mutant("stale", "none", "arco/storage/cas.py", "no such text", "", "cas_counter", 1)
    with pytest.raises(InvalidInput, match="found 0 times"):
        workshop.hunt(stale)


def test_a_mutant_that_does_not_run_is_an_error(workshop: Workshop) -> None:
    """A test that fails because the copy cannot be imported has noticed nothing."""
    test = "tests/unit/catalog/test_rules_of_commits.py::test_rule_c2_a_commit_does_not_follow_a_table_to_another_name"
    broken = Mutant("broken", "none", "arco/catalog/commits.py", "class Commits(", "class Commits((", test=test)
    with pytest.raises(InvalidInput, match="does not run"):
        workshop.hunt(broken)
