"""Pages of other sites that may ask: those that the operator names, and only on routes that are made for it (CORS).

A browser asks first (a preflight) and shows a page an answer only if its origin is named there. Nobody is named by default, not
even other ports of this machine: a page there is somebody else's page. "Everybody" cannot be said.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.surface.http.exchange import Request, Response

_ORIGIN = re.compile(r"https?://(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_ASKED_AGAIN_S = 600
_TOLD = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, If-None-Match, If-Range, Range",
    "Access-Control-Max-Age": str(_ASKED_AGAIN_S),
}
_SHOWN = "Accept-Ranges, Content-Length, Content-Range, ETag, X-Request-Id"


@dataclass(frozen=True, slots=True)
class Origins:
    """Who may ask beside the server's own pages."""

    allowed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, given: tuple[str, ...]) -> "Origins":
        for one in given:
            if not _ORIGIN.fullmatch(one):
                raise InvalidInput(
                    f"{clip(one)!r} is no origin of pages",
                    hint="write scheme, host and port as a browser sends them, such as https://hub.example.com",
                )
        return cls(frozenset(given))

    def allows(self, headers: Mapping[str, str]) -> bool:
        return headers.get("origin") in self.allowed

    def told(self, headers: Mapping[str, str]) -> dict[str, str]:
        """What an answer says to the browser. The answer differs by origin, which caches must know."""
        if not self.allowed:
            return {}
        vary = {"Vary": "Origin"}
        if not self.allows(headers):
            return vary
        return vary | {"Access-Control-Allow-Origin": headers["origin"], "Access-Control-Expose-Headers": _SHOWN}


async def preflight(_request: Request) -> Response:
    """Whether a page may ask is decided before: this only says what it may send."""
    return Response(204, headers=_TOLD)
