"""One exchange with a client: what it sent before its body, and the one answer it gets, however many are ready to give one.

An answer that is whole goes out at once, as long as the connection offers that; any other way of answering, and reading, is
ASGI's. What must never enter: what a request means.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import aclosing
from typing import Any, Self

import msgspec

from arco.kernel.errors import BrokenInvariant, InvalidInput
from arco.surface.http.begun import Turn
from arco.surface.http.bodies import Receive, discard, has_body
from arco.surface.http.exchange import Again, Response, Streamed
from arco.surface.http.packing import accepts_gzip
from arco.surface.http.routes import NO_ROUTE, Route

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Scope = MutableMapping[str, Any]
RawHeaders = list[tuple[bytes, bytes]]
Write = Callable[[int, RawHeaders, bytes], None]
"""Takes a whole answer: status, headers and body."""

# Smaller answers are sent as they are: packing them costs more time than it saves.
_PACKED_BYTES_MIN = 32 * 1024

# An id that is passed on from a proxy or a client is kept, so that one id can be followed through all logs.
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")

# Headers of which there is one. Of two, a proxy may have obeyed the other.
_SINGLE = {"authorization", "content-encoding", "content-type", "host", "idempotency-key", "origin", "x-request-id"}
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_JSON = (b"content-type", b"application/json")
_BODILESS = {204, 304}
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


class Head(msgspec.Struct, frozen=True):
    """What a request says before its body. `headers` have lower-case names; what may be given more than once is joined."""

    method: str
    raw_path: bytes
    query_string: bytes
    raw_headers: RawHeaders
    headers: dict[str, str]
    given_twice: str | None
    has_body: bool
    request_id: str | None
    """The one that it brings, if that is one."""

    @classmethod
    def of(cls, method: str, raw_path: bytes, query_string: bytes, raw_headers: RawHeaders) -> Self:
        headers, given_twice = _headers(raw_headers)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else None
        return cls(method, raw_path, query_string, raw_headers, headers, given_twice, has_body(headers), request_id)

    @classmethod
    def in_scope(cls, scope: Scope) -> Self:
        return cls.of(scope["method"], scope["raw_path"].partition(b"?")[0], scope["query_string"], scope["headers"])


class Call:
    """`write` takes a whole answer at once; None where only ASGI's way is open."""

    __slots__ = (
        "_asgi",
        "again",
        "body_is_unread",
        "client",
        "head",
        "headers",
        "is_handed_over",
        "method",
        "operation",
        "request_id",
        "route",
        "sent_bytes",
        "started_s",
        "status",
        "trips",
        "write",
    )

    def __init__(self, head: Head, request_id: str, client: str, started_s: float, write: Write | None = None) -> None:
        self.head = head
        self.method = head.method
        self.headers = head.headers
        self.request_id = request_id
        self.client = client
        self.started_s = started_s
        self.write = write
        self._asgi: tuple[Receive, Send] | None = None
        self.is_handed_over = False
        """Another worker has its client, and says in its log how it went."""
        self.body_is_unread = head.has_body
        self.route: Route | None = None
        self.operation = NO_ROUTE
        """The request in a word that its client cannot choose."""
        self.status: int | None = None
        self.sent_bytes = 0
        self.trips = 0
        self.again: Again | None = None
        """That of its answer."""

    def go_on(self, receive: Receive, send: Send) -> None:
        """From here on as ASGI has it."""
        self.write, self._asgi = None, (receive, send)

    async def _way(self) -> tuple[Receive, Send]:
        """ASGI's. Who began without it waits once, and whoever goes on with what waits opens it."""
        if self._asgi is None:
            await Turn()
        if self._asgi is None:
            raise BrokenInvariant("what was begun goes on where nobody can receive and send")
        return self._asgi

    @property
    def path(self) -> str:
        return self.head.raw_path.decode("latin-1")

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
        if self.head.given_twice:
            raise InvalidInput(f"header {self.head.given_twice} is given twice", hint="give it once")

    async def receive(self) -> MutableMapping[str, Any]:
        """The next part of the body."""
        receive, _ = await self._way()
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            self.body_is_unread = False
        return message

    async def answer(self, response: Response, discard_s: float) -> None:
        """Send an answer. There is one: who comes second must look at `is_answered` first."""
        if self.write is not None and response.streamed is None and not self.body_is_unread:
            self.answer_whole(response, self.write)
            return
        sent, headers = self._said(response)
        unread = self.body_is_unread
        _, send = await self._way()
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if response.streamed is not None and self.method != "HEAD":
            await self._send_pieces(response.streamed)
            return
        await send({"type": "http.response.body", "body": sent, "more_body": unread})
        if unread:
            await discard(self.receive, discard_s)
            await send({"type": "http.response.body"})

    def answer_whole(self, response: Response, write: Write) -> None:
        """`answer`, at once. For what is not streamed, to a request without a body."""
        self.again = response.again
        sent, headers = self._said(response)
        write(response.status, headers, sent)

    def _said(self, response: Response) -> tuple[bytes, RawHeaders]:
        """The body as it is sent, if it is sent whole, and all headers. From here on this is the answer."""
        body, headers = self._headed(response)
        sent = b"" if self.method == "HEAD" else body
        self.status, self.sent_bytes = response.status, len(sent)
        return sent, headers

    def _headed(self, response: Response) -> tuple[bytes, RawHeaders]:
        body, headers = response.body, [(b"x-request-id", self.request_id.encode()), _NO_SNIFFING]
        if len(body) >= _PACKED_BYTES_MIN:
            body, packing = self._packed(response)
            headers += packing
        if body and "Content-Type" not in response.headers:
            headers.append(_JSON)
        if response.status not in _BODILESS:
            length = len(body) if response.streamed is None else response.streamed.size_bytes
            headers.append((b"content-length", b"%d" % length))
        if self.body_is_unread:
            headers.append((b"connection", b"close"))
        for name, value in response.headers.items():
            headers.append((name.lower().encode(), value.encode()))
        return body, headers

    async def _send_pieces(self, streamed: Streamed) -> None:
        """Piece by piece, as fast as the client reads. One that went away is not read to."""
        receive, send = await self._way()
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            async with aclosing(streamed.pieces()) as pieces:
                async for piece in pieces:
                    if gone.done():
                        return
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    self.sent_bytes += len(piece)
        finally:
            gone.cancel()
        await send({"type": "http.response.body"})

    def _packed(self, response: Response) -> tuple[bytes, RawHeaders]:
        vary = (b"vary", b"Accept-Encoding")
        if not accepts_gzip(self.headers.get("accept-encoding", "")):
            return response.body, [vary]
        return response.pack(response.body), [vary, (b"content-encoding", b"gzip")]


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(pairs: RawHeaders) -> tuple[dict[str, str], str | None]:
    """All headers, and the name of one that is given more often than it may be."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if len(headers) == len(pairs):
        return headers, None
    counts = Counter(name.decode("latin-1") for name, _ in pairs)
    return headers, next((name for name in sorted(_SINGLE) if counts[name] > 1), None)
