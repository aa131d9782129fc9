"""Request bodies: read within limits of size, time and memory, and unpacked if they come packed.

A body that is refused is refused before it is interpreted. What must never enter: anything that knows what a body means.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from arco.surface.http.bounds import Bounds
from arco.surface.http.exchange import Response
from arco.surface.http.failures import no_room, refusal

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_GZIP = 16 + zlib.MAX_WBITS
# What curl and Python's urllib say about a body when nobody tells them its type.
_UNTOLD = "application/x-www-form-urlencoded"


@dataclass(slots=True)
class _Held:
    """What one request takes of the memory for bodies."""

    size_bytes: int = 0


class Bodies:
    """The bodies that one server holds at a time."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._held_bytes = 0

    @asynccontextmanager
    async def body(self, receive: Receive, headers: Mapping[str, str]) -> AsyncIterator[bytes | Response | None]:
        """The body of a request, the refusal of it, or None if its client went away; counted while the block lasts."""
        held = _Held()
        try:
            yield self.refused_unread(headers) or await self._read(receive, headers, held)
        finally:
            self._held_bytes -= held.size_bytes

    def refused_unread(self, headers: Mapping[str, str]) -> Response | None:
        """Why a body need not even be read."""
        length = announced_bytes(headers)
        if length is not None and length > self._bounds.body_bytes:
            return self._too_large()
        if not _is_json(headers.get("content-type", "application/json")):
            return refusal(415, "the body's Content-Type is not application/json")
        if _encoding(headers) not in {"identity", "gzip"}:
            return refusal(415, "the body's Content-Encoding is neither gzip nor identity", Accept_Encoding="gzip")
        return None

    async def _read(self, receive: Receive, headers: Mapping[str, str], held: "_Held") -> bytes | Response | None:
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(self._bounds.body_s):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    chunks.append(message.get("body", b""))
                    more = message.get("more_body", False)
                    if held.size_bytes + len(chunks[-1]) > self._bounds.body_bytes:
                        return self._too_large()
                    if not self._hold(held, len(chunks[-1])):
                        return _no_room(headers)
        except TimeoutError:
            return refusal(408, "the request's body took too long to arrive; nothing was done")
        data = b"".join(chunks)
        return self._unpacked(data, headers, held) if _encoding(headers) == "gzip" else data

    def _unpacked(self, data: bytes, headers: Mapping[str, str], held: "_Held") -> bytes | Response:
        unpacker = zlib.decompressobj(_GZIP)
        try:
            plain = unpacker.decompress(data, self._bounds.body_bytes + 1)
        except zlib.error:
            return refusal(400, "the body is not gzip, as its Content-Encoding says")
        if len(plain) > self._bounds.body_bytes:
            return self._too_large()
        if not unpacker.eof or unpacker.unused_data:
            return refusal(400, "the gzip body is cut short, or something follows it")
        return plain if self._hold(held, len(plain)) else _no_room(headers)

    def _hold(self, held: "_Held", more_bytes: int) -> bool:
        if self._held_bytes + more_bytes > self._bounds.bodies_bytes:
            return False
        self._held_bytes += more_bytes
        held.size_bytes += more_bytes
        return True

    def _too_large(self) -> Response:
        return refusal(413, f"the request's body is over the limit of {self._bounds.body_bytes} bytes")


def _no_room(headers: Mapping[str, str]) -> Response:
    return no_room(may_have_landed="idempotency-key" in headers)


def announced_bytes(headers: Mapping[str, str]) -> int | None:
    """How many bytes will follow the head; None if only their end will tell."""
    if "transfer-encoding" in headers:
        return None
    return int(headers.get("content-length", "0"))


def has_body(headers: Mapping[str, str]) -> bool:
    return announced_bytes(headers) != 0


async def discard(receive: Receive, within_s: float) -> None:
    """Let the client finish sending what nobody reads: one that is cut off while it sends may never hear its answer."""
    try:
        async with asyncio.timeout(within_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
    except TimeoutError:
        return


def _encoding(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "identity").strip().lower()


def _is_json(content_type: str) -> bool:
    media, _, parameters = content_type.lower().partition(";")
    media = media.strip()
    charset = parameters.partition("charset=")[2].partition(";")[0].strip(' "')
    return charset in {"", "utf-8", "utf8"} and (
        media in {"application/json", _UNTOLD} or (media.startswith("application/") and media.endswith("+json"))
    )
