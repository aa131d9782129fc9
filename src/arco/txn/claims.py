"""Beginning a transaction: its record is claimed once, taken over where it was left, and heard where it is decided.

The record is the request's marker: the key names it, and it binds the key to one request. A record that waits, or whose owner
fell silent, begins its next attempt here; every attempt swings the record, so that at most one of them can decide.

A record that waits may be one of which a client was told that nothing was done (503), and it has deleted its files since. Only a
request that the client sent after that may begin on it (C8). One that was passed by a later attempt of the same key was sent
before, and so may one that has been on its way for long: they answer that the outcome is not known.

What must never enter: anything about tables.
"""

from collections.abc import Sequence

import msgspec

from arco.catalog.answers import Refusal, replayed_error
from arco.catalog.idempotency import RequestKey
from arco.catalog.in_hand import InHand
from arco.catalog.transaction_records import Record, Status
from arco.catalog.workspace import Workspace
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError, KeyReused, OutcomeUnknown
from arco.kernel.ids import TransactionId
from arco.kernel.limits import (
    DUPLICATE_POLL_S,
    DUPLICATE_WAIT_S,
    HISTORY_KNOWN_S,
    REQUEST_FRESH_S,
    TRANSACTION_STALE_S,
)
from arco.storage.cas import Held, Overtaken, SwapOutcome, Swung
from arco.storage.port import Lost, Unknown


class Claims:
    """The record of one request, as it begins and ends its attempts. To be made when the request arrives."""

    def __init__(self, ws: Workspace, in_hand: InHand) -> None:
        self._ws = ws
        self._in_hand = in_hand
        self._came_s = ws.clock.monotonic_s()
        self._begun = 0
        """The last attempt that was this request's own."""

    async def begin(self, key: RequestKey, principal: str, tables: Sequence[str]) -> Held[Record] | None:
        """The record, ours to prepare for; None if the transaction is committed. Raises what every retry hears if it is not.

        Raises OutcomeUnknown if another attempt is at work on it and does not come to an end in time.
        """
        now_ms = self._ws.clock.now_ms()
        fresh = Record(
            tx_id=str(TransactionId(key.key)),
            request_hash=key.request_hash,
            status=Status.PREPARING,
            attempt=1,
            started_ms=now_ms,
            owner=self._in_hand.owner,
            principal=principal,
            tables=tuple(tables),
        )
        match await self._ws.records.object(key.key).create(fresh):
            case Swung(held):
                self._begun = 1
                reach("txn.claimed")
                return await self._unless_forgotten(key, held)
            case Overtaken():
                self._begun = 1
                return await self._begun_before(key, tables)
            case Lost():
                return await self._begun_before(key, tables)
            case Unknown(reason):
                raise OutcomeUnknown(f"the record of this transaction could not be written: {reason}")

    async def _unless_forgotten(self, key: RequestKey, held: Held[Record]) -> Held[Record]:
        """A claim that was under way for very long proves nothing: there may have been a record, and upkeep collected it.

        Or upkeep looked for what speaks of the record before it was taken over, and deletes it now.
        """
        if self._may_be_forgotten(key):
            await self.leave(held)
            raise OutcomeUnknown(
                "this transaction was sent so long ago that its record may be gone", hint="look whether it was done"
            )
        return held

    def _may_be_forgotten(self, key: RequestKey) -> bool:
        return self._ws.clock.now_ms() - TransactionId(key.key).time_ms > HISTORY_KNOWN_S * 1000

    async def _begun_before(self, key: RequestKey, tables: Sequence[str]) -> Held[Record] | None:
        waited_s = 0.0
        while True:
            held = await self._existing(key)
            ours: Held[Record] | None = None
            match held.value.status:
                case Status.COMMITTED:
                    return None
                case Status.ABORTED:
                    raise _refusal(held.value)
                case Status.WAITING:
                    self._refuse_if_sent_before(held.value)
                    ours = await self._take_over(held, tables)
                case Status.PREPARING:
                    if self._was_left(held.value):
                        ours = await self._take_over(held, tables)
            if ours is not None:
                return await self._unless_forgotten(key, ours)
            if waited_s >= DUPLICATE_WAIT_S:
                raise OutcomeUnknown("this transaction is still being worked on by another attempt")
            await self._ws.clock.sleep(DUPLICATE_POLL_S)
            waited_s += DUPLICATE_POLL_S

    def _refuse_if_sent_before(self, record: Record) -> None:
        """Whoever sent this record back may have told our client that nothing was done, after it had sent us on our way."""
        if self._begun:
            was_before = record.attempt > self._begun
        else:
            was_before = self._ws.clock.monotonic_s() - self._came_s > REQUEST_FRESH_S
        if was_before:
            raise OutcomeUnknown("a later request of this transaction may have been told that it was not done")

    async def _existing(self, key: RequestKey) -> Held[Record]:
        held = await self._ws.records.read(key.key)
        if held is None:
            raise OutcomeUnknown("the record of this transaction is gone")
        if held.value.request_hash != key.request_hash:
            raise KeyReused("Idempotency-Key reused with different request payload")
        return held

    def _was_left(self, record: Record) -> bool:
        silent_ms = self._ws.clock.now_ms() - record.started_ms
        return silent_ms > TRANSACTION_STALE_S * 1000 or self._in_hand.left_by_us(record.owner, record.tx_id)

    async def _take_over(self, held: Held[Record], tables: Sequence[str]) -> Held[Record] | None:
        """The next attempt of a transaction; None if somebody wrote its record meanwhile."""
        record = held.value
        following = msgspec.structs.replace(
            record,
            status=Status.PREPARING,
            attempt=record.attempt + 1,
            started_ms=self._ws.clock.now_ms(),
            owner=self._in_hand.owner,
            tables=tuple(dict.fromkeys((*record.tables, *tables))),
        )
        match await self._ws.records.object(record.tx_id).swap(held, following):
            case Swung(ours):
                self._begun = following.attempt
                reach("txn.claimed")
                return ours
            case Overtaken():
                self._begun = following.attempt
                return None
            case Lost():
                return None
            case Unknown(reason):
                raise OutcomeUnknown(f"the record of this transaction could not be written: {reason}")

    async def refuse(self, held: Held[Record], refusal: ArcoError) -> bool:
        """Make a no durable, before it is said. False if the record is no longer ours: look again what it says."""
        no = msgspec.structs.replace(
            held.value,
            status=Status.ABORTED,
            decided_ms=self._ws.clock.now_ms(),
            refusal=Refusal.of(refusal),
        )
        outcome = await self._ws.records.object(held.value.tx_id).swap(held, no)
        reach("txn.aborted")
        return _landed(outcome, "whether it was refused")

    async def leave(self, held: Held[Record]) -> bool:
        """Stop working on it, with nothing done: what was prepared does not count. False if it was no longer ours."""
        return _landed(await self._ws.records.send_back(held), "whether it was given up")


def _landed(outcome: SwapOutcome[Record], what: str) -> bool:
    """Whether the record says what was written. Where somebody wrote since, only the record knows what is true now."""
    match outcome:
        case Swung():
            return True
        case Overtaken() | Lost():
            return False
        case Unknown(reason):
            raise OutcomeUnknown(f"the record of this transaction did not say {what}: {reason}")


def _refusal(record: Record) -> ArcoError:
    if record.refusal is None:
        raise OutcomeUnknown("the record of this transaction was aborted and does not say why")
    return replayed_error(record.refusal)
