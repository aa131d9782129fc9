"""Publishing an atomic run: everything that it staged in one transaction, or nothing.

    everything is staged → begin: a number and a key in the log → send the transaction → write down what became of it

Any driver may do any of these steps, and several may at once: the key and what is sent follow from the log alone, so all of them
send one request, and the transaction's record answers all of them alike. The rule of this file (PROTOCOLS P2): nobody writes
that the run is not published before its transaction is settled. What is remembered of a transaction is remembered for some time;
a run that is resumed after hours settles the old one and begins the next. What must never enter: tables, and any state that
another driver would need.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from arco.catalog.settling import DidLand, Settled
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, AskHistory, Fenced, FixRequest, KeyReused, OutcomeUnknown, Refresh, RetryLater
from arco.kernel.ids import RunId
from arco.kernel.limits import HISTORY_KNOWN_S, TOGETHER_TRIES_MAX
from arco.ledger.run_entries import AnyEntry, PublishBegun, RunPublished, RunWithheld, StagedCommit
from arco.ledger.run_state import RunState
from arco.servo.schedule.log_writer import LogWriter
from arco.servo.schedule.publish_keys import together_key
from arco.servo.schedule.staged_tables import commits_of
from arco.storage.readback import pause_s

_KEY_GOOD_S = HISTORY_KNOWN_S / 2
AGAIN = "nothing was published; what the run made is made again by arco run --atomic"


class TogetherCommitter(Protocol):
    """Whoever commits to several tables at once, and can say for certain what became of it."""

    async def commit(self, key: str, commits: Sequence[StagedCommit]) -> None: ...

    async def settle(self, key: str, commits: Sequence[StagedCommit], reason: str) -> Settled: ...


@dataclass(frozen=True, slots=True)
class Together:
    """The publish of one atomic run, for one driver."""

    run: RunId
    writer: LogWriter
    committer: TogetherCommitter
    clock: Clock
    entropy: Entropy

    def is_due(self) -> bool:
        """Whether there is something to begin, or something that was begun and not decided."""
        state = self.writer.state
        return not state.is_finished and (state.run.undecided is not None or _may_begin(state))

    async def go(self) -> None:
        """As far as it gets: until the log says whether the run is published, or that it is not to be."""
        for tries in range(TOGETHER_TRIES_MAX):
            try:
                if await self._step():
                    return
            except (RetryLater, AskHistory):
                if tries == TOGETHER_TRIES_MAX - 1:
                    raise
            await self.clock.sleep(pause_s(min(tries + 1, 8), self.entropy))
        raise OutcomeUnknown(f"whether run {self.run} is published could not be written down")

    async def _step(self) -> bool:
        """One step. Whether it was the last."""
        state = self.writer.state
        begun = state.run.undecided
        if begun is None:
            if not _may_begin(state):
                return True
            await self._begin(0)
            reach("run.publish_begun")
            return False
        entry = await self._decided(begun)
        if entry is None:
            await self._begin(begun.number)
            return False
        reach("run.publish_decided")
        await self.writer.propose(lambda state: [entry] if state.run.undecided == begun else [])
        return True

    async def _begin(self, settled: int) -> None:
        """The next transaction, of which the log has the key before it is sent. `settled` is the one that cannot land."""
        now_ms = self.clock.now_ms()
        begun = PublishBegun(number=settled + 1, at_ms=now_ms, key=together_key(self.run, settled + 1, now_ms))

        def decide(state: RunState) -> list[AnyEntry]:
            last = 0 if state.run.publishing is None else state.run.publishing.number
            return [begun] if last == settled and _may_begin(state, last) else []

        await self.writer.propose(decide)

    async def _decided(self, begun: PublishBegun) -> RunPublished | RunWithheld | None:
        """What became of a transaction, for certain; None if it cannot land any more and another is to be begun."""
        commits, stopping = commits_of(self.writer.state), self.writer.state.run.stopping
        refusal: ArcoError | None = None
        if stopping is None and self._is_good(begun):
            try:
                await self.committer.commit(begun.key, commits)
                return RunPublished(number=begun.number)
            except (FixRequest, Refresh) as error:
                refusal = error
        reason = stopping or (refusal.message if refusal is not None else "it was begun too long ago")
        settled = await self.committer.settle(begun.key, commits, f"this publish is over: {reason}")
        reach("run.publish_settled")
        if isinstance(settled, DidLand):
            return RunPublished(number=begun.number)
        # A key that was settled by another driver, or is too old, says nothing about the tables.
        again = refusal is None or isinstance(refusal, Fenced | KeyReused) or not self._is_good(begun)
        if stopping is None and again:
            return None
        return RunWithheld(number=begun.number, reason=reason, hint=AGAIN)

    def _is_good(self, begun: PublishBegun) -> bool:
        """Whether the transaction may still be sent: its record is sure to be remembered, if there is one."""
        return self.clock.now_ms() - begun.at_ms < _KEY_GOOD_S * 1000


def _may_begin(state: RunState, settled: int = 0) -> bool:
    run = state.run
    last = 0 if run.publishing is None else run.publishing.number
    undecided = not run.published and run.withheld is None
    goes_on = run.stopping is None and (run.paused is None or settled > 0)  # what was begun before the pause is ended
    return run.is_atomic and state.is_all_staged and goes_on and undecided and last == settled
