"""Signs of life: one small object per task that its worker overwrites now and then, with how far it is.

The log says who has a task. A claim only says until when its worker may be silent, so heartbeats do not make the log longer. A
task that ends within a third of its lease needs no object at all: its entry in the log is its first sign of life. The times are
by the worker's clock and only decide how long others wait; taking over a worker that is alive is wasteful and never wrong,
because an attempt is settled before it is declared dead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, Fenced, UnknownFormat
from arco.kernel.ids import RunId, TaskId
from arco.kernel.limits import TASK_LEASE_S, TASK_LEASE_S_MAX
from arco.kernel.scope import Scope
from arco.ledger.run_state import RunState, TaskState
from arco.storage.cas import CasObject, Held, Overtaken, Swung
from arco.storage.keys import RunClaimKey
from arco.storage.port import Lost, ObjectStore, Unknown


class Claim(msgspec.Struct, frozen=True):
    """The last sign of life of one attempt. The object's epoch is the attempt's number.

    `moved_ms` is when its progress last changed: a worker that is alive may be stuck, and whoever looks is to see that.
    """

    worker: str
    attempt: int
    expires_ms: int
    progress: dict[str, Any] = {}
    moved_ms: int = 0


class ClaimCodec:
    format = "arco.run_claim"

    def encode(self, value: Claim) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> Claim:
        if format_version != 1:
            raise UnknownFormat(f"a claim of format version {format_version}")
        try:
            return msgspec.convert(fields, Claim)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a claim with wrong fields: {error}") from error


@dataclass(slots=True)
class Claims:
    """The claims of one run, for one worker."""

    store: ObjectStore
    scope: Scope
    run: RunId
    worker: str
    clock: Clock
    entropy: Entropy
    _held: dict[str, Held[Claim]] = field(default_factory=dict)

    async def beat(self, task: str, attempt: int, lease_s: float, progress: Mapping[str, Any]) -> None:
        """One sign of life. Fenced if a later attempt has one; a beat that is lost is made up for by the next."""
        found = self._object(task)
        held = self._held.get(task) or await found.read()
        if held is not None and held.epoch > attempt:
            raise Fenced(f"attempt {held.epoch} of task {task} is alive, this is attempt {attempt}")
        now_ms = self.clock.now_ms()
        has_moved = held is None or held.epoch != attempt or held.value.progress != dict(progress)
        moved_ms = now_ms if has_moved or held is None else held.value.moved_ms
        claim = Claim(self.worker, attempt, now_ms + round(lease_s * 1000), dict(progress), moved_ms)
        outcome = await (found.create(claim, epoch=attempt) if held is None else found.swap(held, claim, epoch=attempt))
        match outcome:
            case Swung(after):
                self._held[task] = after
            case Overtaken() | Lost() | Unknown():
                self._held.pop(task, None)

    async def is_silent(self, task: str, state: TaskState) -> bool:
        """Whether the worker of a task may be taken to be gone."""
        now_ms = self.clock.now_ms()
        if now_ms < state.claimed_ms + round(min(state.lease_s, TASK_LEASE_S_MAX) * 1000):
            return False
        held = await self._object(task).read()
        return held is None or held.epoch != state.attempt or now_ms >= held.value.expires_ms

    async def is_driven(self, state: RunState) -> bool:
        """Whether somebody seems to be at work on the run: a task that is not silent, or an entry of a moment ago."""
        its = state.tasks.values()
        times = [state.run.created_ms, *(at for one in its for at in (one.claimed_ms, one.started_ms, one.ended_ms) if at)]
        if self.clock.now_ms() < max(times) + round(TASK_LEASE_S * 1000):
            return True
        return any([not await self.is_silent(task, state.tasks[task]) for task in state.active])

    async def read(self, task: str) -> Claim | None:
        """The last sign of life, for whoever wants to know how far a task is."""
        held = await self._object(task).read()
        return None if held is None else held.value

    def forget(self, task: str) -> None:
        self._held.pop(task, None)

    def _object(self, task: str) -> CasObject[Claim]:
        key = str(RunClaimKey(self.scope, self.run, TaskId(task)))
        return CasObject(self.store, key, ClaimCodec(), self.clock, self.entropy)
