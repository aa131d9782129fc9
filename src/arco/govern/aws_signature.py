"""Signature Version 4 of a form that is posted to an Amazon service. What must never enter: what the form asks for."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from arco.kernel.secret import Secret

FORM = "application/x-www-form-urlencoded; charset=utf-8"


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """Who asks."""

    access_key_id: str
    secret_access_key: Secret
    session_token: Secret | None = None


def signed_form(url: str, body: bytes, keys: AwsKeys, *, region: str, service: str, at_ms: int) -> dict[str, str]:
    """The headers that a form is posted with."""
    parts = urlsplit(url)
    stamp = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {"content-type": FORM, "host": parts.netloc, "x-amz-date": stamp}
    if keys.session_token is not None:
        headers["x-amz-security-token"] = keys.session_token.reveal()
    names = ";".join(sorted(headers))
    request = "\n".join(("POST", parts.path or "/", "", _lines(headers), names, hashlib.sha256(body).hexdigest()))
    scope = (stamp[:8], region, service, "aws4_request")
    message = ("AWS4-HMAC-SHA256", stamp, "/".join(scope), hashlib.sha256(request.encode()).hexdigest())
    key = f"AWS4{keys.secret_access_key.reveal()}".encode()
    for part in (*scope, "\n".join(message)):
        key = hmac.digest(key, part.encode(), "sha256")
    credential = f"{keys.access_key_id}/{'/'.join(scope)}"
    authorization = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={key.hex()}"
    return {**headers, "authorization": authorization}


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
