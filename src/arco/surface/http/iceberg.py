"""The routes of the Iceberg REST catalog, and the config that tells clients which of them there are."""

from arco.kernel.limits import IDEMPOTENCY_LIFETIME_S
from arco.kernel.scope import Scope
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.feed import FeedResource
from arco.surface.http.namespaces import Namespaces
from arco.surface.http.routes import Route, route
from arco.surface.http.server_state import ServerState
from arco.surface.http.tables import Tables
from arco.surface.http.transactions import TransactionResource
from arco.surface.http.views import Views


def iceberg_routes(state: ServerState) -> list[Route]:
    resources = (Namespaces(state), Tables(state), Views(state), TransactionResource(state), FeedResource(state))
    routes = [one for resource in resources for one in resource.routes()]
    endpoints = [f"{one.method} {one.template.removeprefix('/iceberg')}" for one in routes]

    async def config(request: Request) -> Response:
        """Which workspace a client gets, and what works."""
        warehouse = request.one("warehouse")
        scope = Scope.parse_warehouse(warehouse) if warehouse else Scope.of()
        return json_response(
            {
                "defaults": dict(state.for_clients.defaults),
                "overrides": {"prefix": scope.prefix, "namespace-separator": "%1F"},
                "endpoints": endpoints,
                "idempotency-key-lifetime": f"PT{IDEMPOTENCY_LIFETIME_S // 3600}H",
            }
        )

    return [route("GET", "/iceberg/v1/config", config), *routes]
