"""Views: create, load, replace, register."""

from arco.catalog.model import Kind
from arco.iceberg import requests, responses
from arco.iceberg.view_metadata import ViewMetadata
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.relations import RelationResource
from arco.surface.http.resource import NAMESPACE, author_of, etag_of, levels_of, source_of
from arco.surface.http.routes import Lane, Route, route


class Views(RelationResource):
    kind = Kind.VIEW

    def routes(self) -> list[Route]:
        return [
            *super().routes(),
            route("POST", f"{NAMESPACE}/views", self.create, lane=Lane.NAMES),
            route("GET", self.one, self.load),
            route("POST", self.one, self.replace, lane=Lane.TABLE),
            route("POST", f"{NAMESPACE}/register-view", self.register, lane=Lane.NAMES),
        ]

    async def create(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_create_view(body)
        key = self.key(request, "createView", body)
        created = await self.catalog(request).views.create(levels_of(request), wanted, key, source_of(request))
        return self._loaded(*created)

    async def load(self, request: Request) -> Response:
        views, levels, name = self.catalog(request).views, levels_of(request), request.segments[2]
        _, base = await views.load(levels, name)
        headers = self._headers(base.location)
        return self._state.answers.response(
            headers["ETag"],
            lambda: self._loaded(base.metadata, base.location).body,
            headers,
            views.ground(levels, name, base, file=True),
        )

    async def replace(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_commit_view(body)
        key = self.key(request, "replaceView", body)
        commits = self.catalog(request).view_commits
        commits.require_room(levels_of(request), request.segments[2], key)
        done = await commits.commit(levels_of(request), request.segments[2], wanted, key, source_of(request))
        return self._loaded(done.metadata, done.location)

    async def register(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_register_view(body)
        key = self.key(request, "registerView", body)
        registered = await self.catalog(request).registering_views.register(
            levels_of(request),
            wanted.name,
            wanted.metadata_location,
            overwrite=False,
            key=key,
            author=author_of(request),
        )
        return self._loaded(*registered)

    def _loaded(self, metadata: ViewMetadata, location: str) -> Response:
        result = responses.load_view(metadata, metadata_location=location, config=self._state.for_clients.config)
        return json_response(result, headers=self._headers(location))

    def _headers(self, location: str) -> dict[str, str]:
        for_clients = self._state.for_clients
        return {"ETag": etag_of(location, mark=for_clients.mark), **for_clients.headers}
