"""The platform API: tables of every format and what people say of them, under /api/v1.

One table is addressed by query parameters, `namespace` (levels joined by %1F) and `name`: a path would not survive names such
as `..`, which browsers and proxies rewrite however they are encoded. `warehouse` chooses the workspace, as it does for
Iceberg's config. A parameter that is not known is refused: a filter that is misspelt must not list everything.
"""

from enum import StrEnum
from typing import TypeVar

from arco.catalog import listing
from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Inventory, Place
from arco.catalog.model import Format, Kind
from arco.catalog.overview import dropped_summary_of, overview_of, summary_of
from arco.iceberg.requests import check_name
from arco.kernel.canonical_json import JsonValue
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.scope import Scope
from arco.surface.http.exchange import Request, Response, json_response, no_content
from arco.surface.http.platform_bodies import parse_description, parse_registration, parse_renaming, parse_restoring
from arco.surface.http.resource import Resource, author_of, decode_levels, flag_of, page_of
from arco.surface.http.routes import Route, route
from arco.surface.http.server_state import ServerState

TABLES = "/api/v1/tables"

_FILTERS = ("namespace", "kind", "format", "pageToken", "pageSize")
_ADDRESS = ("namespace", "name")

W = TypeVar("W", bound=StrEnum)


def platform_routes(state: ServerState) -> list[Route]:
    return Platform(state).routes()


class Platform(Resource):
    """Handlers: decode, call the inventory, encode."""

    def routes(self) -> list[Route]:
        return [
            route("GET", TABLES, self.tables),
            route("POST", TABLES, self.register),
            route("PATCH", TABLES, self.describe),
            route("DELETE", TABLES, self.drop),
            route("POST", f"{TABLES}/rename", self.rename),
            route("POST", f"{TABLES}/undrop", self.undrop),
            route("GET", "/api/v1/dropped", self.dropped),
        ]

    def catalog(self, request: Request) -> Catalog:
        warehouse = request.one("warehouse")
        return self._state.catalog(Scope.parse_warehouse(warehouse) if warehouse else Scope.of())

    async def tables(self, request: Request) -> Response:
        """One table if it is named, otherwise a listing."""
        if "name" in request.query:
            _known(request, *_ADDRESS)
            return json_response(await overview_of(self.catalog(request), _place(request)))
        _known(request, *_FILTERS)
        entries = listing.tables(await Inventory(self.catalog(request)).names(), _filter(request))
        page, token = page_of(entries, request, listing.order_of)
        return json_response({"tables": [summary_of(entry) for entry in page]} | token)

    async def dropped(self, request: Request) -> Response:
        _known(request, *_FILTERS)
        found = listing.dropped(await Inventory(self.catalog(request)).names(), _filter(request))
        page, token = page_of(found, request, listing.order_of_dropped)
        return json_response({"dropped": [dropped_summary_of(one) for one in page]} | token)

    async def register(self, request: Request) -> Response:
        _known(request)
        body = request.json()
        table = parse_registration(body)
        key = self._key(request, "platform.register", body)
        uuid = await Inventory(self.catalog(request)).create(table, key, author_of(request))
        return json_response({"namespace": table.namespace, "name": table.name, "uuid": uuid})

    async def describe(self, request: Request) -> Response:
        _known(request, *_ADDRESS)
        body, place = request.json(), _place(request)
        wanted = parse_description(body)
        key = self._key(request, "platform.describe", body)
        await Inventory(self.catalog(request)).describe(place, wanted, key, author_of(request))
        return no_content()

    async def drop(self, request: Request) -> Response:
        _known(request, *_ADDRESS, "purge")
        place, purge = _place(request), flag_of(request, "purge")
        key = self._key(request, "platform.drop", None)
        await Inventory(self.catalog(request)).drop(place, purge=purge, key=key, author=author_of(request))
        return no_content()

    async def undrop(self, request: Request) -> Response:
        _known(request)
        body = request.json()
        lost, to = parse_restoring(body)
        key = self._key(request, "platform.undrop", body)
        namespace, name = await Inventory(self.catalog(request)).undrop(lost, to, key, author_of(request))
        return json_response({"namespace": namespace, "name": name})

    async def rename(self, request: Request) -> Response:
        _known(request)
        body = request.json()
        source, destination = parse_renaming(body)
        key = self._key(request, "platform.rename", body)
        await Inventory(self.catalog(request)).rename(source, destination, key, author_of(request))
        return no_content()

    def _key(self, request: Request, operation: str, body: JsonValue) -> RequestKey:
        """The address is in the query, so it belongs to what a key is bound to."""
        address: JsonValue = {name: list(values) for name, values in request.query.items() if name != "warehouse"}
        return self.key(request, operation, {"query": address, "body": body})


def _known(request: Request, *names: str) -> None:
    unknown = sorted(set(request.query) - {*names, "warehouse"})
    if unknown:
        takes = ", ".join((*names, "warehouse"))
        raise InvalidInput(f"query parameter {clip(unknown[0])!r} is not known here; it takes {takes}")


def _place(request: Request) -> Place:
    namespace, name = request.one("namespace"), request.one("name")
    if namespace is None or name is None:
        raise InvalidInput(f"query parameter {'namespace' if namespace is None else 'name'} is missing")
    check_name(name, "name")
    return decode_levels(namespace), name


def _filter(request: Request) -> listing.Filter:
    namespace = request.one("namespace")
    return listing.Filter(
        None if namespace is None else decode_levels(namespace),
        _word(request, "kind", Kind),
        _word(request, "format", Format),
    )


def _word(request: Request, name: str, kind: type[W]) -> W | None:
    text = request.one(name)
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(f"{name}={clip(text)!r} is not known; it is one of {', '.join(kind)}") from None
