"""Everything that has a name, of every kind and format: what people ask for from the shell and the platform API.

Iceberg tables and views go through their own rooms, pointer and all. A table of another format is a row of tier 1 and nothing
else: Arco knows that it exists, where it lies, who owns it and what people say of it, and never touches its files.
"""

from typing import Any

import msgspec

from arco.catalog import pii_marks
from arco.catalog.answers import Answer
from arco.catalog.catalog import Catalog
from arco.catalog.committer import Need
from arco.catalog.doubt import doubt
from arco.catalog.foreign_places import check_apart, check_foreign_place
from arco.catalog.governance import check_columns, given_fields
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import ColumnNote, Dropped, Entry, Format, Governance, Kind, Levels, dotted
from arco.catalog.names import Names
from arco.catalog.once import Begin, once, submit_once
from arco.catalog.operations import Create, Describe, Drop, Operation, Rename, Undrop
from arco.catalog.relations import Relations
from arco.iceberg.guardrails import check_properties
from arco.iceberg.requests import check_location, check_namespace, check_new_name
from arco.kernel.crash_points import reach
from arco.kernel.errors import Conflict, InvalidInput, NoSuchTable, NotFound, TooLarge
from arco.kernel.ids import new_uuid4
from arco.kernel.limits import TABLE_DOCUMENT_BYTES_MAX

Place = tuple[Levels, str]


class NewTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table that is not Iceberg's, as it is registered."""

    namespace: Levels
    name: str
    format: Format
    location: str
    properties: dict[str, str] = {}
    columns: tuple[ColumnNote, ...] = ()
    governance: Governance = Governance()


class Description(msgspec.Struct, frozen=True):
    """What is to be said of a table from now on: only what is given changes, and a governance field that is null is cleared.

    Columns are given as a whole; None leaves them as they are.
    """

    governance: dict[str, Any] = {}
    removals: tuple[str, ...] = ()
    updates: dict[str, str] = {}
    columns: tuple[ColumnNote, ...] | None = None


class DropRef(msgspec.Struct, frozen=True):
    """Something dropped that is wanted back: by the name it had, by the id of its drop, or by both."""

    place: Place | None = None
    drop_id: str | None = None

    def __str__(self) -> str:
        return dotted(*self.place) if self.place else f"the drop {self.drop_id}"


