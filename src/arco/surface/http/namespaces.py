"""Namespaces: list, create, load, drop, properties."""

from collections.abc import Mapping

from arco.catalog.model import Levels
from arco.catalog.namespaces import change_namespace, create_namespace, drop_namespace
from arco.catalog.proposals import proposable_in
from arco.iceberg import requests
from arco.kernel.errors import Unprocessable
from arco.surface.http.exchange import Request, Response, json_response, no_content
from arco.surface.http.resource import (
    NAMESPACE,
    PREFIX,
    SEPARATOR,
    Resource,
    author_of,
    decode_levels,
    levels_of,
    page_of,
)
from arco.surface.http.routes import Lane, Route, route


class Namespaces(Resource):
    def routes(self) -> list[Route]:
        return [
            route("GET", f"{PREFIX}/namespaces", self.list),
            route("POST", f"{PREFIX}/namespaces", self.create, lane=Lane.NAMES),
            route("GET", NAMESPACE, self.load),
            route("HEAD", NAMESPACE, self.exists),
            route("DELETE", NAMESPACE, self.drop, lane=Lane.NAMES),
            route("POST", f"{NAMESPACE}/properties", self.update, lane=Lane.NAMES),
        ]

    async def list(self, request: Request) -> Response:
        parent = request.one("parent")
        levels = decode_levels(parent) if parent else ()
        names = (await self.catalog(request).parts.tier1.current()).names
        page, token = page_of(names.children(levels), request, SEPARATOR.join)
        return json_response({"namespaces": page} | token)

    async def create(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_create_namespace(body)
        key = self.key(request, "createNamespace", body)
        await create_namespace(self.catalog(request).parts, wanted.namespace, wanted.properties, key, author_of(request))
        return self._shown(request, wanted.namespace, wanted.properties)

    async def load(self, request: Request) -> Response:
        levels = levels_of(request)
        namespace = (await self.catalog(request).parts.tier1.current()).names.namespace(levels)
        return self._shown(request, levels, namespace.properties)

    async def exists(self, request: Request) -> Response:
        await self.load(request)
        return no_content()

    async def drop(self, request: Request) -> Response:
        key = self.key(request, "dropNamespace", None)
        await drop_namespace(self.catalog(request).parts, levels_of(request), key, author_of(request))
        return no_content()

    async def update(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_update_namespace_properties(body)
        if wanted.keys_in_both:
            raise Unprocessable(f"properties both set and removed: {', '.join(wanted.keys_in_both)}")
        key = self.key(request, "updateNamespaceProperties", body)
        changes = await change_namespace(
            self.catalog(request).parts,
            levels_of(request),
            tuple(wanted.removals),
            wanted.updates,
            key,
            author_of(request),
        )
        return json_response(changes)

    def _shown(self, request: Request, levels: Levels, properties: Mapping[str, str]) -> Response:
        """With the folder that tables lie in, if nobody has set another: Trino stages a table only where it knows one."""
        location = proposable_in(self.catalog(request).parts)
        return json_response({"namespace": levels, "properties": {"location": location, **properties}})
