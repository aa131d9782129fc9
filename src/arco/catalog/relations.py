"""Tables and views by name: load, create, drop, rename.

The tier-1 commit is the gate of visibility: a pointer or a metadata file without a name is garbage, not a table. A drop goes
the other way round: first the pointer becomes a tombstone, so that commits under way fail, then the name goes. Whoever meets
a tombstone of the current binding finishes the drop before answering; one of an older binding was undone by an undrop or is
older than a rename, and the pointer is swung back to life.
"""

import asyncio
from typing import Any, Generic, TypeVar

import msgspec

from arco.catalog.answers import Answer
from arco.catalog.commits import Base, Commits, together
from arco.catalog.committer import Author
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.model import Entry, Format, Kind, Levels
from arco.catalog.names import missing
from arco.catalog.once import once
from arco.catalog.operations import Create, Drop, Rename
from arco.catalog.pointer import Pointer, Published, Source, Tombstone
from arco.catalog.subject import Facts, Subject
from arco.catalog.workspace import Workspace
from arco.iceberg.locations import same_place
from arco.iceberg.requests import CreateTable, CreateView
from arco.kernel.crash_points import reach
from arco.kernel.errors import Conflict, CorruptObject, InvalidInput, OutcomeUnknown
from arco.kernel.ids import TableUuid, ViewUuid, clip, new_uuid4
from arco.kernel.limits import SWAP_ATTEMPTS_MAX
from arco.storage.cas import Held, Swung
from arco.storage.keys import Phase, Slug, table_folder, view_folder
from arco.storage.port import Lost, Unknown

M = TypeVar("M")
C = TypeVar("C", bound=CreateTable | CreateView)


