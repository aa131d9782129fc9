"""What one driver has taken of pools for the tasks that it claims next, and for those that it has.

A share is taken before its task is claimed and kept until the log says that the attempt is over, or is another's. What must never
enter: who may claim what, which the log alone decides.
"""

from collections.abc import Callable, Collection, Mapping
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

    def may_fit(self, task: str, attempt: int, full: Collection[str]) -> bool:
        """The same, or none of the pools that it needs is known to be full."""
        return self.is_free_for(task, attempt) or not any(need.pool in full for need in self.needs[task])

    async def take_next(self, state: RunState, room: int, now_ms: int, may: Callable[[str], bool]) -> Collection[str]:
        """Take what the next tasks need that may be claimed here, as long as there is room for them. The pools found full.

        A task that does not fit does not hold up others.
        """
        full: set[str] = set()
        for task in state.to_claim(len(state.tasks), now_ms, may):
            attempt = state.tasks[task].attempt + 1
            if room <= 0:
                break
            if not self.may_fit(task, attempt, full):
                continue
            try:
                taken = self.is_free_for(task, attempt) or await self.pools.take(task, attempt, self.needs[task])
            except (RetryLater, AskHistory):
                break
            if taken:
                room -= 1
            else:
                full.update(need.pool for need in self.needs[task])
        return full

    async def let_go(self, state: RunState, worker: str, room: int | None) -> bool:
        """Give back what was taken for attempts that are over, that others won, or that there is no room for; None: there is.

        Whether anything was.
        """
        gone, left = [], len(self.pools.taken) if room is None else room
        for task, attempt in self.pools.taken:
            its = state.tasks[task]
            ours = its.attempt == attempt and its.status in ACTIVE and its.worker == worker
            next_one = its.attempt == attempt - 1 and its.status in WAITING and state.run.stopping is None
            if not ours and (not next_one or left <= 0):
                gone.append((task, attempt))
            elif not ours:
                left -= 1
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
