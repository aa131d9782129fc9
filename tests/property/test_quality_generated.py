"""Gates and compatibility over generated results and schemas, and fingerprints across processes."""

import os
import subprocess
import sys
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from arco.quality.checks import Severity
from arco.quality.compatibility import ChangeKind, Compatibility, changes, verdict
from arco.quality.gates import EFFECTS, Action, GatingPolicy, decide
from arco.quality.results import CheckResult, total
from arco.quality.schemas import Column, Schema

promise = settings(max_examples=300)

# --- gates

policies = st.builds(GatingPolicy, st.just("own"), *(st.sampled_from(Action) for _ in Severity))


@st.composite
def results(draw):
    failed = draw(st.integers(0, 5))
    passed = draw(st.just(True) if failed == 0 else st.booleans())
    return CheckResult(
        check=draw(st.sampled_from(["a", "b", "c"])),
        kind="sql",
        severity=draw(st.sampled_from(Severity)),
        passed=passed,
        message=draw(st.sampled_from(["", "x"])),
        failed_rows=failed,
        total_rows=10,
        quarantined_rows=draw(st.integers(0, failed)),
    )


many = st.lists(results(), max_size=6)


@promise
@given(many, policies, results())
def test_one_more_result_never_weakens_the_action(found, policy, more):
    before, after = decide(found, policy), decide([*found, more], policy)
    assert after.action >= before.action
    assert EFFECTS[after.action].main_moves <= EFFECTS[before.action].main_moves


@promise
@given(many.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))), policies)
def test_the_order_of_results_does_not_matter(both, policy):
    one, other = both
    assert decide(one, policy) == decide(other, policy)


@promise
@given(many, policies)
def test_a_decision_is_the_strongest_of_its_reasons_and_has_one_for_each_failure(found, policy):
    decision = decide(found, policy)
    assert len(decision.reasons) == sum(not result.passed for result in found)
    assert decision.action is max((reason.action for reason in decision.reasons), default=Action.CONTINUE)


@promise
@given(many, policies)
def test_failed_rows_that_were_not_set_aside_are_never_let_off(found, policy):
    asked = [policy.action(each.severity) for each in found if not each.passed and each.quarantined_rows < each.failed_rows]
    assert decide(found, policy).action >= max(asked, default=Action.CONTINUE)


@promise
@given(results())
def test_a_result_survives_its_document(result):
    assert CheckResult.from_document(result.document()) == result


@promise
@given(st.lists(results(), min_size=1, max_size=5), policies)
def test_a_total_is_gated_at_least_as_strictly_as_its_ranges_where_no_row_was_set_aside(ranges, policy):
    same = [replace(each, check="a", severity=Severity.ERROR, quarantined_rows=0) for each in ranges]
    assert decide([total(same)], policy).action is decide(same, policy).action


# --- compatibility

leaf_types = st.sampled_from(
    ["int", "long", "float", "double", "string", "date", "timestamp", "decimal(9,2)", "decimal(18,2)"]
)


@st.composite
def schemas(draw):
    """Small schemas over the same few ids, so that two of them share columns; some columns lie in a struct."""
    columns = []
    for key in draw(st.permutations(range(1, 6)))[: draw(st.integers(1, 5))]:
        facts = {"required": draw(st.booleans()), "default": draw(st.sampled_from([None, None, 0, 1]))}
        name = f"{draw(st.sampled_from(['a', 'b']))}{key}"
        if draw(st.booleans()):
            columns.append(Column(key, (name,), draw(leaf_types), **facts))
            continue
        columns.append(Column(key, (name,), "struct", facts["required"]))
        for inner in draw(st.permutations(range(10 * key, 10 * key + 3)))[: draw(st.integers(0, 3))]:
            inside = {"required": draw(st.booleans()), "parent": key}
            columns.append(Column(inner, (name, f"{draw(st.sampled_from(['x', 'y']))}{inner}"), draw(leaf_types), **inside))
    return Schema(tuple(columns))


pairs = st.tuples(schemas(), schemas())


@promise
@given(pairs, st.sampled_from([2, 3]))
def test_full_allows_exactly_what_backward_and_forward_allow(pair, format_version):
    allowed = {mode: verdict(*pair, mode, format_version=format_version).allowed for mode in Compatibility}
    assert allowed[Compatibility.FULL] == (allowed[Compatibility.BACKWARD] and allowed[Compatibility.FORWARD])
    assert allowed[Compatibility.NONE]


@promise
@given(pairs)
def test_full_means_that_no_old_column_is_missing_or_of_another_type(pair):
    before, after = pair
    if not verdict(before, after, Compatibility.FULL).allowed:
        return
    new = after.by_id()
    for column in before.columns:
        there = new[column.id]
        assert (there.type, there.parent, there.required) == (column.type, column.parent, column.required)


@promise
@given(pairs)
def test_nothing_has_changed_only_between_equal_schemas(pair):
    before, after = pair
    assert changes(before, before) == ()
    assert (changes(before, after) == ()) is (before == after)


OPPOSITE = {
    ChangeKind.RELAX: ChangeKind.TIGHTEN,
    ChangeKind.TIGHTEN: ChangeKind.RELAX,
    ChangeKind.RENAME: ChangeKind.RENAME,
    ChangeKind.REDEFAULT: ChangeKind.REDEFAULT,
}


@promise
@given(pairs)
def test_changes_of_a_column_are_undone_by_their_opposites(pair):
    def found(one, other, kind):
        return {where_id[change.column] for change in changes(one, other) if change.kind is kind}

    before, after = pair
    for kind, opposite in OPPOSITE.items():
        where_id = {column.full_name: column.id for column in after.columns}
        there = found(before, after, kind)
        where_id = {column.full_name: column.id for column in before.columns}
        assert found(after, before, opposite) == there


# --- fingerprints

PROGRAM = """
from datetime import date
from arco.quality.builtin import *
checks = [
    accepted_values("status", {"new", "paid", "sent", "lost", "late"}),
    accepted_values("day", frozenset({date(2025, 1, 1), date(2025, 1, 2)})),
    unique("a", "b"), row_count(min=1, max=9), matches("m", "[a-z]+"), foreign_key(["x", "y"], to="other"),
    fresh("at", within="6h"), schema_match({"b": "long not null", "a": "string"}), sql_check("s", "a > 0"),
    column_check(duration_s, name="c"), function_check(duration_s),
]
print(*(check.fingerprint for check in checks), sep="\\n")
"""


def test_fingerprints_are_the_same_in_every_process():
    def run(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout

    first, *others = (run(seed) for seed in ("0", "1", "2"))
    assert len(set(first.split())) == 11
    assert all(other == first for other in others)
