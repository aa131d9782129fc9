"""The protocols hold in their models, and every guard is needed. The large explorations are `make spec`."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from specs import collector
from specs.__main__ import report
from specs.cases import AGAIN, ALL, EVERYBODY, MEETING, SHORT, TWICE, Row
from specs.explorer import Shared, explore
from specs.transaction_world import ACTIONS, GUARDS, INVARIANTS, Case
from specs.transactions import Transactions

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "specs.md"


@pytest.mark.parametrize("row", [row for row in SHORT if not row.without], ids=lambda row: row.what)
def test_a_model_holds_with_all_its_guards(row: Row) -> None:
    result = row.run()
    assert result.broken == "", "\n".join(result.trace)
    assert result.whole


@pytest.mark.parametrize("row", [row for row in SHORT if row.without], ids=lambda row: row.without)
def test_a_model_fails_without_one_of_its_guards(row: Row) -> None:
    assert row.run().broken


def test_every_guard_is_removed_once() -> None:
    removed = [row.without for row in ALL if row.without]
    assert sorted(removed) == sorted([*GUARDS, *collector.GUARDS])


def test_actions_are_the_places_where_a_transaction_may_die() -> None:
    sources = [path.read_text() for room in ("catalog", "txn") for path in (ROOT / "src" / "arco" / room).glob("*.py")]
    points = {point for source in sources for point in re.findall(r'\breach\("(txn\.[^"]+)"\)', source)}
    assert points == set(ACTIONS)


def test_every_action_is_taken() -> None:
    taken: set[str] = set()

    class Listening(Transactions):
        def steps(self, role, shared, local):
            for step in super().steps(role, shared, local):
                taken.update(re.findall(r"\btxn\.\w+", step.action))
                yield step

    for case in (replace(TWICE, receipts=True, others=EVERYBODY), Case(seats=1, creates=True)):
        assert explore(Listening(case)).broken == ""
    assert taken == set(ACTIONS)


def test_what_was_sent_back_commits_by_its_next_attempt() -> None:
    for case, attempts in ((AGAIN, {1, 2}), (replace(TWICE, attempts=2), {1, 2, 3, 4})):
        model = Transactions(replace(case, others=("reconciler",)))
        records = {shared[case.tables] for shared in explore(model).reached} - {None}
        assert {record[1] for record in records if record[0] == "C"} == attempts
        assert {record[1] for record in records if record[0] == "W"} == attempts


def test_a_guard_that_guards_nothing_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    holds = next(row for row in SHORT if not row.without)
    assert report([holds]) == 0
    assert report([replace(holds, without="exact_entry")]) == 1
    assert "nothing fails without this guard" in capsys.readouterr().out


def test_a_model_that_does_not_hold_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    fails = next(row for row in SHORT if row.without == "exact_entry")
    assert report([fails]) == 0
    assert report([replace(fails, without="")]) == 1
    assert "13. transaction 1#1: txn.prepared pointer 1, attempt 1" in capsys.readouterr().out


class Unexchanged(Transactions):
    """The same model, in which no table is like another."""

    def exchanges(self) -> tuple[tuple[int, ...], ...]:
        return ()


def _with_exchanges(model: Transactions, reached: frozenset[Shared]) -> frozenset[Shared]:
    return reached | {model.exchanged(order, shared) for order in Transactions.exchanges(model) for shared in reached}


EARLY = replace(TWICE, early=True, others=("writer",))


@pytest.mark.parametrize(
    "case", [replace(TWICE, others=("reconciler",)), EARLY, MEETING], ids=["one twice", "early", "two"]
)
def test_an_exchange_of_tables_hides_nothing(case: Case) -> None:
    some, all_of_them = Transactions(case), Unexchanged(case)
    reached = _with_exchanges(some, explore(some, replies_lost_max=1).reached)
    assert reached == explore(all_of_them, replies_lost_max=1).reached


@pytest.mark.parametrize("case", [replace(TWICE, others=EVERYBODY), EARLY, MEETING], ids=["one twice", "early", "two"])
def test_fused_reads_hide_nothing(case: Case) -> None:
    model = Transactions(case)
    reached = [_with_exchanges(model, explore(Transactions(case), fused=fused).reached) for fused in (True, False)]
    assert reached[0] == reached[1]


def _guards(page: str) -> list[tuple[str, str, str]]:
    """The tables of guards: a guard, its rule, and the planted bug that takes it away in the code."""
    return re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", page.partition("## Guards")[2], re.MULTILINE)


def test_every_guard_of_a_model_is_planted_in_the_code() -> None:
    planted = {guard: bug.strip("`") for guard, _, bug in _guards(PAGE.read_text())}
    there = {path.stem for path in (ROOT / "tests" / "simulation" / "mutants").glob("*.toml")}
    assert set(planted.values()) <= there
    assert len(planted) == len(set(planted.values())), "each has its own"


def test_the_page_lists_every_guard_and_every_invariant() -> None:
    page = PAGE.read_text()
    assert {guard: rule for guard, rule, _ in _guards(page)} == {**GUARDS, **collector.GUARDS}
    assert dict(re.findall(r"^\| ([A-IKRS]) \| (.+?) \|$", page, re.MULTILINE)) == INVARIANTS


def _places() -> dict[str, set[str]]:
    """Crash points in the code, with the files that reach them."""
    found: dict[str, set[str]] = {}
    for path in (path for room in ("catalog", "txn", "upkeep") for path in (ROOT / "src" / "arco" / room).glob("*.py")):
        for point in re.findall(r'\breach\("([^"]+)"\)', path.read_text()):
            found.setdefault(point, set()).add(f"{path.parent.name}/{path.name}")
    return found


def test_the_page_has_one_table_of_actions_and_crash_points() -> None:
    rows = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    modelled = {action for action, models, _ in rows if not models.startswith("none")}
    assert modelled == {*ACTIONS, *collector.ACTIONS}
    places = _places()
    assert {action: set(re.findall(r"`([^`]+)`", files)) for action, _, files in rows} == {
        point: files for point, files in places.items() if point in modelled or point.startswith(("txn.", "upkeep."))
    }


def test_every_action_of_the_collectors_is_taken_and_no_other_is_named() -> None:
    taken: set[str] = set()
    for scenario in collector.SCENARIOS:

        class Listening(scenario):  # type: ignore[misc,valid-type]
            def steps(self, role, shared, local):
                for step in super().steps(role, shared, local):
                    taken.update(re.findall(r"\b[a-z]+\.[a-z_]+\b", step.action))
                    yield step

        assert explore(Listening(), replies_lost_max=1).broken == ""
    assert taken == set(collector.ACTIONS)
