"""The ASGI application: read a request within limits, find its handler, answer, and never show the inside."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from arco.kernel.errors import ArcoError, TooLarge
from arco.kernel.ids import UlidSource
from arco.kernel.limits import JSON_BODY_BYTES_MAX
from arco.surface.http.exchange import Request, Response, decode_query, decode_segment, json_response
from arco.surface.http.failures import envelope, failure, hidden
from arco.surface.http.iceberg import iceberg_routes
from arco.surface.http.routes import Routes, route
from arco.surface.http.server_state import ServerState

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("arco.http")


class App:
    """One server's application."""

    def __init__(self, state: ServerState, ulids: UlidSource) -> None:
        self._state = state
        self._ulids = ulids
        self._routes = Routes(
            [
                *iceberg_routes(state),
                route("GET", "/health", self._health),
                route("GET", "/ready", self._ready),
            ]
        )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        request_id = self._ulids.next()
        response = await self._answer(scope, receive, request_id)
        await _send(send, scope["method"], response, request_id)

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, request_id: str) -> Response:
        try:
            raw = scope["raw_path"].partition(b"?")[0]
            segments = [decode_segment(part) for part in raw.strip(b"/").split(b"/")]
            found = self._routes.find(scope["method"], segments)
            if isinstance(found, set):
                return _not_here(found)
            handler, left = found
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            body = await _body(receive)
            query = decode_query(scope["query_string"])
            request = Request(scope["method"], raw.decode("latin-1"), left, query, headers, body, request_id)
            return await handler(request)
        except ArcoError as error:
            return failure(error)
        except Exception:
            log.exception("request %s failed", request_id)
            return hidden(request_id)

    async def _health(self, _request: Request) -> Response:
        return json_response({"status": "ok"})

    async def _ready(self, _request: Request) -> Response:
        """Ready if the store answers."""
        await self._state.store.head("_arco_ready")
        return json_response({"status": "ready"})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._state.settle()
                await send({"type": "lifespan.shutdown.complete"})
                return


async def _body(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(chunks)
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > JSON_BODY_BYTES_MAX:
            raise TooLarge(f"the request's body is over the limit of {JSON_BODY_BYTES_MAX} bytes")
        chunks.append(chunk)
        if not message.get("more_body"):
            return b"".join(chunks)


def _not_here(methods: set[str]) -> Response:
    if not methods:
        return envelope(404, "NotFoundException", "there is no such route")
    response = envelope(405, "UnsupportedOperationException", "this route does not take that method")
    return Response(response.status, response.body, {"Allow": ", ".join(sorted(methods))})


async def _send(send: Send, method: str, response: Response, request_id: str) -> None:
    headers = [(b"x-request-id", request_id.encode())]
    if response.body:
        headers += [(b"content-type", b"application/json")]
    if response.status not in {204, 304}:
        headers += [(b"content-length", str(len(response.body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in response.headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else response.body})
