"""Vended credentials, as requests ask for them and answers carry them.

A client asks with `X-Iceberg-Access-Delegation: vended-credentials`. The tag of an answer that carries credentials says when they
end, or which they are: a client that shows it later hears that nothing has changed only while they still live. What must never
enter: which places credentials are made for, and how.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from arco.catalog.model import Levels
from arco.govern.vending import Credential, Vending
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.responses import Snapshots
from arco.kernel.clock import Clock
from arco.kernel.errors import AccessDenied
from arco.kernel.fingerprint import fingerprint
from arco.kernel.limits import ETAGS_KEPT_MAX, VENDED_LEFT_S
from arco.kernel.scope import Scope
from arco.surface.http.exchange import Request, is_known
from arco.surface.http.for_clients import NOT_KEPT, ForClients
from arco.surface.http.resource import SEPARATOR, etag_of

_HEADER = "x-iceberg-access-delegation"
_VENDED = "vended-credentials"


def wants_credentials(request: Request) -> bool:
    return _VENDED in (word.strip().lower() for word in request.headers.get(_HEADER, "").split(","))


@dataclass(frozen=True, slots=True)
class Delegation:
    """What a request gets beside the metadata that it asked for."""

    credential: Credential | None = None
    refresh: Mapping[str, str] | None = None

    def config(self, told: Mapping[str, str]) -> dict[str, str]:
        """The properties of the answer, with the credential for who looks for it there.

        Trino 476 looks nowhere else. PyIceberg up to 0.12 looks elsewhere by the place of a metadata file, which a staged table
        does not have.
        """
        if self.credential is None:
            return dict(told)
        return {**told, **self.credential.revealed(), **(self.refresh or {})}

    def credentials(self) -> list[dict[str, Any]]:
        return [] if self.credential is None else [shown(self.credential)]

    def headers(self) -> Mapping[str, str]:
        return {} if self.credential is None else NOT_KEPT

    def etag(self, location: str, mode: Snapshots, mark: str) -> str:
        """`mark`: of the properties that go with every table."""
        if self.credential is None:
            return etag_of(location, mode, mark)
        ends, (refresh,) = self.credential.expires_ms, (self.refresh or {"": ""}).values()
        return f'"{_tag(location, mode, mark, refresh)}-{f"={self.credential.mark}" if ends is None else f"{ends:x}"}"'


def shown(credential: Credential) -> dict[str, Any]:
    return {"prefix": credential.prefix, "config": credential.revealed()}


async def delegated(
    vending: Vending | None, request: Request, scope: Scope, metadata: TableMetadata, refresh: str | None
) -> Delegation:
    """The credential that a request asked for, if this server hands any out for this table."""
    if vending is None or not wants_credentials(request):
        return Delegation()
    try:
        credential = await vending.for_table(scope, metadata.table_uuid, metadata)
    except AccessDenied:
        # The table may be read all the same, by who has keys of their own; the credentials' own route says why.
        return Delegation()
    word = vending.refresh_property
    return Delegation(credential, None if word is None or refresh is None else {word: refresh})


@lru_cache(ETAGS_KEPT_MAX)
def refresh_path(scope: Scope, levels: Levels, name: str) -> str:
    """Where a client asks again, from the catalog's address on."""
    namespace, table = quote(SEPARATOR.join(levels), safe=""), quote(name, safe="")
    return f"v1/{quote(scope.prefix, safe='')}/namespaces/{namespace}/tables/{table}/credentials"


def known_tag(
    request: Request, given: ForClients, location: str, mode: Snapshots, refresh: str | None, clock: Clock
) -> str | None:
    """The tag that a client shows, if what it stands for is still all that the client needs."""
    if given.vending is None or not wants_credentials(request):
        plain = etag_of(location, mode, given.mark)
        return plain if is_known(request, plain) else None
    shown_tags, wanted = request.headers.get("if-none-match", ""), _tag(location, mode, given.mark, refresh or "")
    mark = given.vending.lasting_mark
    return next((tag for tag in _quoted(shown_tags) if _lives(tag, wanted, mark, clock)), None)


@lru_cache(ETAGS_KEPT_MAX)
def _tag(location: str, mode: Snapshots, mark: str, refresh: str) -> str:
    """`refresh`: a table that was renamed is asked for under its new name, also for credentials."""
    return fingerprint("etag with credentials", mode, location, mark, refresh)[:32]


def _quoted(text: str) -> list[str]:
    return [f'"{part}"' for part in text.split('"')[1::2]]


def _lives(tag: str, wanted: str, mark: str | None, clock: Clock) -> bool:
    base, dash, ends = tag.strip('"').partition("-")
    if base != wanted or not dash:
        return False
    if mark is not None or ends.startswith("="):
        # Without an end of their own they live until the server is given others.
        return ends == f"={mark}"
    try:
        return int(ends, 16) >= clock.now_ms() + VENDED_LEFT_S * 1000
    except ValueError:
        return False
