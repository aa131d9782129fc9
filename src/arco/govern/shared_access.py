"""Credentials on Azure: a shared access signature for the folder of one table, made with the account's key. Nobody is asked.

It is a signature for a directory (`sr=d`), which accounts with a hierarchical namespace know; others refuse it. A signature for a
container would reach every table, and is never made.
"""

import base64
import binascii
import hmac
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from arco.govern.places import ValidatedPlace
from arco.govern.vending import Access, Credential
from arco.kernel.clock import Clock
from arco.kernel.errors import InvalidInput
from arco.kernel.secret import Secret

VERSION = "2021-12-02"
# In the order that the service insists on: read, add, create, write, delete, list.
_PERMISSIONS = {Access.READ: "rl", Access.WRITE: "racwdl"}


class SharedAccess:
    """A vendor that signs. `host` is the account's, as locations name it."""

    refresh_property = "adls.refresh-credentials-endpoint"
    lasting_mark = None

    def __init__(
        self, account: str, host: str, key: Secret, clock: Clock, duration_s: int, protocol: str = "https"
    ) -> None:
        try:
            self._key = base64.b64decode(key.reveal(), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput("the key of the Azure account is not base64", hint="copy account_key once more") from None
        self._account = account
        self._host = host
        self._clock = clock
        self._duration_s = duration_s
        self._protocol = protocol

    async def vend(self, place: ValidatedPlace, access: Access) -> Credential:
        expires_s = self._clock.now_ms() // 1000 + self._duration_s
        token = Secret(self.token(place, access, expires_s))
        secrets = {"adls.sas-token": token, f"adls.sas-token.{self._host}": token}
        ends = str(expires_s * 1000)
        plain = {"adls.sas-token-expires-at-ms": ends, f"adls.sas-token-expires-at-ms.{self._host}": ends}
        return Credential(f"{place.uri}/", secrets, plain, expires_s * 1000)

    def token(self, place: ValidatedPlace, access: Access, expires_s: int) -> str:
        """The signature as the query of a request carries it."""
        ends = datetime.fromtimestamp(expires_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        permissions, depth = _PERMISSIONS[access], str(len(place.path.split("/")))
        message = string_to_sign(
            permissions=permissions,
            ends=ends,
            resource=f"/blob/{self._account}/{place.bucket}/{place.path}",
            protocol=self._protocol,
        )
        signature = base64.b64encode(hmac.digest(self._key, message.encode(), "sha256")).decode()
        fields = {
            "se": ends,
            "sp": permissions,
            "spr": self._protocol,
            "sv": VERSION,
            "sr": "d",
            "sdd": depth,
            "sig": signature,
        }
        return urlencode(fields, quote_via=quote, safe="")


def string_to_sign(*, permissions: str, ends: str, resource: str, protocol: str) -> str:
    """Sixteen lines, most of them empty. A line break in a name would shift them all: validated places have none."""
    if "\n" in resource:
        raise InvalidInput("a folder with a line break cannot be signed for")
    start, identifier, address, snapshot, scope = "", "", "", "", ""
    headers = ("",) * 5
    return "\n".join(
        (permissions, start, ends, resource, identifier, address, protocol, VERSION, "d", snapshot, scope, *headers)
    )
