"""One attempt of one task: running it, stopping it, and writing down how it ended.

The rule of this file (PROTOCOLS P2): nobody writes that an attempt failed, expired or was cancelled before its publish is
settled. An attempt that has staged nothing needs no settling: it has no key, and an entry that closes it was decided on a log
without one, so that it can get none. Whatever the executor says of a failure, history has the last word: what landed is adopted.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.catalog.settling import DidLand
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import (
    ArcoError,
    AskHistory,
    AskOperator,
    Busy,
    Conflict,
    Fenced,
    NotFound,
    OutcomeUnknown,
    RetryLater,
    Throttled,
    TooLarge,
)
from arco.kernel.ids import MaterializationId, RunId, TaskId, UlidSource
from arco.kernel.limits import TASK_SETTLE_TRIES_MAX, TASK_STOP_S
from arco.ledger.drafts import Draft
from arco.ledger.failure_kinds import Category
from arco.ledger.materializations import materialization_id
from arco.ledger.run_entries import AnyEntry, Failure, OutputStaged, Publish, TaskCancelled, TaskStaged
from arco.ledger.run_state import ACTIVE, LOST_LEASE, RunState
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.decisions import failed_entry, landed_entry
from arco.servo.schedule.executor import Done, Executor, Failed, Outcome, Output, TaskPolicy, Ticket
from arco.servo.schedule.log_writer import LogWriter
from arco.servo.schedule.outbox import named
from arco.servo.schedule.publish_keys import publish_key
from arco.servo.schedule.settling import Settler
from arco.storage.readback import pause_s


@dataclass(frozen=True, slots=True)
class Stopped:
    """An attempt that did not come to an end of its own: `failure` is None if the run is to stop."""

    failure: Failure | None
    reason: str


Ending = Done | Failed | Stopped


def lost_lease(worker: str | None) -> Stopped:
    return _lost(f"worker {worker} fell silent", "it is tried again by another worker")


def handed_back(worker: str) -> Stopped:
    """Not the task's fault, so it is counted with the workers that fell silent."""
    return _lost(f"worker {worker} was told to stop", "it is tried again by another worker")


def unsigned(refusal: str) -> Stopped:
    """A claim whose envelope counts no more. Not the task's fault either."""
    return _lost(f"the worker does not run it: {refusal}", "a scheduler signs it again")


def _lost(message: str, hint: str) -> Stopped:
    return Stopped(_lost_lease(message, hint), message)


def _lost_lease(message: str, hint: str) -> Failure:
    return Failure(kind=LOST_LEASE, message=message, transient=True, hint=hint, severity="warning")


