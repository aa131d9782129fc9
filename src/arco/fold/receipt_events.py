"""Receipts become events: each commit of a table or view is announced in the ledger once its receipt is there.

The event says what the receipt says and what the metadata file said at that commit, so that neither is needed later: a rebuild
reads the ledger alone, and upkeep may collect receipts and metadata files. Its id follows from the commit, so two folders that
announce one commit write the same event. A segment is durable before its receipts count as consumed; who dies in between leaves
events that are announced again, and readers keep one of each id.

What must never enter: the catalog's way to a metadata file; whoever opens the fold gives it in.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.iceberg import metadata_file
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import AskOperator, FixRequest, TooLarge
from arco.kernel.ids import EventId, TransactionId
from arco.kernel.limits import FOLD_READS_MAX
from arco.kernel.position import HybridClock
from arco.kernel.scope import Scope
from arco.ledger.drafts import seal
from arco.ledger.envelope import Event, encode
from arco.ledger.iceberg_events import CommittedMetadata, CommittedSnapshot, TableCommitted
from arco.ledger.receipts import Published, Receipt, decode_receipt
from arco.ledger.segment import segment_sized
from arco.ledger.writer import SegmentWriter
from arco.storage.keys import Domain, TransactionKey
from arco.storage.port import ObjectStore

ReadMetadata = Callable[[str], Awaitable[bytes | None]]
"""The bytes of the metadata file at a location; None if it is gone."""

_FILES_REMEMBERED_MAX = 10_000
_TOLD_MAX = 100_000


@dataclass(frozen=True, slots=True)
class _Before:
    """What a commit finds in the metadata file before it: everything else is new."""

    schemas: frozenset[int] = frozenset()
    snapshots: frozenset[int] = frozenset()
    current: int | None = None


@dataclass(frozen=True, slots=True)
class Announced:
    """Receipts whose commits are in the ledger now, and the segments that were written for it just now.

    What was announced earlier may have been folded, moved aside and forgotten since: only a listing tells.
    """

    receipts: frozenset[str]
    segments: tuple[str, ...]


class ReceiptEvents:
    """Announces commits of one workspace."""

    def __init__(
        self, store: ObjectStore, scope: Scope, read_metadata: ReadMetadata, clock: Clock, entropy: Entropy
    ) -> None:
        self._store = store
        self._scope = scope
        self._read_metadata = read_metadata
        self._clock = clock
        self._positions = HybridClock(clock, entropy)
        self._writer = SegmentWriter(store, scope, Domain.ICEBERG, clock, entropy)
        self._before: dict[str, _Before | None] = {}
        self._told: dict[str, None] = {}
        self._together: dict[str, tuple[str, ...] | None] = {}

    async def append(self, names: Sequence[str]) -> Announced:
        """Announce the commits of some receipts, but for those that cannot be read.

        A receipt that this process announced before is not announced again.
        """
        lines = [(name, line) async for name, _, line in self._told_by([name for name in names if name not in self._told])]
        written = []
        for group in segment_sized(lines):
            written.append(str(await self._writer.write([line for _, line in group])))
            self._told.update(dict.fromkeys(name for name, _ in group))
        told = frozenset(name for name in names if name in self._told)
        while len(self._told) > _TOLD_MAX:
            self._told.pop(next(iter(self._told)))
        return Announced(told, tuple(written))

    async def events(self, names: Sequence[str]) -> list[tuple[str, Event]]:
        """What would be announced of some receipts, for who only reads; those that cannot be read say nothing."""
        return [(name, event) async for name, event, _ in self._told_by(names)]

    async def _told_by(self, names: Sequence[str]) -> AsyncIterator[tuple[str, Event, bytes]]:
        for start in range(0, len(names), FOLD_READS_MAX):
            some = names[start : start + FOLD_READS_MAX]
            receipts = zip(some, await asyncio.gather(*(self._receipt(name) for name in some)), strict=True)
            readable = [(name, one) for name, one in receipts if one is not None]
            # Commit after commit of a table: each finds the file before it in memory.
            readable.sort(key=lambda pair: (pair[1].table_uuid, pair[1].commit.commit_number))
            for name, one in readable:
                yield name, *(await self._sealed(one))

    async def _receipt(self, name: str) -> Receipt | None:
        found = await self._store.get(name)
        if found is None:
            return None
        try:
            return decode_receipt(found.data, name)
        except AskOperator:
            return None

    async def _sealed(self, receipt: Receipt) -> tuple[Event, bytes]:
        committed = await self._committed(receipt)
        try:
            return self._encoded(committed)
        except TooLarge:
            # A schema that no event can hold: the rest is still worth telling.
            metadata = committed.metadata
            small = None if metadata is None else msgspec.structs.replace(metadata, schemas=[])
            return self._encoded(msgspec.structs.replace(committed, metadata=small))

    def _encoded(self, committed: TableCommitted) -> tuple[Event, bytes]:
        draft = committed.draft()
        fresh = draft.id or EventId(self._positions.next())
        now_ms = self._clock.now_ms()
        event = seal(draft, self._scope, fresh_id=fresh, position=self._positions.next(), now_ms=now_ms)
        return event, encode(event)

    async def _committed(self, receipt: Receipt) -> TableCommitted:
        commit = receipt.commit
        document = await self._document(commit.metadata_location)
        return TableCommitted(
            table_uuid=receipt.table_uuid,
            kind=_kind(document, commit.metadata_location),
            commit_key=receipt.commit_key,
            commit_number=commit.commit_number,
            metadata_location=commit.metadata_location,
            previous_metadata_location=commit.previous_metadata_location,
            snapshot_id=commit.snapshot_id,
            committed_ms=commit.at_ms,
            source=commit.source.kind,
            principal=commit.source.principal,
            client=commit.source.client,
            metadata=None if document is None else _metadata(document, await self._file_before(commit), commit),
            transaction=commit.transaction,
            transaction_tables=await self._tables(commit),
        )

    async def _tables(self, commit: Published) -> tuple[str, ...] | None:
        """All tables that changed together with this one, as the record of their transaction says."""
        if commit.transaction is None:
            return None
        if commit.transaction not in self._together:
            found = await self._store.get(str(TransactionKey(self._scope, TransactionId(commit.transaction))))
            self._together[commit.transaction] = None if found is None else _decided_tables(found.data)
            while len(self._together) > _FILES_REMEMBERED_MAX:
                self._together.pop(next(iter(self._together)))
        return self._together[commit.transaction]

    async def _file_before(self, commit: Published) -> _Before | None:
        """What there was before a commit; None if nobody can tell."""
        location = commit.previous_metadata_location
        if location is None:
            return _Before()
        if location not in self._before:
            await self._document(location)
        return self._before[location]

    async def _document(self, location: str) -> dict[str, Any] | None:
        """A metadata file as it is read. One that is gone, damaged, or outside what may be read says nothing."""
        try:
            data = await self._read_metadata(location)
            document = None if data is None else metadata_file.from_bytes(data, location)
        except (AskOperator, FixRequest):
            document = None
        found = document if isinstance(document, dict) else None
        self._before[location] = None if found is None else _as_before(found)
        while len(self._before) > _FILES_REMEMBERED_MAX:
            self._before.pop(next(iter(self._before)))
        return found


class _Part(msgspec.Struct):
    table_uuid: str


class _Decided(msgspec.Struct):
    """As much of a transaction's record as is told."""

    parts: tuple[_Part, ...]
    unchanged: tuple[str, ...] = ()


