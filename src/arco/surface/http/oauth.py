"""OAuth's token endpoint, for clients that know no other way to a token: the client's secret is the server's token.

Off unless the operator turns it on: the REST description has deprecated it. It speaks OAuth's own errors (RFC 6749), not
Iceberg's envelope, and hands out the one token there is. That one does not expire, so no lifetime is given and clients do
not try to exchange it.
"""

import base64
import binascii
from urllib.parse import unquote_plus

from arco.kernel.errors import InvalidInput
from arco.surface.http.access import Access
from arco.surface.http.exchange import Request, Response, decode_form, json_response
from arco.surface.http.routes import Door, Route, route

_PATH = "/iceberg/v1/oauth/tokens"
_FORM = "application/x-www-form-urlencoded"
_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class OAuthRoutes:
    """The client credentials flow."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        return [route("POST", _PATH, self.token, Door.OPEN)]

    async def token(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            return _error("invalid_request", f"the body's Content-Type must be {_FORM}")
        try:
            form = decode_form(request.body, "the form")
        except InvalidInput as error:
            return _error("invalid_request", error.message)
        twice = sorted(name for name, values in form.items() if len(values) > 1)
        if twice:
            return _error("invalid_request", "a parameter is given more than once")
        match form.get("grant_type"):
            case None:
                return _error("invalid_request", "grant_type is missing")
            case ["client_credentials"]:
                return self._credentials(request, form)
            case _:
                return _error("unsupported_grant_type", "only client_credentials is supported")

    def _credentials(self, request: Request, form: dict[str, list[str]]) -> Response:
        authorization = request.headers.get("authorization")
        given = form.get("client_secret", [None])[0]
        if given is not None and authorization is not None:
            return _error("invalid_request", "the client's secret is given in the form and in a header")
        secret = _basic_secret(authorization) if given is None else given
        if secret is None or not self._access.accepts(secret):
            return _error("invalid_client", "the client's secret is not the server's token", status=401)
        answer = {"access_token": secret, "token_type": "bearer"}
        if "scope" in form:
            answer["scope"] = form["scope"][0]
        return json_response(answer, headers=_NO_STORE)


def _basic_secret(authorization: str | None) -> str | None:
    """The password of HTTP's basic authentication, which OAuth has form-encoded inside."""
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return unquote_plus(base64.b64decode(encoded.strip(), validate=True).decode().partition(":")[2])
    except (binascii.Error, UnicodeDecodeError):
        return None


def _error(code: str, description: str, status: int = 400) -> Response:
    headers = {**_NO_STORE, "WWW-Authenticate": 'Basic realm="arco"'} if status == 401 else _NO_STORE
    return json_response({"error": code, "error_description": description}, status, headers)