class Relations(Generic[M, C]):
    """The tables, or the views, of one workspace."""

    def __init__(self, workspace: Workspace, commits: Commits[M, Any], subject: Subject[M, Any, C]) -> None:
        self._ws = workspace
        self._commits = commits
        self._subject = subject
        self._allowed = commits.allowed

    # Loading

    async def load(self, levels: Levels, name: str) -> tuple[Entry, Base[M]]:
        """The table as it is now. Warm, name and pointer are checked together: one round trip."""
        for _ in range(SWAP_ATTEMPTS_MAX):
            seen = self._ws.tier1.seen
            entry = seen.names.find(levels, name, self._subject.kind)
            known = None if entry is None else self._commits.remembered(entry.uuid)
            names_check = asyncio.ensure_future(self._ws.tier1.is_unchanged(seen))
            base_read = asyncio.ensure_future(self._base(entry, known))
            await together(names_check, base_read)
            base = base_read.result()
            if not names_check.result():
                # What was read of the pointer is older than the name we are about to learn: look again after it.
                await self._ws.tier1.current()
                continue
            if entry is None or entry.format is not Format.ICEBERG:
                raise missing(levels, name, self._subject.kind)
            if base is None:
                raise CorruptObject(f"table {entry.full_name} has no pointer", hint="run arco verify")
            if base.pointer.value.tombstone is None:
                return entry, base
            await self.settle_tombstone(entry, base.pointer)
        raise OutcomeUnknown("this table was changed by others all the time")

    async def _base(self, entry: Entry | None, known: Base[M] | None) -> Base[M] | None:
        if entry is None:
            return None
        if known is not None and await self._ws.pointers.is_unchanged(known.pointer):
            return known
        return await self._commits.read_base(entry.uuid)

    # Creating

    async def create(self, levels: Levels, request: C, key: RequestKey, source: Source) -> tuple[M, str]:
        """A new table and where its metadata lies."""
        uuid = new_uuid4(self._ws.entropy)
        first = msgspec.structs.replace(self._ws.markers.fresh(key, self._ws.tier1.seen.sequence), table_uuid=uuid)

        async def act(marker: Marker) -> Answer:
            location = await self._create(levels, request, key, source, marker)
            return Answer(200, metadata_location=location)

        answer = await once(self._ws, key, first, act)
        location = answer.metadata_location or ""
        return self._subject.decode(await self._ws.files.read(location), location), location

    async def _create(self, levels: Levels, request: C, key: RequestKey, source: Source, marker: Marker) -> str:
        metadata = self.described(request, marker.table_uuid or "", marker.minted_ms)
        return await self.publish_new(levels, request.name, metadata, key, source, marker)

    def described(self, request: C, uuid: str, at_ms: int) -> M:
        """The metadata that a create request asks for, in its own place or one that is allowed."""
        own = self.own_location(Slug.from_name(request.name), uuid)
        place = (request.location or own).rstrip("/")
        if not same_place(place, own) and not self._allowed(place):
            raise InvalidInput(f"location {clip(place)} is not allowed", hint="leave it out: Arco places tables itself")
        return self._subject.created(request, uuid, place, at_ms, self._allowed)

    def own_location(self, slug: Slug, uuid: str) -> str:
        return self._ws.locations.uri(self._folder(slug, uuid)).rstrip("/")

    async def publish_new(
        self, levels: Levels, name: str, metadata: M, key: RequestKey, source: Source, marker: Marker
    ) -> str:
        """Write the first metadata file and the pointer, then take the name: that is what makes it exist."""
        ws, uuid, place = self._ws, marker.table_uuid or "", self._subject.place(metadata).rstrip("/")
        location = f"{place}/metadata/{ws.files.name(key, 0)}"
        facts = self._subject.facts(metadata)
        pointer = first_pointer(uuid, self._subject.kind, facts, location, ws.ulids.next(), key.hash, source)
        await together(ws.files.write(location, self._subject.encode(metadata, location)), self._first_swing(pointer))
        reach("create.staged")
        entry = new_entry(uuid, ws.ulids.next(), self._subject.kind, levels, name, place, marker.minted_ms)
        operation = Create(key_hash=key.hash, entry=entry, minted_ms=marker.minted_ms)
        await ws.committer.submit(operation, since=marker.since, author=Author(source.principal, source.client))
        self._commits.finish_later(ws.receipts.ensure(Phase.COMMITTED, uuid, pointer.published[0]))
        return location

    def _folder(self, slug: Slug, uuid: str) -> str:
        if self._subject.kind is Kind.VIEW:
            return view_folder(self._ws.scope, slug, ViewUuid(uuid))
        return table_folder(self._ws.scope, slug, TableUuid(uuid))

    async def _first_swing(self, pointer: Pointer) -> None:
        """Create the pointer; one that is there already counts only if the same key made it."""
        outcome = await self._ws.pointers.create(pointer)
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"the pointer of this new table could not be written: {outcome.reason}")
        held = await self._ws.pointers.read(pointer.table_uuid) if isinstance(outcome, Lost) else outcome.held
        if held is None:
            raise OutcomeUnknown("the pointer of this new table is gone")
        if held.value.created_by != pointer.created_by:
            raise Conflict("another request created a table with this identity")

    # Dropping

    async def drop(self, levels: Levels, name: str, *, purge: bool, key: RequestKey, author: Author) -> None:
        first = await self._bound(levels, name, key)

        async def act(marker: Marker) -> Answer:
            if marker.table_uuid is None:
                raise missing(levels, name, self._subject.kind)
            tombstone = Tombstone(self._ws.ulids.next(), marker.binding or 1, purge, author.principal, key.hash)
            await self._drop(marker, tombstone, author)
            return Answer(204)

        await once(self._ws, key, first, act)

    async def _drop(self, marker: Marker, tombstone: Tombstone, author: Author) -> None:
        uuid = marker.table_uuid or ""
        for _ in range(SWAP_ATTEMPTS_MAX):
            pointer = await self._ws.pointers.read(uuid)
            if pointer is None:
                raise CorruptObject(f"table {uuid} has no pointer", hint="run arco verify")
            if pointer.value.tombstone is not None:
                tombstone = pointer.value.tombstone
                break
            await self._ensure_receipts(pointer.value)
            dead = msgspec.structs.replace(pointer.value, tombstone=tombstone)
            outcome = await self._ws.pointers.swing(pointer, dead)
            if isinstance(outcome, Swung):
                break
            if isinstance(outcome, Unknown):
                raise OutcomeUnknown(f"the table's pointer did not say whether it was swung: {outcome.reason}")
        self._commits.forget(uuid)
        reach("drop.tombstone_written")
        await self._finish_drop(uuid, tombstone, marker.since, author)

    async def _finish_drop(self, uuid: str, tombstone: Tombstone, since: int, author: Author) -> None:
        operation = Drop(
            key_hash=tombstone.key_hash,
            uuid=uuid,
            binding=tombstone.binding,
            drop_id=tombstone.drop_id,
            purge=tombstone.purge,
            principal=tombstone.principal,
        )
        await self._ws.committer.submit(operation, since=since, author=author)

    async def settle_tombstone(self, entry: Entry, pointer: Held[Pointer]) -> None:
        """Met a tombstone under a name: finish its drop, or bring the pointer back if the name was bound anew."""
        tombstone = pointer.value.tombstone
        if tombstone is None:
            return
        if tombstone.binding >= entry.binding:
            since = max(0, self._ws.tier1.seen.sequence - 1)
            await self._finish_drop(entry.uuid, tombstone, since, Author(tombstone.principal))
        else:
            await self._ws.pointers.swing(pointer, msgspec.structs.replace(pointer.value, tombstone=None))
        self._commits.forget(entry.uuid)

    async def _ensure_receipts(self, pointer: Pointer) -> None:
        await together(*(self._ws.receipts.ensure(Phase.COMMITTED, pointer.table_uuid, one) for one in pointer.published))

    # Renaming

    async def rename(
        self, source: tuple[Levels, str], destination: tuple[Levels, str], key: RequestKey, author: Author
    ) -> None:
        first = await self._bound(*source, key)

        async def act(marker: Marker) -> Answer:
            if marker.table_uuid is None:
                raise missing(*source, self._subject.kind)
            operation = Rename(
                key_hash=key.hash,
                uuid=marker.table_uuid,
                binding=marker.binding or 1,
                namespace=destination[0],
                name=destination[1],
            )
            await self._ws.committer.submit(operation, since=marker.since, author=author)
            return Answer(204)

        await once(self._ws, key, first, act)

    async def _bound(self, levels: Levels, name: str, key: RequestKey) -> Marker:
        """The marker of a first attempt on a name. It has no uuid if there is none: only a key of its own says no then.

        Absence is never taken from memory, and never said before the key was asked: a retry may come after its effect.
        """
        kind = self._subject.kind
        entry = self._ws.tier1.names.find(levels, name, kind)
        if entry is None:
            entry = (await self._ws.tier1.current()).names.find(levels, name, kind)
        marker = self._ws.markers.fresh(key, self._ws.tier1.seen.sequence)
        if entry is None:
            return marker
        return msgspec.structs.replace(marker, table_uuid=entry.uuid, binding=entry.binding)


def new_entry(uuid: str, asset_id: str, kind: Kind, levels: Levels, name: str, location: str, at_ms: int) -> Entry:
    """The entry of something that is created."""
    return Entry(uuid, asset_id, kind, Format.ICEBERG, levels, name, location, 1, at_ms, at_ms)


def first_pointer(
    uuid: str, kind: Kind, facts: Facts, location: str, event_id: str, created_by: str, source: Source
) -> Pointer:
    """The pointer of a table that is created."""
    published = Published(event_id, 0, location, None, facts.snapshot_id, facts.at_ms, source)
    return Pointer(
        table_uuid=uuid,
        kind=kind,
        commit_number=0,
        metadata_location=location,
        previous_metadata_location=None,
        snapshot_id=facts.snapshot_id,
        refs=facts.refs,
        last_sequence_number=facts.last_sequence_number,
        updated_at_ms=facts.at_ms,
        updated_by=source,
        published=(published,),
        created_by=created_by,
    )