def timed_out(limit_s: float) -> Stopped:
    message = f"the attempt took longer than {limit_s:g} s"
    failure = Failure(
        kind=Category.TIMEOUT.value, message=message, transient=True, hint="give the asset more time: timeout=…"
    )
    return Stopped(failure, message)


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every attempt of a driver needs."""

    run: RunId
    writer: LogWriter
    settler: Settler
    executor: Executor
    clock: Clock
    entropy: Entropy
    ulids: UlidSource
    progressed: Callable[[str, Mapping[str, Any]], None]

    def named(self, drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
        """Events as the log keeps them."""
        return named(drafts, self.writer.log.scope, self.ulids, self.clock.now_ms())


class Work:
    """An attempt under way in this process. It is what its executor knows as its `Attempt`."""

    def __init__(self, shop: Workshop, planned: PlannedTask, number: int, policy: TaskPolicy) -> None:
        self._shop = shop
        self._planned = planned
        self._policy = policy
        self._number = number
        self._stopping: asyncio.Future[Stopped | None] = asyncio.get_running_loop().create_future()
        self.facts: dict[str, Any] = {}

    # What the executor sees

    @property
    def run(self) -> RunId:
        return self._shop.run

    @property
    def task(self) -> TaskId:
        return TaskId(self._planned.id)

    @property
    def number(self) -> int:
        return self._number

    @property
    def materialization_id(self) -> MaterializationId:
        return materialization_id(self.run, self.task)

    def progress(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self._shop.progressed(self.task, facts)

    async def stage(self, output: Output) -> Ticket:
        shop = self._shop
        earlier = self._staged(shop.writer.state)
        if earlier is not None and earlier.publish is not None:
            settled = await shop.settler.settle(shop.run, earlier, "this attempt commits something else instead")
            if isinstance(settled, DidLand):
                raise OutcomeUnknown("what this attempt staged before has landed", hint="nothing is left to do")
        entry = self._entry(output, 0 if earlier is None else earlier.at_ms + 1)

        entries = [entry, *self._end_of(output)]

        def decide(state: RunState) -> list[AnyEntry]:
            return [] if self._staged(state) == entry else entries

        await shop.writer.propose(decide)
        reach("run.output_staged")
        return Ticket(entry.at_ms, "" if entry.publish is None else entry.publish.key)

    def _end_of(self, output: Output) -> list[AnyEntry]:
        """What waits for its run is staged and done in one object: between the two nobody could say whose turn it is."""
        if not output.commits:
            return []
        made = str(self.materialization_id)
        staged = TaskStaged(task=self.task, attempt=self._number, materialization_id=made, snapshot_id=output.snapshot_id)
        return [staged]

    def _entry(self, output: Output, not_before_ms: int) -> OutputStaged:
        at_ms = max(self._shop.clock.now_ms(), not_before_ms)
        publish = None
        if output.commit is not None:
            publish = Publish(
                key=publish_key(self.run, self.task, self._number, 0, at_ms),
                operation=output.commit.operation,
                request_hash=output.commit.request_hash,
                table_uuid=output.commit.table_uuid,
                snapshot_id=output.commit.snapshot_id,
                aside=output.commit.aside,
            )
        return OutputStaged(
            task=self.task,
            attempt=self._number,
            at_ms=at_ms,
            materialization_id=str(self.materialization_id),
            action=output.action.value,
            publish=publish,
            written=dict(output.written),
            checks=tuple(dict(check) for check in output.checks),
            decision=dict(output.decision),
            commits=output.commits,
            events=self._shop.named(output.events),
        )

    def _staged(self, state: RunState) -> OutputStaged | None:
        its = state.task(self.task)
        return its.staged if its.attempt == self._number else None

    # Running

    def stop(self, why: Stopped | None) -> None:
        """Tell it to stop; None if the attempt is not ours any more and nothing is to be written down."""
        if not self._stopping.done():
            self._stopping.set_result(why)

    async def go(self) -> None:
        """Run to the end, whatever it is, and write it down."""
        ending = await self._execute()
        if ending is not None:
            await conclude(self._shop, self.task, self._number, ending, self._policy)

    async def _execute(self) -> Ending | None:
        loop = asyncio.get_running_loop()
        running = loop.create_task(self._guarded())
        waiting: set[asyncio.Future[Any]] = {running, self._stopping}
        limit = self._policy.timeout_s
        timer = None if limit is None else loop.create_task(self._shop.clock.sleep(limit))
        if timer is not None:
            waiting.add(timer)
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            await self._put_an_end_to(running)
            # It may have come to its own end while it was being stopped.
            if running.done() and not running.cancelled():
                return running.result()
            return self._stopping.result() if self._stopping.done() else timed_out(limit or 0.0)
        finally:
            for one in (running, timer):
                if one is not None:
                    one.cancel()

    async def _put_an_end_to(self, running: "asyncio.Task[Outcome]") -> None:
        """Cancel the executor and give it some time. One that goes on all the same is a zombie: its key is settled."""
        running.cancel()
        grace = asyncio.get_running_loop().create_task(self._shop.clock.sleep(TASK_STOP_S))
        try:
            await asyncio.wait({running, grace}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            grace.cancel()

    async def _guarded(self) -> Outcome:
        try:
            outcome = await self._shop.executor.run(self._planned, self)
            return outcome if isinstance(outcome, Done) else Failed(outcome.failure, self._shop.named(outcome.events))
        except ArcoError as error:
            return Failed(_said_of(error))
        except Exception as error:  # noqa: BLE001 - whatever user code raises is how the attempt ended
            return Failed(Failure(kind=Category.TRANSFORM.value, message=f"{type(error).__name__}: {error}"))


def _said_of(error: ArcoError) -> Failure:
    """An error that an executor did not put into words itself."""
    if isinstance(error, Fenced):
        # Whoever settled this attempt may have died before the log heard of it. Then it is ours to conclude, and no failure.
        return _lost_lease(error.message, "it is tried again")
    kind = next((kind for kind, errors in _KINDS if isinstance(error, errors)), Category.CONFIGURATION)
    transient = isinstance(error, RetryLater | AskHistory | Conflict)
    return Failure(kind=kind.value, message=error.message, transient=transient, hint=error.hint)


_KINDS: tuple[tuple[Category, tuple[type[ArcoError], ...]], ...] = (
    (Category.RATE_LIMITED, (Throttled, Busy)),
    (Category.STORAGE, (RetryLater, AskHistory, AskOperator)),
    (Category.UPSTREAM, (Conflict,)),
    (Category.MISSING_DEPENDENCY, (NotFound,)),
    (Category.RESOURCE_EXHAUSTED, (TooLarge,)),
)


async def conclude(shop: Workshop, task: str, attempt: int, ending: Ending, policy: TaskPolicy) -> None:
    """Write down how an attempt ended, ours or somebody else's; nothing if the log says that it is over already."""
    for tries in range(TASK_SETTLE_TRIES_MAX):
        its = shop.writer.state.task(task)
        if its.attempt != attempt or its.status not in ACTIVE:
            return
        try:
            entry = await _entry_of(shop, its.staged, ending)
            await shop.writer.propose(_Conclusion(shop, task, attempt, its.staged, ending, policy, entry))
        except (RetryLater, AskHistory):
            if tries == TASK_SETTLE_TRIES_MAX - 1:
                raise
            await shop.clock.sleep(pause_s(min(tries + 1, 8), shop.entropy))
        except Conflict:
            continue
        except Fenced:
            return
        else:
            return
    raise OutcomeUnknown(f"attempt {attempt} of task {task} could not be concluded")


