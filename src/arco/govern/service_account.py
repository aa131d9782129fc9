"""The key of a Google service account, exchanged for an access token: a claim about itself that it signs (RFC 7523).

The key never leaves this process: what is sent is signed with it, and ends within the hour. Nothing of the key's document is
ever repeated in a message, not even if it cannot be read. What must never enter: what the token is then held to
(`downscoped_tokens.py`).
"""

from dataclasses import dataclass, field
from urllib.parse import urlencode

import jwt
import msgspec

from arco.govern.downscoped_tokens import SourceToken, token_told
from arco.govern.token_services import Ask, Send, check_endpoint, check_told
from arco.kernel.clock import Clock
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import SERVICE_ACCOUNT_CLAIM_S
from arco.kernel.secret import Secret

TOKENS = "https://oauth2.googleapis.com/token"
# The access boundary decides what the exchanged token opens; a token of a narrower scope cannot be exchanged.
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_KIND = "service_account"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SERVICE = "the token service of the service account"


class _Document(msgspec.Struct, frozen=True):
    """The JSON that Google gives out, as far as it is needed."""

    type: str
    client_email: str
    private_key: str
    private_key_id: str = ""
    token_uri: str = TOKENS


@dataclass(frozen=True, slots=True)
class ServiceAccountKey:
    """Who signs, with which key, and where that is believed."""

    email: str
    key_id: str
    token_uri: str
    private_key: Secret = field(repr=False)

    @staticmethod
    def parse(document: Secret, *, allow_http: bool) -> "ServiceAccountKey":
        """The key of a document, proved to sign. InvalidInput says what is wrong, and repeats nothing of it."""
        try:
            found = msgspec.json.decode(document.reveal(), type=_Document)
        except msgspec.DecodeError:
            raise InvalidInput("the credentials of Google are no key of a service account", hint=_HINT) from None
        if found.type != _KIND:
            raise InvalidInput("these credentials of Google are of another kind than a service account's key", hint=_HINT)
        token_uri = check_endpoint(found.token_uri, allow_http=allow_http)
        key = ServiceAccountKey(found.client_email, found.private_key_id, token_uri, Secret(found.private_key))
        key.signed(0)
        return key

    def signed(self, now_s: int) -> str:
        """The claim: who it is, what for, for whom, and until when."""
        claim = {"iss": self.email, "scope": SCOPE, "aud": self.token_uri, "iat": now_s}
        claim["exp"] = now_s + SERVICE_ACCOUNT_CLAIM_S
        headers = {"kid": self.key_id} if self.key_id else None
        try:
            return jwt.encode(claim, self.private_key.reveal(), algorithm="RS256", headers=headers)
        except (jwt.PyJWTError, ValueError, TypeError):
            raise InvalidInput("the private key of the service account cannot sign", hint=_HINT) from None


class ServiceAccountToken:
    """A token of the account, asked for anew each time: what is exchanged for it ends no later than it."""

    def __init__(self, key: ServiceAccountKey, send: Send, clock: Clock) -> None:
        self._key = key
        self._send = send
        self._clock = clock

    async def token(self) -> SourceToken:
        now_ms = self._clock.now_ms()
        form = {"grant_type": _GRANT, "assertion": self._key.signed(now_ms // 1000)}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        told = await self._send(Ask("POST", self._key.token_uri, headers, urlencode(form).encode()))
        check_told(told, _SERVICE, "")
        token, expires_in_s = token_told(told)
        return SourceToken(token, None if expires_in_s is None else now_ms + expires_in_s * 1000)


_HINT = "pass the JSON that Google gave out for the account, as application_credentials or service_account_key"
