"""Gates: every cell of policy × severity, every effect, the order of actions, and exit codes."""

from itertools import pairwise, product

import pytest

from arco.kernel.errors import InvalidInput
from arco.quality.builtin import in_range, not_null
from arco.quality.checks import Severity
from arco.quality.gates import (
    EFFECTS,
    LENIENT,
    POLICIES,
    QUARANTINE,
    STRICT,
    Action,
    Downstream,
    GatingPolicy,
    TaskEnd,
    decide,
    exit_code,
    policy,
)
from arco.quality.results import judged_rows


def result(severity, *, failed=1, quarantined=False):
    check = in_range("a", min=0, severity=severity, quarantine_rows=quarantined)
    return judged_rows(check, failed_rows=failed, total_rows=10)


CELLS = {
    ("strict", "info"): "continue",
    ("strict", "warning"): "warn",
    ("strict", "error"): "block_downstream",
    ("strict", "critical"): "fail_run",
    ("lenient", "info"): "continue",
    ("lenient", "warning"): "continue",
    ("lenient", "error"): "warn",
    ("lenient", "critical"): "block_downstream",
    ("quarantine", "info"): "continue",
    ("quarantine", "warning"): "continue",
    ("quarantine", "error"): "quarantine",
    ("quarantine", "critical"): "quarantine",
}


@pytest.mark.parametrize(("named", "severity"), CELLS)
def test_every_cell_of_the_policies(named, severity):
    expected = Action(CELLS[named, severity])
    assert decide([result(severity)], POLICIES[named]).action is expected
    assert decide([result(severity, failed=0)], POLICIES[named]).action is Action.CONTINUE


def test_no_cell_is_left_out():
    assert set(CELLS) == {(named, severity.value) for named in POLICIES for severity in Severity}


@pytest.mark.parametrize(
    ("action", "main_moves", "kept", "task", "downstream"),
    [
        ("continue", True, False, "succeeded", "runs"),
        ("warn", True, False, "succeeded", "runs"),
        ("block_downstream", False, True, "blocked", "skipped"),
        ("quarantine", False, True, "quarantined", "runs on the last good version"),
        ("fail_task", False, True, "failed", "skipped"),
        ("fail_run", False, True, "failed", "rest of the run cancelled"),
    ],
)
def test_every_action_has_its_effects(action, main_moves, kept, task, downstream):
    effect = EFFECTS[Action(action)]
    assert (effect.main_moves, effect.kept_on_branch, effect.task.value, effect.downstream.value) == (
        main_moves,
        kept,
        task,
        downstream,
    )


def test_a_stronger_action_never_lets_more_through():
    ends, downs = list(TaskEnd), list(Downstream)
    effects = [(not EFFECTS[a].main_moves, ends.index(EFFECTS[a].task), downs.index(EFFECTS[a].downstream)) for a in Action]
    for weaker, stronger in pairwise(effects):
        assert all(one <= other for one, other in zip(weaker, stronger, strict=True))


def test_an_output_is_published_or_kept_and_never_both():
    assert all(effect.main_moves != effect.kept_on_branch for effect in EFFECTS.values())
    assert set(EFFECTS) == set(Action)


def test_a_block_wins_over_a_quarantine():
    own = GatingPolicy("own", error=Action.BLOCK_DOWNSTREAM, critical=Action.QUARANTINE)
    decision = decide([result("critical"), result("error")], own)
    assert decision.action is Action.BLOCK_DOWNSTREAM
    assert decision.effect.downstream is Downstream.SKIPPED


def test_a_decision_tells_every_failed_check_strongest_first():
    passed = judged_rows(not_null("b"), failed_rows=0, total_rows=10)
    decision = decide([result("warning"), passed, result("critical"), result("info")], STRICT)
    assert [str(reason) for reason in decision.reasons] == [
        "in_range(a) (critical) → fail_run: 1 of 10 rows failed: expected a >= 0",
        "in_range(a) (warning) → warn: 1 of 10 rows failed: expected a >= 0",
        "in_range(a) (info) → continue: 1 of 10 rows failed: expected a >= 0",
    ]
    assert decision.describe()["action"] == "fail_run"
    assert decision.describe()["policy"] == "strict"
    assert decision.describe()["reasons"][0]["check"] == "in_range(a)"


@pytest.mark.parametrize(("gate", "severity"), [*product((STRICT, LENIENT, QUARANTINE), Severity)])
def test_rows_that_were_set_aside_hold_nothing_back(gate, severity):
    decision = decide([result(severity, quarantined=True)], gate)
    assert decision.action is min(gate.action(severity), Action.WARN)
    assert len(decision.reasons) == 1


def test_no_failure_is_no_reason():
    assert decide([], STRICT).action is Action.CONTINUE
    assert decide([result("critical", failed=0)], STRICT).reasons == ()


def test_an_own_policy_names_what_differs_and_may_use_words():
    own = GatingPolicy("own", error="fail_task")
    assert [own.action(severity) for severity in Severity] == [
        Action.CONTINUE,
        Action.WARN,
        Action.FAIL_TASK,
        Action.FAIL_RUN,
    ]
    assert GatingPolicy(**own.describe()) == own
    assert policy(own) is own
    assert policy("lenient") is LENIENT


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: policy("loose"), "'loose' is not a gating policy"),
        (lambda: GatingPolicy("own", error="explode"), "'explode' is no action"),
        (lambda: GatingPolicy(" "), "needs a name"),
    ],
)
def test_a_policy_that_is_none_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([], 0),
        (["succeeded", "succeeded"], 0),
        (["succeeded", "quarantined"], 3),
        (["blocked", "skipped", "succeeded"], 3),
        (["skipped"], 3),
        (["failed"], 1),
        (["cancelled"], 1),
        (["blocked", "failed", "succeeded", "quarantined"], 1),
    ],
)
def test_exit_codes(states, code):
    assert exit_code(states) == code
    assert exit_code(iter(reversed(states))) == code


@pytest.mark.parametrize("state", ["pending", "ready", "queued", "dispatched", "running", "SUCCEEDED", ""])
def test_a_run_that_is_not_over_has_no_exit_code(state):
    with pytest.raises(InvalidInput, match="is not over"):
        exit_code(["succeeded", state])


def test_every_end_of_a_gate_has_an_exit_code():
    assert [exit_code([EFFECTS[action].task]) for action in Action] == [0, 0, 3, 3, 1, 1]
