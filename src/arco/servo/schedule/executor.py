"""What the driver asks of whoever executes a task, and what it hears.

An executor reads, computes, writes files, checks them, and then says what it is about to commit (`Attempt.stage`) before it
commits. Between the two it is bound by nothing but the key that it is given: once the attempt is declared dead that key is
dead too. What must never enter: how anything is computed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from arco.kernel.ids import MaterializationId, RunId, TaskId
from arco.ledger.drafts import Draft
from arco.ledger.run_entries import AnyEntry, Failure, RowsAside, StagedCommit
from arco.ledger.run_state import RunState
from arco.quality.gates import Action
from arco.servo.plan.document import PlannedTask
from arco.servo.sdk.definitions import Retry


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit that an executor is about to send: what it may leave unsaid is where to look for it in a year.

    `aside` is the commit of the rows that are set aside, which it sends first.

    `request_hash` is what the key is bound to; empty if it is not known yet, and then whoever is settled hears that its key
    was used by another, which is true.
    """

    operation: str
    request_hash: str = ""
    table_uuid: str | None = None
    snapshot_id: int | None = None
    aside: RowsAside | None = None


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a commit is sent with: the moment that is in the log, and the first key made of it."""

    at_ms: int
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What was written and checked, and what the gate decided. `commit` is None if nothing is to be committed.

    In an atomic run nothing is committed here: `commits` wait for the run, and made the snapshot that its tasks read.
    """

    action: Action
    commit: Commit | None
    written: Mapping[str, Any] = field(default_factory=dict)
    checks: tuple[Mapping[str, Any], ...] = ()
    decision: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[Draft, ...] = ()
    commits: tuple[StagedCommit, ...] = ()
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What was staged is committed (or there was nothing to commit), as the gate decided."""

    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed. If something was staged, it is settled before this is believed."""

    failure: Failure
    events: tuple[Draft, ...] = ()


Outcome = Done | Failed


class Attempt(Protocol):
    """One attempt of one task, as its executor sees it. The number is also the epoch: it only grows."""

    @property
    def run(self) -> RunId: ...

    @property
    def task(self) -> TaskId: ...

    @property
    def number(self) -> int: ...

    @property
    def materialization_id(self) -> MaterializationId: ...

    def progress(self, facts: Mapping[str, Any]) -> None:
        """Say how far it is; shown now, and sent with the next heartbeat."""
        ...

    async def stage(self, output: Output) -> Ticket:
        """Write down what is about to be committed, and with what; Fenced if the attempt is over.

        A commit that the catalog refuses may be sent again with the next key (`publish_keys.py`), or staged again. In an atomic
        run this is the end of the attempt; Conflict if another task staged something for the same table meanwhile.
        """
        ...


class Executor(Protocol):
    """Whoever does the work. It is cancelled by cancelling `run`, which then stops what it started."""

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class TaskPolicy:
    """How a task is tried again, and how long one attempt may take."""

    retry: Retry = field(default_factory=Retry)
    timeout_s: float | None = None


class Observer(Protocol):
    """Told of everything as it happens, on the driver's own loop: it must return at once."""

    def saw(self, entry: AnyEntry, state: RunState) -> None:
        """An entry counts now, whoever wrote it."""
        ...

    def progressed(self, task: str, facts: Mapping[str, Any]) -> None: ...


Announcer = Callable[[AnyEntry, RunState], tuple[Draft, ...]]
"""Which events an entry owes the ledger, beside those that an executor staged."""


class NoObserver:
    """Nobody looks."""

    def saw(self, entry: AnyEntry, state: RunState) -> None:
        return

    def progressed(self, task: str, facts: Mapping[str, Any]) -> None:
        return


def no_events(_entry: AnyEntry, _state: RunState) -> tuple[Draft, ...]:
    """Nothing is announced."""
    return ()
