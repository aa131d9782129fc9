"""One exchange with a client: what it sent before its body, and the one answer it gets, however many are ready to give one."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import aclosing
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.surface.http.bodies import Receive, discard, has_body
from arco.surface.http.exchange import Response, Streamed
from arco.surface.http.packing import accepts_gzip
from arco.surface.http.routes import Route

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Scope = MutableMapping[str, Any]

# Smaller answers are sent as they are: packing them costs more time than it saves.
_PACKED_BYTES_MIN = 32 * 1024

# An id that is passed on from a proxy or a client is kept, so that one id can be followed through all logs.
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")

# Headers of which there is one. Of two, a proxy may have obeyed the other.
_SINGLE = {"authorization", "content-encoding", "content-type", "host", "idempotency-key", "origin", "x-request-id"}
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


class Call:
    """`headers` have lower-case names; what may be given more than once is joined."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, own_id: str, started_s: float) -> None:
        self.method: str = scope["method"]
        self.raw_path: bytes = scope["raw_path"].partition(b"?")[0]
        self.query_string: bytes = scope["query_string"]
        self.client: str = scope["client"][0] if scope.get("client") else ""
        self._receive = receive
        self._send = send
        self.raw_headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.headers, self.given_twice = _headers(self.raw_headers)
        given = self.headers.get("x-request-id", "")
        self.request_id = given if _REQUEST_ID.fullmatch(given) else own_id
        self.started_s = started_s
        self.is_handed_over = False
        """Another worker has its client, and says in its log how it went."""
        self.body_is_unread = has_body(self.headers)
        self.route: Route | None = None
        self.status: int | None = None
        self.sent_bytes = 0
        self.trips = 0

    @property
    def path(self) -> str:
        return self.raw_path.decode("latin-1")

    @property
    def mutates(self) -> bool:
        return self.method not in _SAFE_METHODS

    @property
    def may_come_again(self) -> bool:
        """A change with a key of its client's: it may have been here before, and is safe to send once more."""
        return self.mutates and "idempotency-key" in self.headers

    @property
    def is_answered(self) -> bool:
        return self.status is not None

    def check_headers(self) -> None:
        if self.given_twice:
            raise InvalidInput(f"header {self.given_twice} is given twice", hint="give it once")

    async def receive(self) -> MutableMapping[str, Any]:
        """The next part of the body."""
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            self.body_is_unread = False
        return message

    async def answer(self, response: Response, discard_s: float) -> None:
        """Send an answer. There is one: who comes second must look at `is_answered` first."""
        self.status = response.status
        body, packing = self._packed(response)
        unread = self.body_is_unread
        headers = [(b"x-request-id", self.request_id.encode()), (b"x-content-type-options", b"nosniff"), *packing]
        if body and "Content-Type" not in response.headers:
            headers += [(b"content-type", b"application/json")]
        length = len(body) if response.streamed is None else response.streamed.size_bytes
        if response.status not in {204, 304}:
            headers += [(b"content-length", str(length).encode())]
        if unread:
            headers += [(b"connection", b"close")]
        headers += [(name.lower().encode(), value.encode()) for name, value in response.headers.items()]
        sent = b"" if self.method == "HEAD" else body
        self.sent_bytes = len(sent)
        await self._send({"type": "http.response.start", "status": response.status, "headers": headers})
        if response.streamed is not None and self.method != "HEAD":
            await self._send_pieces(response.streamed)
            return
        await self._send({"type": "http.response.body", "body": sent, "more_body": unread})
        if unread:
            await discard(self.receive, discard_s)
            await self._send({"type": "http.response.body"})

    async def _send_pieces(self, streamed: Streamed) -> None:
        """Piece by piece, as fast as the client reads. One that went away is not read to."""
        gone = asyncio.ensure_future(self._until_gone())
        try:
            async with aclosing(streamed.pieces()) as pieces:
                async for piece in pieces:
                    if gone.done():
                        return
                    await self._send({"type": "http.response.body", "body": piece, "more_body": True})
                    self.sent_bytes += len(piece)
        finally:
            gone.cancel()
        await self._send({"type": "http.response.body"})

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _packed(self, response: Response) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        if len(response.body) < _PACKED_BYTES_MIN:
            return response.body, []
        vary = (b"vary", b"Accept-Encoding")
        if not accepts_gzip(self.headers.get("accept-encoding", "")):
            return response.body, [vary]
        return response.pack(response.body), [vary, (b"content-encoding", b"gzip")]


def _headers(pairs: list[tuple[bytes, bytes]]) -> tuple[dict[str, str], str | None]:
    """All headers, and the name of one that is given more often than it may be."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if len(headers) == len(pairs):
        return headers, None
    counts = Counter(name.decode("latin-1") for name, _ in pairs)
    return headers, next((name for name in sorted(_SINGLE) if counts[name] > 1), None)
