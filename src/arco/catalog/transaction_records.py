"""The record of a transaction: the one object whose swing makes a commit of several tables visible.

    preparing   an attempt is under way: what it put into pointers waits for the decision
    waiting     no attempt is under way: nothing that was put into pointers counts, and its own key may begin the next
    committed   decided: exactly the parts that the record names count, each by its location and its attempt
    aborted     refused for ever, with the reason that every retry hears

Whoever meets an attempt that stands in the way sends its record back to waiting; from then on that attempt cannot decide, for
the decision swings exactly the record that the attempt was begun with. The record comes first and the pointer after it: nobody
touches what a transaction put into a pointer before its record says what is true. Only a definite "there is none" means that
nothing was committed; a record that cannot be read is an error that names it (hazard 9).
"""

from enum import StrEnum
from typing import Any

import msgspec

from arco.catalog.answers import Refusal
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.ids import TransactionId, clip, is_uuid
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held, SwapOutcome
from arco.storage.keys import TransactionKey
from arco.storage.port import ObjectStore

_FORMAT_VERSION = 1


class Status(StrEnum):
    PREPARING = "preparing"
    WAITING = "waiting"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Part(msgspec.Struct, frozen=True):
    """What one table comes to, as the decision fixed it."""

    table_uuid: str
    metadata_location: str
    attempt: int


class Record(msgspec.Struct, frozen=True):
    """One transaction. `attempt` counts how often it was begun, `owner` is the process that works on it.

    `tables` are all
    whose pointers any of its attempts may have written: whoever cleans up after it looks there and nowhere else.
    """

    tx_id: str
    request_hash: str
    status: Status
    attempt: int
    started_ms: int
    owner: str
    principal: str
    tables: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    unchanged: tuple[str, ...] = ()
    """Tables that took part as they are: the decision needed them to hold still, and made no commit of theirs."""
    decided_ms: int | None = None
    refusal: Refusal | None = None

    def names(self, part: Part) -> bool:
        """Whether this part is in force."""
        return self.status is Status.COMMITTED and part in self.parts

    @property
    def changes(self) -> frozenset[Part]:
        """The parts that are commits, and have receipts."""
        return frozenset(part for part in self.parts if part.table_uuid not in self.unchanged)

    def may_decide(self, attempt: int) -> bool:
        """Whether an attempt could still put what it prepared in force."""
        return self.status is Status.PREPARING and self.attempt == attempt


class RecordCodec:
    """Of one transaction: what says that it is another's is not taken for its record."""

    format = "arco.transaction"

    def __init__(self, tx_id: str) -> None:
        self._tx_id = tx_id

    def encode(self, value: Record) -> tuple[int, dict[str, Any]]:
        fields: dict[str, Any] = msgspec.to_builtins(value)
        return _FORMAT_VERSION, fields

    def decode(self, format_version: int, fields: dict[str, Any]) -> Record:
        if format_version != _FORMAT_VERSION:
            raise UnknownFormat(f"a transaction record of format version {format_version}")
        try:
            record = msgspec.convert(fields, Record)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a transaction record with wrong fields: {error}") from error
        wrong = _nonsense(record, self._tx_id)
        if wrong:
            raise CorruptObject(f"a transaction record {wrong}")
        return record


def _nonsense(record: Record, tx_id: str) -> str:
    """What no process of ours writes. Taken for what it seems to say, it would be a guess about what is true."""
    if record.tx_id != tx_id:
        return f"that says it is of {clip(record.tx_id)!r}"
    if record.attempt < 1:
        return f"of attempt {record.attempt}"
    if record.status is Status.COMMITTED and not record.parts:
        return "that was committed and names no table"
    if record.status is Status.ABORTED and record.refusal is None:
        return "that was aborted and does not say why"
    strange = [one for one in (*record.tables, *(part.table_uuid for part in record.parts)) if not is_uuid(one)]
    return f"that names {clip(strange[0])!r}, which is no table" if strange else ""


class Records:
    """The transactions of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy

    def key(self, tx_id: str) -> str:
        """Where a record lies. The day is that of the id's own time: a retry after midnight finds the same record."""
        return str(TransactionKey(self._scope, TransactionId(tx_id)))

    def object(self, tx_id: str) -> CasObject[Record]:
        return CasObject(self._store, self.key(tx_id), RecordCodec(tx_id), self._clock, self._entropy)

    async def read(self, tx_id: str) -> Held[Record] | None:
        """The record. None only if there definitely is none."""
        return await self.object(tx_id).read()

    async def send_back(self, held: Held[Record]) -> SwapOutcome[Record]:
        """End an attempt that is under way: nothing that it prepared will count. Its own key may begin anew."""
        outcome = await self.object(held.value.tx_id).swap(held, msgspec.structs.replace(held.value, status=Status.WAITING))
        reach("txn.sent_back")
        return outcome