def _decided_tables(record: bytes) -> tuple[str, ...] | None:
    """A record that cannot be read says nothing here: who reads tables is told of it."""
    try:
        decided = msgspec.json.decode(record, type=_Decided)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return tuple(part.table_uuid for part in decided.parts if part.table_uuid not in decided.unchanged)


def _kind(document: dict[str, Any] | None, location: str) -> str:
    if document is not None:
        return "view" if "view-uuid" in document else "table"
    return "view" if "/views/" in location else "table"


def _as_before(document: dict[str, Any]) -> _Before | None:
    try:
        snapshots = frozenset(int(one["snapshot-id"]) for one in document.get("snapshots") or [])
        schemas = frozenset(int(one.get("schema-id", 0)) for one in _schemas(document))
        return _Before(schemas, snapshots, _current_snapshot(document))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _metadata(document: dict[str, Any], before: _Before | None, commit: Published) -> CommittedMetadata | None:
    """What an event says of a document. Whatever does not have the shape of one says nothing."""
    try:
        current, snapshots = _current_schema(document), [_snapshot(one) for one in document.get("snapshots") or []]
        known = frozenset() if before is None else before.schemas
        return CommittedMetadata(
            format_version=int(document["format-version"]),
            location=str(document["location"]),
            last_sequence_number=int(document.get("last-sequence-number") or 0),
            current_schema_id=current,
            schemas=[one for one in _schemas(document) if (i := one.get("schema-id", 0)) not in known or i == current],
            current=next((one for one in snapshots if one.snapshot_id == commit.snapshot_id), None),
            added=_added(snapshots, before),
            moved=None if before is None else _current_snapshot(document) != before.current,
        )
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration):
        return None


def _schemas(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All schemas. A table of format version 1 may have its one schema under the old name."""
    return document.get("schemas") or ([document["schema"]] if "schema" in document else [])


def _current_schema(document: dict[str, Any]) -> int | None:
    if "view-uuid" in document:
        version = document["current-version-id"]
        found = next(one["schema-id"] for one in document["versions"] if one["version-id"] == version)
        return int(found)
    last = _schemas(document)[-1].get("schema-id", 0) if _schemas(document) else None
    current = document.get("current-schema-id", last)
    return None if current is None else int(current)


def _current_snapshot(document: dict[str, Any]) -> int | None:
    """What is read on main. Writers of the first format version say -1 where there is nothing."""
    found = document.get("current-snapshot-id")
    return None if found is None or int(found) == -1 else int(found)


def _added(snapshots: list[CommittedSnapshot], before: _Before | None) -> tuple[CommittedSnapshot, ...]:
    if before is None:
        newest = max(snapshots, key=lambda one: (one.sequence_number, one.at_ms), default=None)
        return () if newest is None else (newest,)
    return tuple(one for one in snapshots if one.snapshot_id not in before.snapshots)


def _snapshot(document: dict[str, Any]) -> CommittedSnapshot:
    summary = {str(word): str(value) for word, value in (document.get("summary") or {}).items()}
    return CommittedSnapshot(
        snapshot_id=int(document["snapshot-id"]),
        parent_snapshot_id=document.get("parent-snapshot-id"),
        sequence_number=int(document.get("sequence-number") or 0),
        schema_id=document.get("schema-id"),
        at_ms=int(document["timestamp-ms"]),
        operation=summary.get("operation"),
        summary=summary,
    )
