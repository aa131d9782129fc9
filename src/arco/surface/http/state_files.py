"""`GET /api/v1/catalog/files/{token}`: a file of state, for whoever has a link to it. Whole or in part, a piece at a time.

There is no listing, and nothing is found by its name: the token is all there is. What must never enter: making links.
"""

from collections.abc import AsyncGenerator
from typing import Annotated

import msgspec

from arco.kernel.errors import CorruptObject, NotFound, Throttled
from arco.kernel.limits import FILE_SENT_BYTES_MAX, FILES_SENT_AT_ONCE_MAX
from arco.storage.port import ObjectStore
from arco.surface.http.byte_ranges import NoSuchPart, Part, part_of
from arco.surface.http.declaring import API, Asked, Endpoint, names_in, read_asked
from arco.surface.http.exchange import Request, Response, Streamed, is_known
from arco.surface.http.failures import refusal
from arco.surface.http.link_tokens import Linked, LinkTokens
from arco.surface.http.routes import Door
from arco.surface.http.server_state import ServerState

FILES = f"{API}/catalog/files"
TEMPLATE = f"{FILES}/{{token}}"
IN_PATH = names_in(TEMPLATE)
PARQUET = "application/vnd.apache.parquet"


class TokenAsked(Asked, frozen=True, kw_only=True):
    token: Annotated[str, msgspec.Meta(description="What a link has behind the last slash.")]


class StateFiles:
    def __init__(self, state: ServerState, tokens: LinkTokens) -> None:
        self._state = state
        self._tokens = tokens
        self._under_way = 0

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET",
                TEMPLATE,
                "A file of state, whole or in part, for whoever has a link to it",
                self.get,
                TokenAsked,
                answers={200: (msgspec.Raw,), 206: (msgspec.Raw,)},
                headers={"Range": "The part that is wanted.", "If-Range": "The ETag that the part must be of."},
                tagged=True,
                answer_media=PARQUET,
                door=Door.LINK,
                across=True,
            )
        ]

    async def get(self, request: Request) -> Response:
        asked = read_asked(request, TokenAsked, IN_PATH)
        now_ms = self._state.clock.now_ms()
        linked = self._tokens.read(asked.token, now_ms)
        etag = f'"{linked.checksum}"'
        headers = _headers(etag, (linked.expires_ms - now_ms) // 1000)
        if is_known(request, etag):
            return Response(304, headers=headers)
        await self._check(linked)
        part = self._part(request, linked, etag)
        match part:
            case NoSuchPart():
                return refusal(416, "the file ends before that", **{"Content-Range": f"bytes */{linked.size_bytes}"})
            case None:
                return Response(200, headers=headers, streamed=self._streamed(linked, Part(0, linked.size_bytes)))
            case Part(start, length):
                said = {"Content-Range": f"bytes {start}-{start + length - 1}/{linked.size_bytes}"}
                return Response(206, headers=headers | said, streamed=self._streamed(linked, part))

    def _part(self, request: Request, linked: Linked, etag: str) -> Part | NoSuchPart | None:
        """A range is for GET alone, and only of the file that the client already has a part of."""
        if request.method != "GET" or request.headers.get("if-range", etag) != etag:
            return None
        return part_of(request.headers.get("range"), linked.size_bytes)

    async def _check(self, linked: Linked) -> None:
        info = await self._state.store.head(linked.key)
        if info is None:
            raise NotFound("this file is gone", hint="ask for links to the current snapshot")
        if info.size_bytes != linked.size_bytes:
            raise CorruptObject(f"{linked.key} has {info.size_bytes} bytes, its manifest says {linked.size_bytes}")

    def _streamed(self, linked: Linked, part: Part) -> Streamed:
        if self._under_way >= FILES_SENT_AT_ONCE_MAX:
            raise Throttled(f"{FILES_SENT_AT_ONCE_MAX} files are sent already")
        return Streamed(part.length, lambda: self._pieces(linked.key, part))

    async def _pieces(self, key: str, part: Part) -> AsyncGenerator[bytes, None]:
        self._under_way += 1
        try:
            async for piece in pieces(self._state.store, key, part):
                yield piece
        finally:
            self._under_way -= 1


async def pieces(store: ObjectStore, key: str, part: Part) -> AsyncGenerator[bytes, None]:
    """The bytes of a part, never more than one piece of them in memory."""
    at, end = part.start, part.start + part.length
    while at < end:
        data = await store.get_range(key, at, min(FILE_SENT_BYTES_MAX, end - at))
        if not data:
            raise CorruptObject(f"{key} ended at {at}, before {end}")
        yield data
        at += len(data)


def _headers(etag: str, left_s: int) -> dict[str, str]:
    return {
        "Content-Type": PARQUET,
        "Accept-Ranges": "bytes",
        "ETag": etag,
        # A file of state never changes; the link to it ends.
        "Cache-Control": f"private, max-age={max(0, left_s)}, immutable",
        "Content-Disposition": "attachment",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
    }
