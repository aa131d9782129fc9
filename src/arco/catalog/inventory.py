"""Everything that has a name, of every kind and format: what people ask for from the shell and the platform API.

Iceberg tables and views go through their own rooms, pointer and all. A table of another format is a row of tier 1 and nothing
else: Arco knows that it exists, where it lies, who owns it and what people say of it, and never touches its files.
"""

from typing import Any

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.committer import Author
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.model import ColumnNote, Dropped, Entry, Format, Governance, Kind, Levels, dotted
from arco.catalog.names import Names
from arco.catalog.once import Begin, submit_once
from arco.catalog.operations import Create, Describe, Drop, Operation, Rename, Undrop
from arco.catalog.relations import Relations
from arco.iceberg.guardrails import check_properties
from arco.iceberg.requests import check_location, check_name, check_namespace
from arco.kernel.errors import InvalidInput, NoSuchTable, NotFound
from arco.kernel.ids import clip, new_uuid4

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
    """What is to be said of a table from now on: only what is given changes."""

    governance: dict[str, Any] = {}
    removals: tuple[str, ...] = ()
    updates: dict[str, str] = {}


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
        found = (await self.names()).entries.get(place)
        if found is None:
            raise _no_such(place)
        return found

    async def dropped(self, place: Place, drop_id: str | None = None) -> Dropped:
        """What was dropped last under a name, or the drop that is named."""
        names = await self.names()
        if drop_id is None:
            found = names.last_dropped(*place)
        else:
            found = next((one for one in names.dropped.values() if one.drop_id == drop_id), None)
        if found is None:
            raise NotFound(f"nothing dropped can be restored as {dotted(*place)}", hint="arco ls --dropped lists what can")
        return found

    # Changing

    async def create(self, table: NewTable, key: RequestKey, author: Author) -> None:
        """Register a table of another format."""
        _check(table)

        async def begin() -> Marker:
            return self._catalog.tables.first_marker(key, new_uuid4(self._ws.entropy))

        def operation(marker: Marker) -> Operation:
            uuid, at_ms = marker.table_uuid or "", marker.minted_ms
            fresh = self._catalog.tables.new_entry(uuid, table.namespace, table.name, table.location, at_ms)
            entry = msgspec.structs.replace(
                fresh,
                format=table.format,
                properties=table.properties,
                columns=table.columns,
                governance=table.governance,
            )
            return Create(key_hash=key.hash, entry=entry, minted_ms=at_ms)

        await submit_once(self._ws, key, begin, operation, author)

    async def describe(self, place: Place, wanted: Description, key: RequestKey, author: Author) -> None:
        """Change what people say of a table: the fields that are given, and properties of tables that have no metadata."""
        check_properties((*wanted.updates, *wanted.removals))

        async def begin() -> Marker:
            entry = await self.find(place)
            if entry.format is Format.ICEBERG and (wanted.updates or wanted.removals):
                raise InvalidInput(
                    "the properties of an Iceberg table are in its metadata", hint="set them with an Iceberg client"
                )
            return self._catalog.tables.first_marker(key, entry.uuid)

        def operation(marker: Marker) -> Operation:
            return Describe(
                key_hash=key.hash,
                uuid=marker.table_uuid or "",
                governance=wanted.governance,
                property_removals=wanted.removals,
                property_updates=wanted.updates,
            )

        await submit_once(self._ws, key, begin, operation, author)

    async def drop(self, place: Place, *, purge: bool, key: RequestKey, author: Author) -> None:
        """Take a name away, restorable for a while."""
        entry = (await self.names()).entries.get(place)
        if entry is not None and entry.format is Format.ICEBERG:
            await self._relations(entry).drop(*place, purge=purge, key=key, author=author)
            return
        if purge and entry is not None:
            raise InvalidInput(f"the files of {dotted(*place)} are not Arco's to purge", hint="drop it without purge")

        def operation(marker: Marker) -> Operation:
            return Drop(
                key_hash=key.hash,
                uuid=marker.table_uuid or "",
                binding=marker.binding or 1,
                drop_id=self._ws.ulids.next(),
                purge=False,
                principal=author.principal,
            )

        await submit_once(self._ws, key, self._marker_of(place, key), operation, author)

    async def undrop(self, dropped: Dropped, place: Place, key: RequestKey, author: Author) -> None:
        """Give what was dropped its name back, or another."""
        if dropped.entry.format is Format.ICEBERG:
            await self._relations(dropped.entry).undrop(dropped, *place, key, author)
            return
        entry = dropped.entry

        async def begin() -> Marker:
            return self._catalog.tables.first_marker(key, entry.uuid)

        def operation(_: Marker) -> Operation:
            return Undrop(key_hash=key.hash, uuid=entry.uuid, drop_id=dropped.drop_id, namespace=place[0], name=place[1])

        await submit_once(self._ws, key, begin, operation, author)

    async def rename(self, source: Place, destination: Place, key: RequestKey, author: Author) -> None:
        """The name changes, the table stays what it is; the old name is remembered."""
        check_namespace(destination[0])
        check_name(destination[1], "name")

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


def _check(table: NewTable) -> None:
    check_namespace(table.namespace)
    check_name(table.name, "name")
    check_location(table.location, "location")
    check_properties(table.properties)
    if table.format is Format.ICEBERG:
        raise InvalidInput("an Iceberg table is created by an Iceberg client", hint="use the catalog under /iceberg")
    names = [column.name for column in table.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"column {clip(twice[0])!r} is named twice")


def _no_such(place: Place) -> NotFound:
    return NoSuchTable(f"Table does not exist: {dotted(*place)}")
