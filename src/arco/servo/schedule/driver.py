"""Driving a run to its end: claim what is ready, have it executed, write down what came of it, and begin again.

Several drivers may drive one run: each decision is an entry of the log that only one of them can win, and no driver knows
anything that the log does not say. So a driver that dies is no event. Whoever opens the run next goes on with what is
published, waits until the claims of the dead one are silent, settles them, and tries those tasks again.

What must never enter: how a task is executed, and any state that another driver would need.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import AskHistory, Fenced, RetryLater
from arco.kernel.ids import RunId, UlidSource, WorkerId
from arco.kernel.limits import RUN_POLL_S, TASK_LEASE_S
from arco.ledger.appender import Appender
from arco.ledger.run_entries import AnyEntry, Batch, EventsAppended, OutputStaged, RunCancelRequested, TaskClaimed
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import RunState, TaskState
from arco.servo.plan.document import Plan
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.decisions import Claimant, follow_up, run_deadline_ms
from arco.servo.schedule.envelopes import Signer
from arco.servo.schedule.executor import Announcer, Executor, NoObserver, Observer, TaskPolicy, no_events
from arco.servo.schedule.hand_over import ANYTHING
from arco.servo.schedule.log_writer import LogWriter
from arco.servo.schedule.outbox import deliver, named
from arco.servo.schedule.pools import Holding, Need, Pools
from arco.servo.schedule.reserving import Reserving, is_over_elsewhere
from arco.servo.schedule.settling import Settler
from arco.servo.schedule.slots import Slots
from arco.servo.schedule.together import Together, TogetherCommitter
from arco.servo.schedule.work import Stopped, Work, Workshop, conclude, handed_back, lost_lease, unsigned
from arco.storage.port import ObjectStore
from arco.storage.readback import pause_s

_DELIVERIES_MAX = 6


@dataclass(frozen=True, slots=True)
class Ground:
    """What a driver stands on. `together` commits the outputs of an atomic run."""

    store: ObjectStore
    settler: Settler
    appender: Appender
    clock: Clock
    entropy: Entropy
    together: TogetherCommitter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to drive. `slots`: how many tasks at once in this process, of this run alone or shared with others; 0 executes nothing.

    `seize`: claims that are found are taken for silent. `needs`: what tasks need of pools. `hands_out`: sign tasks for workers;
    `asks_for`: run only what is signed. `tell`: called when others have something to look at.
    """

    policies: Mapping[str, TaskPolicy] = field(default_factory=dict)
    slots: int | Slots | None = None
    needs: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    hands_out: Signer | None = None
    asks_for: Signer | None = None
    tell: Callable[[str], None] = lambda _: None
    lease_s: float = TASK_LEASE_S
    poll_s: float = RUN_POLL_S
    observer: Observer = field(default_factory=NoObserver)
    announce: Announcer = no_events
    seize: bool = False


