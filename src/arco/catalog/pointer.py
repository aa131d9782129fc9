"""The pointer: the one object of a table (or view) that says which metadata file is current.

Swinging it is the commit. One function reads it for everybody, `Pointers.read`, and gives the pointer as it counts: a change
that a transaction put there is in force if and only if the transaction's record, read after the pointer, names exactly it. What
is not decided yet is still in `pending`, and nobody may swing such a pointer: writers ask for it by `Pointers.settled`. What is
written over a decided change is the pointer as it counts, and so the change is finished, or gone.

A pointer dies as a tombstone that names its drop, so that commits under way fail; it is never deleted while a name, an undrop
or a slow writer could still need it.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from arco.catalog.model import Kind
from arco.catalog.operations import Create
from arco.catalog.transaction_records import Part, Records
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import BrokenInvariant, CorruptObject, OutcomeUnknown, RetryLater, UnknownFormat
from arco.kernel.ids import TableUuid, clip, time_said
from arco.kernel.limits import POINTER_CACHE_TABLES_MAX, TRANSACTION_POLL_S, TRANSACTION_STALE_S, TRANSACTION_WAIT_S
from arco.kernel.scope import Scope
from arco.ledger.receipts import Published, Source
from arco.storage.cas import CasObject, Held, SwapOutcome
from arco.storage.keys import PointerKey
from arco.storage.port import ObjectInfo, ObjectStore

_FORMAT_VERSION = 1
_FORMAT_VERSION_PENDING = 2
"""Written only while a change is pending: what knows no transactions must refuse such a pointer, not overlook the change."""

GRAVE = "upkeep"
"""Who buried a pointer that never had a name."""


class Tombstone(msgspec.Struct, frozen=True):
    """A drop that has begun: whoever meets it finishes it, if the name still has this binding.

    `successor` is what takes the name in the same step, where a table is registered over another. `unregistered`: upkeep never
    touches its files, whatever tier 1 remembers of it.
    """

    drop_id: str
    binding: int
    purge: bool
    principal: str
    key_hash: str
    successor: Create | None = None
    unregistered: bool = False


class Ref(msgspec.Struct, frozen=True):
    snapshot_id: int
    type: str


class Pending(msgspec.Struct, frozen=True):
    """A change that a transaction prepared here. It counts if the record, whose whole key is `record`, names it."""

    tx_id: str
    record: str
    attempt: int
    change: Published
    refs: dict[str, Ref]
    last_sequence_number: int
    prepared_ms: int

    def part(self, table_uuid: str) -> Part:
        return Part(table_uuid, self.change.metadata_location, self.attempt)


class Pointer(msgspec.Struct, frozen=True):
    """What is current. `commit_number` counts the table's commits and names its metadata files.

    `binding` is the one that the pointer was last brought to life for: a drop of an older one is too late.
    """

    table_uuid: str
    kind: Kind
    commit_number: int
    metadata_location: str
    previous_metadata_location: str | None
    snapshot_id: int | None
    refs: dict[str, Ref]
    last_sequence_number: int
    updated_at_ms: int
    updated_by: Source
    published: tuple[Published, ...]
    created_by: str
    binding: int = 1
    tombstone: Tombstone | None = None
    pending: Pending | None = None

    @classmethod
    def buried(cls, uuid: str, kind: Kind, location: str, at_ms: int, drop_id: str) -> "Pointer":
        """The pointer of an identity that never had a name and never gets one."""
        return cls(
            table_uuid=uuid,
            kind=kind,
            commit_number=0,
            metadata_location=location,
            previous_metadata_location=None,
            snapshot_id=None,
            refs={},
            last_sequence_number=0,
            updated_at_ms=at_ms,
            updated_by=Source(),
            published=(),
            created_by=GRAVE,
            tombstone=Tombstone(drop_id, 1, True, GRAVE, GRAVE),
        )

    def after(self, changes: tuple[Published, ...], refs: dict[str, Ref], last_sequence_number: int) -> "Pointer":
        """The pointer some commits later, which become visible together."""
        change = changes[-1]
        return msgspec.structs.replace(
            self,
            commit_number=change.commit_number,
            metadata_location=change.metadata_location,
            previous_metadata_location=change.previous_metadata_location,
            snapshot_id=change.snapshot_id,
            refs=refs,
            last_sequence_number=last_sequence_number,
            updated_at_ms=change.at_ms,
            updated_by=change.source,
            published=changes,
            pending=None,
        )

    def finished(self, pending: Pending) -> "Pointer":
        """The pointer with a change that counts."""
        return self.after((pending.change,), pending.refs, pending.last_sequence_number)

    def without_pending(self) -> "Pointer":
        return msgspec.structs.replace(self, pending=None)


class PointerCodec:
    """Of one table: a pointer that was copied from another's place would show that one under this name."""

    format = "arco.pointer"

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid

    def encode(self, value: Pointer) -> tuple[int, dict[str, Any]]:
        fields: dict[str, Any] = msgspec.to_builtins(value)
        if value.pending is None:
            del fields["pending"]
            return _FORMAT_VERSION, fields
        return _FORMAT_VERSION_PENDING, fields

    def decode(self, format_version: int, fields: dict[str, Any]) -> Pointer:
        if format_version not in {_FORMAT_VERSION, _FORMAT_VERSION_PENDING}:
            raise UnknownFormat(f"a pointer of format version {format_version}")
        try:
            pointer = msgspec.convert(fields, Pointer)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a pointer with wrong fields: {error}") from error
        if pointer.table_uuid != self._uuid:
            raise CorruptObject(f"it is the pointer of {clip(pointer.table_uuid)}, another table")
        if (pointer.pending is not None) != (format_version == _FORMAT_VERSION_PENDING):
            raise CorruptObject(f"a pointer whose format version {format_version} does not fit its pending change")
        if pointer.pending is not None and time_said(pointer.pending.tx_id) is None:
            raise CorruptObject(f"a pointer with a change of {clip(pointer.pending.tx_id)!r}, which is no transaction")
        if pointer.pending is not None and pointer.tombstone is not None:
            raise CorruptObject("a pointer with both a pending change and a tombstone")
        return pointer


