"""Tables and views by name: load, create, drop, restore, rename.

The tier-1 commit is the gate of visibility: a pointer or a metadata file without a name is garbage, not a table. A drop goes
the other way round: first the pointer becomes a tombstone, so that commits under way fail, then the name goes. A restore
takes the name back first; then the pointer is brought to life, by whoever comes first (`standing.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from arco.catalog.afterwards import beside
from arco.catalog.answers import Answer
from arco.catalog.bases import Base, Bases
from arco.catalog.doubt import doubt
from arco.catalog.ground import Ground
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.manifest import Author
from arco.catalog.metadata_files import no_file
from arco.catalog.model import Dropped, Entry, Format, Kind, Levels, dotted
from arco.catalog.names import missing
from arco.catalog.once import Begin, once
from arco.catalog.operations import Create, Rename, Undrop
from arco.catalog.pointer import Pointer, Tombstone, is_still
from arco.catalog.proposals import is_proposal
from arco.catalog.standing import bring_in_step, bury, finish_drop, in_step, pointer_at
from arco.catalog.subject import Subject, adopted
from arco.catalog.tier1 import Seen
from arco.catalog.workspace import Workspace
from arco.iceberg.guardrails import Allowed, nowhere_else
from arco.iceberg.requests import CreateTable, CreateView
from arco.kernel.crash_points import reach
from arco.kernel.errors import Conflict, GivenUp, InvalidInput, NoSuchNamespace, NoSuchTable, NotFound, OutcomeUnknown
from arco.kernel.ids import TableUuid, ViewUuid, clip, new_uuid7, time_said
from arco.kernel.limits import POINTER_CACHE_TABLES_MAX, SWAP_ATTEMPTS_MAX
from arco.kernel.tallies import Tallied
from arco.ledger.receipts import Published, Source
from arco.storage.cas import Held, Swung
from arco.storage.heads import Looks
from arco.storage.keys import Slug, table_folder, view_folder
from arco.storage.port import Lost, Unknown

M = TypeVar("M")
C = TypeVar("C", bound=CreateTable | CreateView)
T = TypeVar("T")

STAGE_AGAIN = "stage the table again, and send its new assign-uuid"
"""The way out where an identity is used up: what one request began to create, no other may (N5)."""


_Looks = Callable[[str, str], Looks]
"""What to look at of a table that is remembered, by its uuid and the location of its metadata."""


class Relations(Generic[M, C]):
    """The tables, or the views, of one workspace."""

    def __init__(
        self, workspace: Workspace, subject: Subject[M, Any, C], bases: Bases[M], allowed: Allowed = nowhere_else
    ) -> None:
        self._ws = workspace
        self.subject = subject
        self._bases = bases
        self._allowed = allowed
        self._looks = lru_cache(POINTER_CACHE_TABLES_MAX)(self._looks_at)
        """Where the manifest, a table's pointer and its file lie: the same as long as the table does not change."""
        self._looks_by_name = lru_cache(POINTER_CACHE_TABLES_MAX)(self._looks_at_name)

    # Loading

    async def load(self, levels: Levels, name: str) -> tuple[Entry, Base[M]]:
        """The table as it is now. Warm, its name, its pointer and its file are checked together: one round trip."""
        return await self._found(levels, name, self._looks)

    async def exists(self, levels: Levels, name: str) -> Base[M]:
        """Raises if there is no such table. Nobody wants to know what its file says, so warm it is not looked at."""
        return (await self._found(levels, name, lambda uuid, _: self._looks_by_name(uuid)))[1]

    def ground(self, levels: Levels, name: str, base: Base[M], *, file: bool) -> Ground | None:
        """What an answer rests on that was just made of what a table is, and of its file if that is so.

        None if the name means something else by now, or if the pointer could a moment later without being written, as it can
        while a transaction waits at the table.
        """
        seen, pointer = self._ws.tier1.seen, base.pointer
        if seen.version is None or pointer.value.pending is not None:
            return None
        entry = seen.names.by_uuid(pointer.value.table_uuid)
        if entry is None or (entry.namespace, entry.name) != (levels, name) or not in_step(entry, pointer):
            return None
        if file:
            looks = self._looks(entry.uuid, base.location)
            return Ground(looks, (seen.version, pointer.version, None), self._ws.tallies)
        return Ground(self._looks_by_name(entry.uuid), (seen.version, pointer.version), self._ws.tallies)

    async def _found(self, levels: Levels, name: str, looks: _Looks) -> tuple[Entry, Base[M]]:
        if self._ws.tier1.held is None:
            await self._ws.tier1.current()
        for _ in range(SWAP_ATTEMPTS_MAX):
            seen = self._ws.tier1.seen
            entry = seen.names.find(levels, name, self.subject.kind)
            base, unchanged = await self._looked_up(entry, seen, looks)
            self._ws.tallies.add(Tallied.NAMES_HIT if unchanged else Tallied.NAMES_MISS)
            if not unchanged:
                # What was read of the pointer is older than the name we are about to learn: look again after it.
                await self._ws.tier1.renewed()
                continue
            if entry is None:
                raise missing(levels, name, self.subject.kind)
            if base is not None and in_step(entry, base.pointer):
                return entry, base
            await self.bring_in_step(entry, base)
        raise OutcomeUnknown("this table was changed by others all the time")

    async def _looked_up(self, entry: Entry | None, seen: Seen, looks: _Looks) -> tuple[Base[M] | None, bool]:
        """What a name's pointer says, and whether the names are still those that were seen."""
        if entry is None:
            return None, await self._ws.tier1.is_unchanged(seen)
        known = self._bases.known(entry.uuid)
        if known is not None:
            still, unchanged = await self._confirmed(known, seen, looks)
            self._ws.tallies.add(Tallied.TABLE_HIT if still else Tallied.TABLE_MISS)
            if still or not unchanged:
                return known, unchanged
        else:
            self._ws.tallies.add(Tallied.TABLE_MISS)
        # The name is looked at after the pointer: before it, a commit to what the table was renamed to would show (N6).
        pointer = await self._ws.pointers.read(entry.uuid)
        if pointer is None:
            return None, await self._ws.tier1.is_unchanged(seen)
        return await _beside(self._bases.at(pointer), self._ws.tier1.is_unchanged(seen))

    async def _confirmed(self, known: Base[M], seen: Seen, looks: _Looks) -> tuple[bool, bool]:
        """Whether what is remembered is still so: the pointer, and the names. One look at all that is asked for.

        An answer from memory about a table whose file is gone would help nobody.
        """
        manifest, pointer, *file = await looks(known.pointer.value.table_uuid, known.location).heads()
        unchanged = await self._ws.tier1.is_unchanged_at(seen, manifest)
        still = is_still(known.pointer, pointer)
        if still and unchanged and None in file:
            raise no_file(known.location)
        return still, unchanged

    def _looks_at(self, uuid: str, location: str) -> Looks:
        tier1, pointers = self._ws.tier1, self._ws.pointers
        return Looks((tier1.store, tier1.head.key), (tier1.store, pointers.key(uuid)), self._ws.files.where(location))

    def _looks_at_name(self, uuid: str) -> Looks:
        tier1, pointers = self._ws.tier1, self._ws.pointers
        return Looks((tier1.store, tier1.head.key), (tier1.store, pointers.key(uuid)))

    async def bring_in_step(self, entry: Entry, base: Base[M] | None) -> None:
        self._bases.forget(entry.uuid)
        await bring_in_step(self._ws, self.subject, entry, None if base is None else base.pointer)

    # Creating

    async def create(self, levels: Levels, request: C, key: RequestKey, source: Source) -> tuple[M, str]:
        """A new table and where its metadata lies."""

        async def begin() -> Marker:
            return self.first_marker(key, self.new_identity())

        @lru_cache(1)
        def at(uuid: str, minted_ms: int) -> M:
            return self.described(request, uuid, minted_ms)

        def described(marker: Marker) -> M:
            """Once for what is staged and what gets the name: of one marker both are the same."""
            return at(marker.table_uuid or "", marker.minted_ms)

        ours: dict[str, M] = {}

        async def stage(marker: Marker) -> None:
            metadata = described(marker)
            location, is_ours = await self._staged(metadata, key, source, marker.table_uuid or "")
            if is_ours:
                ours[location] = metadata

        async def act(marker: Marker) -> Answer:
            return await self.take_name(levels, request.name, described(marker), key, source, marker)

        answer = await once(self._ws, key, begin, act, stage)
        location = answer.metadata_location or ""
        # What this very request has written need not be read again.
        return (ours[location], location) if location in ours else await self.answered(answer)

    async def answered(self, answer: Answer) -> tuple[M, str]:
        """The metadata that an answer stands for."""
        location = answer.metadata_location or ""
        return await self.metadata_at(location), location

    async def metadata_at(self, location: str) -> M:
        """What is at a location that an answer names: the request was done, and a silent store does not undo it."""
        with doubt():
            return self.subject.decode(await self._ws.files.answered(location), location)

    def new_identity(self) -> str:
        """An identity that says when it was made: past the boundary of tier 1 it can never get a name (U1)."""
        return new_uuid7(self._ws.clock, self._ws.entropy)

    def first_marker(self, key: RequestKey, uuid: str, binding: int | None = None) -> Marker:
        fresh = self._ws.markers.fresh(key, self._ws.tier1.seen.sequence)
        return msgspec.structs.replace(fresh, table_uuid=uuid, binding=binding)

    def described(self, request: C, uuid: str, at_ms: int) -> M:
        """The metadata that a create request asks for, in its own place or one that is allowed."""
        place = own = self.own_location(Slug.from_name(request.name), uuid)
        wanted = (request.location or "").rstrip("/")
        if wanted and (self._allowed(wanted) or not is_proposal(self._ws, wanted)):
            place = wanted
        if place != own and not self._allowed(place):
            raise InvalidInput(f"location {clip(place)} is not allowed", hint="leave it out: Arco places tables itself")
        return self.subject.created(request, uuid, place, at_ms, self._allowed)

    def own_location(self, slug: Slug, uuid: str) -> str:
        return self._ws.locations.uri(self._folder(slug, uuid)).rstrip("/")

    def _folder(self, slug: Slug, uuid: str) -> str:
        if self.subject.kind is Kind.VIEW:
            return view_folder(self._ws.scope, slug, ViewUuid(uuid))
        return table_folder(self._ws.scope, slug, TableUuid(uuid))

    def _first_location(self, metadata: M, key: RequestKey) -> str:
        name = self._ws.files.name(key, 0, self.subject.identity(metadata))
        return self.subject.metadata_file(metadata, name)

    async def stage_new(
        self, metadata: M, key: RequestKey, source: Source, uuid: str, transaction: str | None = None
    ) -> str:
        """The first metadata file and the pointer of a table that has no name yet: nobody can see them. Where the file lies."""
        return (await self._staged(metadata, key, source, uuid, transaction))[0]

    async def _staged(
        self, metadata: M, key: RequestKey, source: Source, uuid: str, transaction: str | None = None
    ) -> tuple[str, bool]:
        """`stage_new`, and whether the file says exactly this metadata: one that was there may be another version's."""
        ws, location = self._ws, self._first_location(metadata, key)
        facts = self.subject.facts(metadata)
        published = Published(ws.ulids.next(), 0, location, None, facts.snapshot_id, facts.at_ms, source, transaction)
        pointer = pointer_at(uuid, self.subject.kind, published, facts, key.hash)
        data = self.subject.encode(metadata, location)
        written = await beside(ws.files.write(location, data), self._first_swing(pointer))
        if written is not data:
            adopted(self.subject, written, location, metadata)
        reach("create.staged")
        return location, written is data

    async def take_name(
        self,
        levels: Levels,
        name: str,
        metadata: M,
        key: RequestKey,
        source: Source,
        marker: Marker,
        asset_id: str | None = None,
    ) -> Answer:
        """Take the name: that is what makes a staged table exist."""
        ws, uuid = self._ws, marker.table_uuid or ""
        location = self._first_location(metadata, key)
        entry = self.new_entry(uuid, levels, name, self.subject.place(metadata), marker.minted_ms, asset_id)
        minted_ms = min(marker.minted_ms, time_said(uuid) or marker.minted_ms)
        operation = Create(key_hash=key.hash, entry=entry, minted_ms=minted_ms)
        await ws.committer.submit(operation, since=marker.since, author=Author(source.principal, source.client))
        ws.afterwards.do(self.first_receipt(uuid, location))
        return Answer(200, metadata_location=location)

    async def first_receipt(self, uuid: str, location: str) -> None:
        """That of the commit that made the table."""
        pointer = await self._ws.pointers.read(uuid)
        if pointer is not None and pointer.value.metadata_location == location:
            await self._ws.receipts.ensure_published(pointer.value)

    def new_entry(self, uuid: str, levels: Levels, name: str, place: str, at_ms: int, asset_id: str | None = None) -> Entry:
        """The entry of something new. An asset that was dropped and is created again keeps its identity as an asset."""
        before = self._ws.tier1.names.last_dropped(levels, name)
        known = asset_id or (self._ws.ulids.next() if before is None else before.entry.asset_id)
        return Entry(uuid, known, self.subject.kind, Format.ICEBERG, levels, name, place.rstrip("/"), 1, at_ms, at_ms)

    async def _first_swing(self, pointer: Pointer) -> None:
        """Create the pointer; one that is there already counts only if the same key made it (N5)."""
        outcome = await self._ws.pointers.create(pointer)
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"the pointer of this new table could not be written: {outcome.reason}")
        held = await self._ws.pointers.read(pointer.table_uuid) if isinstance(outcome, Lost) else outcome.held
        if held is None:
            raise OutcomeUnknown("the pointer of this new table is gone")
        if held.value.created_by != pointer.created_by:
            raise Conflict("another request has begun to create a table with this identity", hint=STAGE_AGAIN)

    # Dropping

    async def drop(self, levels: Levels, name: str, *, purge: bool, key: RequestKey, author: Author) -> str:
        """Take a table away, restorable for a while. The location of its last metadata."""

        async def act(marker: Marker) -> Answer:
            return await self.dropped(levels, name, marker, purge=purge, key=key, author=author)

        answer = await once(self._ws, key, self._marker_of(levels, name, key), act)
        return answer.metadata_location or ""

    async def dropped(
        self, levels: Levels, name: str, marker: Marker, *, purge: bool, key: RequestKey, author: Author
    ) -> Answer:
        """Take away what the marker of a drop says, whatever its name means by now."""
        tombstone = Tombstone(self._ws.ulids.next(), marker.binding or 1, purge, author.principal, key.hash)
        return await self._buried(levels, name, marker, tombstone, author)

    async def unregister(self, levels: Levels, name: str, *, key: RequestKey, author: Author) -> str:
        """Let a table go to whoever registers it next, with all its files. The location of its last metadata."""

        async def act(marker: Marker) -> Answer:
            tombstone = Tombstone(
                self._ws.ulids.next(), marker.binding or 1, False, author.principal, key.hash, unregistered=True
            )
            return await self._buried(levels, name, marker, tombstone, author)

        answer = await once(self._ws, key, self._marker_of(levels, name, key), act)
        return answer.metadata_location or ""

    async def _buried(self, levels: Levels, name: str, marker: Marker, tombstone: Tombstone, author: Author) -> Answer:
        location = await self.bury(marker, tombstone, author, lambda: self._lost(levels, name))
        return Answer(204, metadata_location=location)

    def _marker_of(self, levels: Levels, name: str, key: RequestKey) -> Begin:
        async def begin() -> Marker:
            entry = await self.need(levels, name)
            return self.first_marker(key, entry.uuid, entry.binding)

        return begin

    def _lost(self, levels: Levels, name: str) -> NotFound | Conflict:
        """Why the table that a name meant is not there any more: the name means nothing now, or another table at once."""
        if self._ws.tier1.names.find(levels, name, self.subject.kind) is None:
            return missing(levels, name, self.subject.kind)
        return Conflict(f"Table {dotted(levels, name)} was replaced by another meanwhile")

    async def bury(
        self, marker: Marker, tombstone: Tombstone, author: Author, lost: Callable[[], NotFound | Conflict]
    ) -> str:
        """Tombstone the pointer, then take the name away. Only for exactly the binding that the marker says."""
        # Nothing was done before the first swing: who waits in vain for a transaction to be decided says just that (C8, T3).
        pointer = await self._ws.pointers.settled(marker.table_uuid or "")
        with doubt():
            return await self._bury(pointer, marker, tombstone, author, lost)

    async def _bury(
        self,
        pointer: Held[Pointer] | None,
        marker: Marker,
        tombstone: Tombstone,
        author: Author,
        lost: Callable[[], NotFound | Conflict],
    ) -> str:
        ws, uuid = self._ws, marker.table_uuid or ""
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                pointer = await ws.pointers.settled(uuid)
                await ws.tier1.current()
            location = "" if pointer is None else pointer.value.metadata_location
            found = await ws.tier1.find_key(tombstone.key_hash, marker.since)
            if found is not None and found.void:
                raise GivenUp("this request was given up")
            if found is not None:
                return location
            entry = ws.tier1.names.by_uuid(uuid)
            if entry is None or entry.binding != tombstone.binding:
                raise lost()
            if pointer is not None and in_step(entry, pointer) and pointer.value.binding <= tombstone.binding:
                swung = await bury(ws, pointer, tombstone)
                if isinstance(swung, Swung):
                    pointer = swung.held
            standing = None if pointer is None else pointer.value.tombstone
            if standing is not None and standing.key_hash == tombstone.key_hash and standing.binding == tombstone.binding:
                self._bases.forget(uuid)
                try:
                    await finish_drop(ws, uuid, standing, marker.since, author)
                except NoSuchTable:
                    raise lost() from None
                return location
            if pointer is None or not in_step(entry, pointer):
                await bring_in_step(ws, self.subject, entry, pointer)
        raise OutcomeUnknown("this table was changed by others all the time")

    # Restoring

    async def undrop(self, dropped: Dropped, levels: Levels, name: str, key: RequestKey, author: Author) -> None:
        """Give a dropped table its name back, or another; tier 1 first, then the pointer (N3)."""
        uuid = dropped.entry.uuid

        async def begin() -> Marker:
            return self.first_marker(key, uuid)

        async def act(marker: Marker) -> Answer:
            operation = Undrop(key_hash=key.hash, uuid=uuid, drop_id=dropped.drop_id, namespace=levels, name=name)
            await self._ws.committer.submit(operation, since=marker.since, author=author)
            reach("undrop.named")
            with doubt():
                await self.stand(uuid)
            return Answer(200)

        await once(self._ws, key, begin, act)

    async def stand(self, uuid: str) -> None:
        """Bring a pointer in step with its name, if it still has one. Whoever loads the table would do the same."""
        entry = self._ws.tier1.names.by_uuid(uuid)
        pointer = await self._ws.pointers.read(uuid)
        if entry is not None and not in_step(entry, pointer):
            self._bases.forget(uuid)
            await bring_in_step(self._ws, self.subject, entry, pointer)

    # Renaming

    async def rename(
        self, source: tuple[Levels, str], destination: tuple[Levels, str], key: RequestKey, author: Author
    ) -> None:
        async def act(marker: Marker) -> Answer:
            operation = Rename(
                key_hash=key.hash,
                uuid=marker.table_uuid or "",
                binding=marker.binding or 1,
                namespace=destination[0],
                name=destination[1],
            )
            try:
                await self._ws.committer.submit(operation, since=marker.since, author=author)
            except NoSuchTable:
                raise self._lost(*source) from None
            except NoSuchNamespace as gone:
                raise NoSuchNamespace(gone.message, hint=self._way_to(*destination)) from None
            return Answer(204)

        await once(self._ws, key, self._marker_of(*source, key), act)

    def _way_to(self, levels: Levels, name: str) -> str | None:
        """Spark's SQL puts the catalog's own name before the new namespace of a table, where it means a namespace."""
        rest = levels[1:]
        if rest not in self._ws.tier1.names.namespaces:
            return None
        return f"write the new name as {dotted(rest, name)}, without the catalog"

    async def need(self, levels: Levels, name: str) -> Entry:
        """What a name means now: neither its absence nor its identity is taken from memory."""
        kind = self.subject.kind
        entry = (await self._ws.tier1.current()).names.find(levels, name, kind)
        if entry is None:
            raise missing(levels, name, kind)
        return entry


async def _beside(work: Awaitable[T], names_check: Awaitable[bool]) -> tuple[T | None, bool]:
    """Both at once. If the names have changed, whatever came of the work is about names that are no more."""
    done, check = asyncio.ensure_future(work), asyncio.ensure_future(names_check)
    await asyncio.wait([done, check])
    done.exception()
    return (done.result(), True) if check.result() else (None, False)
