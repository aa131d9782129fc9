"""What every resource of the Iceberg catalog needs: its workspace, the request's key, names from paths, pages, tags."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from msgspec.structs import replace

from arco.catalog.catalog import Catalog
from arco.catalog.ground import Ground
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import Levels
from arco.iceberg import requests
from arco.iceberg.responses import Snapshots
from arco.kernel.canonical_json import JsonValue
from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.limits import CLIENT_CHARS_MAX, ETAGS_KEPT_MAX, LIST_PAGE_KEYS_MAX, NAMESPACES_KEPT_MAX, SCOPES_KEPT_MAX
from arco.kernel.scope import Scope
from arco.ledger.receipts import Source
from arco.surface.http.exchange import Request, Response
from arco.surface.http.server_state import ServerState

SEPARATOR = "\x1f"
PREFIX = "/iceberg/v1/{prefix}"
NAMESPACE = f"{PREFIX}/namespaces/{{namespace}}"

KEY_HEADER = {"Idempotency-Key": "A UUIDv7: sent again with the same one, a request is done once and answered alike."}

T = TypeVar("T")


class Resource:
    """Handlers: decode, call the catalog, encode."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def scope(self, request: Request) -> Scope:
        return _scope_of(request.segments[0])

    def catalog(self, request: Request) -> Catalog:
        return self._state.catalog(self.scope(request))

    def key(self, request: Request, operation: str, body: JsonValue) -> RequestKey:
        """The request's idempotency key, bound to what is asked."""
        given = request.headers.get("idempotency-key")
        return self.catalog(request).parts.markers.request_key(given, operation, request.hash(body))


@lru_cache(SCOPES_KEPT_MAX)
def _scope_of(prefix: str) -> Scope:
    return Scope.parse_prefix(prefix)


def lasting(response: Response, ground: Ground | None) -> Response:
    """An answer that the same request gets again as long as its ground holds."""
    if ground is None:
        return response
    return replace(response, again=lambda: response if ground.holds() else None)


def levels_of(request: Request) -> Levels:
    """The namespace of a path."""
    return decode_levels(request.segments[1])


@lru_cache(NAMESPACES_KEPT_MAX)
def decode_levels(text: str) -> Levels:
    """The levels of a namespace in a path or query."""
    levels = tuple(text.split(SEPARATOR))
    requests.check_namespace(levels)
    return levels


def snapshots_of(request: Request) -> Snapshots:
    text = request.one("snapshots") or "all"
    try:
        return Snapshots(text)
    except ValueError:
        raise InvalidInput(f"snapshots={text!r} is not known", hint="all or refs") from None


def flag_of(request: Request, name: str) -> bool:
    text = (request.one(name) or "false").lower()
    if text not in {"true", "false"}:
        raise InvalidInput(f"{name} is neither true nor false")
    return text == "true"


@lru_cache(ETAGS_KEPT_MAX)
def etag_of(location: str, mode: Snapshots = Snapshots.ALL, mark: str = "") -> str:
    """`mark`: of the properties that the answer carries beside the metadata. A commit's carries none."""
    return f'"{fingerprint("etag", mode, location, *((mark,) if mark else ()))[:32]}"'


def author_of(request: Request) -> Author:
    return Author(request.principal, client_of(request))


def source_of(request: Request) -> Source:
    return Source(principal=request.principal, client=client_of(request))


def client_of(request: Request) -> str | None:
    """What a client says of itself, as much as is kept: no request fails for its length."""
    said = request.headers.get("x-client-version")
    return None if said is None else clip(said, CLIENT_CHARS_MAX)


def page_of(items: Sequence[T], request: Request, name_of: Callable[[T], str]) -> tuple[list[T], dict[str, Any]]:
    """One page of a sorted listing, and the token of the next. Without pageToken and pageSize the whole list.

    A size is an upper bound: who asks for more than a page can have gets as much as one has.
    """
    token, size = request.one("pageToken"), request.one("pageSize")
    if token is None and size is None:
        return list(items), {}
    try:
        after = bytes.fromhex(token or "").decode()
    except ValueError:
        raise InvalidInput("pageToken is not one of ours", hint="pass the token as it was given") from None
    try:
        limit = int(size) if size else LIST_PAGE_KEYS_MAX
    except ValueError:
        raise InvalidInput(f"pageSize is {clip(size or '')!r}, and no number", hint="ask for one or more") from None
    if limit < 1:
        raise InvalidInput(f"pageSize is {limit}", hint="ask for one or more")
    limit = min(limit, LIST_PAGE_KEYS_MAX)
    start = bisect_right(items, after, key=name_of) if after else 0
    page = list(items[start : start + limit])
    if start + limit >= len(items):
        return page, {"next-page-token": None}
    return page, {"next-page-token": name_of(page[-1]).encode().hex()}
