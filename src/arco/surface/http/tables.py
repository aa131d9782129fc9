"""Tables: create, stage, load, commit, register, unregister."""

from arco.catalog.model import Kind
from arco.iceberg import requests, requirements, responses
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.responses import Snapshots
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.relations import RelationResource
from arco.surface.http.resource import NAMESPACE, author_of, etag_of, levels_of, snapshots_of, source_of
from arco.surface.http.routes import Route, route


class Tables(RelationResource):
    kind = Kind.TABLE

    def routes(self) -> list[Route]:
        return [
            *super().routes(),
            route("POST", f"{NAMESPACE}/tables", self.create),
            route("GET", self.one, self.load),
            route("POST", self.one, self.commit),
            route("POST", f"{NAMESPACE}/register", self.register),
            route("POST", f"{self.one}/unregister", self.unregister),
        ]

    async def create(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_create_table(body)
        key, catalog = self.key(request, "createTable", body), self.catalog(request)
        if wanted.stage_create:
            return self._loaded(await catalog.staging.stage(levels_of(request), wanted, key), None)
        return self._loaded(*await catalog.tables.create(levels_of(request), wanted, key, source_of(request)))

    async def load(self, request: Request) -> Response:
        mode = snapshots_of(request)
        _, base = await self.catalog(request).tables.load(levels_of(request), request.segments[2])
        etag = etag_of(base.location, mode)
        if etag in request.headers.get("if-none-match", ""):
            return Response(304, headers={"ETag": etag})
        return self._loaded(base.metadata, base.location, mode)

    async def commit(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_commit_table(body)
        key, catalog = self.key(request, "updateTable", body), self.catalog(request)
        levels, name = levels_of(request), request.segments[2]
        if requirements.creates(wanted.requirements):
            metadata, location = await catalog.staging.create_by_commit(levels, name, wanted, key, source_of(request))
        else:
            done = await catalog.table_commits.commit(levels, name, wanted, key, source_of(request))
            metadata, location = done.metadata, done.location
        result = responses.commit_table(metadata, metadata_location=location)
        return json_response(result, headers={"ETag": etag_of(location)})

    async def register(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_register_table(body)
        key = self.key(request, "registerTable", body)
        metadata, location = await self.catalog(request).registering.register(
            levels_of(request),
            wanted.name,
            wanted.metadata_location,
            overwrite=wanted.overwrite,
            key=key,
            author=author_of(request),
        )
        return self._loaded(metadata, location)

    async def unregister(self, request: Request) -> Response:
        """A drop that says where the table's last metadata lies. Its files stay, as after every drop without purge."""
        tables = self.catalog(request).tables
        key = self.key(request, "unregisterTable", None)
        location = await tables.drop(
            levels_of(request), request.segments[2], purge=False, key=key, author=author_of(request)
        )
        metadata = await tables.metadata_at(location)
        return json_response(responses.commit_table(metadata, metadata_location=location))

    def _loaded(self, metadata: TableMetadata, location: str | None, mode: Snapshots = Snapshots.ALL) -> Response:
        config = self._state.client_config
        result = responses.load_table(metadata, metadata_location=location, config=config, snapshots=mode)
        return json_response(result, headers={} if location is None else {"ETag": etag_of(location, mode)})
