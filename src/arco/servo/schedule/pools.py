"""Pools: how many tasks use something at once, across runs and processes.

A pool is one document that says who holds how much of it. Whoever wants to claim a task takes its share first, and claims only
then; what it took for a claim that another won, it gives back. Giving back is a courtesy. What frees a share is the end of its
attempt, which the log of its run says, or its lease: whoever finds a pool full looks at both, so a process that died, or forgot,
leaks nothing. Clocks that are wrong make others wait, or let one more in for a while; whether a task is published never depends
on a pool. What must never enter: anything that a run's correctness would need.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, Conflict, CorruptObject, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import KeyHash
from arco.kernel.limits import POOL_HOLDINGS_MAX
from arco.kernel.scope import Scope
from arco.ledger.run_state import ACTIVE, ENDED, RunState
from arco.storage.cas import CasObject, Held
from arco.storage.keys import PoolKey
from arco.storage.port import ObjectStore


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """What a task needs of a pool to run. `size` is how much there is of it."""

    pool: str
    size: float
    units: float = 1.0


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A share of a pool: of which attempt, by which worker, and until when by that worker's clock."""

    run: str
    task: str
    attempt: int
    worker: str
    units: float
    expires_ms: int

    def is_of(self, other: "Holding") -> bool:
        return (self.run, self.task, self.attempt, self.worker) == (other.run, other.task, other.attempt, other.worker)


class PoolState(msgspec.Struct, frozen=True, kw_only=True):
    """The document. `size` is what whoever took last was told, for people."""

    name: str
    size: float
    holdings: tuple[Holding, ...] = ()

    def held(self) -> float:
        return sum(one.units for one in self.holdings)


class PoolCodec:
    format = "arco.pool"

    def encode(self, value: PoolState) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> PoolState:
        if format_version != 1:
            raise UnknownFormat(f"a pool of format version {format_version}")
        try:
            return msgspec.convert(fields, PoolState)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a pool with wrong fields: {error}") from error


def pool_object(store: ObjectStore, scope: Scope, name: str, clock: Clock, entropy: Entropy) -> CasObject[PoolState]:
    return CasObject(store, str(PoolKey(scope, KeyHash(fingerprint("pool", name)))), PoolCodec(), clock, entropy)


def is_over(state: RunState, holding: Holding) -> bool:
    """Whether the log says that the attempt a share was taken for has ended, is somebody else's, or will never be."""
    its = state.tasks.get(holding.task)
    if state.is_finished or its is None or its.status in ENDED:
        return True
    if its.attempt == holding.attempt:
        return its.status not in ACTIVE or its.worker != holding.worker
    return its.attempt > holding.attempt


@dataclass(slots=True)
class Pools:
    """The pools of a workspace, for one worker and one run. `over` asks the log of any run whether an attempt has ended."""

    store: ObjectStore
    scope: Scope
    run: str
    worker: str
    lease_s: float
    clock: Clock
    entropy: Entropy
    over: Callable[[Holding], Awaitable[bool]]
    _taken: dict[tuple[str, int], tuple[Need, ...]] = field(default_factory=dict)

    def has(self, task: str, attempt: int) -> bool:
        """Whether everything that this attempt needs was taken."""
        return (task, attempt) in self._taken

    @property
    def taken(self) -> list[tuple[str, int]]:
        return list(self._taken)

    async def take(self, task: str, attempt: int, needs: Sequence[Need]) -> bool:
        """Everything that an attempt needs, or nothing."""
        done: list[Need] = []
        for need in sorted(needs):
            if not await self._take(task, attempt, need):
                await self._leave(task, attempt, done)
                return False
            done.append(need)
        self._taken[task, attempt] = tuple(done)
        reach("pool.taken")
        return True

    async def give_back(self, task: str, attempt: int) -> None:
        """A courtesy: what does not get there now is freed by the end of the attempt, or by its lease."""
        await self._leave(task, attempt, self._taken.pop((task, attempt), ()))

    async def renew(self) -> None:
        """Signs of life of everything that is held here; one that was lost is made up for by the next."""
        mine: dict[str, set[tuple[str, int]]] = {}
        for mark, needs in self._taken.items():
            for need in needs:
                mine.setdefault(need.pool, set()).add(mark)
        for pool, marks in mine.items():
            try:
                await self._object(pool).update(lambda now, name=pool, its=marks: self._renewed(now, name, its))  # type: ignore[misc]
            except ArcoError:
                continue

    def _renewed(self, now: Held[PoolState] | None, name: str, marks: set[tuple[str, int]]) -> PoolState:
        found = PoolState(name=name, size=0) if now is None else now.value
        until = self._until_ms()
        holdings = tuple(
            msgspec.structs.replace(one, expires_ms=until)
            if one.run == self.run and one.worker == self.worker and (one.task, one.attempt) in marks
            else one
            for one in found.holdings
        )
        return msgspec.structs.replace(found, holdings=holdings)

    async def _take(self, task: str, attempt: int, need: Need) -> bool:
        """One share. Only when the pool is full is anybody's log asked, and its dead struck off."""
        ours = self._holding(task, attempt, need)
        held = await self._object(need.pool).read()
        gone: list[Holding] = []
        if held is not None and not _fits(held.value.holdings, ours, need, gone):
            gone = [one for one in held.value.holdings if await self._is_gone(one)]
            if not _fits(held.value.holdings, ours, need, gone):
                return False

        def change(now: Held[PoolState] | None) -> PoolState:
            found = () if now is None else now.value.holdings
            if not _fits(found, ours, need, gone):
                raise Conflict(f"pool {need.pool} was filled by others")
            kept = tuple(one for one in found if not one.is_of(ours) and one not in gone)
            return PoolState(name=need.pool, size=need.size, holdings=(*kept, ours))

        try:
            await self._object(need.pool).update(change)
        except Conflict:
            return False
        return True

    async def _is_gone(self, one: Holding) -> bool:
        return self.clock.now_ms() >= one.expires_ms or await self.over(one)

    async def _leave(self, task: str, attempt: int, needs: Sequence[Need]) -> None:
        for need in needs:
            ours = self._holding(task, attempt, need)

            def change(now: Held[PoolState] | None, pool: str = need.pool, mine: Holding = ours) -> PoolState:
                found = PoolState(name=pool, size=0) if now is None else now.value
                kept = tuple(one for one in found.holdings if not one.is_of(mine))
                return msgspec.structs.replace(found, holdings=kept)

            try:
                await self._object(need.pool).update(change)
            except ArcoError:
                continue

    def _holding(self, task: str, attempt: int, need: Need) -> Holding:
        return Holding(
            run=self.run,
            task=str(task),
            attempt=attempt,
            worker=self.worker,
            units=need.units,
            expires_ms=self._until_ms(),
        )

    def _until_ms(self) -> int:
        return self.clock.now_ms() + round(self.lease_s * 1000)

    def _object(self, pool: str) -> CasObject[PoolState]:
        return pool_object(self.store, self.scope, pool, self.clock, self.entropy)


def _fits(holdings: Sequence[Holding], ours: Holding, need: Need, gone: Sequence[Holding]) -> bool:
    """Whether a share fits beside those of others that are not gone. What was taken for the same attempt before is ours."""
    others = [one for one in holdings if not one.is_of(ours) and one not in gone]
    return len(others) < POOL_HOLDINGS_MAX and sum(one.units for one in others) + need.units <= need.size
