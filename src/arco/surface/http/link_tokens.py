"""Links to this server's own files: a token that says which object, until when, and that this server said so.

    base64url([workspace, object, checksum, size, expires]) "." base64url(HMAC-SHA-256 of the first part) ".parquet"

Whoever has a link may read that object until it expires, and nothing else: it needs no other credentials. The key belongs to
the process, unless the operator gives one for several servers to share. The ending is for engines that look at it. What must
never enter: reading the object.
"""

import base64
import binascii
import hashlib
import hmac

import msgspec

from arco.kernel.entropy import Entropy
from arco.kernel.errors import AccessDenied, InvalidInput
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.storage.keys import StateFileKey, parse

ENDING = ".parquet"

_KEY_BYTES = 32
_PURPOSE = b"arco.state_links.v1"
_ASK_AGAIN = "ask for links again: POST /api/v1/catalog/signed-urls"


class Linked(msgspec.Struct, frozen=True, array_like=True):
    """What a link is good for."""

    warehouse: str
    key: str
    checksum: str
    size_bytes: int
    expires_ms: int


class LinkTokens:
    """Makes tokens and reads them."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def of(cls, secret: Secret | None, entropy: Entropy) -> "LinkTokens":
        """With the operator's secret, or with one that lives as long as this process."""
        given = entropy.token_bytes(_KEY_BYTES) if secret is None else secret.reveal().encode()
        # Not the secret itself: one that is also used elsewhere must not sign two kinds of things.
        return cls(hmac.digest(given, _PURPOSE, hashlib.sha256))

    def written(self, linked: Linked) -> str:
        said = _text(msgspec.json.encode(linked))
        return f"{said}.{_text(self._proof(said))}{ENDING}"

    def read(self, token: str, now_ms: int) -> Linked:
        """What a token says, if it is ours, whole and not expired."""
        said, _, proof = token.removesuffix(ENDING).partition(".")
        if not hmac.compare_digest(_bytes(proof), self._proof(said)):
            raise AccessDenied("this is no link of this server, or not all of one", hint=_ASK_AGAIN)
        linked = msgspec.json.decode(_bytes(said), type=Linked)
        if now_ms >= linked.expires_ms:
            raise AccessDenied("this link has expired", hint=_ASK_AGAIN)
        _check(linked)
        return linked

    def _proof(self, said: str) -> bytes:
        return hmac.digest(self._key, said.encode(), hashlib.sha256)


def _check(linked: Linked) -> None:
    """Also a token that is ours opens nothing but files of state of its workspace."""
    try:
        key = parse(linked.key)
        ours = isinstance(key, StateFileKey) and key.scope == Scope.parse_warehouse(linked.warehouse)
    except InvalidInput:
        ours = False
    if not ours:
        raise AccessDenied("this link leads to no file of state", hint=_ASK_AGAIN)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
