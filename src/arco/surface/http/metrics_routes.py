"""`GET /metrics`: what this server counted and what is folded, for Prometheus. Who may call it is who may call all else."""

from arco.kernel.limits import METRICS_PATIENCE_S
from arco.surface.http.exchange import Request, Response
from arco.surface.http.metrics import CONTENT_TYPE
from arco.surface.http.routes import Door, Route, route
from arco.surface.http.server_state import ServerState
from arco.surface.http.state_metrics import StateMetrics


class MetricsRoutes:
    """`request_s` is how long the server lets a client wait: those who watch get their answer well before."""

    def __init__(self, state: ServerState, request_s: float) -> None:
        self._metrics = state.metrics
        self._folded = StateMetrics(state, min(METRICS_PATIENCE_S, request_s / 2))

    def routes(self) -> list[Route]:
        return [route("GET", "/metrics", self.metrics, Door.WATCH)]

    async def end(self) -> None:
        await self._folded.end()

    async def metrics(self, _request: Request) -> Response:
        text = self._metrics.text(await self._folded.families())
        return Response(200, text, {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})
