"""The part of one table that a transaction creates: staged where nobody sees it, its name kept in tier 1 until the decision.

The name is reserved before the decision and becomes the table's by it: everybody who asks for names asks the record of a
transaction that keeps one (`catalog/tier1.py`). A reservation that came to nothing is released by whoever commits to tier 1
next. What must never enter: tables that exist; their parts are in `parts.py`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from arco.catalog.afterwards import to_the_end, together
from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import Levels, Reservation
from arco.catalog.operations import Reserve
from arco.catalog.staging import Intent, assigned_uuid
from arco.catalog.subject import Tables
from arco.catalog.transaction_records import Part, Record
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable
from arco.kernel.crash_points import reach
from arco.kernel.errors import AlreadyExists, Conflict, InvalidInput, OutcomeUnknown, RetryLater
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import TransactionId, time_said
from arco.kernel.limits import SWAP_ATTEMPTS_MAX
from arco.kernel.tallies import Tallied
from arco.ledger.receipts import Source
from arco.txn.meeting import come_to_terms

_TABLES = Tables()
Assets = Mapping[tuple[Levels, str], str]
"""The assets that new tables are of, by their names."""

NO_ASSETS: Assets = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Described:
    """A table that the request creates, as it will be."""

    levels: Levels
    name: str
    metadata: TableMetadata

    @property
    def uuid(self) -> str:
        return self.metadata.table_uuid


@dataclass(frozen=True, slots=True)
class Reserved:
    """A creation whose name waits for the decision."""

    reservation: Reservation

    @property
    def part(self) -> Part:
        return self.reservation.part()


class Creations:
    """The creations of one request. Their time is the key's own: every attempt describes the same table."""

    def __init__(self, catalog: Catalog, key: RequestKey, source: Source, assets: Assets = NO_ASSETS) -> None:
        self._catalog = catalog
        self._ws = catalog.parts
        self._key = key
        self._source = source
        self._assets = assets
        self.begun = False
        """Whether anything was written under the identity of one of them."""
        self._at_ms = TransactionId(key.key).time_ms
        self._intents: dict[str, Intent | None] = {}

    async def look_up(self, uuids: Sequence[str]) -> None:
        """What was said when these tables were staged. Whoever describes them later need not ask."""
        found = await asyncio.gather(*(self._catalog.staging.intent(uuid) for uuid in uuids))
        self._intents = dict(zip(uuids, found, strict=True))

    async def describe(self, levels: Levels, name: str, changes: Sequence[CommitTable]) -> Described:
        """The table after all of its changes; the first of them creates it."""
        first, *others = changes
        uuid = assigned_uuid(first)
        if uuid is None:
            raise InvalidInput("the commit of a new table assigns it no uuid", hint="send assign-uuid")
        self._ws.tier1.names.namespace(levels)
        intent = self._intents[uuid]
        made = await self._catalog.staging.described(name, first, uuid, self._at_ms, intent, _not_done)
        allowed = self._catalog.table_commits.allowed
        return Described(levels, name, _TABLES.committed_in_turn(made, others, self._at_ms, None, allowed))

    async def reserve(self, described: Sequence[Described], record: Record) -> list[Reserved]:
        """Write the tables where nobody sees them, and keep their names: all of them by one commit of tier 1."""
        self.begun = self.begun or bool(described)
        locations = await to_the_end([asyncio.ensure_future(self._stage(one)) for one in described])
        asked = [self._operation(one, location, record) for one, location in zip(described, locations, strict=True)]
        await to_the_end([asyncio.ensure_future(self._submit(one)) for one in asked])
        return [Reserved(one.reservation) for one in asked]

    async def _stage(self, one: Described) -> str:
        return await self._catalog.tables.stage_new(one.metadata, self._key, self._source, one.uuid, self._key.key)

    def _operation(self, described: Described, location: str, record: Record) -> Reserve:
        uuid, tables = described.uuid, self._catalog.tables
        place = _TABLES.place(described.metadata)
        asset = self._assets.get((described.levels, described.name))
        entry = tables.new_entry(uuid, described.levels, described.name, place, self._at_ms, asset)
        reservation = Reservation(entry, record.tx_id, record.attempt, location)
        key_hash = fingerprint("reservation", "reserve", record.tx_id, str(record.attempt), uuid)
        minted_ms = min(self._at_ms, time_said(reservation.entry.uuid) or self._at_ms)
        return Reserve(key_hash=key_hash, reservation=reservation, minted_ms=minted_ms)

    async def _submit(self, operation: Reserve) -> None:
        """Keep the name, or come to terms with who keeps it already."""
        ws, entry = self._ws, operation.reservation.entry
        author, waited_s = Author(self._source.principal, self._source.client), 0.0
        for _ in range(SWAP_ATTEMPTS_MAX * 4):
            try:
                await ws.committer.submit(operation, since=ws.tier1.seen.sequence, author=author)
            except AlreadyExists as taken:
                raise Conflict("Requirement failed: table already exists") from taken
            except RetryLater:
                there = ws.tier1.names.reserved.get((entry.namespace, entry.name))
                if there is None:
                    raise
                if there.tx_id == self._key.key:
                    raise OutcomeUnknown("another attempt of this transaction took over") from None
                waited_s += await come_to_terms(ws, self._key.key, there.tx_id, there.attempt, waited_s)
            else:
                reach("txn.reserved")
                return
        raise RetryLater(f"the name {entry.full_name} was wanted by others all the time")

    async def finish(self, reserved: Sequence[Reserved]) -> None:
        """Give the tables their names, and their first commits the receipts. If we die before, whoever comes next does it."""
        await self._ws.committer.bring_in_names()
        reach("txn.named")
        for _ in reserved:
            self._ws.tallies.add(Tallied.STAGED_CREATED)
        await together(*(self._first_receipt(one.reservation) for one in reserved))

    async def _first_receipt(self, reservation: Reservation) -> None:
        await self._catalog.tables.first_receipt(reservation.entry.uuid, reservation.metadata_location)


async def _not_done() -> bool:
    """A transaction that was committed is answered from its record, and never comes here."""
    return False
