"""The part of one table that exists in a transaction: computed, written where nobody sees it, put into the table's pointer.

All tables of a transaction go through here side by side. A part that meets another transaction in its pointer comes to terms
with that one first (`meeting.py`). What must never enter: tables that the transaction creates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arco.catalog.afterwards import beside, together
from arco.catalog.bases import Base
from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.model import Entry
from arco.catalog.pointer import Pending, Pointer
from arco.catalog.standing import in_step
from arco.catalog.subject import Tables, adopted
from arco.catalog.transaction_records import Part, Record
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError, OutcomeUnknown, RetryLater
from arco.kernel.limits import COMMIT_LASTS_S_MAX, SWAP_ATTEMPTS_MAX
from arco.ledger.receipts import Published, Source
from arco.storage.cas import Held, Overtaken, Swung
from arco.storage.keys import Phase
from arco.storage.port import Lost, Unknown
from arco.storage.readback import pause_s
from arco.txn.meeting import come_to_terms

_TABLES = Tables()


@dataclass(frozen=True, slots=True)
class Staged:
    """A part whose metadata file is written, on a base that its pointer may still have."""

    entry: Entry
    base: Base[TableMetadata]
    metadata: TableMetadata
    change: Published

    @property
    def uuid(self) -> str:
        return self.entry.uuid

    @property
    def is_unchanged(self) -> bool:
        """The table takes part as it is: nobody may change it before the decision."""
        return self.metadata is self.base.metadata


@dataclass(frozen=True, slots=True)
class Prepared:
    """A part that its table's pointer holds as pending."""

    staged: Staged
    pointer: Held[Pointer]
    pending: Pending

    @property
    def part(self) -> Part:
        return self.pending.part(self.staged.uuid)


