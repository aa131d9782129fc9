"""The log of a run on the store: numbered objects, each created only if absent.

The failures this prevents, in order:
  1. two schedulers decide on the same state; both write down their decision, and a task runs twice
  2. a scheduler decides, stalls, and writes what was true an hour ago
  3. a run is deleted, a stalled scheduler wakes up and writes into the empty place

Entry n is decided on the fold of exactly the entries before it. Creating it only if absent makes whoever comes second lose its
slot, and with the slot its decision: it reads what came first and decides again. There is no lock, and no lease is needed for
any of it. Deleting a run leaves a closed marker, which `append` looks for after it has written (see `storage/sequence.py`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, Fenced, NotFound, OutcomeUnknown, RetryLater
from arco.kernel.ids import RunId, UlidSource, WriteId
from arco.kernel.limits import RUN_LOG_READS_MAX
from arco.kernel.scope import Scope
from arco.ledger.run_entries import FORMAT, FORMAT_VERSION, AnyEntry, Batch, decode_batch, encode_batch
from arco.ledger.run_outline import Outline
from arco.ledger.run_state import RunState
from arco.storage.keys import RunClosedKey, RunLogKey, RunPlanKey
from arco.storage.paging import walk
from arco.storage.port import Absent, Landed, Lost, ObjectStore, Unknown
from arco.storage.readback import put_settled
from arco.storage.sequence import Sequence as Records

Seen = Callable[[Batch], None]
_EVERYTHING = 10**18


class RunLog:
    """One run, as far as this process has read its log. `writer` is who appends, for the record."""

    def __init__(
        self, store: ObjectStore, scope: Scope, run: RunId, outline: Outline, clock: Clock, entropy: Entropy
    ) -> None:
        self.run = run
        self.scope = scope
        self.state = RunState(outline)
        self.writer = ""
        self.on_batch: Seen | None = None
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._ulids = UlidSource(clock, entropy)
        self._records = Records(store, self._name, self._boundary, clock, entropy)

    @classmethod
    async def open(
        cls,
        store: ObjectStore,
        scope: Scope,
        run: RunId,
        clock: Clock,
        entropy: Entropy,
        on_batch: Callable[["RunLog", Batch], None] | None = None,
    ) -> tuple["RunLog", bytes]:
        """A run with everything that its log says now, and its plan. NotFound if there is no such run."""
        plan = await read_plan(store, scope, run)
        log = cls(store, scope, run, Outline.of_plan(plan), clock, entropy)
        if on_batch is not None:
            log.on_batch = lambda batch: on_batch(log, batch)
        await log.read_all()
        if not log.state.sequence:
            raise NotFound(f"run {run} was planned and never created", hint="start it again with the same key")
        return log, plan

    async def read_all(self) -> RunState:
        """Catch up with a log that may be long: many objects at a time."""
        folder = self._name(1).rpartition("/")[0] + "/"
        found = [entry.key async for entry in walk(self._store, folder, self._name(self.state.sequence))]
        if found:
            last = int(found[-1].rpartition("/")[2].removesuffix(".json"))
            numbers = range(self.state.sequence + 1, last + 1)
            for start in range(0, len(numbers), RUN_LOG_READS_MAX):
                some = numbers[start : start + RUN_LOG_READS_MAX]
                for number, data in zip(some, await asyncio.gather(*map(self._records.read, some)), strict=True):
                    if data is None:
                        await self._check_open()
                        raise CorruptObject(f"entry {number} of run {self.run} is missing, and entry {last} is there")
                    self._take(number, data)
        return await self.catch_up()

    async def catch_up(self) -> RunState:
        """Everything that was appended since, one after the other."""
        while True:
            number = self.state.sequence + 1
            data = await self._records.read(number)
            if data is None:
                return self.state
            self._take(number, data)

    async def append(self, entries: Sequence[AnyEntry]) -> bool:
        """Write entries that were decided on the state as it is now. False if the slot was lost: decide again.

        Raises Conflict or Fenced, and writes nothing, if the entries do not follow from the state.
        """
        at_ms = self._clock.now_ms()
        with self.state.trial():
            for entry in entries:
                self.state.apply(entry, at_ms)
        batch = Batch(
            format=FORMAT,
            format_version=FORMAT_VERSION,
            run=self.run,
            sequence=self.state.sequence + 1,
            write_id=WriteId(self._ulids.next()),
            writer=self.writer,
            at_ms=at_ms,
            entries=tuple(entries),
        )
        match await self._records.append(batch.sequence, encode_batch(batch)):
            case Landed():
                self._fold(batch)
                return True
            case Lost():
                await self.catch_up()
                return False
            case Unknown(reason):
                # Silence is not "nothing happened" any more.
                with suppress(RetryLater):
                    await self._check_open()
                raise OutcomeUnknown(f"entry {batch.sequence} of run {self.run} may be written: {reason}")

    async def close(self) -> None:
        """Before a run is deleted: from now on nobody can append to it, also where its numbers are free again."""
        body = {"format": "arco.run_closed", "format_version": 1, "run": str(self.run), "sequence": self.state.sequence}
        outcome = await put_settled(
            self._store,
            str(RunClosedKey(self.scope, self.run)),
            msgspec.json.encode(body, order="sorted"),
            Absent(),
            clock=self._clock,
            entropy=self._entropy,
        )
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"run {self.run} may be closed: {outcome.reason}")

    def _name(self, sequence: int) -> str:
        return str(RunLogKey(self.scope, self.run, sequence))

    async def _boundary(self) -> int:
        """A closed run has no numbers left."""
        closed = await self._store.head(str(RunClosedKey(self.scope, self.run)))
        return 0 if closed is None else _EVERYTHING

    async def _check_open(self) -> None:
        if await self._boundary():
            raise Fenced(f"run {self.run} was deleted", hint="start a new run")

    def _take(self, number: int, data: bytes) -> None:
        self._fold(decode_batch(self.run, number, data))

    def _fold(self, batch: Batch) -> None:
        self.state.fold(batch)
        if self.on_batch is not None:
            self.on_batch(batch)


async def read_plan(store: ObjectStore, scope: Scope, run: RunId) -> bytes:
    """The plan of a run, as it was stored."""
    found = await store.get(str(RunPlanKey(scope, run)))
    if found is None:
        raise NotFound(f"there is no run {run}", hint="arco runs lists them")
    return found.data


async def write_plan(store: ObjectStore, scope: Scope, run: RunId, plan: bytes, clock: Clock, entropy: Entropy) -> bytes:
    """Store the plan of a run, or find the one that is there: the bytes that count from now on."""
    outcome = await put_settled(store, str(RunPlanKey(scope, run)), plan, Absent(), clock=clock, entropy=entropy)
    match outcome:
        case Landed():
            return plan
        case Lost():
            return await read_plan(store, scope, run)
        case Unknown(reason):
            raise OutcomeUnknown(f"the plan of run {run} may be written: {reason}")
