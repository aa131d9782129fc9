"""Who may talk to the server: whoever shows its token, or, without one, whoever comes from this machine.

A browser runs the pages of strangers on this very machine, so a server without a token has to tell them apart: it answers
only under a name of this machine (a page whose own name was pointed here by its DNS says another), and no request that a
foreign page sends. What must never enter: more than one token. Users, roles and keys are another room's.
"""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from arco.kernel.limits import HOSTS_KEPT_MAX
from arco.kernel.secret import Secret
from arco.surface.http.exchange import Response
from arco.surface.http.failures import refusal
from arco.surface.http.origins import Origins

_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_REALM = 'Bearer realm="arco"'


@dataclass(frozen=True, slots=True)
class Access:
    """`token` is wanted from everybody if there is one; `this_machine_only` if not, unless the operator knows better."""

    token: Secret | None = None
    this_machine_only: bool = True
    origins: Origins = field(default_factory=Origins)

    @property
    def principal(self) -> str:
        return "anonymous" if self.token is None else "token"

    def refused(self, headers: Mapping[str, str], *, across: bool = False) -> Response | None:
        """Why a request may not pass, if it may not."""
        return self.refused_page(headers, across=across) or self._refused_token(headers.get("authorization"))

    def refused_page(self, headers: Mapping[str, str], *, across: bool = False) -> Response | None:
        """Why a request may not pass whatever it asks for: it was sent by a page of somebody else.

        `across`: what it asks for is also for pages that the operator named.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.token is None and self.this_machine_only and not _is_here(host):
            return refusal(403, "this server has no token and answers only as localhost: set ARCO_TOKEN, or use --insecure")
        if origin is not None and origin.partition("://")[2] != host and not (across and self.origins.allows(headers)):
            return refusal(403, "this request was sent by a page of another site")
        return None

    def accepts(self, secret: str) -> bool:
        """In a time that does not tell how much of it is right."""
        return self.token is not None and hmac.compare_digest(_digest(secret), _digest(self.token.reveal()))

    def _refused_token(self, authorization: str | None) -> Response | None:
        if self.token is None:
            return None
        if authorization is None:
            return refusal(401, "this server wants a bearer token", WWW_Authenticate=_REALM)
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "bearer" and self.accepts(given.strip(" ")):
            return None
        return refusal(401, "this is not the server's token", WWW_Authenticate=f'{_REALM}, error="invalid_token"')


def host_of(headers: Mapping[str, str]) -> str | None:
    """The host and port that the client reached us by; None if they are not fit to be repeated."""
    host = headers.get("host", "")
    return host if _HOST.fullmatch(host) else None


@lru_cache(HOSTS_KEPT_MAX)
def _is_here(host: str) -> bool:
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found["name"].strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
