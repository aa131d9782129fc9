"""The policy of what is kept: its classes by age, and what people may write of it."""

import re
from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import AS_OF_REACH_S
from arco.kernel.retention import Keep, Retention, Tier

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("days", "kept", "gone"),
    [
        (0, Tier.HOT, Tier.HOT),
        (89.9, Tier.HOT, Tier.HOT),
        (90, Tier.COLD, Tier.COLD),
        (364.9, Tier.COLD, Tier.COLD),
        (365, Tier.ARCHIVE, Tier.EXPIRED),
        (10_000, Tier.ARCHIVE, Tier.EXPIRED),
    ],
)
def test_what_grows_old_changes_its_class(days: float, kept: Tier, gone: Tier) -> None:
    assert Keep(90, 365, archive=True).tier(round(days * DAY_MS)) is kept
    assert Keep(90, 365).tier(round(days * DAY_MS)) is gone


def test_the_default_reaches_as_far_back_as_manifests_do() -> None:
    assert Retention().reach_s == AS_OF_REACH_S


def test_what_is_left_out_is_as_it_is_by_default() -> None:
    found = Retention.of({"events": {"hot_days": 30}, "snapshots": {"cold_days": 60}})
    assert found.events == Keep(30, 365, archive=True)
    assert found.reach_s == 60 * 86_400
    assert (found.audit, found.runs) == (Retention().audit, Retention().runs)
    assert Retention.of({}) == Retention()


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "not a table"),
        ({"event": {"hot_days": 1}}, "event"),
        ({"events": 90}, "events"),
        ({"events": {"days": 90}}, "days"),
        ({"events": {"hot_days": 0}}, "hot_days"),
        ({"events": {"hot_days": "90"}}, "hot_days"),
        ({"events": {"hot_days": 400}}, "cold before it is hot"),
    ],
)
def test_what_is_wrong_is_said(document: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Retention.of(document)


def test_each_domain_of_the_ledger_has_its_own() -> None:
    policy = Retention()
    assert policy.of_domain("audit").cold_days == 2555
    assert policy.of_domain("execution") == policy.of_domain("iceberg") == policy.events


def test_the_page_says_the_policy() -> None:
    page = (Path(__file__).parents[3] / "docs" / "state.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) days \| ([\d,]+) days \| (for ever)? ?\|$", page, re.MULTILINE)
    said = {kind: Keep(int(hot), int(cold.replace(",", "")), bool(ever)) for kind, hot, cold, ever in rows}
    assert said == {name: getattr(Retention(), name) for name in Retention.__struct_fields__}
