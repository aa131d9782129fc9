"""Lineage: `POST` and `DELETE /api/v1/lineage`.

Clients of OpenLineage post here by default, so an event of theirs is taken for one by its shape, and a list for several; what
else is posted is an edge that a person says. What must never enter: what an edge is (`catalog/hand_lineage.py`).
"""

from collections.abc import Sequence
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
from arco.ledger.posted import refuse_times_ahead
from arco.surface.http.declaring import API, Asked, Endpoint, endpoint, scope_of
from arco.surface.http.events import Accepted, accepted, bounded
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import KEY_HEADER, SEPARATOR, Resource, decode_levels

LINEAGE = f"{API}/lineage"

_ENDS = ("upstream", "downstream")

Why = Annotated[str, msgspec.Meta(min_length=1, max_length=LINEAGE_WHY_CHARS_MAX)]
Who = Annotated[str, msgspec.Meta(min_length=1, max_length=OWNER_CHARS_MAX)]
Outside = Annotated[str, msgspec.Meta(min_length=1, max_length=LOCATION_CHARS_MAX)]
Column = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class LineageEnd(_Strict, frozen=True):
    namespace: Levels | None = None
    name: str | None = None
    uuid: str | None = None
    external: Outside | None = None


class LineageSources(_Strict, frozen=True):
    column: Column
    sources: Annotated[tuple[Column, ...], msgspec.Meta(min_length=1, max_length=LINEAGE_COLUMNS_MAX)]
    transform: Annotated[str, msgspec.Meta(max_length=LINEAGE_WHY_CHARS_MAX)] | None = None


class LineageSaying(_Strict, frozen=True):
    upstream: LineageEnd
    downstream: LineageEnd
    columns: Annotated[tuple[LineageSources, ...], msgspec.Meta(max_length=LINEAGE_COLUMNS_MAX)] = ()
    who: Who | None = None
    why: Why | None = None


class _Words(_Strict, frozen=True):
    who: Who | None = None
    why: Why | None = None


_EndInQuery = Annotated[
    str | None, msgspec.Meta(description="A table: the levels of its namespace and its name, joined by %1F.")
]
_OutsideInQuery = Annotated[str | None, msgspec.Meta(description="Something that is no table of the catalog.")]


class RemovalAsked(Asked, frozen=True, kw_only=True):
    """An edge, by its id or by its ends."""

    upstream: _EndInQuery = None
    downstream: _EndInQuery = None
    upstream_external: _OutsideInQuery = None
    downstream_external: _OutsideInQuery = None
    edge_id: Annotated[str | None, msgspec.Meta(description="The edge itself, in the place of its ends.")] = None
    who: Annotated[str | None, msgspec.Meta(description="Who says so; without it, whoever sends it.")] = None
    why: Annotated[str | None, msgspec.Meta(description="Why.")] = None


class Lineage(Resource):
    def endpoints(self) -> list[Endpoint]:
        return [
            endpoint(
                "POST",
                LINEAGE,
                "Say that one table is made of another, or send events of OpenLineage",
                self.post,
                body=(LineageSaying, dict[str, Any], list[dict[str, Any]]),
                answers={201: (Said,), 202: (Accepted,)},
                headers=KEY_HEADER,
            ),
            endpoint(
                "DELETE",
                LINEAGE,
                "Take back that one table is made of another",
                self.delete,
                asked=RemovalAsked,
                answers={200: (Said,)},
                headers=KEY_HEADER,
            ),
        ]

    def scope(self, request: Request) -> Scope:
        return scope_of(request)

    async def post(self, request: Request, _: Asked) -> Response:
        body = request.json()
        if isinstance(body, list) or is_openlineage(body):
            items: list[Any] = bounded(body if isinstance(body, list) else [body])
            scope = self.scope(request)
            appended = await self._state.appender(scope).append_items(items, self._openlineage)
            self._state.wake_fold(scope)
            return accepted(appended)
        form = read(body, LineageSaying, "lineage")
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
        return self._answer(request, said, 201)

    def _openlineage(self, item: Any) -> Sequence[Draft]:
        if not is_openlineage(item):
            raise InvalidInput("this is not an event of OpenLineage", hint="a list here holds events of OpenLineage")
        return refuse_times_ahead(openlineage_drafts(item), self._state.clock.now_ms())

    async def delete(self, request: Request, asked: RemovalAsked) -> Response:
        said = read({"who": asked.who, "why": asked.why}, _Words, "lineage")
        words, key = Words(said.who or request.principal, said.why), self._delete_key(request)
        ends = (asked.upstream, asked.upstream_external), (asked.downstream, asked.downstream_external)
        if asked.edge_id is not None:
            if any(one is not None for end in ends for one in end):
                raise InvalidInput("an edge is named by edge_id or by its ends, not by both")
            return self._answer(request, await self._hand(request).remove_edge(EdgeId(asked.edge_id), words, key))
        upstream, downstream = (_end_of(what, *end) for what, end in zip(_ENDS, ends, strict=True))
        return self._answer(request, await self._hand(request).remove(upstream, downstream, words, key))

    def _answer(self, request: Request, said: Said, status: int = 200) -> Response:
        self._state.wake_fold(self.scope(request))
        return json_response(said, status)

    def _hand(self, request: Request) -> HandLineage:
        catalog: Catalog = self.catalog(request)
        return HandLineage(catalog, self._state.appender(self.scope(request)))

    def _delete_key(self, request: Request) -> RequestKey:
        """What is deleted is in the query, so it belongs to what a key is bound to."""
        address: JsonValue = {name: list(values) for name, values in request.query.items() if name != "warehouse"}
        return self.key(request, "lineage.remove", {"query": address})


def _end(form: LineageEnd, what: str) -> End:
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


def _end_of(what: str, text: str | None, external: str | None) -> End:
    """An end in the query: the levels and the name joined by %1F, or what lies outside."""
    if (text is None) == (external is None):
        raise InvalidInput(f"name {what} or {what}_external, one of them", hint="or the edge by its edge_id")
    if text is None:
        return _end(LineageEnd(external=external), what)
    levels, _, name = text.rpartition(SEPARATOR)
    if not levels:
        raise InvalidInput(f"{what} has no namespace", hint="join the levels and the name with %1F")
    check_name(name, what)
    return End((decode_levels(levels), name))
