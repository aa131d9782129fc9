"""What the files of planted bugs say, against the code and the pages that name them; `tests/simulation` plants them."""

import re
from pathlib import Path

from arco_sim.mutants import Mutant, load_all

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = load_all(ROOT / "tests" / "simulation" / "mutants")


def test_every_planted_bug_fits_the_code() -> None:
    """Its text is there, once. A change of the code that moves it is told here, long before the bug is planted."""
    counts = {mutant.name: (ROOT / "src" / mutant.file).read_text().count(mutant.find) for mutant in MUTANTS}
    assert len(counts) >= 15
    assert {name: count for name, count in counts.items() if count != 1} == {}


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
