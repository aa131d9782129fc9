"""Tables: create, stage, load, commit, register, unregister."""

from arco.catalog.model import Kind
from arco.iceberg import requests, requirements, responses
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.responses import Snapshots
from arco.kernel.ids import TableUuid
from arco.ledger.iceberg_events import MetricsReported
from arco.storage.keys import Domain
from arco.surface.http.exchange import Request, Response, json_response, no_content
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
            route("POST", f"{self.one}/metrics", self.report),
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

    async def report(self, request: Request) -> Response:
        """Keep what a client measured, as an event. It may come before the table does, so the name need not exist."""
        report = requests.parse_metrics_report(request.json())
        levels, name = levels_of(request), request.segments[2]
        entry = self.catalog(request).parts.tier1.names.find(levels, name, Kind.TABLE)
        event = MetricsReported(
            namespace=levels,
            table=name,
            table_uuid=None if entry is None else TableUuid(entry.uuid),
            report_type=report.report_type,
            report=report.body,
        )
        draft = event.draft(idempotencykey=request.headers.get("idempotency-key"), correlationid=request.request_id)
        await self._state.appender(self.scope(request)).append(Domain.ICEBERG, [draft])
        return no_content()

    def _loaded(self, metadata: TableMetadata, location: str | None, mode: Snapshots = Snapshots.ALL) -> Response:
        config = self._state.client_config
        result = responses.load_table(metadata, metadata_location=location, config=config, snapshots=mode)
        return json_response(result, headers={} if location is None else {"ETag": etag_of(location, mode)})
