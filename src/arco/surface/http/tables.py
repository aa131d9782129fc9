"""Tables: create, stage, load, commit, register, unregister; and the credentials for their files."""

from arco.catalog.doubt import doubt
from arco.catalog.model import Kind, Levels
from arco.catalog.versions import Committed
from arco.iceberg import requests, requirements, responses
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.responses import Snapshots
from arco.kernel.ids import TableUuid
from arco.ledger.iceberg_events import MetricsReported
from arco.storage.keys import Domain
from arco.surface.http.exchange import Request, Response, json_response, no_content
from arco.surface.http.for_clients import NOT_KEPT
from arco.surface.http.relations import RelationResource
from arco.surface.http.resource import NAMESPACE, author_of, etag_of, lasting, levels_of, snapshots_of, source_of
from arco.surface.http.routes import Lane, Route, route
from arco.surface.http.vended import Delegation, delegated, known_tag, refresh_path, shown


class Tables(RelationResource):
    kind = Kind.TABLE

    def routes(self) -> list[Route]:
        return [
            *super().routes(),
            route("POST", f"{NAMESPACE}/tables", self.create, lane=Lane.NAMES),
            route("GET", self.one, self.load),
            route("POST", self.one, self.commit, lane=Lane.TABLE),
            route("POST", f"{NAMESPACE}/register", self.register, lane=Lane.NAMES),
            route("POST", f"{self.one}/unregister", self.unregister, lane=Lane.NAMES),
            route("POST", f"{self.one}/metrics", self.report),
            *(
                []
                if self._state.for_clients.vending is None
                else [route("GET", f"{self.one}/credentials", self.credentials)]
            ),
        ]

    async def create(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_create_table(body)
        key, catalog, levels = self.key(request, "createTable", body), self.catalog(request), levels_of(request)
        if wanted.stage_create:
            return await self._staged(request, await catalog.staging.stage(levels, wanted, key))
        metadata, location = await catalog.tables.create(levels, wanted, key, source_of(request))
        with doubt():
            return await self._loaded(request, metadata, location, levels, wanted.name)

    async def load(self, request: Request) -> Response:
        mode, levels, name = snapshots_of(request), levels_of(request), request.segments[2]
        tables = self.catalog(request).tables
        _, base = await tables.load(levels, name)
        for_clients, refresh = self._state.for_clients, self._refresh(request, levels, name)
        # Credentials grow old while nothing changes.
        ground = tables.ground(levels, name, base, file=True) if for_clients.vending is None else None
        known = known_tag(request, for_clients, base.location, mode, refresh, self._state.clock)
        if known is not None:
            return lasting(Response(304, headers={"ETag": known, **for_clients.headers}), ground)
        if for_clients.vending is not None:
            given = await self._given(request, base.metadata, refresh)
            if given.credential is not None:
                return self._shown(base.metadata, base.location, mode, given)
        etag = etag_of(base.location, mode, for_clients.mark)
        headers = {"ETag": etag, **for_clients.headers}
        return self._state.answers.response(
            etag, lambda: self._shown(base.metadata, base.location, mode, Delegation()).body, headers, ground
        )

    async def credentials(self, request: Request) -> Response:
        """New credentials for a table's files, for who has used up those that came with it."""
        _, base = await self.catalog(request).tables.load(levels_of(request), request.segments[2])
        vending, metadata = self._state.for_clients.vending, base.metadata
        made = [] if vending is None else [await vending.for_table(self.scope(request), metadata.table_uuid, metadata)]
        return json_response({"storage-credentials": [shown(one) for one in made]}, headers=NOT_KEPT)

    async def commit(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_commit_table(body)
        key, catalog = self.key(request, "updateTable", body), self.catalog(request)
        levels, name = levels_of(request), request.segments[2]
        catalog.table_commits.require_room(levels, name, key)
        if requirements.creates(wanted.requirements):
            made = await catalog.staging.create_by_commit(levels, name, wanted, key, source_of(request))
            done = Committed(*made)
        else:
            done = await catalog.table_commits.commit(levels, name, wanted, key, source_of(request))
        result = responses.commit_table(done.metadata, metadata_location=done.location, spelled=done.spelled)
        return json_response(result, headers={"ETag": etag_of(done.location)})

    async def register(self, request: Request) -> Response:
        body = request.json()
        wanted = requests.parse_register_table(body)
        key, levels = self.key(request, "registerTable", body), levels_of(request)
        metadata, location = await self.catalog(request).registering.register(
            levels,
            wanted.name,
            wanted.metadata_location,
            overwrite=wanted.overwrite,
            key=key,
            author=author_of(request),
        )
        with doubt():
            return await self._loaded(request, metadata, location, levels, wanted.name)

    async def unregister(self, request: Request) -> Response:
        """A drop that says where the table's last metadata lies. Its files are not Arco's any more: they stay for good."""
        tables = self.catalog(request).tables
        key = self.key(request, "unregisterTable", None)
        location = await tables.unregister(levels_of(request), request.segments[2], key=key, author=author_of(request))
        metadata = await tables.metadata_at(location)
        return json_response(responses.commit_table(metadata, metadata_location=location))

    async def report(self, request: Request) -> Response:
        """Keep what a client measured, as an event. It may come before the table does, or after it, so the name need not exist.

        Its namespace must: an event makes a workspace of whatever a path says. One that is remembered is enough.
        """
        report = requests.parse_metrics_report(request.json())
        levels, name = levels_of(request), request.segments[2]
        tier1 = self.catalog(request).parts.tier1
        if levels not in tier1.names.namespaces:
            (await tier1.current()).names.namespace(levels)
        entry = tier1.names.find(levels, name, Kind.TABLE)
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

    async def _loaded(
        self, request: Request, metadata: TableMetadata, location: str, levels: Levels, name: str
    ) -> Response:
        """A table that was just made, with credentials if they were asked for."""
        given = await self._given(request, metadata, self._refresh(request, levels, name))
        return self._shown(metadata, location, Snapshots.ALL, given)

    def _refresh(self, request: Request, levels: Levels, name: str) -> str | None:
        """Where a client finds new credentials, if those of this server say so."""
        vending = self._state.for_clients.vending
        if vending is None or vending.refresh_property is None:
            return None
        return refresh_path(self.scope(request), levels, name)

    async def _given(self, request: Request, metadata: TableMetadata, refresh: str | None) -> Delegation:
        """Whatever the metadata came from, credentials are new."""
        vending = self._state.for_clients.vending
        if vending is None:
            return Delegation()
        return await delegated(vending, request, self.scope(request), metadata, refresh)

    def _shown(self, metadata: TableMetadata, location: str, mode: Snapshots, given: Delegation) -> Response:
        for_clients = self._state.for_clients
        config, credentials = given.config(for_clients.config), given.credentials()
        result = responses.load_table(
            metadata, metadata_location=location, config=config, snapshots=mode, credentials=credentials
        )
        etag = given.etag(location, mode, for_clients.mark)
        return json_response(result, headers={"ETag": etag, **for_clients.headers, **given.headers()})

    async def _staged(self, request: Request, metadata: TableMetadata) -> Response:
        """A table that nobody can load yet: nobody could ask for its credentials again."""
        given = await delegated(self._state.for_clients.vending, request, self.scope(request), metadata, None)
        config = given.config(self._state.for_clients.config)
        result = responses.load_table(metadata, metadata_location=None, config=config, credentials=given.credentials())
        return json_response(result, headers={**self._state.for_clients.headers, **given.headers()})
