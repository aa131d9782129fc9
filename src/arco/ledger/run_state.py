"""The state of a run: a pure function of its plan's outline and the entries of its log.

`TRANSITIONS` says from which state an entry takes a task to which; the conditions beside it say what else must hold. The same
function refuses an entry before it is written and decides whether a stored one counts, so the two can never disagree. A
stored entry that does not hold (above all one of a smaller attempt than the greatest seen) is ignored and remembered as
such. What must never enter: a clock, the store, and decisions about what to do next.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

import msgspec

from arco.kernel.errors import Conflict, Fenced, InvalidInput, Refresh
from arco.ledger.drafts import Draft
from arco.ledger.run_entries import (
    AnyEntry,
    AttemptEntry,
    Batch,
    EventsAppended,
    Failure,
    OnFailure,
    OutputStaged,
    PublishBegun,
    RunCancelRequested,
    RunCreated,
    RunFinished,
    RunPaused,
    RunPublished,
    RunResumed,
    RunStatus,
    RunWithheld,
    StagedCommit,
    TaskBlocked,
    TaskCancelled,
    TaskClaimed,
    TaskDispatched,
    TaskEntry,
    TaskEnvelope,
    TaskFailed,
    TaskPublished,
    TaskQuarantined,
    TaskRetried,
    TaskSkipped,
    TaskStaged,
    TaskStarted,
)
from arco.ledger.run_outline import Outline
from arco.ledger.trials import Trials
from arco.quality.gates import EFFECTS, Action, Downstream, TaskEnd

LOST_LEASE = "lost_lease"
"""The kind of failure of a worker that fell silent. It is counted apart: it says nothing about the task."""


class TaskStatus(StrEnum):
    PENDING = "pending"  # waits for tasks that it reads
    READY = "ready"  # may be claimed
    QUEUED = "queued"  # failed, and waits for its next attempt
    DISPATCHED = "dispatched"  # a worker has it
    RUNNING = "running"  # the worker has begun
    STAGED = "staged"  # done, in an atomic run that is not published yet
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    QUARANTINED = "quarantined"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


WAITING = frozenset({TaskStatus.READY, TaskStatus.QUEUED})
ACTIVE = frozenset({TaskStatus.DISPATCHED, TaskStatus.RUNNING})
ENDED = frozenset(TaskStatus) - WAITING - ACTIVE - {TaskStatus.PENDING, TaskStatus.STAGED}
MADE = frozenset({TaskStatus.SUCCEEDED, TaskStatus.STAGED})
"""What reads a task in one of these states reads what it made in this run."""

PASSABLE = MADE | {TaskStatus.QUARANTINED}
"""What reads a task in one of these states may run."""

TRANSITIONS: dict[type[TaskEntry], tuple[frozenset[TaskStatus], TaskStatus | None]] = {
    TaskDispatched: (WAITING, None),
    TaskClaimed: (WAITING, TaskStatus.DISPATCHED),
    TaskStarted: (frozenset({TaskStatus.DISPATCHED}), TaskStatus.RUNNING),
    OutputStaged: (frozenset({TaskStatus.RUNNING}), TaskStatus.RUNNING),
    TaskStaged: (frozenset({TaskStatus.RUNNING}), TaskStatus.STAGED),
    TaskPublished: (frozenset({TaskStatus.RUNNING, TaskStatus.STAGED}), TaskStatus.SUCCEEDED),
    TaskBlocked: (frozenset({TaskStatus.RUNNING}), TaskStatus.BLOCKED),
    TaskQuarantined: (frozenset({TaskStatus.RUNNING}), TaskStatus.QUARANTINED),
    TaskFailed: (ACTIVE, TaskStatus.FAILED),
    TaskRetried: (ACTIVE, TaskStatus.QUEUED),
    TaskCancelled: (ACTIVE | WAITING | {TaskStatus.PENDING, TaskStatus.STAGED}, TaskStatus.CANCELLED),
    TaskSkipped: (frozenset({TaskStatus.PENDING}), TaskStatus.SKIPPED),
}
"""The one table of states, None for one that stays as it is; `docs/formats/states.md` prints it."""

_ENDS = {
    TaskStaged: TaskEnd.SUCCEEDED,
    TaskPublished: TaskEnd.SUCCEEDED,
    TaskBlocked: TaskEnd.BLOCKED,
    TaskQuarantined: TaskEnd.QUARANTINED,
}


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says of one task. `failures` and `lost_leases` count earlier attempts."""

    status: TaskStatus
    attempt: int = 0
    worker: str | None = None
    claimed_ms: int = 0
    lease_s: float = 0.0
    started_ms: int | None = None
    ended_ms: int | None = None
    staged: OutputStaged | None = None
    snapshot_id: int | None = None
    materialization_id: str | None = None
    failure: Failure | None = None
    not_before_ms: int = 0
    failures: int = 0
    lost_leases: int = 0
    reason: str = ""
    envelope: TaskEnvelope | None = None


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says of the run as a whole. `stopping` is why nothing new may start, `paused` why nothing does for now.

    Of an atomic run: `publishing` is the transaction that was last begun, `published` and `withheld` what became of it.
    """

    status: RunStatus = RunStatus.PENDING
    created: RunCreated | None = None
    created_ms: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    cancel: RunCancelRequested | None = None
    stopping: str | None = None
    paused: RunPaused | None = None
    publishing: PublishBegun | None = None
    published: bool = False
    withheld: RunWithheld | None = None

    @property
    def is_atomic(self) -> bool:
        return self.created is not None and self.created.atomic

    @property
    def undecided(self) -> PublishBegun | None:
        """The transaction that may still land, or has landed without anybody knowing."""
        return None if self.published or self.withheld is not None else self.publishing


@dataclass(frozen=True, slots=True)
class Ignored:
    """A stored entry that does not count, and why."""

    sequence: int
    entry: AnyEntry
    reason: str


Table = tuple[tuple[str, ...], str]
K = TypeVar("K")
V = TypeVar("V")


class RunState(Trials):
    """The fold. Entries are applied one after the other; inside `trial` they are taken back at the end.

    `queued` is what waits for its next attempt, `active` what is under way, `doomed` what will be skipped and because of
    which task, `owed` the events that are not known to be in the ledger, by the entry that owes them. `staged_commits` are what
    an atomic run will do to each table, in order.
    """

    def __init__(self, outline: Outline) -> None:
        super().__init__()
        self.outline = outline
        self.sequence = 0
        self.ignored: list[Ignored] = []
        self.tasks: dict[str, TaskState] = {}
        self.queued: dict[str, None] = {}
        self.active: dict[str, None] = {}
        self.doomed: dict[str, str] = {}
        self.owed: dict[int, tuple[Draft, ...]] = {}
        self.staged_commits: dict[Table, tuple[StagedCommit, ...]] = {}
        self.readers: dict[str, list[str]] = {task: [] for task in outline.reads}
        self._facts: dict[str, RunFacts] = {"run": RunFacts()}
        self._waits_for: dict[str, int] = {}
        self._counts: dict[str, int] = {"open": len(outline.reads), "staged": 0, "failed": 0, "cancelled": 0}
        self._ready: list[tuple[int, str]] = []
        for task, reads in outline.reads.items():
            for upstream in reads:
                if upstream not in self.readers:
                    raise InvalidInput(f"task {task} reads {upstream}, which the plan does not have")
                self.readers[upstream].append(task)
            self._waits_for[task] = len(reads)
            self.tasks[task] = TaskState(status=TaskStatus.PENDING if reads else TaskStatus.READY)
            if not reads:
                insort(self._ready, (outline.ranks[task], task))

    # Asking

    @property
    def run(self) -> RunFacts:
        return self._facts["run"]

    @property
    def is_finished(self) -> bool:
        return self.run.ended_ms is not None

    @property
    def open_tasks(self) -> int:
        """How many tasks have not ended."""
        return self._counts["open"]

    @property
    def is_all_staged(self) -> bool:
        """Whether every task of an atomic run has done its work, and the run can be published."""
        return bool(self.tasks) and self._counts["staged"] == len(self.tasks)

    def to_claim(self, count: int, now_ms: int, fits: Callable[[str], bool] | None = None) -> list[str]:
        """The tasks that may be claimed now and fit, at most so many, in the order of their ranks."""
        again = [(self.outline.ranks[one], one) for one in self.queued if self.tasks[one].not_before_ms <= now_ms]
        if fits is None:
            return [task for _, task in sorted([*self._ready[:count], *again])[:count]]
        waiting = merge(self._ready, sorted(again))
        return list(islice((task for _, task in waiting if fits(task)), min(count, len(self.tasks))))

    @property
    def is_any_ready(self) -> bool:
        return bool(self._ready)

    def task(self, task: str) -> TaskState:
        found = self.tasks.get(task)
        if found is None:
            raise Conflict(f"the plan has no task {task}")
        return found

    def final_status(self) -> RunStatus:
        """How a run whose tasks have all ended, ends. What was held back by checks is no failure of the run."""
        cancel = self.run.cancel
        if self._counts["cancelled"] and cancel is not None:
            return RunStatus.FAILED if cancel.timed_out else RunStatus.CANCELLED
        failed = self._counts["failed"] or self.run.withheld is not None
        return RunStatus.FAILED if failed else RunStatus.SUCCEEDED

    # Applying

    def fold(self, batch: Batch) -> None:
        """Take in the next object of the log. What does not hold is ignored."""
        if batch.sequence != self.sequence + 1:
            raise InvalidInput(f"entry {batch.sequence} does not follow {self.sequence}")
        for entry in batch.entries:
            try:
                self.apply(entry, batch.at_ms, batch.sequence)
            except Refresh as error:
                self.ignored.append(Ignored(batch.sequence, entry, error.message))
        self.sequence = batch.sequence

    def apply(self, entry: AnyEntry, at_ms: int, sequence: int | None = None) -> None:
        """Apply one entry, or change nothing and raise: Fenced for an attempt that is over, Conflict for what does not follow."""
        number = self.sequence + 1 if sequence is None else sequence
        match entry:
            case RunCreated() | RunCancelRequested() | RunFinished() | EventsAppended():
                self._apply_to_run(entry, at_ms, number)
                owed = entry.events
            case PublishBegun() | RunPublished() | RunWithheld():
                self._apply_to_publish(entry)
                owed = entry.events
            case RunPaused() | RunResumed():
                self._apply_pause(entry)
                owed = entry.events
            case _:
                self._check_run_is_open()
                before = self.task(entry.task)
                self._check_task(entry, before)
                owed = self._apply_to_task(entry, before, at_ms)
        if owed:
            self._set(self.owed, number, (*self.owed.get(number, ()), *owed))

    def _apply_to_run(
        self, entry: RunCreated | RunCancelRequested | RunFinished | EventsAppended, at_ms: int, number: int
    ) -> None:
        run = self.run
        match entry:
            case RunCreated():
                if run.created is not None:
                    raise Conflict("the run was created before")
                self._set_run(created=entry, created_ms=at_ms)
            case RunCancelRequested():
                self._check_run_is_open()
                if run.cancel is not None:
                    raise Conflict("cancelling was asked for before")
                self._set_run(cancel=entry, stopping=run.stopping or entry.reason)
            case RunFinished():
                self._check_run_is_open()
                if self.open_tasks:
                    raise Conflict(f"{self.open_tasks} tasks have not ended")
                if entry.status is not self.final_status():
                    raise Conflict(f"the run ends as {self.final_status()}, not as {entry.status}")
                self._set_run(status=entry.status, ended_ms=at_ms)
            case EventsAppended():
                if run.created is None or entry.through > number:
                    raise Conflict(f"events through {entry.through} are not owed yet")
                for owing in [one for one in self.owed if one <= entry.through]:
                    self._drop(self.owed, owing)

    def _apply_to_publish(self, entry: PublishBegun | RunPublished | RunWithheld) -> None:
        """The one decision of an atomic run: begun when everything is staged, and settled before anything follows from it."""
        run = self.run
        self._check_run_is_open()
        begun = 0 if run.publishing is None else run.publishing.number
        if run.published or run.withheld is not None:
            raise Conflict("it was decided before whether the run is published")
        match entry:
            case PublishBegun():
                if not run.is_atomic or not self.is_all_staged:
                    raise Conflict("not everything that the run makes is staged")
                if run.stopping is not None:
                    raise Conflict(f"the run is stopping: {run.stopping}")
                if entry.number != begun + 1:
                    raise Conflict(f"publish {entry.number} does not follow {begun}")
                self._set_run(publishing=entry)
            case RunPublished() | RunWithheld() if not begun or entry.number != begun:
                raise Conflict(f"publish {entry.number} is not the one that was begun last ({begun})")
            case RunPublished():
                self._set_run(published=True)
            case RunWithheld():
                self._set_run(withheld=entry, stopping=run.stopping or entry.reason)

    def _apply_pause(self, entry: RunPaused | RunResumed) -> None:
        self._check_run_is_open()
        if self.run.stopping is not None:
            raise Conflict(f"the run is stopping: {self.run.stopping}")
        if isinstance(entry, RunPaused) == (self.run.paused is not None):
            raise Conflict("the run is paused" if self.run.paused is not None else "the run is not paused")
        self._set_run(paused=entry if isinstance(entry, RunPaused) else None)

    def _check_run_is_open(self) -> None:
        if self.run.created is None:
            raise Conflict("the run was not created yet")
        if self.is_finished:
            raise Fenced("the run has finished")

    # Tasks

    def _check_task(self, entry: TaskEntry, before: TaskState) -> None:
        """Whether an entry holds; the epoch first, since nothing else matters to whoever is fenced."""
        if isinstance(entry, AttemptEntry):
            _check_attempt(entry, before)
        allowed, _ = TRANSITIONS[type(entry)]
        if before.status not in allowed:
            raise Conflict(f"task {entry.task} is {before.status}: {_name(entry)} does not follow")
        match entry:
            case TaskDispatched():
                self._check_dispatch(entry)
            case TaskClaimed():
                self._check_claim(entry)
            case OutputStaged():
                _effect_of(entry.action)
            case TaskStaged():
                self._check_staged(entry, before)
            case TaskPublished() | TaskBlocked() | TaskQuarantined():
                _check_landed(entry, before)
                self._check_its_time(entry)
            case TaskCancelled() if before.status is TaskStatus.STAGED:
                self._check_given_up()
            case TaskFailed() if entry.materialization_id is not None:
                _check_landed(entry, before)
            case TaskSkipped():
                self._check_skip(entry)
            case _:
                pass

    def _check_dispatch(self, entry: TaskDispatched) -> None:
        if self.run.stopping is not None:
            raise Conflict(f"the run is stopping: {self.run.stopping}")
        if (entry.envelope.task, entry.envelope.attempt) != (entry.task, entry.attempt):
            raise Conflict(f"the envelope is of attempt {entry.envelope.attempt} of task {entry.envelope.task}")

    def _check_claim(self, entry: TaskClaimed) -> None:
        created = self.run.created
        if self.run.stopping is not None:
            raise Conflict(f"the run is stopping: {self.run.stopping}")
        if self.run.paused is not None:
            raise Conflict(f"the run is paused: {self.run.paused.why}")
        if created is not None and len(self.active) >= created.max_parallelism:
            raise Conflict(f"{len(self.active)} tasks are under way already")
        if entry.lease_s <= 0:
            raise Conflict("a claim needs a lease that lasts")

    def _check_its_time(self, entry: TaskEntry) -> None:
        if self.run.is_atomic and not self.run.published:
            raise Conflict(f"nothing of this run is published before all of it: {_name(entry)} does not follow")

    def _check_given_up(self) -> None:
        if self.run.published or self.run.undecided is not None:
            raise Conflict("what the run staged is published, or may still be")

    def _check_staged(self, entry: TaskStaged, before: TaskState) -> None:
        """Every commit stands on exactly what the run staged for its table before."""
        if not self.run.is_atomic:
            raise Conflict("only an atomic run keeps its outputs until its end")
        _check_landed(entry, before)
        for one in () if before.staged is None else before.staged.commits:
            there = len(self.staged_commits.get(one.table, ()))
            if one.place != there:
                raise Conflict(f"{'.'.join((*one.namespace, one.name))} has {there} commits of this run, not {one.place}")

    def _check_skip(self, entry: TaskSkipped) -> None:
        if entry.because not in self.outline.reads[entry.task]:
            raise Conflict(f"task {entry.task} does not read {entry.because}")
        upstream = self.task(entry.because).status
        if upstream not in ENDED or upstream in PASSABLE:
            raise Conflict(f"task {entry.because} is {upstream}: that skips nothing")

    def _apply_to_task(self, entry: TaskEntry, before: TaskState, at_ms: int) -> tuple[Draft, ...]:
        """The task after an entry that holds; what is owed to the ledger since."""
        _, becomes = TRANSITIONS[type(entry)]
        status = before.status if becomes is None else becomes
        after = msgspec.structs.replace(_after(entry, before, at_ms), status=status)
        landed = isinstance(entry, TaskPublished | TaskBlocked | TaskQuarantined) or (
            isinstance(entry, TaskFailed) and entry.materialization_id is not None
        )
        owed = entry.events
        if isinstance(entry, OutputStaged):
            owed = ()
        elif landed and before.staged is not None:
            owed = (*before.staged.events, *owed)
        if status in ENDED:
            after = msgspec.structs.replace(after, ended_ms=at_ms)
        self._set(self.tasks, entry.task, after)
        if becomes is not None:
            self._index(entry, before.status, status, at_ms)
        return owed

    def _index(self, entry: TaskEntry, before: TaskStatus, after: TaskStatus, at_ms: int) -> None:
        """Keep what is asked for often: what is ready, what is under way, how many are open."""
        task = entry.task
        if before is TaskStatus.READY:
            self._remove(self._ready, (self.outline.ranks[task], task))
        if TaskStatus.STAGED in {before, after}:
            self._set(self._counts, "staged", self._counts["staged"] + (1 if after is TaskStatus.STAGED else -1))
        if after is TaskStatus.STAGED:
            self._drop(self.active, task)
            for one in () if (staged := self.tasks[task].staged) is None else staged.commits:
                self._set(self.staged_commits, one.table, (*self.staged_commits.get(one.table, ()), one))
            self._let_readers_go(task)
            return
        if after in ACTIVE:
            self._drop(self.queued, task)
            self._set(self.active, task, None)
            if self.run.status is RunStatus.PENDING:
                self._set_run(status=RunStatus.RUNNING, started_ms=at_ms)
            return
        self._drop(self.active, task)
        if after is TaskStatus.QUEUED:
            self._set(self.queued, task, None)
            return
        self._drop(self.queued, task)
        self._drop(self.doomed, task)
        self._set(self._counts, "open", self._counts["open"] - 1)
        if after in {TaskStatus.FAILED, TaskStatus.CANCELLED}:
            self._set(self._counts, after.value, self._counts[after.value] + 1)
        if after is TaskStatus.FAILED:
            self._maybe_stop(entry)
        if after in PASSABLE:
            if before is not TaskStatus.STAGED:
                self._let_readers_go(task)
        else:
            self._doom_readers(task)

    def _maybe_stop(self, entry: TaskEntry) -> None:
        created, stops = self.run.created, isinstance(entry, TaskFailed) and entry.stops_run
        # Of an atomic run nothing is published any more: going on would be work for nothing.
        fast = created is not None and (created.on_failure is OnFailure.FAIL_FAST or created.atomic)
        if self.run.stopping is None and (stops or fast):
            self._set_run(stopping=f"task {entry.task} failed")

    def _let_readers_go(self, task: str) -> None:
        for reader in self.readers[task]:
            left = self._waits_for[reader] - 1
            self._set(self._waits_for, reader, left)
            state = self.tasks[reader]
            if left == 0 and state.status is TaskStatus.PENDING:
                self._set(self.tasks, reader, msgspec.structs.replace(state, status=TaskStatus.READY))
                self._insert(self._ready, (self.outline.ranks[reader], reader))

    def _doom_readers(self, task: str) -> None:
        for reader in self.readers[task]:
            if self.tasks[reader].status is TaskStatus.PENDING and reader not in self.doomed:
                self._set(self.doomed, reader, task)

    def _set_run(self, **changes: Any) -> None:
        self._set(self._facts, "run", msgspec.structs.replace(self.run, **changes))


def fold(outline: Outline, batches: Iterable[Batch]) -> RunState:
    """The state that a log describes."""
    state = RunState(outline)
    for batch in batches:
        state.fold(batch)
    return state


def _check_attempt(entry: AttemptEntry, before: TaskState) -> None:
    wanted = before.attempt + 1 if isinstance(entry, TaskClaimed | TaskDispatched) else before.attempt
    if entry.attempt < wanted or (before.status in ENDED and entry.attempt == wanted):
        raise Fenced(f"attempt {entry.attempt} of task {entry.task} is over: it is {before.status}")
    if entry.attempt > wanted:
        raise Conflict(f"task {entry.task} is at attempt {before.attempt}, not at {entry.attempt}")


def _effect_of(word: str) -> TaskEnd:
    try:
        return EFFECTS[Action(word)].task
    except ValueError:
        raise Conflict(f"{word!r} is not what a gate decides") from None


def _check_landed(
    entry: TaskStaged | TaskPublished | TaskBlocked | TaskQuarantined | TaskFailed, before: TaskState
) -> None:
    """An output ends a task as its gate decided, and only the output that was staged."""
    if before.staged is None:
        raise Conflict(f"attempt {entry.attempt} of task {entry.task} has staged nothing")
    if before.staged.materialization_id != entry.materialization_id:
        raise Conflict(f"task {entry.task} staged {before.staged.materialization_id}, not {entry.materialization_id}")
    wanted = _ENDS.get(type(entry), TaskEnd.FAILED)
    if _effect_of(before.staged.action) is not wanted:
        raise Conflict(f"the gate of task {entry.task} decided {before.staged.action}: {_name(entry)} does not follow")


def _after(entry: TaskEntry, before: TaskState, at_ms: int) -> TaskState:
    """What an entry says of its task, apart from the state it takes it to."""
    match entry:
        case TaskDispatched():
            return msgspec.structs.replace(before, envelope=entry.envelope)
        case TaskClaimed():
            return TaskState(
                status=before.status,
                envelope=before.envelope,
                attempt=entry.attempt,
                worker=entry.worker,
                claimed_ms=at_ms,
                lease_s=entry.lease_s,
                failure=before.failure,
                failures=before.failures,
                lost_leases=before.lost_leases,
            )
        case TaskStarted():
            return msgspec.structs.replace(before, started_ms=at_ms)
        case OutputStaged():
            return msgspec.structs.replace(before, staged=entry)
        case TaskStaged() | TaskPublished():
            return msgspec.structs.replace(
                before, snapshot_id=entry.snapshot_id, materialization_id=entry.materialization_id, failure=None
            )
        case TaskBlocked() | TaskQuarantined():
            return msgspec.structs.replace(
                before,
                snapshot_id=entry.snapshot_id,
                materialization_id=entry.materialization_id,
                reason=entry.reason,
                failure=None,
            )
        case TaskFailed():
            return msgspec.structs.replace(before, failure=entry.failure, materialization_id=entry.materialization_id)
        case TaskRetried():
            lost = entry.failure.kind == LOST_LEASE
            return msgspec.structs.replace(
                before,
                failure=entry.failure,
                not_before_ms=entry.not_before_ms,
                failures=before.failures + (not lost),
                lost_leases=before.lost_leases + lost,
                worker=None,
                staged=None,
                envelope=None,
            )
        case TaskCancelled():
            return msgspec.structs.replace(before, reason=entry.reason, snapshot_id=None, materialization_id=None)
        case TaskSkipped():
            return msgspec.structs.replace(before, reason=entry.because)
        case _:
            return before


def _name(entry: TaskEntry) -> str:
    return str(entry.__struct_config__.tag)


def stops_the_run(action: str) -> bool:
    """Whether what a gate decided stops the rest of the run."""
    return EFFECTS[Action(action)].downstream is Downstream.RUN_CANCELLED
