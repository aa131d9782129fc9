"""The platform API: tables of every format and what people say of them, under /api/v1.

One table is addressed by query parameters, `namespace` (levels joined by %1F) and `name`: a path would not survive names such
as `..`, which browsers and proxies rewrite however they are encoded. `warehouse` chooses the workspace, as it does for
Iceberg's config.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from arco.catalog import listing
from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Inventory, Place
from arco.catalog.model import Entry, Format, Kind, Levels
from arco.catalog.overview import (
    DroppedSummary,
    Summary,
    TableOverview,
    ViewOverview,
    dropped_summary_of,
    overview_of,
    summary_of,
)
from arco.catalog.pointer import Pointer
from arco.catalog.side_by_side import side_by_side
from arco.iceberg.requests import check_name
from arco.kernel.canonical_json import JsonValue
from arco.kernel.errors import InvalidInput
from arco.kernel.scope import Scope
from arco.surface.http.declaring import API, Asked, Endpoint, endpoint, scope_of
from arco.surface.http.exchange import Request, Response, json_response, no_content
from arco.surface.http.platform_bodies import (
    TableDescription,
    TableRegistration,
    TableRenaming,
    TableRestoring,
    TablesTogether,
    parse_description,
    parse_registration,
    parse_renaming,
    parse_restoring,
    parse_together,
)
from arco.surface.http.resource import KEY_HEADER, Resource, author_of, decode_levels, page_of

TABLES = f"{API}/tables"

_Namespace = Annotated[str, Meta(description="A namespace, its levels joined by %1F.")]
_Size = Annotated[int, Meta(ge=1)]
_Name = Annotated[str, Meta(description="The name of a table or view.")]


class Filters(Asked, frozen=True, kw_only=True):
    """What a listing shows, and which page of it."""

    namespace: Annotated[
        str | None, Meta(description="This namespace, its levels joined by %1F, and everything below it.")
    ] = None
    kind: Annotated[Kind | None, Meta(description="Tables or views alone.")] = None
    format: Annotated[Format | None, Meta(description="Tables of one format.")] = None
    page_token: Annotated[str | None, Meta(description="next-page-token of the page before; empty for the first.")] = (
        msgspec.field(default=None, name="pageToken")
    )
    page_size: Annotated[
        _Size | None, Meta(description="How many a page has at most. Without it and a token, everything.")
    ] = msgspec.field(default=None, name="pageSize")


class TablesAsked(Filters, frozen=True, kw_only=True):
    name: Annotated[str | None, Meta(description="One table or view of the namespace; no filter goes with it.")] = None


class Address(Asked, frozen=True, kw_only=True):
    """One table or view."""

    namespace: _Namespace
    name: _Name


class Dropping(Address, frozen=True, kw_only=True):
    purge: Annotated[bool, Meta(description="Leave the files of an Iceberg table to upkeep.")] = False


class TableList(msgspec.Struct, frozen=True, kw_only=True):
    tables: tuple[Summary, ...]
    next_page_token: str | UnsetType | None = msgspec.field(default=UNSET, name="next-page-token")


class DroppedList(msgspec.Struct, frozen=True, kw_only=True):
    dropped: tuple[DroppedSummary, ...]
    next_page_token: str | UnsetType | None = msgspec.field(default=UNSET, name="next-page-token")


class TableName(msgspec.Struct, frozen=True, kw_only=True):
    namespace: Levels
    name: str


class NewTableName(TableName, frozen=True, kw_only=True):
    uuid: str


class TableAtOnce(TableName, frozen=True, kw_only=True):
    """Which version of a table it was."""

    uuid: str
    metadata_location: str
    commit_number: int
    snapshot_id: int | None


class TablesAtOnce(msgspec.Struct, frozen=True, kw_only=True):
    tables: tuple[TableAtOnce, ...]


class Platform(Resource):
    """Handlers: decode, call the inventory, encode."""

    def endpoints(self) -> list[Endpoint]:
        return [
            endpoint(
                "GET", TABLES, "One table or view if it is named, otherwise a list", self.tables,
                asked=TablesAsked, answers={200: (TableList, TableOverview, ViewOverview)},
            ),
            endpoint(
                "POST", TABLES, "Register a table of another format", self.register,
                body=(TableRegistration,), answers={200: (NewTableName,)}, headers=KEY_HEADER,
            ),
            endpoint(
                "PATCH", TABLES, "Change what is said of a table or view", self.describe,
                asked=Address, body=(TableDescription,), answers={204: ()}, headers=KEY_HEADER,
            ),
            endpoint(
                "DELETE", TABLES, "Drop a table or view", self.drop, asked=Dropping, answers={204: ()}, headers=KEY_HEADER
            ),
            endpoint(
                "POST", f"{TABLES}/rename", "Rename a table or view", self.rename,
                body=(TableRenaming,), answers={204: ()}, headers=KEY_HEADER,
            ),
            endpoint(
                "POST", f"{TABLES}/together", "Several tables as they all were at one moment", self.together,
                body=(TablesTogether,), answers={200: (TablesAtOnce,)},
            ),
            endpoint(
                "POST", f"{TABLES}/undrop", "Restore what was dropped", self.undrop,
                body=(TableRestoring,), answers={200: (TableName,)}, headers=KEY_HEADER,
            ),
            endpoint("GET", f"{API}/dropped", "What can be restored", self.dropped, asked=Filters, answers={200: (DroppedList,)}),
        ]  # fmt: skip

    def scope(self, request: Request) -> Scope:
        return scope_of(request)

    async def tables(self, request: Request, asked: TablesAsked) -> Response:
        """One table if it is named, otherwise a listing."""
        if asked.name is not None:
            return json_response(await overview_of(self.catalog(request), _only(asked)))
        entries = listing.tables(await Inventory(self.catalog(request)).names(), _filter(asked))
        page, token = page_of(entries, request, listing.order_of)
        return json_response(TableList(tables=tuple(map(summary_of, page)), next_page_token=_token(token)))

    async def dropped(self, request: Request, asked: Filters) -> Response:
        found = listing.dropped(await Inventory(self.catalog(request)).names(), _filter(asked))
        page, token = page_of(found, request, listing.order_of_dropped)
        return json_response(DroppedList(dropped=tuple(map(dropped_summary_of, page)), next_page_token=_token(token)))

    async def register(self, request: Request, _: Asked) -> Response:
        body = request.json()
        table = parse_registration(body)
        key = self._key(request, "platform.register", body)
        uuid = await Inventory(self.catalog(request)).create(table, key, author_of(request))
        return json_response(NewTableName(namespace=table.namespace, name=table.name, uuid=uuid))

    async def describe(self, request: Request, asked: Address) -> Response:
        body, place = request.json(), _place(asked.namespace, asked.name)
        wanted = parse_description(body)
        key = self._key(request, "platform.describe", body)
        await Inventory(self.catalog(request)).describe(place, wanted, key, author_of(request))
        return no_content()

    async def drop(self, request: Request, asked: Dropping) -> Response:
        place = _place(asked.namespace, asked.name)
        key = self._key(request, "platform.drop", None)
        await Inventory(self.catalog(request)).drop(place, purge=asked.purge, key=key, author=author_of(request))
        return no_content()

    async def undrop(self, request: Request, _: Asked) -> Response:
        body = request.json()
        lost, to = parse_restoring(body)
        key = self._key(request, "platform.undrop", body)
        namespace, name = await Inventory(self.catalog(request)).undrop(lost, to, key, author_of(request))
        return json_response(TableName(namespace=namespace, name=name))

    async def rename(self, request: Request, _: Asked) -> Response:
        body = request.json()
        source, destination = parse_renaming(body)
        key = self._key(request, "platform.rename", body)
        await Inventory(self.catalog(request)).rename(source, destination, key, author_of(request))
        return no_content()

    async def together(self, request: Request, _: Asked) -> Response:
        """A reading, though it is a POST: a list of names does not fit into every URL."""
        found = await side_by_side(self.catalog(request), parse_together(request.json()))
        return json_response(TablesAtOnce(tables=tuple(_at_once(entry, base.pointer.value) for entry, base in found)))

    def _key(self, request: Request, operation: str, body: JsonValue) -> RequestKey:
        """The address is in the query, so it belongs to what a key is bound to."""
        address: JsonValue = {name: list(values) for name, values in request.query.items() if name != "warehouse"}
        return self.key(request, operation, {"query": address, "body": body})


def _at_once(entry: Entry, pointer: Pointer) -> TableAtOnce:
    return TableAtOnce(
        namespace=entry.namespace,
        name=entry.name,
        uuid=entry.uuid,
        metadata_location=pointer.metadata_location,
        commit_number=pointer.commit_number,
        snapshot_id=pointer.snapshot_id,
    )


def _only(asked: TablesAsked) -> Place:
    """The one table that is named, without filters that would not be looked at."""
    filters = {"kind": asked.kind, "format": asked.format, "pageToken": asked.page_token, "pageSize": asked.page_size}
    given = [name for name, value in filters.items() if value is not None]
    if given:
        raise InvalidInput(
            f"query parameter {given[0]!r} does not go with name", hint="one table is named, or many are listed"
        )
    if asked.namespace is None:
        raise InvalidInput("query parameter namespace is missing")
    return _place(asked.namespace, asked.name or "")


def _place(namespace: str, name: str) -> Place:
    check_name(name, "name")
    return decode_levels(namespace), name


def _filter(asked: Filters) -> listing.Filter:
    return listing.Filter(None if asked.namespace is None else decode_levels(asked.namespace), asked.kind, asked.format)


def _token(token: dict[str, str | None]) -> str | UnsetType | None:
    return token["next-page-token"] if token else UNSET
