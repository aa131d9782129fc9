"""Commits of several tables that become visible together, under any crash, with no database.

    claim the record ∥ stage every part → put every part into its pointer ∥ look at the names → decide → finish

Warm, three rounds however many tables take part, and two more where some are created: their names are one commit of tier 1. The
decision is one swing of the record, and of exactly the record that this attempt was begun with; it names every part by its
location and its attempt. Readers and writers of single tables ask that record, so a part counts from the moment of the
decision, finished or not. Before it nothing counts: an attempt that ends early sends its record back, and what it left in
pointers is nobody's. There is no second look at the pointers before the decision: nobody touches a part before its record says
what is true, so there is nothing that it could find.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from arco.catalog.afterwards import beside, to_the_end, together
from arco.catalog.catalog import Catalog
from arco.catalog.doubt import doubt
from arco.catalog.idempotency import RequestKey
from arco.catalog.in_hand import InHand
from arco.catalog.model import Entry, Kind, Levels, dotted
from arco.catalog.names import Names, missing
from arco.catalog.staging import assigned_uuid, begun_in_vain
from arco.catalog.transaction_records import Record, Status
from arco.iceberg import requirements
from arco.iceberg.requests import CommitTable
from arco.kernel.crash_points import reach
from arco.kernel.errors import (
    ArcoError,
    AskOperator,
    Conflict,
    FixRequest,
    InvalidInput,
    OutcomeUnknown,
    Refresh,
    RetryLater,
)
from arco.kernel.limits import SWAP_ATTEMPTS_MAX, TRANSACTION_TABLES_EVER_MAX, TRANSACTION_TABLES_MAX
from arco.ledger.receipts import Source
from arco.storage.cas import Held, Overtaken, Swung
from arco.storage.port import Lost, Unknown
from arco.storage.readback import pause_s
from arco.txn.claims import Claims
from arco.txn.creations import NO_ASSETS, Assets, Creations, Described, Reserved
from arco.txn.parts import Parts, Prepared, Staged, TableGone

T = TypeVar("T")

Place = tuple[Levels, str]
Wanted = dict[Place, list[CommitTable]]
"""The changes of a request, by table, in order."""
Meant = dict[Place, Entry | None]
"""The tables that names mean, None for one to be created."""


class Transactions:
    """Transactions of one workspace."""

    def __init__(self, catalog: Catalog, tables_max: int = TRANSACTION_TABLES_MAX) -> None:
        self._catalog = catalog
        self._tables_max = tables_max
        self._in_hand = InHand(catalog.parts.ulids.next())

    async def commit(
        self, changes: Sequence[CommitTable], key: RequestKey, source: Source, assets: Assets = NO_ASSETS
    ) -> None:
        """All of it, or nothing and why. What a retry of a finished request gets is what it got the first time.

        `assets` are the identities of tables that it creates, where they have one already.
        """
        wanted = _by_table(changes)
        claims = Claims(self._catalog.parts, self._in_hand)
        with self._in_hand.working(key.key):
            await _Request(self._catalog, claims, wanted, key, source, assets, self._tables_max).run()


def _by_table(changes: Sequence[CommitTable]) -> Wanted:
    if not changes:
        raise InvalidInput("a transaction without table changes")
    wanted: Wanted = {}
    for change in changes:
        if change.identifier is None:
            raise InvalidInput("a table change has no identifier")
        wanted.setdefault((change.identifier.namespace, change.identifier.name), []).append(change)
    # More than any server takes were never committed anywhere.
    _refuse_too_many(wanted, TRANSACTION_TABLES_EVER_MAX)
    _refuse_one_identity_twice(wanted)
    return wanted


def _refuse_too_many(wanted: Wanted, tables_max: int) -> None:
    if len(wanted) > tables_max:
        could = len(wanted) <= TRANSACTION_TABLES_EVER_MAX
        raise InvalidInput(
            f"a transaction over {len(wanted)} tables, more than {tables_max}",
            hint=f"split it{', or start the server with --transaction-tables, and use a new key' if could else ''}",
        )


def _refuse_one_identity_twice(wanted: Wanted) -> None:
    """Of two names for one new table one would be left out, and the answer say that both are there."""
    names: dict[str, Place] = {}
    for place, uuid in _assigned(wanted):
        other = names.setdefault(uuid, place)
        if other != place:
            raise InvalidInput(
                f"{dotted(*other)} and {dotted(*place)} are both created with the uuid {uuid}",
                hint="stage each table by itself, and send its own assign-uuid",
            )


def _assigned(wanted: Wanted) -> list[tuple[Place, str]]:
    """What the request creates, as far as it says, by name."""
    firsts = ((place, changes[0]) for place, changes in wanted.items())
    found = [(place, assigned_uuid(first)) for place, first in firsts if requirements.creates(first.requirements)]
    return [(place, uuid) for place, uuid in found if uuid is not None]


@dataclass(frozen=True, slots=True)
class _Staging:
    """What the names meant, and what was staged for it or why not. Nothing is meant where that alone is why not."""

    meant: Meant
    parts: list[Staged | Described] | ArcoError | TableGone


@dataclass(frozen=True, slots=True)
class _Again:
    """The record, or a name, is no longer what this attempt was begun with."""


class _Request:
    """One request on its way, across as many attempts as it takes."""

    def __init__(
        self,
        catalog: Catalog,
        claims: Claims,
        wanted: Wanted,
        key: RequestKey,
        source: Source,
        assets: Assets,
        tables_max: int,
    ) -> None:
        self._catalog = catalog
        self._ws = catalog.parts
        self._claims = claims
        self._wanted = wanted
        self._key = key
        self._tables_max = tables_max
        self._source = source
        self._parts = Parts(catalog, key, source)
        self._creations = Creations(catalog, key, source, assets)

    async def run(self) -> None:
        if not self._key.durable:
            _refuse_too_many(self._wanted, self._tables_max)
        try:
            await self._attempts()
        except RetryLater as silence:
            if self._key.durable or not self._creations.begun:
                raise
            raise begun_in_vain(silence) from silence

    async def _attempts(self) -> None:
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                await self._ws.clock.sleep(pause_s(min(attempt, 5), self._ws.entropy))
            if await self._attempt(warm=attempt == 0):
                return
        raise OutcomeUnknown("this transaction was interrupted by others all the time; it may be tried again")

    async def _attempt(self, *, warm: bool) -> bool:
        """One attempt. False if another is needed."""
        if self._ws.tier1.held is None:
            await self._known(self._ws.tier1.current())
            self._refuse_if_nothing_is_here()
        existing = [entry.uuid for entry in self._found()]
        tables = [*existing, *(uuid for _, uuid in _assigned(self._wanted))]
        async with AsyncExitStack() as lines:
            for uuid in sorted(existing):
                # In one order for all, so that nobody of this process waits for one who waits for him.
                await lines.enter_async_context(self._catalog.table_commits.lines.at_the_head(uuid))
            staging = asyncio.ensure_future(self._staged(warm=warm))
            try:
                record = await self._known(self._claims.begin(self._key, self._source.principal, tables))
            finally:
                await asyncio.wait([staging])
            if record is None:
                return True
            return await self._with(record, staging.result())

    def _refuse_if_nothing_is_here(self) -> None:
        """In a workspace that nobody made every name is missing. A no that nobody can ask for again leaves no record."""
        if self._ws.tier1.held is not None or self._key.durable:
            return
        for place, changes in self._wanted.items():
            _meant(self._ws.tier1.names, place, changes[0])
            self._ws.tier1.names.namespace(place[0])

    async def _known(self, work: Awaitable[T]) -> T:
        """Before our own claim answered, an earlier attempt may have done it all."""
        if not self._key.durable:
            return await work
        with doubt():
            return await work

    async def _with(self, record: Held[Record], staging: _Staging) -> bool:
        """Prepare and decide. Whatever goes wrong before the decision leaves nothing that counts."""
        try:
            prepared = await self._judged(record.value, staging)
        except TableGone:
            await self._claims.leave(record)
            return False
        except (FixRequest, Refresh) as refusal:
            if await self._claims.refuse(record, refusal):
                raise
            return False
        except ArcoError as error:
            if not await self._claims.leave(record):
                raise OutcomeUnknown(f"another attempt of this transaction is at work: {error.message}") from error
            raise _nothing_happened(error) from error
        if isinstance(prepared, _Again):
            await self._claims.leave(record)
            return False
        return await self._decide(record, prepared)

    # Names

    def _found(self) -> list[Entry]:
        names = self._ws.tier1.names
        found = (names.find(levels, name, Kind.TABLE) for levels, name in self._wanted)
        return [entry for entry in found if entry is not None]

    async def _resolve(self, *, warm: bool) -> Meant:
        """None is missed on what is only remembered."""
        names = self._ws.tier1.names
        if not warm or len(self._found()) < len(self._wanted):
            names = (await self._ws.tier1.current()).names
        return {place: _meant(names, place, changes[0]) for place, changes in self._wanted.items()}

    def _still_mean(self, meant: Meant) -> bool:
        """Whether the names mean the same tables, as far as tier 1 is known now."""
        names = self._ws.tier1.names
        return all(_uuid(names.find(*place, Kind.TABLE)) == _uuid(entry) for place, entry in meant.items())

    # The steps

    async def _staged(self, *, warm: bool) -> _Staging:
        """Every part, computed and written; or why not, to be judged when the claim has answered.

        Also the limit: a server that allows more may have done it before (C6).
        """
        meant: Meant = {}
        try:
            _refuse_too_many(self._wanted, self._tables_max)
            staged_before = self._creations.look_up([uuid for _, uuid in _assigned(self._wanted)])
            meant = await beside(self._resolve(warm=warm), staged_before)
            work = [asyncio.ensure_future(self._stage(place, entry, warm=warm)) for place, entry in meant.items()]
            return _Staging(meant, await to_the_end(work))
        except (ArcoError, TableGone) as error:
            return _Staging(meant, error)

    async def _stage(self, place: Place, entry: Entry | None, *, warm: bool) -> Staged | Described:
        changes = self._wanted[place]
        if entry is None:
            return await self._creations.describe(*place, changes)
        return await self._parts.stage(entry, changes, warm=warm)

    async def _judged(self, record: Record, staging: _Staging) -> list[Prepared | Reserved] | _Again:
        """A no is an answer about now, whatever it was found in: the tables that it is about must be what the names mean (C6)."""
        try:
            return await self._prepare(record, staging)
        except (FixRequest, Refresh):
            await self._ws.tier1.current()
            if self._still_mean(staging.meant):
                raise
            return _Again()

    async def _prepare(self, record: Record, staging: _Staging) -> list[Prepared | Reserved] | _Again:
        """Every part into its pointer, and beside it a look whether the names still mean these tables (C2)."""
        staged = staging.parts
        if isinstance(staged, Exception):
            raise staged
        if not {one.uuid for one in staged} <= set(record.tables):
            return _Again()
        seen = self._ws.tier1.seen
        names_check = asyncio.ensure_future(self._ws.tier1.is_unchanged(seen))
        pairs = list(zip(staging.meant, staged, strict=True))
        changed = [(self._wanted[place], one) for place, one in pairs if isinstance(one, Staged)]
        work = [asyncio.ensure_future(self._parts.prepare(one, changes, record)) for changes, one in changed]
        preparing = asyncio.ensure_future(to_the_end(work))
        created = [one for one in staged if isinstance(one, Described)]
        reserving = asyncio.ensure_future(self._creations.reserve(created, record))
        await together(names_check, preparing, reserving)
        if not names_check.result():
            await self._ws.tier1.renewed()
        return [*preparing.result(), *reserving.result()] if self._still_mean(staging.meant) else _Again()

    async def _decide(self, held: Held[Record], prepared: list[Prepared | Reserved]) -> bool:
        """The one swing that makes it visible."""
        decided = msgspec.structs.replace(
            held.value,
            status=Status.COMMITTED,
            parts=tuple(one.part for one in prepared),
            unchanged=tuple(one.staged.uuid for one in prepared if isinstance(one, Prepared) and one.staged.is_unchanged),
            decided_ms=self._ws.clock.now_ms(),
        )
        outcome = await self._ws.records.object(held.value.tx_id).swap(held, decided)
        reach("txn.decided")
        match outcome:
            case Swung() | Overtaken():
                self._finish(prepared)
                return True
            case Lost():
                return False
            case Unknown(reason):
                raise OutcomeUnknown(f"the record of this transaction did not say whether it was decided: {reason}")

    def _finish(self, prepared: list[Prepared | Reserved]) -> None:
        """What is left to do, and protects nothing: whoever comes next would do it."""
        created = [one for one in prepared if isinstance(one, Reserved)]
        if created:
            self._ws.afterwards.do(self._creations.finish(created))
        for one in prepared:
            if isinstance(one, Prepared):
                self._parts.remember(one)
                self._ws.afterwards.do(self._parts.finish(one))


def _meant(names: Names, place: Place, first: CommitTable) -> Entry | None:
    """The table of a name; None if there is none and the request is meant to make it."""
    entry = names.find(*place, Kind.TABLE)
    if entry is not None:
        return entry
    if names.find(*place, Kind.VIEW) is not None:
        raise InvalidInput(f"{dotted(*place)} is a view", hint="a transaction changes tables; commit views one by one")
    if not requirements.creates(first.requirements):
        raise missing(*place, Kind.TABLE)
    if names.entry(place) is not None:
        # A table of another format, which Iceberg's routes do not show, has the name all the same.
        raise Conflict("Requirement failed: table already exists")
    return None


def _uuid(entry: Entry | None) -> str | None:
    return None if entry is None else entry.uuid


def _nothing_happened(error: ArcoError) -> ArcoError:
    """What to say of an attempt that was ended for certain: an unknown outcome of one of its steps matters no more."""
    if isinstance(error, RetryLater | AskOperator):
        return error
    return RetryLater(f"this transaction was not committed: {error.message}")