async def _entry_of(shop: Workshop, staged: OutputStaged | None, ending: Ending) -> AnyEntry | None:
    """The entry of an attempt that landed; None if it did not, and never will."""
    if staged is None:
        return None
    if isinstance(ending, Done):
        return landed_entry(staged, snapshot_id=ending.snapshot_id)
    if staged.publish is None:
        return None
    reason = ending.reason if isinstance(ending, Stopped) else ending.failure.message
    settled = await shop.settler.settle(shop.run, staged, f"this attempt is over: {reason}")
    reach("run.attempt_settled")
    return landed_entry(staged, adopted=True) if isinstance(settled, DidLand) else None


@dataclass(frozen=True, slots=True)
class _Conclusion:
    """The end of an attempt, decided on the state that it is given."""

    shop: Workshop
    task: str
    attempt: int
    settled: OutputStaged | None
    ending: Ending
    policy: TaskPolicy
    landed: AnyEntry | None

    def __call__(self, state: RunState) -> list[AnyEntry]:
        its = state.task(self.task)
        if its.attempt != self.attempt or its.status not in ACTIVE:
            return []
        if its.staged != self.settled:
            # What was settled is not what it is about to commit now: settle that too.
            raise Conflict(f"attempt {self.attempt} of task {self.task} staged something else")
        return [self.landed if self.landed is not None else self._end_without(state)]

    def _end_without(self, state: RunState) -> AnyEntry:
        now_ms, jitter = self.shop.clock.now_ms(), self.shop.entropy.fraction()
        its, stopping = state.task(self.task), state.run.stopping
        failure, events = _failure_of(self.ending)
        if failure is None or (stopping is not None and isinstance(self.ending, Stopped)):
            reason = self.ending.reason if isinstance(self.ending, Stopped) else ""
            return TaskCancelled(task=self.task, attempt=self.attempt, reason=stopping or reason)
        if stopping is not None:
            failure = msgspec.structs.replace(failure, transient=False)
        entry = failed_entry(self.task, its, failure, self.policy, now_ms, jitter)
        return msgspec.structs.replace(entry, events=events)


def _failure_of(ending: Ending) -> tuple[Failure | None, tuple[Draft, ...]]:
    match ending:
        case Failed(failure, events):
            return failure, events
        case Stopped(failure):
            return failure, ()
        case Done():
            said = "the executor committed something that it had not staged"
            return Failure(kind=Category.STORAGE.value, message=said, severity="critical"), ()
