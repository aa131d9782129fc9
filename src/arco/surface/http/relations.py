"""What tables and views have in common: listing, existence, dropping, renaming."""

from typing import Any, ClassVar

import msgspec

from arco.catalog.model import Kind
from arco.catalog.relations import Relations
from arco.iceberg import requests
from arco.kernel.limits import LIST_PAGE_KEYS_MAX
from arco.surface.http.exchange import Request, Response, no_content
from arco.surface.http.resource import NAMESPACE, PREFIX, Resource, author_of, flag_of, lasting, levels_of, page_of
from arco.surface.http.routes import Lane, Route, route

_SIZE_CHARS_MAX = len(str(LIST_PAGE_KEYS_MAX))


class RelationResource(Resource):
    """The routes of one kind. What differs is in `tables.py` and `views.py`."""

    kind: ClassVar[Kind]

    @property
    def one(self) -> str:
        """The path of one table or view."""
        return f"{NAMESPACE}/{self.kind}s/{{{self.kind}}}"

    def routes(self) -> list[Route]:
        return [
            route("GET", f"{NAMESPACE}/{self.kind}s", self.list),
            route("HEAD", self.one, self.exists),
            route("DELETE", self.one, self.drop, lane=Lane.NAMES),
            route("POST", f"{PREFIX}/{self.kind}s/rename", self.rename, lane=Lane.NAMES),
        ]

    def relations(self, request: Request) -> Relations[Any, Any]:
        catalog = self.catalog(request)
        return catalog.tables if self.kind is Kind.TABLE else catalog.views

    def operation(self, verb: str) -> str:
        return f"{verb}{self.kind.capitalize()}"

    async def list(self, request: Request) -> Response:
        levels, token, size = levels_of(request), request.one("pageToken"), request.one("pageSize")
        seen = await self.catalog(request).parts.tier1.current()
        members = seen.names.members(levels, self.kind)

        def made() -> bytes:
            page, following = page_of(members, request, lambda entry: entry.name)
            return msgspec.json.encode(
                {"identifiers": [{"namespace": levels, "name": entry.name} for entry in page]} | following
            )

        if token or seen.version is None or seen.names.reserved or len(size or "") > _SIZE_CHARS_MAX:
            return Response(200, made())
        # Of one version of the manifest the names are always the same. Pages further on are as many as names: they are made.
        # So are those of a size that is spelled at length: what stands in a tag is kept with its answer.
        about = (self.kind, *request.segments, seen.version, "whole" if token is None else "first", size or "")
        return self._state.answers.response("\0".join(about), made, {})

    async def exists(self, request: Request) -> Response:
        relations, levels, name = self.relations(request), levels_of(request), request.segments[2]
        base = await relations.exists(levels, name)
        return lasting(no_content(), relations.ground(levels, name, base, file=False))

    async def drop(self, request: Request) -> Response:
        purge = flag_of(request, "purgeRequested")
        key = self.key(request, self.operation("drop"), {"purge": purge})
        await self.relations(request).drop(
            levels_of(request), request.segments[2], purge=purge, key=key, author=author_of(request)
        )
        return no_content()

    async def rename(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_rename(body)
        key = self.key(request, self.operation("rename"), body)
        source = (wanted.source.namespace, wanted.source.name)
        destination = (wanted.destination.namespace, wanted.destination.name)
        await self.relations(request).rename(source, destination, key, author_of(request))
        return no_content()