class Inventory:
    """The names of one workspace."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._ws = catalog.parts

    # Asking

    async def names(self) -> Names:
        """The state as of now."""
        return (await self._ws.tier1.current()).names

    async def find(self, place: Place) -> Entry:
        found = (await self.names()).entry(place)
        if found is None:
            raise _no_such(place)
        return found

    async def dropped(self, wanted: DropRef) -> Dropped:
        """What was dropped last under a name, or the drop that is named."""
        names = await self.names()
        if wanted.drop_id is None:
            found = names.last_dropped(*wanted.place) if wanted.place else None
        else:
            found = next((one for one in names.dropped.values() if one.drop_id == wanted.drop_id), None)
        if found is None or wanted.place not in {None, (found.entry.namespace, found.entry.name)}:
            raise NotFound(f"{wanted} cannot be restored: no such drop is kept", hint="arco ls --dropped lists what is")
        return found

    # Changing

    async def create(self, table: NewTable, key: RequestKey, author: Author) -> str:
        """Register a table of another format: its uuid."""
        _check(table)

        async def begin() -> Marker:
            await check_foreign_place(self._ws, table.location)
            return self._catalog.tables.first_marker(key, new_uuid4(self._ws.entropy))

        async def act(marker: Marker) -> Answer:
            uuid, at_ms = marker.table_uuid or "", marker.minted_ms
            # What was dropped under this name before must be known: an asset that comes back keeps its identity.
            await self._ws.tier1.current()
            fresh = self._catalog.tables.new_entry(uuid, table.namespace, table.name, table.location, at_ms)
            entry = msgspec.structs.replace(
                fresh,
                format=table.format,
                properties=table.properties,
                columns=table.columns,
                governance=table.governance,
            )
            _check_size(entry)
            operation = Create(key_hash=key.hash, entry=entry, minted_ms=at_ms)
            await self._ws.committer.submit(operation, since=marker.since, author=author, need=_apart(entry))
            return Answer(200, body=uuid)

        return (await once(self._ws, key, begin, act)).body or ""

    async def describe(self, place: Place, wanted: Description, key: RequestKey, author: Author) -> None:
        """Change what people say of a table: the fields that are given; properties and columns if it has no metadata."""
        check_properties((*wanted.updates, *wanted.removals))
        check_columns(wanted.columns or ())
        governance = given_fields(wanted.governance, "table")
        if "pii_columns" in governance:
            # Whatever these marks are found to mean below, the ids of others are not theirs.
            governance["pii_field_ids"] = {}

        async def begin() -> Marker:
            entry = await self.find(place)
            if entry.format is Format.ICEBERG:
                _leave_metadata_alone(wanted)
            if "pii_columns" in governance:
                columns = await pii_marks.columns_of(self._catalog, entry, wanted.columns)
                ids = pii_marks.resolved(governance["pii_columns"], entry.governance, columns)
                governance["pii_field_ids"] = ids
            fields = msgspec.structs.asdict(entry.governance) | governance
            said = msgspec.convert(msgspec.to_builtins(fields), Governance)
            noted = entry.columns if wanted.columns is None else wanted.columns
            properties = entry.properties | wanted.updates
            _check_size(msgspec.structs.replace(entry, governance=said, properties=properties, columns=noted))
            return self._catalog.tables.first_marker(key, entry.uuid)

        def operation(marker: Marker) -> Operation:
            return Describe(
                key_hash=key.hash,
                uuid=marker.table_uuid or "",
                governance=governance,
                property_removals=wanted.removals,
                property_updates=wanted.updates,
                columns=wanted.columns,
            )

        await submit_once(self._ws, key, begin, operation, author)

    async def drop(self, place: Place, *, purge: bool, key: RequestKey, author: Author) -> None:
        """Take a name away, restorable for a while."""

        async def begin() -> Marker:
            entry = await self.find(place)
            if purge and entry.format is not Format.ICEBERG:
                raise InvalidInput(f"the files of {dotted(*place)} are not Arco's to purge", hint="drop it without purge")
            return self._catalog.tables.first_marker(key, entry.uuid, entry.binding)

        async def act(marker: Marker) -> Answer:
            entry = self._ws.tier1.names.identity(marker.table_uuid or "")
            if entry is not None and entry.format is Format.ICEBERG:
                return await self._relations(entry).dropped(*place, marker, purge=purge, key=key, author=author)
            operation = Drop(
                key_hash=key.hash,
                uuid=marker.table_uuid or "",
                binding=marker.binding or 1,
                drop_id=self._ws.ulids.next(),
                purge=False,
                principal=author.principal,
            )
            await self._ws.committer.submit(operation, since=marker.since, author=author)
            return Answer(204)

        await once(self._ws, key, begin, act)

    async def undrop(self, lost: DropRef, to: Place | None, key: RequestKey, author: Author) -> Place:
        """Give what was dropped its name back, or another; tier 1 first, then the pointer (N3). The name it has now."""
        if to is not None:
            check_namespace(to[0])
            check_new_name(to[1], "name")

        async def begin() -> Marker:
            dropped = await self.dropped(lost)
            await self._need_ours(dropped)
            return self._catalog.tables.first_marker(key, dropped.entry.uuid)

        async def act(marker: Marker) -> Answer:
            uuid = marker.table_uuid or ""
            names = await self.names()
            dropped, entry = names.dropped.get(uuid), names.identity(uuid)
            if entry is None:
                raise NotFound(f"{lost} cannot be restored: it was purged meanwhile")
            if dropped is not None and await self._ws.tier1.landed_at(key.hash, marker.since) is None:
                # Registered and unregistered again since it was asked for.
                await self._need_ours(dropped)
            levels, name = to or (entry.namespace, entry.name)
            drop_id = lost.drop_id or ("" if dropped is None else dropped.drop_id)
            operation = Undrop(key_hash=key.hash, uuid=uuid, drop_id=drop_id, namespace=levels, name=name)
            # The place of an Iceberg table was kept for it.
            need = None if entry.format is Format.ICEBERG else _apart(entry)
            await self._ws.committer.submit(operation, since=marker.since, author=author, need=need)
            reach("undrop.named")
            if entry.format is Format.ICEBERG:
                with doubt():
                    await self._relations(entry).stand(uuid)
            return Answer(200, body=msgspec.json.encode((levels, name)).decode())

        answer = await once(self._ws, key, begin, act)
        restored: Place = msgspec.json.decode(answer.body or "", type=Place)
        return restored

    async def _need_ours(self, dropped: Dropped) -> None:
        """What was unregistered may be somebody else's by now: two catalogs would commit to the same files."""
        if not dropped.unregistered:
            return
        pointer = await self._ws.pointers.read(dropped.entry.uuid)
        where = "" if pointer is None else f" {pointer.value.metadata_location}"
        raise Conflict(
            f"{dropped.entry.full_name} was unregistered, and may have another owner by now",
            hint=f"register it again, by its metadata-location{where}",
        )

    async def rename(self, source: Place, destination: Place, key: RequestKey, author: Author) -> None:
        """The name changes, the table stays what it is; the old name is remembered."""
        check_namespace(destination[0])
        check_new_name(destination[1], "name")

        def operation(marker: Marker) -> Operation:
            return Rename(
                key_hash=key.hash,
                uuid=marker.table_uuid or "",
                binding=marker.binding or 1,
                namespace=destination[0],
                name=destination[1],
            )

        await submit_once(self._ws, key, self._marker_of(source, key), operation, author)

    def _marker_of(self, place: Place, key: RequestKey) -> Begin:
        async def begin() -> Marker:
            entry = await self.find(place)
            return self._catalog.tables.first_marker(key, entry.uuid, entry.binding)

        return begin

    def _relations(self, entry: Entry) -> Relations[Any, Any]:
        return self._catalog.views if entry.kind is Kind.VIEW else self._catalog.tables


