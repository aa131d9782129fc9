"""One request and its answer, as handlers see them."""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote_to_bytes

import msgspec

from arco.kernel.canonical_json import JsonValue, parse_strict, request_hash
from arco.kernel.errors import InvalidInput
from arco.surface.http.packing import gzip_packed

# A percent sign that encodes nothing: readers differ on what it means, so one name could have two spellings.
_STRAY_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ENCODE_HINT = "percent-encode it as UTF-8"


class Request(msgspec.Struct, frozen=True):
    """A request with its path split and decoded once. `segments` are the decoded parts that the route left open."""

    method: str
    path: str
    segments: tuple[str, ...]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    request_id: str
    principal: str = "anonymous"

    def json(self) -> JsonValue:
        return parse_strict(self.body)

    def one(self, name: str) -> str | None:
        """A query parameter that may be given once."""
        values = self.query.get(name, [])
        if len(values) > 1:
            raise InvalidInput(f"query parameter {name} is given {len(values)} times", hint="give it once")
        return values[0] if values else None

    def hash(self, value: JsonValue = None) -> str:
        """What binds an idempotency key to this very request."""
        return request_hash({"method": self.method, "path": self.path, "body": value})


@dataclass(frozen=True, slots=True)
class Streamed:
    """A body that is never whole in memory. `pieces` is called once, when it is sent, and gives exactly so many bytes."""

    size_bytes: int
    pieces: Callable[[], AsyncGenerator[bytes, None]]


Again = Callable[[], "Response | None"]
"""The answer to the same request, sent once more byte for byte: if what the last one rests on still holds, and if that can be
found out without waiting. What the client may ask is not looked at here."""


class Response(msgspec.Struct, frozen=True):
    """`pack` makes the packed body of the plain one; whoever keeps answers keeps both."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    streamed: Streamed | None = None
    pack: Callable[[bytes], bytes] = gzip_packed
    again: Again | None = None


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, msgspec.json.encode(value), headers or {})


def no_content() -> Response:
    return Response(204)


def is_known(request: Request, etag: str) -> bool:
    """Whether a client shows an ETag. Weak ones are as good here: what is the same byte for byte is also the same.

    A star stands for whatever there is.
    """
    told = request.headers.get("if-none-match")
    if told is None:
        return False
    shown = {one.strip().removeprefix("W/") for one in told.split(",")}
    return not shown.isdisjoint({etag, "*"})


def split_path(raw: bytes) -> list[str]:
    """The segments of a path, decoded once. An empty one stays: a name that is missing must not turn into another route."""
    return [decode_segment(part) for part in raw.removeprefix(b"/").split(b"/")]


def decode_segment(raw: bytes) -> str:
    """One segment of a path, decoded once. A slash inside it stays part of the name."""
    if _STRAY_PERCENT.search(raw):
        raise InvalidInput("the path has a percent sign that encodes nothing", hint="write %25 for a percent sign")
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise InvalidInput("the path is not UTF-8", hint=_ENCODE_HINT) from None


def decode_query(raw: bytes) -> dict[str, list[str]]:
    return decode_form(raw, "the query string")


def decode_form(raw: bytes, what: str) -> dict[str, list[str]]:
    """Names and values as a query string or a form writes them."""
    if _STRAY_PERCENT.search(raw):
        raise InvalidInput(f"{what} has a percent sign that encodes nothing", hint="write %25 for a percent sign")
    try:
        return parse_qs(raw.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError:
        raise InvalidInput(f"{what} does not parse", hint=_ENCODE_HINT) from None
