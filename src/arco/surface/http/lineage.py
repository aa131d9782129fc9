"""Lineage: `POST` and `DELETE /api/v1/lineage`.

Clients of OpenLineage post here by default, so an event of theirs is taken for one by its shape, and a list for several; what
else is posted is an edge that a person says. What must never enter: what an edge is (`catalog/hand_lineage.py`).
"""

from typing import Annotated, Any

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.hand_lineage import End, HandLineage, Said, Words
from arco.catalog.idempotency import RequestKey
from arco.catalog.model import Levels
from arco.iceberg.requests import check_name, check_namespace
from arco.iceberg.shape import read
from arco.kernel.canonical_json import JsonValue
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import EdgeId
from arco.kernel.limits import LINEAGE_COLUMNS_MAX, LINEAGE_WHY_CHARS_MAX, LOCATION_CHARS_MAX, OWNER_CHARS_MAX
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft
from arco.ledger.lineage_events import ColumnMapping, ColumnSource
from arco.ledger.openlineage import is_openlineage, openlineage_drafts
from arco.surface.http.events import accepted, bounded, scope_of
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import SEPARATOR, Resource, decode_levels
from arco.surface.http.routes import Route, route

LINEAGE = "/api/v1/lineage"

_ENDS = ("upstream", "downstream")
_DELETE = (*_ENDS, *(f"{end}_external" for end in _ENDS), "edge_id", "who", "why")

Why = Annotated[str, msgspec.Meta(min_length=1, max_length=LINEAGE_WHY_CHARS_MAX)]
Who = Annotated[str, msgspec.Meta(min_length=1, max_length=OWNER_CHARS_MAX)]
Outside = Annotated[str, msgspec.Meta(min_length=1, max_length=LOCATION_CHARS_MAX)]
Column = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class _End(_Strict, frozen=True):
    namespace: Levels | None = None
    name: str | None = None
    uuid: str | None = None
    external: Outside | None = None


class _Columns(_Strict, frozen=True):
    column: Column
    sources: Annotated[tuple[Column, ...], msgspec.Meta(min_length=1, max_length=LINEAGE_COLUMNS_MAX)]
    transform: Annotated[str, msgspec.Meta(max_length=LINEAGE_WHY_CHARS_MAX)] | None = None


class _Saying(_Strict, frozen=True):
    upstream: _End
    downstream: _End
    columns: Annotated[tuple[_Columns, ...], msgspec.Meta(max_length=LINEAGE_COLUMNS_MAX)] = ()
    who: Who | None = None
    why: Why | None = None


class _Words(_Strict, frozen=True):
    who: Who | None = None
    why: Why | None = None


class Lineage(Resource):
    def routes(self) -> list[Route]:
        return [route("POST", LINEAGE, self.post), route("DELETE", LINEAGE, self.delete)]

    def scope(self, request: Request) -> Scope:
        return scope_of(request, *(_DELETE if request.method == "DELETE" else ()))

    async def post(self, request: Request) -> Response:
        body = request.json()
        if isinstance(body, list) or is_openlineage(body):
            items: list[Any] = bounded(body if isinstance(body, list) else [body])
            return accepted(await self._state.appender(self.scope(request)).append_items(items, _openlineage))
        form = read(body, _Saying, "lineage")
        columns = tuple(
            ColumnMapping(
                column=one.column,
                sources=tuple(ColumnSource(column=source) for source in one.sources),
                transform=one.transform,
            )
            for one in form.columns
        )
        upstream, downstream = _end(form.upstream, "upstream"), _end(form.downstream, "downstream")
        words = Words(form.who or request.principal, form.why)
        key = self.key(request, "lineage.record", body)
        said = await self._hand(request).record(upstream, downstream, columns, words, key)
        return json_response(said, 201)

    async def delete(self, request: Request) -> Response:
        said = read({name: request.one(name) for name in ("who", "why")}, _Words, "lineage")
        words, key = Words(said.who or request.principal, said.why), self._delete_key(request)
        edge = request.one("edge_id")
        if edge is not None:
            if any(name in request.query for name in _DELETE[:4]):
                raise InvalidInput("an edge is named by edge_id or by its ends, not by both")
            return json_response(await self._hand(request).remove_edge(EdgeId(edge), words, key))
        upstream, downstream = (_end_of(request, name) for name in _ENDS)
        removed: Said = await self._hand(request).remove(upstream, downstream, words, key)
        return json_response(removed)

    def _hand(self, request: Request) -> HandLineage:
        catalog: Catalog = self.catalog(request)
        return HandLineage(catalog, self._state.appender(self.scope(request)))

    def _delete_key(self, request: Request) -> RequestKey:
        """What is deleted is in the query, so it belongs to what a key is bound to."""
        address: JsonValue = {name: list(values) for name, values in request.query.items() if name != "warehouse"}
        return self.key(request, "lineage.remove", {"query": address})


def _openlineage(item: Any) -> tuple[Draft, ...]:
    if not is_openlineage(item):
        raise InvalidInput("this is not an event of OpenLineage", hint="a list here holds events of OpenLineage")
    return openlineage_drafts(item)


def _end(form: _End, what: str) -> End:
    if form.external is not None:
        if form.namespace is not None or form.name is not None or form.uuid is not None:
            raise InvalidInput(f"{what} is a table or external, not both")
        return End(external=form.external)
    if form.namespace is None or form.name is None:
        raise InvalidInput(
            f"{what} has no namespace or no name", hint="or say external for what is no table of the catalog"
        )
    check_namespace(form.namespace)
    check_name(form.name, f"{what}.name")
    return End((form.namespace, form.name), form.uuid)


def _end_of(request: Request, what: str) -> End:
    """An end in the query: the levels and the name joined by %1F, or what lies outside."""
    text, external = request.one(what), request.one(f"{what}_external")
    if (text is None) == (external is None):
        raise InvalidInput(f"name {what} or {what}_external, one of them", hint="or the edge by its edge_id")
    if text is None:
        return _end(_End(external=external), what)
    levels, _, name = text.rpartition(SEPARATOR)
    if not levels:
        raise InvalidInput(f"{what} has no namespace", hint="join the levels and the name with %1F")
    check_name(name, what)
    return End((decode_levels(levels), name))
