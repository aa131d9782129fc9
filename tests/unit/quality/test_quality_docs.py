"""The tables in the documents are the tables in the code. When one differs, paste what the failing test shows."""

import re
from dataclasses import fields
from pathlib import Path

from arco.quality.checks import Level, Severity
from arco.quality.compatibility import RULES, ChangeKind, Compatibility, refusal_of
from arco.quality.gates import EFFECTS, POLICIES, Action
from arco.quality.kinds import KINDS, NotNull, ValueCheck

DOCS = Path(__file__).resolve().parents[3] / "docs"


def printed(page: str, part: str) -> list[str]:
    found = re.search(rf"<!-- {part} -->\n(.*?)<!-- /{part} -->", (DOCS / page).read_text(), re.DOTALL)
    assert found, f"{page} has no part {part}"
    return found[1].splitlines()


def table(*rows: tuple[str, ...]) -> list[str]:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|" + "---|" * len(rows[0]), *rest]


def test_the_kinds_of_checks():
    def null(kind):
        return "fails, unless `allow_null`" if issubclass(kind, ValueCheck) else "fails" if kind is NotNull else "–"

    rows = [
        (f"`{kind.kind}`", f"`{kind.__name__}`", kind.level.value, null(kind), "yes" if kind.level is Level.ROW else "no")
        for kind in KINDS
    ]
    assert printed("checks.md", "kinds") == table(
        ("kind", "class", "level", "a NULL value", "rows can be quarantined"), *rows
    )
    assert all("allow_null" in {each.name for each in fields(kind)} for kind in KINDS if issubclass(kind, ValueCheck))


def test_the_policies():
    rows = [(f"`{name}`", *(policy.action(severity).value for severity in Severity)) for name, policy in POLICIES.items()]
    assert printed("checks.md", "policies") == table(("policy", *(severity.value for severity in Severity)), *rows)


def test_the_effects():
    rows = [
        (
            f"`{action.value}`",
            "yes" if EFFECTS[action].main_moves else "no",
            "branch" if EFFECTS[action].kept_on_branch else "–",
            EFFECTS[action].task.value,
            EFFECTS[action].downstream.value,
        )
        for action in Action
    ]
    assert printed("checks.md", "effects") == table(
        ("action", "main moves", "output kept", "task", "downstream in this run"), *rows
    )


def test_the_compatibility_table():
    def cell(kind, mode):
        return "allowed" if refusal_of(kind, mode) is None else "refused"

    rows = [
        (kind.value, *(cell(kind, mode) for mode in Compatibility), "yes" if RULES[kind].in_place else "no")
        for kind in ChangeKind
    ]
    assert printed("compatibility.md", "rules") == table(
        ("change", *(mode.value for mode in Compatibility), "in place"), *rows
    )


def test_the_reasons_and_the_ways_out():
    rows = [
        (kind.value, rule.backward or "–", rule.forward or "–", rule.way_out)
        for kind, rule in RULES.items()
        if rule.backward or rule.forward
    ]
    assert printed("compatibility.md", "reasons") == table(
        ("change", "backward refuses", "forward refuses", "the way out"), *rows
    )
