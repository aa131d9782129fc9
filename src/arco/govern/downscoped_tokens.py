"""Credentials on GCS: the server's own token, exchanged for one that an access boundary holds to the files of one table.

The boundary's condition is an expression of CEL, where a quote in a name would end the text (CVE-2026-42811): every
character that is not a plain one is written as its number.
"""

import json
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

from arco.govern.places import ValidatedPlace
from arco.govern.token_services import Ask, Send, Told, check_told
from arco.govern.vending import Access, Credential
from arco.kernel.clock import Clock
from arco.kernel.errors import StoreRefused
from arco.kernel.secret import Secret

EXCHANGE = "https://sts.googleapis.com/v1/token"
MACHINE = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a kind
_ROLES = {Access.READ: "inRole:roles/storage.objectViewer", Access.WRITE: "inRole:roles/storage.objectUser"}
_PLAIN = frozenset(string.ascii_letters + string.digits + "-_./=")
_SERVICE = "the token service"


@dataclass(frozen=True, slots=True)
class SourceToken:
    """The server's own token. `expires_ms` is None where nobody said."""

    token: Secret
    expires_ms: int | None = None


class TokenSource(Protocol):
    async def token(self) -> SourceToken: ...


class GivenToken:
    """A token that the server was given as an option."""

    def __init__(self, token: Secret) -> None:
        self._token = SourceToken(token)

    async def token(self) -> SourceToken:
        return self._token


class MachineToken:
    """The token of the service account that the machine runs as."""

    def __init__(self, send: Send, clock: Clock, url: str = MACHINE) -> None:
        self._send = send
        self._clock = clock
        self._url = url

    async def token(self) -> SourceToken:
        told = await self._send(Ask("GET", self._url, {"Metadata-Flavor": "Google"}))
        check_told(told, "the machine's metadata service", "")
        token, expires_in_s = token_told(told)
        return SourceToken(token, None if expires_in_s is None else self._clock.now_ms() + expires_in_s * 1000)


class DownscopedTokens:
    """A vendor that asks Google's Security Token Service. `duration_s` counts where nobody says when a token ends."""

    refresh_property = "gcs.oauth2.refresh-credentials-endpoint"
    lasting_mark = None

    def __init__(self, source: TokenSource, send: Send, clock: Clock, duration_s: int, endpoint: str = EXCHANGE) -> None:
        self._source = source
        self._send = send
        self._clock = clock
        self._duration_s = duration_s
        self._endpoint = endpoint

    async def vend(self, place: ValidatedPlace, access: Access) -> Credential:
        source = await self._source.token()
        told = await self._send(self.request(source.token, place, access))
        check_told(told, _SERVICE, "")
        token, expires_in_s = token_told(told)
        now_ms = self._clock.now_ms()
        # An exchanged token lives as long as its source, and the service need not say so.
        ends = [source.expires_ms, None if expires_in_s is None else now_ms + expires_in_s * 1000]
        expires_ms = min((end for end in ends if end is not None), default=now_ms + self._duration_s * 1000)
        plain = {"gcs.oauth2.token-expires-at": str(expires_ms)}
        return Credential(f"{place.uri}/", {"gcs.oauth2.token": token}, plain, expires_ms)

    def request(self, source: Secret, place: ValidatedPlace, access: Access) -> Ask:
        """The form that is posted."""
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token_type": _ACCESS_TOKEN,
            "requested_token_type": _ACCESS_TOKEN,
            "subject_token": source.reveal(),
            "options": json.dumps(access_boundary(place, access), separators=(",", ":")),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return Ask("POST", self._endpoint, headers, urlencode(form).encode())


def access_boundary(place: ValidatedPlace, access: Access) -> dict[str, Any]:
    """The document: one bucket, one role, one condition on names of objects and of listings."""
    objects = quoted(f"projects/_/buckets/{place.bucket}/objects/{place.path}/")
    listing = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
    condition = f"resource.name.startsWith({objects}) || {listing}.startsWith({quoted(f'{place.path}/')})"
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{place.bucket}",
        "availablePermissions": [_ROLES[access]],
        "availabilityCondition": {"expression": condition},
    }
    return {"accessBoundary": {"accessBoundaryRules": [rule]}}


def quoted(text: str) -> str:
    """A text as CEL writes it. Nothing in it can end it."""
    inside = "".join(one if one in _PLAIN else f"\\U{ord(one):08x}" for one in text)
    return f"'{inside}'"


def token_told(told: Told) -> tuple[Secret, int | None]:
    """The token of an answer, and for how many seconds it is good, if it says so."""
    try:
        fields: Mapping[str, Any] = json.loads(told.body)
        token, expires_in = fields["access_token"], fields.get("expires_in")
        if isinstance(token, str) and token:
            return Secret(token), None if expires_in is None else int(expires_in)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise StoreRefused(f"{_SERVICE} answered with something that is no token")
