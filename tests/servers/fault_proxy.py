# SPDX-License-Identifier: Apache-2.0
"""A reverse proxy that spoils chosen answers, so that a test can lose a reply on purpose.

    with running(server.endpoint) as proxy:
        proxy.plan(lambda method, path, headers: method == "PUT", Fault.CUT_AFTER)
        ...                                     # the first PUT is applied, and its reply never arrives
        assert len(proxy.requests) == 1

A request travels byte for byte except for `Connection` and `Expect`. Above all `Host` stays what the
client sent, because S3 signatures cover it. The proxy has a thread and an event loop of its own: tests may
be synchronous or asynchronous.
"""

from __future__ import annotations

import asyncio
import enum
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD_LIMIT_BYTES = 64 * 1024
BODY_LIMIT_BYTES = 64 * 1024 * 1024
START_TIMEOUT_S = 10.0


class Fault(enum.Enum):
    """BEFORE: the server never sees the request. AFTER: the server has done it and has answered."""

    CUT_AFTER = enum.auto()  # closed without an answer (FIN)
    RESET_AFTER = enum.auto()  # closed without an answer (RST)
    HALF_AFTER = enum.auto()  # half a status line, then closed
    STATUS_500_AFTER = enum.auto()
    STATUS_503_AFTER = enum.auto()
    STATUS_503_BEFORE = enum.auto()
    STATUS_429_BEFORE = enum.auto()
    STATUS_409_BEFORE = enum.auto()
    REFUSE_BEFORE = enum.auto()  # closed without an answer (FIN)
    SILENT_BEFORE = enum.auto()  # no answer and no end, until `speak` lets go of the connection
    SLOW = enum.auto()  # the true answer, delay_s later


STATUSES_BEFORE = {Fault.STATUS_503_BEFORE: 503, Fault.STATUS_429_BEFORE: 429, Fault.STATUS_409_BEFORE: 409}
STATUSES_AFTER = {Fault.STATUS_500_AFTER: 500, Fault.STATUS_503_AFTER: 503}


class BadMessage(Exception):
    """Not HTTP/1.1 as this proxy knows it; the connection is closed."""


@dataclass(frozen=True, slots=True)
class Message:
    """One request or one answer; the body is as it was sent, with its chunk marks if it has them."""

    first_line: str
    fields: tuple[tuple[str, str], ...]
    body: bytes = b""
    complete: bool = True

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.fields}

    def without(self, *names: str) -> Message:
        kept = tuple(field for field in self.fields if field[0].lower() not in names)
        return Message(self.first_line, kept, self.body, self.complete)

    def encode(self, *extra: str) -> bytes:
        lines = (self.first_line, *(f"{name}: {value}" for name, value in self.fields), *extra)
        return "\r\n".join((*lines, "", "")).encode("latin-1") + self.body


@dataclass(slots=True)
class Plan:
    match: Callable[[str, str, dict[str, str]], bool]
    fault: Fault
    remaining: int
    delay_s: float


