"""The Iceberg REST catalog: namespaces and tables of every workspace of this server."""

from collections.abc import Callable
from typing import Any

from arco.catalog.committer import Author
from arco.catalog.idempotency import RequestKey
from arco.catalog.model import Kind, Levels
from arco.catalog.namespaces import change_namespace, create_namespace, drop_namespace
from arco.catalog.pointer import Source
from arco.iceberg import requests, requirements, responses
from arco.iceberg.responses import Snapshots
from arco.kernel.canonical_json import JsonValue
from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.limits import IDEMPOTENCY_LIFETIME_S, LIST_PAGE_KEYS_MAX
from arco.kernel.scope import Scope
from arco.surface.http.exchange import Request, Response, json_response, no_content
from arco.surface.http.routes import Route, route
from arco.surface.http.server_state import OpenWorkspace, ServerState

SEPARATOR = "\x1f"
_P = "/iceberg/v1/{prefix}"
_NS = f"{_P}/namespaces/{{namespace}}"
_TABLE = f"{_NS}/tables/{{table}}"
_VIEW = f"{_NS}/views/{{view}}"


class IcebergRoutes:
    """Handlers: decode, call the catalog, encode."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def routes(self) -> list[Route]:
        return [
            route("GET", "/iceberg/v1/config", self.config),
            route("GET", f"{_P}/namespaces", self.list_namespaces),
            route("POST", f"{_P}/namespaces", self.create_namespace),
            route("GET", _NS, self.load_namespace),
            route("HEAD", _NS, self.namespace_exists),
            route("DELETE", _NS, self.drop_namespace),
            route("POST", f"{_NS}/properties", self.update_namespace),
            route("GET", f"{_NS}/tables", self.list_tables),
            route("POST", f"{_NS}/tables", self.create_table),
            route("GET", _TABLE, self.load_table),
            route("HEAD", _TABLE, self.table_exists),
            route("POST", _TABLE, self.commit_table),
            route("DELETE", _TABLE, self.drop_table),
            route("POST", f"{_P}/tables/rename", self.rename_table),
            route("GET", f"{_NS}/views", self.list_views),
            route("POST", f"{_NS}/views", self.create_view),
            route("GET", _VIEW, self.load_view),
            route("HEAD", _VIEW, self.view_exists),
            route("POST", _VIEW, self.commit_view),
            route("DELETE", _VIEW, self.drop_view),
            route("POST", f"{_P}/views/rename", self.rename_view),
        ]

    # Config

    async def config(self, request: Request) -> Response:
        warehouse = request.one("warehouse")
        scope = Scope.parse_warehouse(warehouse) if warehouse else Scope.of()
        prefix = "/iceberg"
        endpoints = [
            f"{one.method} {_spec_template(one.template.removeprefix(prefix))}"
            for one in self.routes()
            if not one.template.endswith("/config")
        ]
        return json_response(
            {
                "defaults": {},
                "overrides": {"prefix": scope.prefix, "namespace-separator": "%1F"},
                "endpoints": endpoints,
                "idempotency-key-lifetime": f"PT{IDEMPOTENCY_LIFETIME_S // 3600}H",
            }
        )

    # Namespaces

    async def list_namespaces(self, request: Request) -> Response:
        workspace = self._workspace(request)
        parent_text = request.one("parent")
        parent = decode_levels(parent_text) if parent_text else ()
        names = (await workspace.parts.tier1.current()).names
        page, token = _page(names.children(parent), request, SEPARATOR.join)
        return json_response({"namespaces": page} | token)

    async def create_namespace(self, request: Request) -> Response:
        workspace = self._workspace(request)
        body = request.json()
        wanted = requests.parse_create_namespace(body)
        key = self._key(request, workspace, "createNamespace", body)
        await create_namespace(workspace.parts, wanted.namespace, wanted.properties, key, _author(request))
        return json_response({"namespace": wanted.namespace, "properties": wanted.properties})

    async def load_namespace(self, request: Request) -> Response:
        workspace = self._workspace(request)
        levels = decode_levels(request.segments[1])
        namespace = (await workspace.parts.tier1.current()).names.namespace(levels)
        return json_response({"namespace": levels, "properties": namespace.properties})

    async def namespace_exists(self, request: Request) -> Response:
        await self.load_namespace(request)
        return no_content()

    async def drop_namespace(self, request: Request) -> Response:
        workspace = self._workspace(request)
        key = self._key(request, workspace, "dropNamespace", None)
        await drop_namespace(workspace.parts, decode_levels(request.segments[1]), key, _author(request))
        return no_content()

    async def update_namespace(self, request: Request) -> Response:
        workspace = self._workspace(request)
        body = request.json()
        wanted = requests.parse_update_namespace_properties(body)
        levels = decode_levels(request.segments[1])
        before = (await workspace.parts.tier1.current()).names.namespace(levels).properties
        removed = [key for key in wanted.removals if key in before]
        key = self._key(request, workspace, "updateNamespaceProperties", body)
        await change_namespace(workspace.parts, levels, tuple(wanted.removals), wanted.updates, key, _author(request))
        absent = [key for key in wanted.removals if key not in before]
        return json_response({"updated": sorted(wanted.updates), "removed": removed, "missing": absent})

    # Tables

    async def list_tables(self, request: Request) -> Response:
        return await self._list(request, Kind.TABLE)

    async def _list(self, request: Request, kind: Kind) -> Response:
        workspace = self._workspace(request)
        levels = decode_levels(request.segments[1])
        names = (await workspace.parts.tier1.current()).names
        members = [entry.name for entry in names.members(levels, kind)]
        page, token = _page(members, request, lambda name: name)
        return json_response({"identifiers": [{"namespace": levels, "name": name} for name in page]} | token)

    async def create_table(self, request: Request) -> Response:
        workspace = self._workspace(request)
        body = request.json()
        wanted = requests.parse_create_table(body)
        levels = decode_levels(request.segments[1])
        key = self._key(request, workspace, "createTable", body)
        if wanted.stage_create:
            staged = await workspace.staging.stage(levels, wanted, key)
            return json_response(responses.load_table(staged, metadata_location=None, config=workspace.client_config))
        metadata, location = await workspace.tables.create(levels, wanted, key, _source(request))
        result = responses.load_table(metadata, metadata_location=location, config=workspace.client_config)
        return json_response(result, headers={"ETag": _etag(location, Snapshots.ALL)})

    async def load_table(self, request: Request) -> Response:
        workspace = self._workspace(request)
        mode = _snapshots(request)
        _, base = await workspace.tables.load(decode_levels(request.segments[1]), request.segments[2])
        location = base.pointer.value.metadata_location
        etag = _etag(location, mode)
        if etag in request.headers.get("if-none-match", ""):
            return Response(304, headers={"ETag": etag})
        result = responses.load_table(
            base.metadata, metadata_location=location, config=workspace.client_config, snapshots=mode
        )
        return json_response(result, headers={"ETag": etag})

    async def table_exists(self, request: Request) -> Response:
        workspace = self._workspace(request)
        await workspace.tables.load(decode_levels(request.segments[1]), request.segments[2])
        return no_content()

    async def commit_table(self, request: Request) -> Response:
        workspace = self._workspace(request)
        body = request.json()
        wanted = requests.parse_commit_table(body)
        key = self._key(request, workspace, "updateTable", body)
        levels, name = decode_levels(request.segments[1]), request.segments[2]
        if requirements.creates(wanted.requirements):
            metadata, location = await workspace.staging.create_by_commit(levels, name, wanted, key, _source(request))
        else:
            done = await workspace.table_commits.commit(levels, name, wanted, key, _source(request))
            metadata, location = done.metadata, done.location
        headers = {"ETag": _etag(location, Snapshots.ALL)}
        return json_response(responses.commit_table(metadata, metadata_location=location), headers=headers)

    async def drop_table(self, request: Request) -> Response:
        workspace = self._workspace(request)
        purge = (request.one("purgeRequested") or "false").lower() == "true"
        key = self._key(request, workspace, "dropTable", {"purge": purge})
        levels, name = decode_levels(request.segments[1]), request.segments[2]
        await workspace.tables.drop(levels, name, purge=purge, key=key, author=_author(request))
        return no_content()

    async def rename_table(self, request: Request) -> Response:
        workspace = self._workspace(request)
        body = request.json()
        wanted = requests.parse_rename(body)
        key = self._key(request, workspace, "renameTable", body)
        source = (wanted.source.namespace, wanted.source.name)
        destination = (wanted.destination.namespace, wanted.destination.name)
        await workspace.tables.rename(source, destination, key, _author(request))
        return no_content()

    # Views

    async def list_views(self, request: Request) -> Response:
        return await self._list(request, Kind.VIEW)

    async def create_view(self, request: Request) -> Response:
        workspace = self._workspace(request)
        body = request.json()
        wanted = requests.parse_create_view(body)
        key = self._key(request, workspace, "createView", body)
        levels = decode_levels(request.segments[1])
        metadata, location = await workspace.views.create(levels, wanted, key, _source(request))
        return json_response(responses.load_view(metadata, metadata_location=location, config=workspace.client_config))

    async def load_view(self, request: Request) -> Response:
        workspace = self._workspace(request)
        _, base = await workspace.views.load(decode_levels(request.segments[1]), request.segments[2])
        location = base.pointer.value.metadata_location
        result = responses.load_view(base.metadata, metadata_location=location, config=workspace.client_config)
        return json_response(result, headers={"ETag": _etag(location, Snapshots.ALL)})

    async def view_exists(self, request: Request) -> Response:
        await self.load_view(request)
        return no_content()

    async def commit_view(self, request: Request) -> Response:
        workspace = self._workspace(request)
        body = request.json()
        wanted = requests.parse_commit_view(body)
        key = self._key(request, workspace, "replaceView", body)
        levels = decode_levels(request.segments[1])
        done = await workspace.view_commits.commit(levels, request.segments[2], wanted, key, _source(request))
        result = responses.load_view(done.metadata, metadata_location=done.location, config=workspace.client_config)
        return json_response(result)

    async def drop_view(self, request: Request) -> Response:
        workspace = self._workspace(request)
        key = self._key(request, workspace, "dropView", None)
        levels, name = decode_levels(request.segments[1]), request.segments[2]
        await workspace.views.drop(levels, name, purge=False, key=key, author=_author(request))
        return no_content()

    async def rename_view(self, request: Request) -> Response:
        workspace = self._workspace(request)
        body = request.json()
        wanted = requests.parse_rename(body)
        key = self._key(request, workspace, "renameView", body)
        source = (wanted.source.namespace, wanted.source.name)
        destination = (wanted.destination.namespace, wanted.destination.name)
        await workspace.views.rename(source, destination, key, _author(request))
        return no_content()

    # What every handler needs

    def _workspace(self, request: Request) -> OpenWorkspace:
        return self._state.workspace(Scope.parse_prefix(request.segments[0]))

    def _key(self, request: Request, workspace: OpenWorkspace, operation: str, body: JsonValue) -> RequestKey:
        given = request.headers.get("idempotency-key")
        return workspace.parts.markers.request_key(given, operation, request.hash(body))


def decode_levels(text: str) -> Levels:
    """The levels of a namespace in a path or query."""
    levels = tuple(text.split(SEPARATOR))
    requests.check_namespace(levels)
    return levels


def _snapshots(request: Request) -> Snapshots:
    text = request.one("snapshots") or "all"
    try:
        return Snapshots(text)
    except ValueError:
        raise InvalidInput(f"snapshots={text!r} is not known", hint="all or refs") from None


def _etag(location: str, mode: Snapshots) -> str:
    return f'"{fingerprint("etag", mode, location)[:32]}"'


def _author(request: Request) -> Author:
    return Author("anonymous", request.headers.get("x-client-version"))


def _source(request: Request) -> Source:
    return Source(client=request.headers.get("x-client-version"))


def _page(items: list[Any], request: Request, name_of: Callable[[Any], str]) -> tuple[list[Any], dict[str, str]]:
    """One page of a listing, and the token of the next. Without pageToken the whole list is asked for."""
    token, size = request.one("pageToken"), request.one("pageSize")
    if token is None and size is None:
        return items, {}
    try:
        limit = int(size) if size else LIST_PAGE_KEYS_MAX
        after = bytes.fromhex(token or "").decode()
    except ValueError:
        raise InvalidInput("pageToken or pageSize is not one of ours", hint="pass the token as it was given") from None
    if not 1 <= limit <= LIST_PAGE_KEYS_MAX:
        raise InvalidInput(f"pageSize is {limit}", hint=f"1 to {LIST_PAGE_KEYS_MAX}")
    rest = [item for item in items if not after or name_of(item) > after]
    if len(rest) <= limit:
        return rest, {}
    return rest[:limit], {"next-page-token": name_of(rest[limit - 1]).encode().hex()}


def _spec_template(template: str) -> str:
    """A route as the specification writes it."""
    names = iter(("prefix", "namespace", "view" if "/views/" in template else "table"))
    parts = [f"{{{next(names)}}}" if part == "{}" else part for part in template.strip("/").split("/")]
    return "/" + "/".join(parts)
