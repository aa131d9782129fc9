"""Registering a table or view whose metadata file is there already, and letting one go again.

Tier 1 decides: the name's entry says at which file its pointer starts, and whoever meets the name first puts the pointer
there (`standing.py`). So a registration that dies half way leaves either nothing or a table, and no pointer without a name
stands in the way of the next attempt. Registering over an existing table is a drop whose tombstone names its successor:
whoever finishes that drop makes the successor visible in the same step.

One identity has one name: a metadata file whose table is in the catalog already, under another name, is refused. Two names
would be two histories of the same files.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Generic, TypeVar

import msgspec

from arco.catalog.answers import Answer
from arco.catalog.doubt import doubt
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.locations import normal_uri
from arco.catalog.manifest import Author
from arco.catalog.model import Entry, Levels, Start
from arco.catalog.once import once
from arco.catalog.operations import Create
from arco.catalog.pointer import Tombstone
from arco.catalog.relations import Relations
from arco.catalog.workspace import Workspace
from arco.iceberg.guardrails import Allowed, check_locations
from arco.kernel.crash_points import reach
from arco.kernel.errors import (
    AlreadyExists,
    Conflict,
    CorruptObject,
    FixRequest,
    InvalidInput,
    NoSuchTable,
    NotFound,
    OutcomeUnknown,
    Refresh,
    TooLarge,
    UnknownFormat,
)
from arco.kernel.ids import clip
from arco.kernel.limits import SNAPSHOT_LEAD_MS_MAX, SWAP_ATTEMPTS_MAX
from arco.storage.keys import prefix_of

M = TypeVar("M")

_FILE_HINT = "give the location of a whole metadata file, of a format version that is supported"


class Registering(Generic[M]):
    """Registrations of tables, or of views, of one workspace."""

    def __init__(self, workspace: Workspace, relations: Relations[M, Any], allowed: Allowed) -> None:
        self._ws = workspace
        self._relations = relations
        self._subject = relations.subject
        self._allowed = allowed

    async def register(
        self, levels: Levels, name: str, location: str, *, overwrite: bool, key: RequestKey, author: Author
    ) -> tuple[M, str]:
        """Give a metadata file a name. With `overwrite` it may take the name of another table, which is dropped."""

        async def begin() -> Marker:
            metadata = await self._read(location)
            return self._relations.first_marker(key, self._subject.identity(metadata))

        async def name_it(marker: Marker) -> str:
            creation = await self._creation(levels, name, location, key, marker)
            taken = self._ws.tier1.names.find(levels, name, self._subject.kind)
            if taken is not None and overwrite:
                await self._replace(taken, creation, key, marker, author)
                return creation.entry.uuid
            try:
                await self._ws.committer.submit(creation, since=marker.since, author=author)
            except AlreadyExists as taken_since:
                if overwrite and self._ws.tier1.names.find(levels, name, self._subject.kind) is not None:
                    raise NoSuchTable(f"{name} was free before") from taken_since
                raise
            return creation.entry.uuid

        async def act(marker: Marker) -> Answer:
            uuid = await _until_it_holds_still(lambda: name_it(marker))
            reach("register.named")
            with doubt():
                await self._relations.stand(uuid)
            return Answer(200, metadata_location=location)

        return await self._relations.answered(await once(self._ws, key, begin, act))

    async def _read(self, location: str) -> M:
        """The metadata at a location, if a table may lie there."""
        self._check_place(location, "metadata-location")
        try:
            metadata = self._subject.decode(await self._ws.files.read(location), location)
        except NotFound:
            raise InvalidInput(f"there is no metadata file {clip(location, 300)}", hint="check the location") from None
        except (CorruptObject, UnknownFormat, TooLarge) as error:
            why = error.message.removeprefix(f"{location}: ")
            raise InvalidInput(f"{clip(location, 300)} cannot be registered: {why}", hint=_FILE_HINT) from error
        changed_ms, now_ms = self._subject.facts(metadata).at_ms, self._ws.clock.now_ms()
        if not 0 <= changed_ms <= now_ms + SNAPSHOT_LEAD_MS_MAX:
            # Receipts lie under the day of a commit, and no later commit goes back behind it.
            raise InvalidInput(
                f"{clip(location, 300)}: its last change, at {changed_ms} ms, lies before 1970 or more than a day ahead",
                hint="times are in milliseconds",
            )
        place = self._subject.place(metadata)
        self._check_place(place, "location")
        check_locations(metadata, own_location=place, allowed=self._allowed)  # type: ignore[arg-type]
        return metadata

    def _check_place(self, location: str, what: str) -> None:
        try:
            key = self._ws.locations.key(location)
        except InvalidInput as error:
            raise InvalidInput(f"{what}: {error.message}", hint=error.hint) from None
        placed = tuple(prefix_of(self._ws.scope, folder) for folder in ("data", "views"))
        if (key is None or not key.startswith(placed)) and not self._allowed(location):
            raise InvalidInput(f"{what} {clip(location, 300)} is not allowed", hint="see arco serve --allow-location")

    async def _creation(self, levels: Levels, name: str, location: str, key: RequestKey, marker: Marker) -> Create:
        """What tier 1 is asked for, as of now: an identity that is new, or that of a dropped table, revived."""
        metadata = await self._read(location)
        uuid, now_ms = self._subject.identity(metadata), self._ws.clock.now_ms()
        names = (await self._ws.tier1.current()).names
        dropped, holder = names.dropped.get(uuid), names.by_uuid(uuid)
        before = holder or (None if dropped is None else dropped.entry)
        binding = 1 + (before.binding if before is not None else await self._binding_of_old(uuid, location))
        fresh = self._relations.new_entry(uuid, levels, name, self._subject.place(metadata), now_ms)
        entry = msgspec.structs.replace(fresh, binding=binding, start=Start(location, binding))
        if dropped is not None:
            entry = msgspec.structs.replace(entry, asset_id=dropped.entry.asset_id)
        revives = None if dropped is None else dropped.drop_id
        return Create(key_hash=key.hash, entry=entry, minted_ms=marker.minted_ms, revives=revives)

    async def _binding_of_old(self, uuid: str, location: str) -> int:
        """The last binding of a table that tier 1 has forgotten: its tombstone must not be taken for one of the new table.

        Its files are upkeep's. Whoever has a copy of them registers it in another place.
        """
        pointer = await self._ws.pointers.read(uuid)
        if pointer is None:
            return 0
        tombstone = pointer.value.tombstone
        if (
            tombstone is not None
            and not tombstone.unregistered
            and _folder(pointer.value.metadata_location) == _folder(location)
        ):
            raise Conflict(
                "this table was purged, and its files are being deleted", hint="register a copy in another place"
            )
        return max(pointer.value.binding, 0 if tombstone is None else tombstone.binding)

    async def _replace(self, taken: Entry, creation: Create, key: RequestKey, marker: Marker, author: Author) -> None:
        """Drop what has the name and put the new table there, in one step of tier 1. In doubt from its first swing on."""
        holder = self._ws.tier1.names.by_uuid(creation.entry.uuid)
        if holder is not None and holder.uuid != taken.uuid:
            raise AlreadyExists(f"Table already exists with the same identity: {holder.full_name}")
        # The columns of another table have other ids.
        ids = taken.governance.pii_field_ids if taken.uuid == creation.entry.uuid else {}
        governance = msgspec.structs.replace(taken.governance, pii_field_ids=ids)
        heir = msgspec.structs.replace(
            creation.entry, asset_id=taken.asset_id, governance=governance, former_names=taken.former_names
        )
        successor = msgspec.structs.replace(creation, entry=heir)
        tombstone = Tombstone(self._ws.ulids.next(), taken.binding, False, author.principal, key.hash, successor)
        of_taken = msgspec.structs.replace(marker, table_uuid=taken.uuid, binding=taken.binding)
        try:
            await self._relations.bury(of_taken, tombstone, author, lambda: NoSuchTable(f"{taken.full_name} is gone"))
        except NoSuchTable:
            raise
        except (FixRequest, Refresh):
            # The new table cannot take the name, and the old one is dead: it lives again when nobody can finish this.
            with doubt():
                if not await self._ws.committer.give_up(key.hash, marker.since):
                    raise OutcomeUnknown("this registration was finished by others meanwhile") from None
                await self._relations.stand(taken.uuid)
            raise


def _folder(location: str) -> str:
    """The folder that a metadata file lies in, spelled in one way."""
    return normal_uri(location).rpartition("/")[0]


async def _until_it_holds_still(name_it: Callable[[], Awaitable[str]]) -> str:
    """A name may be taken, dropped, renamed or replaced by others while it is being replaced: look again then.

    Only the first time is it certain that nothing was done before: a tombstone may stand from then on (C8).
    """
    for attempt in range(SWAP_ATTEMPTS_MAX):
        try:
            with doubt() if attempt else nullcontext():
                return await name_it()
        except NoSuchTable:
            continue
    raise OutcomeUnknown("this name was changed by others all the time")
