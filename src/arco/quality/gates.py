"""What is done about failed checks: severity and policy give an action, and an action has fixed effects.

`decide` is pure: the same results and policy give the same decision, in any order. `EFFECTS` is the one table that the
executor follows and the documentation prints. What must never enter: running anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from arco.kernel.canonical_json import JsonValue
from arco.kernel.errors import InvalidInput
from arco.quality.checks import Ranked, Severity
from arco.quality.results import CheckResult


class Action(Ranked):
    """What happens to an output, from weakest to strongest.

    Blocking is stronger than quarantine: downstream of a quarantined output runs on the last good version, downstream of a
    blocked one does not run. Where one check asks for each, nothing must run that a check wanted stopped.
    """

    CONTINUE = "continue"
    WARN = "warn"
    QUARANTINE = "quarantine"
    BLOCK_DOWNSTREAM = "block_downstream"
    FAIL_TASK = "fail_task"
    FAIL_RUN = "fail_run"


class TaskEnd(StrEnum):
    """The state in which a gate leaves a task."""

    SUCCEEDED = "succeeded"
    QUARANTINED = "quarantined"
    BLOCKED = "blocked"
    FAILED = "failed"


class Downstream(StrEnum):
    """What happens to the tasks of this run that read the output."""

    RUNS = "runs"
    RUNS_ON_LAST_GOOD = "runs on the last good version"
    SKIPPED = "skipped"
    RUN_CANCELLED = "rest of the run cancelled"


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action does. An output that does not move main is kept on a branch of the table."""

    main_moves: bool
    kept_on_branch: bool
    task: TaskEnd
    downstream: Downstream


_PUBLISHED = Effect(main_moves=True, kept_on_branch=False, task=TaskEnd.SUCCEEDED, downstream=Downstream.RUNS)


def _held(task: TaskEnd, downstream: Downstream) -> Effect:
    return Effect(main_moves=False, kept_on_branch=True, task=task, downstream=downstream)


EFFECTS: dict[Action, Effect] = {
    Action.CONTINUE: _PUBLISHED,
    Action.WARN: _PUBLISHED,
    Action.QUARANTINE: _held(TaskEnd.QUARANTINED, Downstream.RUNS_ON_LAST_GOOD),
    Action.BLOCK_DOWNSTREAM: _held(TaskEnd.BLOCKED, Downstream.SKIPPED),
    Action.FAIL_TASK: _held(TaskEnd.FAILED, Downstream.SKIPPED),
    Action.FAIL_RUN: _held(TaskEnd.FAILED, Downstream.RUN_CANCELLED),
}


@dataclass(frozen=True, slots=True)
class GatingPolicy:
    """One action for each severity. What an own policy does not name is as in `strict`."""

    name: str
    info: Action = Action.CONTINUE
    warning: Action = Action.WARN
    error: Action = Action.BLOCK_DOWNSTREAM
    critical: Action = Action.FAIL_RUN

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidInput("a gating policy needs a name")
        for severity in Severity:
            word = getattr(self, severity.value)
            object.__setattr__(self, severity.value, Action.of(word))

    def action(self, severity: Severity) -> Action:
        match severity:
            case Severity.INFO:
                return self.info
            case Severity.WARNING:
                return self.warning
            case Severity.ERROR:
                return self.error
            case Severity.CRITICAL:
                return self.critical

    def describe(self) -> dict[str, JsonValue]:
        """The policy as a document; `GatingPolicy(**document)` is the policy again."""
        return {"name": self.name, **{severity.value: self.action(severity).value for severity in Severity}}


STRICT = GatingPolicy("strict")
LENIENT = GatingPolicy("lenient", Action.CONTINUE, Action.CONTINUE, Action.WARN, Action.BLOCK_DOWNSTREAM)
QUARANTINE = GatingPolicy("quarantine", Action.CONTINUE, Action.CONTINUE, Action.QUARANTINE, Action.QUARANTINE)
POLICIES: dict[str, GatingPolicy] = {policy.name: policy for policy in (STRICT, LENIENT, QUARANTINE)}


def policy(word: GatingPolicy | str) -> GatingPolicy:
    """A policy, or one of the built-in ones by name."""
    if isinstance(word, GatingPolicy):
        return word
    if word not in POLICIES:
        raise InvalidInput(
            f"{word!r} is not a gating policy", hint=f"one of {', '.join(POLICIES)}, or a GatingPolicy of your own"
        )
    return POLICIES[word]


@dataclass(frozen=True, slots=True)
class Reason:
    """One failed check, and what it asked for."""

    check: str
    severity: Severity
    action: Action
    message: str

    def __str__(self) -> str:
        return f"{self.check} ({self.severity.value}) → {self.action.value}: {self.message}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The strongest action that any failed check asked for, and every failed check, strongest first."""

    action: Action
    reasons: tuple[Reason, ...]
    policy: str

    @property
    def effect(self) -> Effect:
        return EFFECTS[self.action]

    def describe(self) -> dict[str, JsonValue]:
        return {
            "action": self.action.value,
            "policy": self.policy,
            "reasons": [
                {
                    "check": reason.check,
                    "severity": reason.severity.value,
                    "action": reason.action.value,
                    "message": reason.message,
                }
                for reason in self.reasons
            ],
        }


def decide(results: Iterable[CheckResult], policy: GatingPolicy) -> Decision:
    """What to do, given everything that was measured. Nothing measured is nothing wrong: see `results.complete`."""
    reasons = [_reason(result, policy) for result in results if not result.passed]
    order = list(Action)
    reasons.sort(key=lambda reason: (-order.index(reason.action), reason.check, reason.severity.value, reason.message))
    action = max((reason.action for reason in reasons), default=Action.CONTINUE)
    return Decision(action, tuple(reasons), policy.name)


def _reason(result: CheckResult, policy: GatingPolicy) -> Reason:
    asked = policy.action(result.severity)
    # Its bad rows are not in what would be published, so there is nothing left to hold back.
    action = min(asked, Action.WARN) if result.rows_set_aside else asked
    return Reason(result.check, result.severity, action, result.message)


EXIT_OK, EXIT_FAILED, EXIT_HELD_BACK = 0, 1, 3
_EXITS = {
    "succeeded": EXIT_OK,
    "blocked": EXIT_HELD_BACK,
    "quarantined": EXIT_HELD_BACK,
    "skipped": EXIT_HELD_BACK,
    "failed": EXIT_FAILED,
    "cancelled": EXIT_FAILED,
}


def exit_code(task_states: Iterable[str]) -> int:
    """Of a run that is over: 0 all published, 3 finished with something held back, 1 a failure (which beats 3)."""
    codes = set()
    for state in task_states:
        if state not in _EXITS:
            raise InvalidInput(f"a task that is {state} is not over", hint="ask when the run has finished")
        codes.add(_EXITS[state])
    return next((code for code in (EXIT_FAILED, EXIT_HELD_BACK) if code in codes), EXIT_OK)
