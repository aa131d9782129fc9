"""Committing to tier 1: many operations, one commit, one swing.

Operations that arrive while a commit is under way wait and go out together in the next one. Each is tried on the state in
turn; one that does not apply is refused alone. On a lost swing everything is tried again on the new state, except what
turns out to be in the chain already under its key: somebody else finished it, or our own reply was lost.

A refusal is never computed from memory alone: the manifest is checked again before anybody is told no.
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass

import msgspec

from arco.catalog.checkpoint import make_room
from arco.catalog.manifest import SEVERAL, Author, Commit, Manifest
from arco.catalog.model import Reservation
from arco.catalog.names import Draft
from arco.catalog.operations import Confirm, Operation, Release, Void
from arco.catalog.tier1 import Found, Seen, Tier1
from arco.catalog.transaction_records import Record, Records
from arco.catalog.turns import Turns
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, Conflict, GivenUp, OutcomeUnknown, RetryLater, TooLarge
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import CommitId, UlidSource
from arco.kernel.limits import (
    COMMIT_GROUP_BYTES_MAX,
    COMMIT_GROUP_OPERATIONS_MAX,
    MANIFEST_TAIL_BYTES_MAX,
    MANIFEST_TAIL_COMMITS_MAX,
    OPERATION_BYTES_MAX,
    SWAP_ATTEMPTS_MAX,
    TRANSACTION_STALE_S,
)
from arco.storage.cas import Held, Overtaken, Swung
from arco.storage.keys import CatalogCommitKey
from arco.storage.port import Absent, Landed, Lost, Unknown
from arco.storage.readback import pause_s, put_settled

_ARCO = Author("arco")
"""Nobody asked for it."""

Need = Callable[[Draft], None]
"""What has to hold of the state that an operation is tried on, beside what applying it asks for. Raises why it does not."""


@dataclass(eq=False, slots=True)
class _Waiting:
    operation: Operation
    since: int
    author: Author
    settled: asyncio.Future[int]
    size_bytes: int = 0
    need: Need | None = None

    def apply(self, draft: Draft, at_ms: int) -> Operation:
        if self.need is not None:
            self.need(draft)
        return draft.apply(self.operation, at_ms)


@dataclass(frozen=True, slots=True)
class _Trial:
    """What came of trying a group on one state."""

    held: Held[Manifest] | None
    seen: Seen
    applied: list[_Waiting]
    refused: list[tuple[_Waiting, ArcoError]]
    refused_by_others: list[tuple[_Waiting, ArcoError]]


class Committer:
    """The one place of a process that swings the catalog's manifest."""

    def __init__(self, tier1: Tier1, clock: Clock, entropy: Entropy, records: Records, turns: Turns | None = None) -> None:
        self._tier1 = tier1
        tier1.bring_in_names = self.bring_in_names
        self._records = records
        self._turns = turns
        self.after_commit: Callable[[], None] = _nothing
        self._clock = clock
        self._entropy = entropy
        self._ulids = UlidSource(clock, entropy)
        self._queue: list[_Waiting] = []
        self._running: asyncio.Task[None] | None = None

    async def submit(
        self, operation: Operation, *, since: int, author: Author | None = None, need: Need | None = None
    ) -> int:
        """Commit one operation; the number of the commit it is in.

        `since` is the number of the commit that the operation's marker was claimed at: what is in the chain after it under
        the same key is this operation, done already. Raises why the operation does not apply, or OutcomeUnknown.
        """
        size_bytes = len(msgspec.json.encode(operation))
        if size_bytes > OPERATION_BYTES_MAX:
            # Alone, before it joins a group: the others must not be refused for its size.
            raise TooLarge(f"a change of {size_bytes} bytes to the catalog", hint=f"at most {OPERATION_BYTES_MAX}")
        settled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(operation, since, author or Author(), settled, size_bytes, need))
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._run())
        return await settled

    async def give_up(self, key_hash: str, since: int) -> bool:
        """Say in the chain that what this key stands for is refused, so that nobody does it any more. False if it is done."""
        await self.submit(Void(key_hash=key_hash), since=since)
        return await self._tier1.landed_at(key_hash, since) is None

    async def bring_in_names(self) -> None:
        """Commit what was decided of names that transactions keep: whoever commits one of them takes all the others along."""
        for operation, author in (await self._decided_names())[:1]:
            with suppress(Conflict):
                await self.submit(operation, since=self._tier1.seen.sequence, author=author)

    async def _decided_names(self) -> list[tuple[Confirm | Release, Author]]:
        """What is to be done with the names that transactions keep, and who asked for it: a table is of whoever sent the
        transaction, whoever gives it its name. One that is still undecided stays, until it is stale.
        """
        due: list[tuple[Confirm | Release, Author]] = []
        sent_back: dict[str, bool] = {}
        for reservation, record in await self._tier1.kept_names():
            if record is not None and record.value.names(reservation.part()):
                confirmed = Confirm(key_hash=_reservation_key("confirm", reservation), reservation=reservation)
                due.append((confirmed, Author(record.value.principal)))
                continue
            if record is not None and record.value.may_decide(reservation.attempt):
                if reservation.tx_id not in sent_back:
                    sent_back[reservation.tx_id] = await self._sent_back_if_stale(record)
                if not sent_back[reservation.tx_id]:
                    continue
            released = Release(key_hash=_reservation_key("release", reservation), reservation=reservation)
            due.append((released, _ARCO))
        return due

    async def _sent_back_if_stale(self, record: Held[Record]) -> bool:
        stale_ms = self._clock.now_ms() - record.value.started_ms
        return stale_ms > TRANSACTION_STALE_S * 1000 and isinstance(await self._records.send_back(record), Swung)

    async def _run(self) -> None:
        while self._queue:
            group = self._next_group()
            try:
                async with self._turns.taken() if self._turns else nullcontext():
                    await self._commit(group)
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
                for waiting in group:
                    _refuse(waiting, error)

    def _next_group(self) -> list[_Waiting]:
        """Those who wait longest, as many as the manifest has room for: who fits alone is never refused for the others' size.

        Of one key one: what two attempts of a request wait for would be done twice, or done and refused. The second comes
        next, and finds in the chain what became of the first.
        """
        group: list[_Waiting] = []
        keys: set[str] = set()
        size_bytes = 0
        for waiting in self._queue[:COMMIT_GROUP_OPERATIONS_MAX]:
            if waiting.operation.key_hash in keys:
                continue
            size_bytes += waiting.size_bytes
            if group and size_bytes > COMMIT_GROUP_BYTES_MAX:
                break
            keys.add(waiting.operation.key_hash)
            group.append(waiting)
        taken = set(group)
        self._queue = [waiting for waiting in self._queue if waiting not in taken]
        return group

    async def _commit(self, group: list[_Waiting]) -> None:
        """Commit what applies, refuse what does not, until nobody of the group waits."""
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                await self._clock.sleep(pause_s(min(attempt, 6), self._entropy))
                await self._tier1.reread()
            await self._make_room()
            # Before anything else: what is decided of a name is true already, whoever asks for it now.
            group = [*(self._own(operation, author) for operation, author in await self._decided_names()), *group]
            trial = await self._try(group)
            if trial.refused and attempt == 0 and not await self._tier1.is_stored(trial.seen):
                continue
            for waiting, error in trial.refused:
                _refuse(waiting, error)
            if not trial.applied or await self._swing(trial.held, trial.applied):
                # Only now is what stands in their way there.
                for waiting, error in trial.refused_by_others:
                    _refuse(waiting, error)
                return
            group = [waiting for waiting in group if not waiting.settled.done()]
        for waiting in group:
            # Every swing is known to have been lost. No refusal: nothing is wrong with the request, and nothing to remember.
            _refuse(waiting, RetryLater("the catalog was changed by others all the time"))

    def _own(self, operation: Operation, author: Author) -> _Waiting:
        """An operation of our own, beside those that somebody waits for."""
        settled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        settled.add_done_callback(lambda done: done.cancelled() or done.exception())
        return _Waiting(operation, self._tier1.seen.sequence, author, settled)

    async def _try(self, group: list[_Waiting]) -> _Trial:
        """Try each in turn on the state that is known. What is in the chain already is settled and left out."""
        while True:
            held = self._tier1.held
            done = [await self._tier1.find_key(one.operation.key_hash, one.since) for one in group]
            if self._tier1.held is held:
                break
        # From here to the end nothing is awaited: what was tried is tried on exactly the state of `held`.
        trial = _Trial(held, self._tier1.seen, [], [], [])
        draft = Draft(self._tier1.names, self._tier1.manifest.boundary_ms)
        at_ms = self._now_ms()
        for waiting, found in zip(group, done, strict=True):
            if found is not None:
                _settle_as(waiting, found)
                continue
            try:
                waiting.operation = waiting.apply(draft, at_ms)
            except ArcoError as error:
                alone = self._refusal(waiting, at_ms)
                (trial.refused if alone else trial.refused_by_others).append((waiting, alone or error))
            else:
                trial.applied.append(waiting)
        return trial

    def _refusal(self, waiting: _Waiting, at_ms: int) -> ArcoError | None:
        """Why an operation does not apply to what is there, whatever else is in its group."""
        try:
            waiting.apply(Draft(self._tier1.names, self._tier1.manifest.boundary_ms), at_ms)
        except ArcoError as error:
            return error
        return None

    async def _swing(self, held: Held[Manifest] | None, group: list[_Waiting]) -> bool:
        """Write the commit and make it count. False if others were faster."""
        manifest = Manifest() if held is None else held.value
        commit = self._next_commit(manifest, group)
        await self._write(commit)
        reach("catalog.commit_written")
        after = manifest.following(commit)
        head = self._tier1.head
        outcome = await (head.create(after) if held is None else head.swap(held, after))
        reach("catalog.manifest_swung")
        match outcome:
            case Swung(after_swing) | Overtaken(after_swing):
                try:
                    await self._tier1.advance(after_swing)
                finally:
                    # It landed, whatever comes of carrying our own state forward.
                    for waiting in group:
                        _settle(waiting, commit.sequence)
                self.after_commit()
                return True
            case Lost():
                return False
            case Unknown(reason):
                raise OutcomeUnknown(f"the catalog's manifest did not say whether it was swung: {reason}")

    def _next_commit(self, manifest: Manifest, group: list[_Waiting]) -> Commit:
        authors = tuple(waiting.author for waiting in group)
        is_one = len(set(authors)) == 1
        author = authors[0] if is_one else SEVERAL
        return Commit(
            id=self._ulids.next(),
            sequence=manifest.sequence + 1,
            previous_id=manifest.last_commit_id,
            previous_hash=manifest.last_commit_hash,
            at_ms=self._now_ms(),
            author=author.principal,
            client_id=author.client_id,
            operations=tuple(waiting.operation for waiting in group),
            authors=() if is_one else authors,
        )

    async def _write(self, commit: Commit) -> None:
        key = str(CatalogCommitKey(self._tier1.scope, CommitId(commit.id)))
        outcome = await put_settled(
            self._tier1.store, key, commit.encode(), Absent(), clock=self._clock, entropy=self._entropy
        )
        if not isinstance(outcome, Landed):
            # Its name is new, so nobody else has it: the store stayed silent, and nothing refers to it.
            raise OutcomeUnknown(f"{key} could not be written: {outcome.reason}")

    async def _make_room(self) -> None:
        """Checkpoint first if the tail is long: the manifest stays small even where no checkpointer runs."""
        manifest = self._tier1.manifest
        if (
            len(manifest.tail) >= MANIFEST_TAIL_COMMITS_MAX
            or self._tier1.codec.tail_bytes(manifest.tail) > MANIFEST_TAIL_BYTES_MAX
        ):
            await make_room(self._tier1, self._clock, self._entropy)

    def _now_ms(self) -> int:
        """Commit times never go back along the chain, whatever the clocks of its writers say."""
        return max(self._clock.now_ms(), self._tier1.manifest.last_commit_ms)


def _reservation_key(verb: str, reservation: Reservation) -> str:
    return fingerprint("reservation", verb, reservation.tx_id, str(reservation.attempt), reservation.entry.uuid)


def _nothing() -> None:
    """Nobody wants to know of commits."""


def _settle(waiting: _Waiting, sequence: int) -> None:
    if not waiting.settled.done():
        waiting.settled.set_result(sequence)


def _settle_as(waiting: _Waiting, found: Found) -> None:
    """What is in the chain under this key already: the same operation, or the word that it was refused."""
    if found.void and not isinstance(waiting.operation, Void):
        _refuse(waiting, GivenUp("this request was given up"))
    else:
        _settle(waiting, found.sequence)


def _refuse(waiting: _Waiting, error: Exception) -> None:
    if not waiting.settled.done():
        waiting.settled.set_exception(error)
