"""What one driver has taken of pools for the tasks that it claims next, and for those that it has.

A share is taken before its task is claimed and kept until the log says that the attempt is over, or is another's. What must never
enter: who may claim what, which the log alone decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, AskHistory, Fenced, NotFound, RetryLater
from arco.kernel.ids import RunId
from arco.kernel.scope import Scope
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import ACTIVE, WAITING, RunState
from arco.servo.schedule.pools import Holding, Need, Pools, is_over
from arco.storage.port import ObjectStore


@dataclass(slots=True)
class Reserving:
    """The shares of one driver of one run."""

    pools: Pools
    needs: Mapping[str, tuple[Need, ...]]

    def is_free_for(self, task: str, attempt: int) -> bool:
        """Whether an attempt needs nothing, or what it needs was taken."""
        return not self.needs.get(task) or self.pools.has(task, attempt)

    async def take_next(self, state: RunState, room: int, now_ms: int) -> None:
        """Take what the next tasks need, as long as there is room for them. One that does not fit does not hold up others."""
        full: set[str] = set()
        for task in state.to_claim(len(state.tasks), now_ms):
            needs, attempt = self.needs.get(task, ()), state.tasks[task].attempt + 1
            if room <= 0:
                return
            if any(need.pool in full for need in needs):
                continue
            try:
                taken = self.is_free_for(task, attempt) or await self.pools.take(task, attempt, needs)
            except (RetryLater, AskHistory):
                return
            if taken:
                room -= 1
            else:
                full.update(need.pool for need in needs)

    async def let_go(self, state: RunState, worker: str) -> bool:
        """Give back what was taken for attempts that are over, or that others won. Whether anything was."""
        gone = []
        for task, attempt in self.pools.taken:
            its = state.tasks[task]
            ours = its.attempt == attempt and its.status in ACTIVE and its.worker == worker
            next_one = its.attempt == attempt - 1 and its.status in WAITING and state.run.stopping is None
            if not ours and not next_one:
                gone.append((task, attempt))
        for task, attempt in gone:
            await self.pools.give_back(task, attempt)
        return bool(gone)

    async def renew(self) -> None:
        await self.pools.renew()


async def is_over_elsewhere(
    store: ObjectStore, scope: Scope, own: RunLog, holding: Holding, clock: Clock, entropy: Entropy
) -> bool:
    """Whether the attempt that a share was taken for is over, as the log of its run says. Silence is no answer: it is not."""
    try:
        if holding.run == own.run:
            return is_over(own.state, holding)
        log, _ = await RunLog.open(store, scope, RunId(holding.run), clock, entropy)
    except (NotFound, Fenced):
        return True
    except ArcoError:
        return False
    return is_over(log.state, holding)