class Driver:
    """One driver of one run, which was read from the store."""

    def __init__(self, ground: Ground, log: RunLog, plan: Plan, executor: Executor, options: Options | None = None) -> None:
        self._options = options or Options()
        self._ground = ground
        self._woken = asyncio.Event()
        self._at_work = asyncio.Event()
        self._clock = ground.clock
        self._ulids = UlidSource(ground.clock, ground.entropy)
        self.worker = WorkerId(self._ulids.next())
        self._log = log
        log.writer = str(self.worker)
        log.on_batch = self._seen
        self._slots = len(plan.spec.tasks) if self._options.slots is None else self._options.slots
        if isinstance(self._slots, Slots):
            self._slots.join(self, self._woken.set)
        may = self._may_claim if self._options.needs or self._options.asks_for else None
        needs, signer = self._options.needs, self._options.hands_out
        self._claimant = Claimant(str(self.worker), self._options.lease_s, 0, may, signer, needs)
        self._planned = {task.id: task for task in plan.spec.tasks}
        self._writer = LogWriter(log, self._follow_up, self._announced, ground.clock, ground.entropy)
        self._claims = Claims(ground.store, log.scope, log.run, str(self.worker), ground.clock, ground.entropy)
        self._shop = Workshop(
            log.run,
            self._writer,
            ground.settler,
            executor,
            ground.clock,
            ground.entropy,
            self._ulids,
            self._options.observer.progressed,
        )
        found = {(task, log.state.tasks[task].attempt) for task in log.state.active}
        self._seized = found if self._options.seize else set()
        self._works: dict[tuple[str, int], Work] = {}
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._beats: asyncio.Task[None] | None = None
        self._delivery: asyncio.Task[None] | None = None
        self._together = self._atomically(ground)
        self._publishing: asyncio.Task[None] | None = None
        self._delivered = 0
        self._cancel: RunCancelRequested | None = None
        self._news = False
        self._is_leaving = False
        lease_s, over = self._options.lease_s, self._is_over
        pools = Pools(ground.store, log.scope, str(log.run), str(self.worker), lease_s, ground.clock, ground.entropy, over)
        self._reserving = Reserving(pools, self._options.needs)

    @property
    def run(self) -> RunId:
        return self._log.run

    @property
    def state(self) -> RunState:
        return self._log.state

    def cancel(self, who: str, reason: str = "cancelled") -> None:
        """Ask for the run to be cancelled: written down first, then every task is stopped. May be called at any time."""
        self._cancel = self._cancel or RunCancelRequested(who=who, reason=reason)
        self._woken.set()

    def hear(self) -> None:
        """Somebody says that the log has news. May be called at any time."""
        self._news = True
        self._woken.set()

    def leave(self) -> None:
        """Claim nothing more; `drive` returns when what runs here has ended. May be called at any time."""
        self._is_leaving = True
        self._woken.set()

    def hand_back(self) -> None:
        """Stop what runs here, settle it and leave it to others. May be called at any time."""
        for work in self._works.values():
            work.stop(handed_back(str(self.worker)))

    @property
    def rests(self) -> bool:
        """Whether nothing is to be done here before others do something: it is paused, or nothing is run nor signed here."""
        state, options = self.state, self._options
        if self._tasks or state.active or state.doomed or state.owed or state.is_all_staged:
            return False
        if state.run.stopping is not None or state.is_finished:
            return False
        return state.run.paused is not None or (self._slots == 0 and options.hands_out is None)

    @property
    def busy(self) -> int:
        """How many tasks are under way here."""
        return len(self._works)

    async def drive(self) -> RunState:
        """Until the run has finished and its events are in the ledger, as far as the store lets them.

        Raises what the store says if it stays silent for long; the run can then be resumed.
        """
        self._beats = asyncio.get_running_loop().create_task(self._beat())
        try:
            # News, and with them a cancellation that was asked for before: nothing is claimed that is to be stopped at once.
            await self._writer.propose(self._cancelled, on_news=True)
            while not self.state.is_finished:
                await self._pass()
                if self._is_leaving and not self._tasks:
                    return self.state
                if not self.state.is_finished:
                    await self._wait()
            await self._settle_accounts()
        finally:
            self._abandon()
        return self.state

    # One pass

    async def _pass(self) -> None:
        """Everything that can be done now. Whatever takes time goes on beside it."""
        self._woken.clear()
        self._collect()
        if self._beats is not None and self._beats.done():
            self._beats.result()
        if self._cancel is not None and self.state.run.cancel is None:
            await self._writer.propose(self._cancelled)
        self._share(await self._reserve())
        if self._due():
            await self._writer.nudge()
        self._launch()
        if self.state.run.stopping is not None:
            for work in self._works.values():
                work.stop(Stopped(None, self.state.run.stopping))
        await self._take_over()
        self._maybe_publish()
        self._maybe_deliver()

    def _launch(self) -> None:
        """Begin what the log says is ours. A claim of which we never heard whether it was written is ours too."""
        for task in list(self.state.active):
            its = self.state.tasks[task]
            mark = (task, its.attempt)
            if its.worker != str(self.worker) or mark in self._tasks:
                continue
            refusal = self._refusal(task, its, its.attempt)
            if refusal is not None:
                # It was signed when it was claimed, and a process may sleep between two lines.
                self._start(mark, conclude(self._shop, task, its.attempt, unsigned(refusal), self._policy(task)))
                continue
            work = Work(self._shop, self._planned[task], its.attempt, self._policy(task))
            self._works[mark] = work
            self._at_work.set()
            self._start(mark, work.go())

    async def _take_over(self) -> None:
        """Settle the attempts of workers that fell silent, and stop our own that others have settled."""
        for task in list(self.state.active):
            its = self.state.tasks[task]
            mark = (task, its.attempt)
            if mark in self._tasks or its.worker == str(self.worker):
                continue
            if mark in self._seized or await self._is_silent(task, its):
                reach("run.worker_silent")
                why = lost_lease(its.worker)
                self._start(mark, conclude(self._shop, task, its.attempt, why, self._policy(task)))
        for (task, attempt), work in self._works.items():
            its = self.state.tasks[task]
            if its.attempt != attempt or task not in self.state.active:
                work.stop(None)

    async def _is_silent(self, task: str, its: TaskState) -> bool:
        try:
            return await self._claims.is_silent(task, its)
        except RetryLater:
            return False

    def _start(self, mark: tuple[str, int], work: Coroutine[Any, Any, None]) -> None:
        running = asyncio.get_running_loop().create_task(work)
        self._tasks[mark] = running
        running.add_done_callback(lambda _: self._woken.set())

    def _collect(self) -> None:
        """Forget what has ended; raise what kept it from being written down."""
        for mark, running in list(self._tasks.items()):
            if running.done():
                del self._tasks[mark]
                self._works.pop(mark, None)
                self._claims.forget(mark[0])
                running.result()

    # Slots

    async def _reserve(self) -> Collection[str]:
        """Take what the next tasks need of pools before they are claimed, and give back what is needed no more. What is full.

        The slot comes first: a share that waits for one is a share that nobody can use.
        """
        if not self._options.needs:
            return ()
        self._share()
        free = min(self._room(), self._limit() - self._mine())
        # A claim that is being written needs what was taken for it.
        if await self._reserving.let_go(self.state, str(self.worker), free if self._writer.is_idle else None):
            self._options.tell(ANYTHING)
        if free <= 0:
            return ()
        self._at_work.set()
        return await self._reserving.take_next(self.state, free, self._clock.now_ms(), self._is_signed)

    def _share(self, full: Collection[str] = ()) -> None:
        """How many of this process's slots this run has, as far as it can use them. `full`: pools that were just found so."""
        if isinstance(self._slots, Slots):
            wants = self.state.to_claim(self._room(), self._clock.now_ms(), lambda task: self._may_fit(task, full))
            mine = self._mine()
            self._slots.adjust(self, busy=mine, wants=mine + len(wants), may_shrink=self._writer.is_idle)

    def _mine(self) -> int:
        return sum(self.state.tasks[task].worker == str(self.worker) for task in self.state.active)

    def _room(self) -> int:
        """How many more tasks of this run could be under way here, if it had every slot of this process."""
        run = self.state.run
        if run.created is None or run.stopping is not None or run.paused is not None or self._is_leaving:
            return 0
        slots = self._slots.total if isinstance(self._slots, Slots) else self._slots
        return max(0, min(run.created.max_parallelism - len(self.state.active), slots - self._mine()))

    def _limit(self) -> int:
        if self._is_leaving:
            return 0
        return self._slots.limit(self) if isinstance(self._slots, Slots) else self._slots

    def _may_fit(self, task: str, full: Collection[str]) -> bool:
        """Whether a slot is worth having for a task: what it needs was taken, or may be free for all that is known."""
        return self._reserving.may_fit(task, self.state.tasks[task].attempt + 1, full) and self._is_signed(task)

    def _is_signed(self, task: str) -> bool:
        its = self.state.tasks[task]
        return self._refusal(task, its, its.attempt + 1) is None

    def _may_claim(self, task: str, its: TaskState) -> bool:
        return self._reserving.is_free_for(task, its.attempt + 1) and self._refusal(task, its, its.attempt + 1) is None

    def _refusal(self, task: str, its: TaskState, attempt: int) -> str | None:
        """Why an attempt is not to be run here: it needs a signature, and has none that counts."""
        asks_for = self._options.asks_for
        return None if asks_for is None else asks_for.refusal(its.envelope, task, attempt, self._clock.now_ms())

    async def _is_over(self, holding: Holding) -> bool:
        log = self._log
        return await is_over_elsewhere(self._ground.store, log.scope, log, holding, self._clock, self._ground.entropy)

    # Deciding

    def _follow_up(self, state: RunState) -> list[AnyEntry]:
        made = follow_up(state, replace(self._claimant, slots=self._limit()), self._clock.now_ms())
        if made and any(one <= self._delivered for one in state.owed):
            made.append(EventsAppended(through=self._delivered))
            state.apply(made[-1], self._clock.now_ms())
        return made

    def _cancelled(self, state: RunState) -> list[AnyEntry]:
        if self._cancel is None or state.run.cancel is not None or state.is_finished:
            return []
        return [self._cancel]

    def _due(self) -> bool:
        """Whether something follows from the state and the time that is not written down yet."""
        with self.state.trial():
            return bool(self._follow_up(self.state))

    def _announced(self, entry: AnyEntry, state: RunState) -> AnyEntry:
        if isinstance(entry, OutputStaged | EventsAppended):
            return entry
        more = self._options.announce(entry, state)
        if not more:
            return entry
        return msgspec.structs.replace(
            entry, events=(*entry.events, *named(more, self._log.scope, self._ulids, self._clock.now_ms()))
        )

    def _policy(self, task: str) -> TaskPolicy:
        return self._options.policies.get(task) or TaskPolicy()

    def _seen(self, batch: Batch) -> None:
        for entry in batch.entries:
            self._options.observer.saw(entry, self.state)
            if isinstance(entry, TaskClaimed) and entry.worker == str(self.worker):
                reach("run.task_claimed")
        if batch.writer == str(self.worker):
            self._options.tell(str(self.run))
        self._woken.set()

    # Waiting

    async def _wait(self) -> None:
        """Until something happens here, or it is time to look at what happened elsewhere."""
        if not self._woken.is_set():
            self._news = await self._sleep() or self._news
        if self._news:
            self._news = False
            await self._writer.look()

    async def _sleep(self) -> bool:
        """Until somebody wakes us; True if nobody did before it was time to look."""
        woken = asyncio.get_running_loop().create_task(self._woken.wait())
        timer = asyncio.get_running_loop().create_task(self._clock.sleep(self._pause_s()))
        try:
            await asyncio.wait({woken, timer}, return_when=asyncio.FIRST_COMPLETED)
            return timer.done()
        finally:
            woken.cancel()
            timer.cancel()

    def _pause_s(self) -> float:
        """Until the next task may be tried again, or the run is out of time; no longer than until the next look."""
        moments = [self.state.tasks[task].not_before_ms for task in self.state.queued]
        deadline_ms = run_deadline_ms(self.state)
        if deadline_ms is not None and self.state.run.cancel is None:
            moments.append(deadline_ms)
        now_ms = self._clock.now_ms()
        ahead = [(moment - now_ms) / 1000 for moment in moments if moment > now_ms]
        return min([self._options.poll_s, *ahead])

    async def _beat(self) -> None:
        """Signs of life of everything that runs here, well within the lease."""
        while True:
            if not self._works and not self._reserving.pools.taken:
                self._at_work.clear()
                await self._at_work.wait()
            await self._clock.sleep(self._claimant.lease_s / 3)
            for (task, attempt), work in list(self._works.items()):
                try:
                    await self._claims.beat(task, attempt, self._claimant.lease_s, work.facts)
                except Fenced:
                    work.stop(None)
                except (RetryLater, AskHistory):
                    continue
            await self._reserving.renew()

    # Atomic runs

    def _atomically(self, ground: Ground) -> Together | None:
        if ground.together is None:
            return None
        return Together(self.run, self._writer, ground.together, ground.clock, ground.entropy)

    def _maybe_publish(self) -> None:
        """Bring everything that an atomic run staged to its one decision, beside everything else."""
        if self._publishing is not None and self._publishing.done():
            self._publishing.result()
            self._publishing = None
        if self._together is not None and self._publishing is None and self._together.is_due():
            self._publishing = asyncio.get_running_loop().create_task(self._together.go())
            self._publishing.add_done_callback(lambda _: self._woken.set())

    # Events

    def _maybe_deliver(self) -> None:
        """Append what is owed beside everything else, one delivery at a time."""
        if self._delivery is not None and not self._delivery.done():
            return
        if any(one > self._delivered for one in self.state.owed):
            self._delivery = asyncio.get_running_loop().create_task(self._deliver())

    async def _deliver(self) -> None:
        """What does not get there now is owed until it does."""
        try:
            self._delivered = await deliver(self._ground.appender, self.state, self._delivered)
            reach("run.events_appended")
        except (RetryLater, AskHistory):
            return

    async def _settle_accounts(self) -> None:
        """After the end: append what is still owed, and write that nothing is."""
        if self._delivery is not None:
            await asyncio.wait({self._delivery})
        for attempt in range(_DELIVERIES_MAX):
            if not self.state.owed:
                return
            if attempt:
                await self._clock.sleep(pause_s(attempt, self._ground.entropy))
            await self._deliver()
            if self._delivered:
                await self._writer.propose(self._nothing_owed)

    def _nothing_owed(self, state: RunState) -> list[AnyEntry]:
        owed = [one for one in state.owed if one <= self._delivered]
        return [EventsAppended(through=self._delivered)] if owed else []

    # The end

    def _abandon(self) -> None:
        """Stop everything that still runs here without another word: whoever resumes the run settles it."""
        if isinstance(self._slots, Slots):
            self._slots.leave(self)
        for running in (*self._tasks.values(), self._beats, self._delivery, self._publishing):
            if running is not None:
                running.cancel()