def _apart(entry: Entry) -> Need:
    """Nothing else lies where this table does, when it gets its name."""
    return lambda draft: check_apart(draft, entry.location, entry.uuid)


def _check(table: NewTable) -> None:
    check_namespace(table.namespace)
    check_new_name(table.name, "name")
    check_location(table.location, "location")
    check_properties(table.properties)
    if table.format is Format.ICEBERG:
        raise InvalidInput("an Iceberg table is created by an Iceberg client", hint="use the catalog under /iceberg")
    if not table.location.strip("/"):
        raise InvalidInput("location: it names no place")
    check_columns(table.columns)
    pii_marks.check(table.governance.pii_columns, {one.name: None for one in table.columns})


def _leave_metadata_alone(wanted: Description) -> None:
    theirs = {"properties": bool(wanted.updates or wanted.removals), "columns": wanted.columns is not None}
    for field, is_given in theirs.items():
        if is_given:
            raise InvalidInput(
                f"{field}: those of an Iceberg table or view are in its metadata", hint="change them with an Iceberg client"
            )


def _check_size(entry: Entry) -> None:
    size = len(msgspec.json.encode(entry))
    if size > TABLE_DOCUMENT_BYTES_MAX:
        raise TooLarge(f"what is said of {entry.full_name} has {size} bytes, more than {TABLE_DOCUMENT_BYTES_MAX}")


def _no_such(place: Place) -> NotFound:
    return NoSuchTable(f"Table does not exist: {dotted(*place)}")