class Parts:
    """The parts of one request."""

    def __init__(self, catalog: Catalog, key: RequestKey, source: Source) -> None:
        self._catalog = catalog
        self._ws = catalog.parts
        self._bases = catalog.table_commits.bases
        self._lines = catalog.table_commits.lines
        self._swings = catalog.table_commits.swings
        self._allowed = catalog.table_commits.allowed
        self._key = key
        self._source = source
        self._begun_ms = catalog.parts.clock.now_ms()

    # Compute and write

    async def stage(self, entry: Entry, changes: Sequence[CommitTable], *, warm: bool) -> Staged:
        """Compute one table's change on a base, and write its file beside the receipts of what it is based on."""
        base, metadata = await self._computed(entry, changes, warm=warm)
        if metadata is base.metadata:
            await together(*self._swings.receipts_owed(base))
            return Staged(entry, base, metadata, base.pointer.value.published[-1])
        number = base.pointer.value.commit_number + 1
        location = _TABLES.metadata_file(metadata, self._ws.files.name(self._key, number, entry.uuid))
        data = _TABLES.encode(metadata, location)
        found = await beside(self._ws.files.write(location, data), *self._swings.receipts_owed(base))
        written = metadata if found is data else adopted(_TABLES, found, location, metadata)
        facts = _TABLES.facts(written)
        change = Published(
            event_id=self._ws.ulids.next(),
            commit_number=number,
            metadata_location=location,
            previous_metadata_location=base.location,
            snapshot_id=facts.snapshot_id,
            at_ms=facts.at_ms,
            source=self._source,
            transaction=self._key.key,
        )
        return Staged(entry, base, written, change)

    async def _computed(
        self, entry: Entry, changes: Sequence[CommitTable], *, warm: bool
    ) -> tuple[Base[TableMetadata], TableMetadata]:
        """On what is remembered if that works; never refused on that alone."""
        known = self._bases.known(entry.uuid) if warm else None
        if known is not None and in_step(entry, known.pointer):
            try:
                return known, self._after(known, changes)
            except ArcoError:
                self._bases.forget(entry.uuid)
        base = await self._free_base(entry)
        return base, self._after(base, changes)

    def _after(self, base: Base[TableMetadata], changes: Sequence[CommitTable]) -> TableMetadata:
        now_ms, location = self._ws.clock.now_ms(), base.location
        return _TABLES.committed_in_turn(base.metadata, changes, now_ms, location, self._allowed)

    async def _free_base(self, entry: Entry) -> Base[TableMetadata]:
        """The table as it is now, with no other transaction before us in its pointer."""
        waited_s = 0.0
        for _ in range(SWAP_ATTEMPTS_MAX * 4):
            base = await self._bases.read(entry.uuid)
            pending = None if base is None else base.pointer.value.pending
            if pending is not None and pending.tx_id != self._key.key:
                waited_s += await come_to_terms(self._ws, self._key.key, pending.tx_id, pending.attempt, waited_s)
            elif base is not None and in_step(entry, base.pointer):
                return base
            else:
                await self._ws.tier1.current()
                named = self._ws.tier1.names.by_uuid(entry.uuid)
                if named is None:
                    raise TableGone(entry.full_name)
                await self._catalog.tables.bring_in_step(named, base)
        raise OutcomeUnknown(f"table {entry.full_name} was changed by others all the time")

    # Into the pointer

    async def prepare(self, staged: Staged, changes: Sequence[CommitTable], record: Record) -> Prepared:
        """Put the part into its pointer. Where the base is no longer current, on a newer one, while the requirements hold."""
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                await self._ws.clock.sleep(pause_s(min(attempt, 5), self._ws.entropy))
                staged = await self.stage(staged.entry, changes, warm=False)
            self._give_up_if_late(staged)
            pending = self._pending(staged, record)
            outcome = await self._ws.pointers.prepare(staged.base.pointer, pending)
            reach("txn.prepared")
            self._bases.forget(staged.uuid)
            match outcome:
                case Swung(held):
                    return Prepared(staged, held, pending)
                case Overtaken() | Lost():
                    continue
                case Unknown(reason):
                    raise OutcomeUnknown(f"the pointer of {staged.entry.full_name} could not be written: {reason}")
        raise RetryLater(f"table {staged.entry.full_name} was changed by others all the time")

    def _give_up_if_late(self, staged: Staged) -> None:
        """As a commit of one table is: files that nothing names are kept for a time only (`catalog/commits.py`)."""
        if self._ws.clock.now_ms() - self._begun_ms > COMMIT_LASTS_S_MAX * 1000:
            raise RetryLater(
                f"a change of {staged.entry.full_name} was under way for half a day, and its files may be gone"
            )

    def _pending(self, staged: Staged, record: Record) -> Pending:
        facts = _TABLES.facts(staged.metadata)
        return Pending(
            tx_id=record.tx_id,
            record=self._ws.records.key(record.tx_id),
            attempt=record.attempt,
            change=staged.change,
            refs=facts.refs,
            last_sequence_number=facts.last_sequence_number,
            prepared_ms=self._ws.clock.now_ms(),
        )

    # After the decision

    def remember(self, prepared: Prepared) -> None:
        """What is current now: the next commit of this process can be computed on it at once."""
        self._bases.remember(Base(_counting(prepared), prepared.staged.metadata))

    async def finish(self, prepared: Prepared) -> None:
        """The receipt, and the pointer without its pending. If we die before, whoever comes next does it.

        In line with those who commit to this table: beside them one of the two would have prepared for nothing. And whoever came
        first has moved the pointer on, so that there is nothing left to do.
        """
        uuid = prepared.staged.uuid
        await self._ws.receipts.ensure(Phase.COMMITTED, uuid, prepared.staged.change)
        reach("txn.receipts_written")
        counting = _counting(prepared)
        async with self._lines.at_the_head(uuid):
            known = self._bases.known(uuid)
            if known is not None and known.pointer.generation > counting.generation:
                return
            outcome = await self._ws.pointers.swing(counting, counting.value)
            reach("txn.finalized")
            if isinstance(outcome, Swung):
                self._bases.remember(Base(outcome.held, prepared.staged.metadata, receipts_exist=True))


def _counting(prepared: Prepared) -> Held[Pointer]:
    return replace(prepared.pointer, value=prepared.pointer.value.finished(prepared.pending))


class TableGone(Exception):
    """A name means another table than when it was looked up: all begins anew."""