def is_still(held: Held[Pointer], pointer: ObjectInfo | None) -> bool:
    """Whether a pointer that was looked at is what was read. What was not decided then may be now, without a change of it."""
    return held.value.pending is None and pointer is not None and pointer.version == held.version


class Pointers:
    """The pointers of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy, records: Records) -> None:
        self._store = store
        self._scope = scope
        self._records = records
        self._clock = clock
        self._entropy = entropy
        self.key = lru_cache(POINTER_CACHE_TABLES_MAX)(self._key)
        """Where the pointer of a table lies."""

    def _key(self, uuid: str) -> str:
        return str(PointerKey(self._scope, TableUuid(uuid)))

    def object(self, uuid: str) -> CasObject[Pointer]:
        return CasObject(self._store, self.key(uuid), PointerCodec(uuid), self._clock, self._entropy)

    async def read(self, uuid: str) -> Held[Pointer] | None:
        """The pointer as it counts, `pending` only if that is not decided yet. None only if there definitely is none."""
        held = await self.object(uuid).read()
        return held if held is None or held.value.pending is None else await self._as_it_counts(held, held.value.pending)

    async def _as_it_counts(self, held: Held[Pointer], pending: Pending) -> Held[Pointer]:
        pointer = held.value
        if pending.record != self._records.key(pending.tx_id):
            raise CorruptObject(f"the pointer of {pointer.table_uuid} names {pending.record}, which is not its record")
        record = await self._records.read(pending.tx_id)
        if record is None:
            return replace(held, value=pointer.without_pending())
        if pending.attempt > record.value.attempt:
            raise CorruptObject(
                f"{pending.record} is at attempt {record.value.attempt}, the pointer of {pointer.table_uuid} "
                f"at {pending.attempt}",
                hint="run arco verify",
            )
        if record.value.names(pending.part(pointer.table_uuid)):
            return replace(held, value=pointer.finished(pending))
        return held if record.value.may_decide(pending.attempt) else replace(held, value=pointer.without_pending())

    async def settled(self, uuid: str) -> Held[Pointer] | None:
        """The pointer as it counts, for who will swing it: a transaction under way there is waited for, or sent back if stale."""
        waited_s = 0.0
        while True:
            held = await self.read(uuid)
            if held is None or held.value.pending is None:
                return held
            if waited_s >= TRANSACTION_WAIT_S:
                raise RetryLater(f"transaction {held.value.pending.tx_id} is being committed on this table")
            await self._send_back_stale(held.value.pending)
            await self._clock.sleep(TRANSACTION_POLL_S)
            waited_s += TRANSACTION_POLL_S

    async def _send_back_stale(self, pending: Pending) -> None:
        if self._clock.now_ms() - pending.prepared_ms <= TRANSACTION_STALE_S * 1000:
            return
        record = await self._records.read(pending.tx_id)
        if record is not None and record.value.may_decide(pending.attempt):
            await self._records.send_back(record)

    async def is_unchanged(self, held: Held[Pointer]) -> bool:
        """Whether the pointer still is what was read."""
        if held.value.pending is not None:
            return False
        return is_still(held, await self._store.head(self.key(held.value.table_uuid)))

    async def create(self, pointer: Pointer) -> SwapOutcome[Pointer]:
        return await self.object(pointer.table_uuid).create(pointer)

    async def swing(self, base: Held[Pointer], pointer: Pointer) -> SwapOutcome[Pointer]:
        """Replace exactly the pointer that was read. Never over a change that is not decided: it would be half lost."""
        if base.value.pending is not None:
            raise BrokenInvariant(f"transaction {base.value.pending.tx_id} is not decided, and its pointer was to be swung")
        return await self.object(pointer.table_uuid).swap(base, pointer)

    async def prepare(self, base: Held[Pointer], pending: Pending) -> SwapOutcome[Pointer]:
        """Put a transaction's change into exactly the pointer that was read, over none but the transaction's own.

        A later attempt of the same transaction may be decided without a change of the pointer: an earlier one stops here. An
        earlier one that was read before ours took the record over can decide no more.
        """
        there = base.value.pending
        if there is not None and there.tx_id != pending.tx_id:
            raise BrokenInvariant(
                f"transaction {there.tx_id} is not decided, and its pointer was to be prepared for another"
            )
        if there is not None and there.attempt > pending.attempt:
            raise OutcomeUnknown("another attempt of this transaction took over")
        return await self.object(base.value.table_uuid).swap(base, msgspec.structs.replace(base.value, pending=pending))

    async def touch(self, base: Held[Pointer]) -> SwapOutcome[Pointer]:
        """The same content under a new write: every swing prepared against the old version is dead."""
        return await self.swing(base, base.value)
