"""What happens next in a run: pure functions of its state, the plan and the time.

Everything here may be decided many times: an entry counts only if its slot was won, and after a lost one the same question is
asked of the newer state. What must never enter: waiting, the store, and anything that is remembered between two decisions.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from arco.kernel.limits import RUN_TIMEOUT_S_MAX
from arco.ledger.failure_kinds import Category
from arco.ledger.run_entries import (
    AnyEntry,
    Failure,
    OutputStaged,
    RunCancelRequested,
    RunFinished,
    TaskBlocked,
    TaskCancelled,
    TaskClaimed,
    TaskDispatched,
    TaskFailed,
    TaskPublished,
    TaskQuarantined,
    TaskRetried,
    TaskSkipped,
    TaskStarted,
)
from arco.ledger.run_state import ACTIVE, ENDED, LOST_LEASE, RunState, TaskState, TaskStatus, stops_the_run
from arco.quality.gates import EFFECTS, Action, TaskEnd
from arco.servo.schedule.envelopes import Signer
from arco.servo.schedule.executor import TaskPolicy
from arco.servo.schedule.pools import Need
from arco.servo.sdk.definitions import Retry

FOLLOWING_ENTRIES_MAX = 5_000
"""How many entries follow in one object: a plan of a hundred thousand tasks is cancelled in several."""

LOST_LEASES_MAX = 10
"""How many workers a task may outlive before it is taken to be what kills them."""


HANDED_OUT_AHEAD = 2
"""For each task that may be under way so many are handed out: whoever ends one finds the next signed."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims, for how long it may be silent, and how many tasks it may have at once.

    `may`: which of them it may have, beside that. `hands_out`: with what it signs tasks for others, if it does. `needs`: what
    tasks need of pools.
    """

    worker: str
    lease_s: float
    slots: int
    may: Callable[[str, TaskState], bool] | None = None
    hands_out: Signer | None = None
    needs: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)


def follow_up(state: RunState, claimant: Claimant, now_ms: int) -> list[AnyEntry]:
    """What follows from the state by itself, as much of it as fits; the entries are applied to the state as they are made."""
    made: list[AnyEntry] = []

    def add(*entries: AnyEntry) -> None:
        for entry in entries:
            state.apply(entry, now_ms)
            made.append(entry)

    if state.is_finished or state.run.created is None:
        return made
    if _is_overdue(state, now_ms):
        limit = f"the run's time limit of {state.run.created.timeout_s:g} s has passed"
        add(RunCancelRequested(who="arco", reason=limit, timed_out=True))
    while state.doomed and len(made) < FOLLOWING_ENTRIES_MAX:
        task, because = next(iter(state.doomed.items()))
        add(TaskSkipped(task=task, because=because))
    if state.run.published:
        for one in _staged(state)[: FOLLOWING_ENTRIES_MAX - len(made)]:
            add(landed_entry(one, snapshot_id=state.task(one.task).snapshot_id))
    elif state.run.stopping is not None:
        # What is staged waits until it is certain that it is not published (PROTOCOLS P2).
        kept = ENDED | ACTIVE | ({TaskStatus.STAGED} if state.run.undecided is not None else set())
        waiting = (one for one, its in state.tasks.items() if its.status not in kept)
        for task in list(islice(waiting, FOLLOWING_ENTRIES_MAX - len(made))):
            add(TaskCancelled(task=task, attempt=state.task(task).attempt, reason=state.run.stopping))
    else:
        add(*_handed_out(state, claimant, now_ms))
        add(*_claimed(state, claimant, now_ms))
    if not state.open_tasks:
        add(RunFinished(status=state.final_status()))
    return made


def _staged(state: RunState) -> list[OutputStaged]:
    """What an atomic run has published with all of it, and not yet task by task."""
    return [its.staged for its in state.tasks.values() if its.status is TaskStatus.STAGED and its.staged is not None]


def _handed_out(state: RunState, claimant: Claimant, now_ms: int) -> list[AnyEntry]:
    signer = claimant.hands_out
    if signer is None or state.run.paused is not None:
        return []
    numbered = [(task, state.task(task).attempt + 1) for task in _to_hand_out(state, signer, claimant.needs, now_ms)]
    return [
        TaskDispatched(task=task, attempt=number, envelope=signer.sign(task, number, now_ms)) for task, number in numbered
    ]


def _claimed(state: RunState, claimant: Claimant, now_ms: int) -> list[AnyEntry]:
    made: list[AnyEntry] = []
    for task in _to_claim(state, claimant, now_ms):
        number = state.task(task).attempt + 1
        made.append(TaskClaimed(task=task, attempt=number, worker=claimant.worker, lease_s=claimant.lease_s))
        made.append(TaskStarted(task=task, attempt=number))
    return made


def _to_claim(state: RunState, claimant: Claimant, now_ms: int) -> list[str]:
    created = state.run.created
    if state.run.paused is not None:
        return []
    mine = sum(state.tasks[task].worker == claimant.worker for task in state.active)
    room = min(claimant.slots - mine, (created.max_parallelism if created else 0) - len(state.active))
    may = claimant.may
    if room <= 0 or may is None:
        return state.to_claim(room, now_ms) if room > 0 else []
    return state.to_claim(room, now_ms, lambda task: may(task, state.tasks[task]))


def _to_hand_out(state: RunState, signer: Signer, needs: Mapping[str, tuple[Need, ...]], now_ms: int) -> list[str]:
    """What is next and has no envelope that a worker would take: none, one of an attempt before, or one that expires.

    Tasks that need the same of pools are counted apart from all others: they may wait for it while others could run.
    """
    created = state.run.created
    room = HANDED_OUT_AHEAD * (created.max_parallelism if created else 0)
    alike: Counter[tuple[Need, ...]] = Counter()

    def is_next(task: str) -> bool:
        alike[needs.get(task, ())] += 1
        return alike[needs.get(task, ())] <= room

    def is_missing(task: str) -> bool:
        its = state.tasks[task]
        return signer.refusal(its.envelope, task, its.attempt + 1, now_ms) is not None

    ahead = state.to_claim(len(state.tasks), now_ms, is_next) if needs else state.to_claim(room, now_ms)
    return [task for task in ahead if is_missing(task)]


def _is_overdue(state: RunState, now_ms: int) -> bool:
    deadline_ms = run_deadline_ms(state)
    return deadline_ms is not None and now_ms >= deadline_ms and state.run.cancel is None and bool(state.open_tasks)


def run_deadline_ms(state: RunState) -> int | None:
    """When a run is out of time. A log may say anything: a limit that no run may have is the longest that one may."""
    created = state.run.created
    if created is None or created.timeout_s is None:
        return None
    return state.run.created_ms + round(min(created.timeout_s, RUN_TIMEOUT_S_MAX) * 1000)


def landed_entry(
    staged: OutputStaged, *, snapshot_id: int | None = None, adopted: bool = False
) -> TaskPublished | TaskBlocked | TaskQuarantined | TaskFailed:
    """How a task ends whose output landed: as its gate decided."""
    found = snapshot_id
    if found is None and staged.publish is not None:
        found = staged.publish.snapshot_id
    task, attempt, made = staged.task, staged.attempt, staged.materialization_id
    reason = _reason(staged)
    match EFFECTS[Action(staged.action)].task:
        case TaskEnd.SUCCEEDED:
            return TaskPublished(task=task, attempt=attempt, materialization_id=made, snapshot_id=found, adopted=adopted)
        case TaskEnd.BLOCKED:
            return TaskBlocked(task=task, attempt=attempt, materialization_id=made, snapshot_id=found, reason=reason)
        case TaskEnd.QUARANTINED:
            return TaskQuarantined(task=task, attempt=attempt, materialization_id=made, snapshot_id=found, reason=reason)
        case TaskEnd.FAILED:
            hint = f"the output is kept on a branch of the table: arco quarantine show {made}"
            failure = Failure(kind=Category.DATA_QUALITY.value, message=reason, hint=hint)
            return TaskFailed(
                task=task,
                attempt=attempt,
                failure=failure,
                stops_run=stops_the_run(staged.action),
                materialization_id=made,
            )


def _reason(staged: OutputStaged) -> str:
    reasons = staged.decision.get("reasons") or []
    named = [str(one.get("check")) for one in reasons if isinstance(one, dict)]
    return f"checks failed: {', '.join(named)}" if named else f"the gate decided {staged.action}"


def failed_entry(
    task: str, state: TaskState, failure: Failure, policy: TaskPolicy, now_ms: int, jitter: float
) -> TaskFailed | TaskRetried:
    """Another attempt if the failure may pass by itself and there are attempts left; otherwise the end."""
    if failure.kind == LOST_LEASE:
        again, pause_s = state.lost_leases < LOST_LEASES_MAX, 0.0
    else:
        again = failure.transient and state.failures < policy.retry.attempts
        pause_s = pause_before(policy.retry, state.failures + 1, jitter)
    if not again:
        return TaskFailed(task=task, attempt=state.attempt, failure=failure)
    not_before_ms = now_ms + round(pause_s * 1000)
    return TaskRetried(task=task, attempt=state.attempt, failure=failure, not_before_ms=not_before_ms)


def pause_before(retry: Retry, failures: int, jitter: float) -> float:
    """Twice as long each time, up to the greatest pause; shortened at random so that tasks do not come back together."""
    longest: float = min(retry.pause_s_max, retry.pause_s * (1 << min(failures - 1, 30)))
    return longest * (0.5 + jitter / 2)
