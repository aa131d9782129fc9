"""Credentials on S3: AssumeRole, with a session policy that holds the session to the files of one table, or of one task.

What a session may do is what the role may do and its policy says, both. So the role is given the root's bucket, and every
session one folder of it.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree as ET

from arco.govern.aws_signature import AwsKeys, signed_form
from arco.govern.places import ValidatedPlace
from arco.govern.session_policy import LISTS_ITS_OWN, LISTS_OR_SAYS_NO_PREFIX, policy_of
from arco.govern.token_services import Ask, Send, Told, check_told
from arco.govern.vending import Access, Credential, Grant
from arco.kernel.clock import Clock
from arco.kernel.errors import InvalidInput, StoreRefused
from arco.kernel.ids import clip
from arco.kernel.secret import Secret

_ARN = re.compile(r"arn:(?P<partition>aws[a-z-]*):iam::(?:[0-9]{12}:)?role/[\w+=,.@/-]{1,512}", re.ASCII)
_WORD = re.compile(r"[A-Za-z.]{1,100}")
_SERVICE = "the token service"


@dataclass(frozen=True, slots=True)
class Role:
    """What is assumed, where and for how long."""

    arn: str
    endpoint: str
    region: str
    duration_s: int
    external_id: str | None = None
    kms_key: str | None = None

    def __post_init__(self) -> None:
        if _ARN.fullmatch(self.arn) is None:
            raise InvalidInput(f"{clip(self.arn)!r} is not a role", hint="write arn:aws:iam::123456789012:role/name")

    @property
    def partition(self) -> str:
        found = _ARN.fullmatch(self.arn)
        return found["partition"] if found else "aws"

    @property
    def is_amazons(self) -> bool:
        host = urlsplit(self.endpoint).hostname or ""
        return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


class AssumeRole:
    """A vendor that asks the Security Token Service."""

    refresh_property = "client.refresh-credentials-endpoint"
    lasting_mark = None

    def __init__(self, role: Role, keys: AwsKeys, send: Send, clock: Clock) -> None:
        self._role = role
        self._keys = keys
        self._send = send
        self._clock = clock

    async def vend(self, place: ValidatedPlace, access: Access) -> Credential:
        return await self._sent(self.request(place, access), f"{place.uri}/")

    async def vend_together(self, grants: Sequence[Grant], about: str, duration_s: int) -> Credential:
        """One session for several places, each with its own access. `about` is what it is for, such as a task."""
        name = f"arco-task-{hashlib.sha256(about.encode()).hexdigest()[:32]}"
        listing = LISTS_OR_SAYS_NO_PREFIX if self._role.is_amazons else LISTS_ITS_OWN
        return await self._sent(self._form(grants, name, duration_s, listing), "")

    async def _sent(self, ask: Ask, prefix: str) -> Credential:
        told = await self._send(ask)
        fields = _fields(told)
        check_told(told, _SERVICE, _reason(fields))
        try:
            secrets = {
                "s3.access-key-id": Secret(fields["AccessKeyId"]),
                "s3.secret-access-key": Secret(fields["SecretAccessKey"]),
                "s3.session-token": Secret(fields["SessionToken"]),
            }
            expires_ms = int(datetime.fromisoformat(fields["Expiration"]).timestamp() * 1000)
        except (KeyError, ValueError):
            raise StoreRefused(f"{_SERVICE} answered with something that is no credential") from None
        plain = {"s3.session-token-expires-at-ms": str(expires_ms), "client.region": self._role.region}
        return Credential(prefix, secrets, plain, expires_ms)

    def request(self, place: ValidatedPlace, access: Access) -> Ask:
        """The form that is posted. A session is named after its table, so that the cloud's own log tells them apart."""
        name = f"arco-{access.value}-{hashlib.sha256(place.uri.encode()).hexdigest()[:32]}"
        return self._form((Grant(place, access),), name, self._role.duration_s)

    def _form(self, grants: Sequence[Grant], name: str, duration_s: int, listing: str = LISTS_ITS_OWN) -> Ask:
        role = self._role
        form = {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "RoleArn": role.arn,
            "RoleSessionName": name,
            "DurationSeconds": str(duration_s),
            "Policy": policy_of(grants, partition=role.partition, kms_key=role.kms_key, listing=listing),
            **({} if role.external_id is None else {"ExternalId": role.external_id}),
        }
        body, url = urlencode(form).encode(), f"{role.endpoint}/"
        headers = signed_form(url, body, self._keys, region=role.region, service="sts", at_ms=self._clock.now_ms())
        return Ask("POST", url, headers, body)


def _fields(told: Told) -> dict[str, str]:
    """The answer's elements by their names. What is no XML has none."""
    try:
        tree = ET.fromstring(told.body)  # noqa: S314 - the token service's own answer, bounded in size
    except ET.ParseError:
        return {}
    return {element.tag.rpartition("}")[2]: element.text or "" for element in tree.iter()}


def _reason(fields: Mapping[str, str]) -> str:
    found = _WORD.fullmatch(fields.get("Code", ""))
    return found[0] if found else ""