@dataclass(slots=True)
class FaultProxy:
    upstream: str
    requests: list[tuple[str, str]] = field(default_factory=list)
    answers: list[tuple[str, str, int]] = field(default_factory=list)  # as the upstream gave them
    _plans: list[Plan] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set)
    _failures: list[BaseException] = field(default_factory=list)
    _port: int = 0
    _spoken: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def endpoint(self) -> str:
        """The endpoint to give to the client: the path of the upstream one is kept."""
        return f"http://127.0.0.1:{self._port}{urlsplit(self.upstream).path}"

    def plan(
        self,
        match: Callable[[str, str, dict[str, str]], bool],
        fault: Fault,
        times: int = 1,
        delay_s: float = 0.0,
    ) -> Plan:
        """Spoil the next `times` requests that match(method, path, headers).

        The path is decoded and followed by the query string; the names of headers are in lower case.
        """
        plan = Plan(match, fault, times, delay_s)
        with self._lock:
            self._plans.append(plan)
        return plan

    def speak(self) -> None:
        """End the silence: nothing more is spoiled, and connections that were kept waiting are closed."""
        with self._lock:
            self._plans.clear()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._spoken.set)

    async def start(self) -> int:
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_LIMIT_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]
        return self._port

    async def stop(self) -> None:
        """Close every connection. An error of the proxy itself, or of a predicate, is raised here."""
        if self._server is not None:
            self._server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None
        if self._failures:
            raise self._failures[0]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: Python 3.11 prints a stack for every connection task that is cancelled.
        connection = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._finished)

    def _finished(self, connection: asyncio.Task[None]) -> None:
        self._connections.discard(connection)
        if not connection.cancelled() and (error := connection.exception()) is not None:
            self._failures.append(error)

    def _take(self, method: str, path: str, headers: dict[str, str]) -> Plan | None:
        with self._lock:
            self.requests.append((method, path))
            for plan in self._plans:
                if plan.remaining > 0 and plan.match(method, path, headers):
                    plan.remaining -= 1
                    return plan
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, EOFError, BadMessage):
            pass  # whatever broke, the client sees a closed connection, which is all that a proxy can say
        finally:
            await _close(writer)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request. The answer says whether the connection stays open."""
        request = await _read_request(reader, writer)
        if request is None:
            return False
        method, target, _ = request.first_line.split(" ")
        # Decoded, because the same key is a/b in one dialect and a%2Fb in another.
        path, mark, query = target.partition("?")
        path = f"{unquote(path)}{mark}{query}"
        plan = self._take(method, path, request.headers)
        fault = plan.fault if plan else None
        # From here on the request body has been read to its end, so that closing sends FIN and not RST.
        if fault is Fault.REFUSE_BEFORE:
            return False
        if fault is Fault.SILENT_BEFORE:
            await self._spoken.wait()
            return False
        if fault in STATUSES_BEFORE:
            return await _reply(writer, request, _bare_answer(STATUSES_BEFORE[fault]))
        answer = await self._ask_upstream(method, request)
        self.answers.append((method, path, int(answer.first_line.split(" ")[1])))
        if fault in STATUSES_AFTER:
            return await _reply(writer, request, _bare_answer(STATUSES_AFTER[fault]))
        if fault is Fault.CUT_AFTER:
            return False
        if fault is Fault.RESET_AFTER:
            linger_zero = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero)
            writer.transport.abort()
            return False
        if fault is Fault.HALF_AFTER:
            writer.write(b"HTTP/1.1 2")
            await writer.drain()
            return False
        if plan is not None:
            await asyncio.sleep(plan.delay_s)
        return await _reply(writer, request, answer)

    async def _ask_upstream(self, method: str, request: Message) -> Message:
        """One connection per request and closed after it: then the end of the answer is never a guess."""
        target = urlsplit(self.upstream)
        reader, writer = await asyncio.open_connection(target.hostname, target.port, limit=HEAD_LIMIT_BYTES)
        try:
            writer.write(request.without("connection", "expect").encode("Connection: close"))
            await writer.drain()
            head = await _read_head(reader)
            while head.first_line.split(" ")[1].startswith("1"):
                head = await _read_head(reader)
            body = await _read_to_end(reader)
        finally:
            await _close(writer)
        return Message(head.first_line, head.fields, body, _is_complete(method, head, body))


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Message | None:
    try:
        head = await _read_head(reader)
    except EOFError:
        return None
    headers = head.headers
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = await _read_chunks(reader)
    else:
        body = await _read_exactly(reader, _size_bytes(headers.get("content-length", "0"), 10))
    if len(head.first_line.split(" ")) != 3:
        raise BadMessage(f"request line {head.first_line!r}")
    return Message(head.first_line, head.fields, body)


async def _read_head(reader: asyncio.StreamReader) -> Message:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise BadMessage(f"headers over {HEAD_LIMIT_BYTES} bytes") from error
    first_line, *lines = raw[:-4].decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Message(first_line, tuple((name.strip(), value.strip()) for name, _, value in pairs))


def _size_bytes(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError as error:
        raise BadMessage(f"size {text!r}") from error


async def _read_exactly(reader: asyncio.StreamReader, size_bytes: int) -> bytes:
    if size_bytes > BODY_LIMIT_BYTES:
        raise BadMessage(f"body over {BODY_LIMIT_BYTES} bytes")
    return await reader.readexactly(size_bytes)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    raw = bytearray()
    while True:
        line = await reader.readline()
        raw += line
        size_bytes = _size_bytes(line.split(b";")[0].decode("latin-1"), 16)
        if size_bytes == 0:
            break
        raw += await _read_exactly(reader, size_bytes + 2)
        if len(raw) > BODY_LIMIT_BYTES:
            raise BadMessage(f"body over {BODY_LIMIT_BYTES} bytes")
    while line not in {b"\r\n", b""}:  # trailers
        line = await reader.readline()
        raw += line
    return bytes(raw)


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    raw = bytearray()
    while piece := await reader.read(HEAD_LIMIT_BYTES):
        raw += piece
        if len(raw) > BODY_LIMIT_BYTES:
            raise BadMessage(f"answer over {BODY_LIMIT_BYTES} bytes")
    return bytes(raw)


def _is_complete(method: str, head: Message, body: bytes) -> bool:
    """False if the upstream died in the middle; the client must then see an answer that breaks off."""
    status = int(head.first_line.split(" ")[1])
    if method == "HEAD" or status in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}:
        return True
    headers = head.headers
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return body.endswith(b"\r\n\r\n")
    return len(body) == int(headers.get("content-length", "-1"))


def _bare_answer(status: int) -> Message:
    return Message(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", (("Content-Length", "0"),))


async def _reply(writer: asyncio.StreamWriter, request: Message, answer: Message) -> bool:
    """Send an answer; say whether the connection stays open after it."""
    stays_open = answer.complete and request.headers.get("connection", "").lower() != "close"
    writer.write(answer.without("connection").encode(*(() if stays_open else ("Connection: close",))))
    await writer.drain()
    return stays_open


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@contextmanager
def running(upstream_endpoint: str) -> Iterator[FaultProxy]:
    """A proxy in front of the endpoint, in a thread of its own, for the length of a block."""
    proxy = FaultProxy(upstream_endpoint)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="fault-proxy", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(proxy.start(), loop).result(START_TIMEOUT_S)
        try:
            yield proxy
        finally:
            asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result(START_TIMEOUT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
