"""Each planted bug removes one guard, and each must be caught. A survivor means that nothing tests that guard."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput
from arco_sim.mutants import Mutant, load_all
from arco_sim.workshop import Workshop

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
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


@pytest.mark.parametrize("file", ["arco/kernel/errors.py", "arco/storage/cas.py", "arco/catalog/commits.py"])
def test_a_change_that_changes_nothing_is_not_noticed(workshop: Workshop, file: str) -> None:
    """What is imported anew fits what is not."""
    text = (SOURCE / file).read_text()
    harmless = Mutant("harmless", "none", file, text, f"{text}\n", "table_commits", 3)
    test = "tests/unit/catalog/test_rules_of_commits.py"
    assert not workshop.hunt(harmless).caught
    assert not workshop.hunt(replace(harmless, scenario="", test=test)).caught


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
