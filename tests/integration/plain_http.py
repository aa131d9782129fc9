"""The smallest HTTP client that knows what it does not know: a request that was never sent, and a reply that was lost.

One request at a time on one connection; JSON in and out. Fast enough to load a server from one process.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec


class NotSent(Exception):
    """Nobody listens there: the request had no effect."""


class ReplyLost(Exception):
    """The connection ended before the answer was complete: the request may have had its effect."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body) if self.body else None


class Connection(asyncio.Protocol):
    """One connection to one server."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Reply] | None = None
        self._received = b""
        self._has_body = True
        self._head: tuple[int, dict[str, str]] | None = None
        self.host = ""

    @classmethod
    async def open(cls, address: str) -> Self:
        """Connect to http://host:port."""
        place = urlsplit(address)
        try:
            _, connection = await asyncio.get_running_loop().create_connection(cls, place.hostname, place.port)
        except OSError as error:
            raise NotSent(str(error)) from error
        connection.host = place.netloc
        return connection

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """One request and its answer. A header's name is written with _ for -."""
        if self._transport is None or self._transport.is_closing():
            raise NotSent("the connection is closed")
        data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._has_body = method != "HEAD"
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write("\r\n".join((*lines, "", "")).encode() + data)
        return await self._waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._head is None:
            text, end, rest = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            first, *others = text.decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in others)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            self._head, self._received = (int(first.split(" ", 2)[1]), headers), rest
        status, headers = self._head
        if self._has_body and headers.get("transfer-encoding", "").lower() == "chunked":
            whole = _unchunked(self._received)
            if whole is None:
                return
            body, self._received = whole
        else:
            length = int(headers.get("content-length", 0)) if self._has_body else 0
            if len(self._received) < length:
                return
            body, self._received = self._received[:length], self._received[length:]
        self._head = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Reply(status, headers, body))

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ReplyLost(str(error or "the server closed the connection")))


def _unchunked(data: bytes) -> tuple[bytes, bytes] | None:
    """A body that came in chunks, and what follows it; None if it is not whole yet."""
    body, at = b"", 0
    while (end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:end].partition(b";")[0], 16)
        start = end + 2
        if len(data) < start + size + 2:
            return None
        if size == 0:
            return body, data[start + 2 :]
        body += data[start : start + size]
        at = start + size + 2
    return None
