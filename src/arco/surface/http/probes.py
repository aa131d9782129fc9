"""What machines ask: is the process alive, and can it do its work?"""

import asyncio

from arco.kernel.errors import ArcoError
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.failures import refusal
from arco.surface.http.routes import Door, Route, route
from arco.surface.http.server_state import ServerState

# No object has this name: whether it is there does not matter, only that the store answers.
_ASKED = "_arco_ready"


class ProbeRoutes:
    """`/health` asks nobody; `/ready` asks the store, and is not ready before the names are read.

    It also says how the server's fold is. A server whose fold is being started again is ready: it serves, and what it answers
    from folded state is a little older.
    """

    def __init__(self, state: ServerState, ready_s: float) -> None:
        self._state = state
        self._ready_s = ready_s
        self._asking: asyncio.Task[str | None] | None = None

    def routes(self) -> list[Route]:
        return [route("GET", "/health", self.health, Door.PROBE), route("GET", "/ready", self.ready, Door.PROBE)]

    async def health(self, _request: Request) -> Response:
        return json_response({"status": "ok"})

    async def ready(self, _request: Request) -> Response:
        asking = self.look()
        await asyncio.wait({asking}, timeout=self._ready_s)
        reason = asking.result() if asking.done() else "timeout"
        if reason is not None:
            return refusal(503, f"the store does not answer: {reason}")
        fold = self._state.fold_status
        return json_response({"status": "ready"} | ({} if fold is None else {"fold": fold()}))

    def look(self) -> "asyncio.Task[str | None]":
        """One look at a time, however many ask: a store that is silent must not be asked more and more often."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return self._asking

    async def end(self) -> None:
        """Leave nothing running behind."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask(self) -> str | None:
        """The code of what is wrong; None if nothing is."""
        try:
            await self._state.store.head(_ASKED)
            await self._state.read_names()
        except ArcoError as error:
            return error.code
        return None
