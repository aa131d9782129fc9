"""A service account's key gets a token of a service that checks the signature, over real HTTP, and it is held to a table."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from arco.govern.downscoped_tokens import DownscopedTokens, access_boundary
from arco.govern.service_account import SCOPE, ServiceAccountKey, ServiceAccountToken
from arco.govern.token_services import send
from arco.govern.vending import Access
from arco.kernel.clock import SystemClock
from arco.kernel.errors import InvalidInput, StoreRefused
from arco.kernel.limits import SERVICE_ACCOUNT_CLAIM_S
from arco.kernel.secret import Secret
from arco.storage.roots import Root
from arco.surface.cli.settings import Settings
from arco.surface.cli.vending import Mode, VendFlags, open_vending

from .checked_places import place_of

EMAIL = "vend@lake.iam.gserviceaccount.com"
PLACE = place_of(Root("gs", "lake", "warehouse"))
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@dataclass
class Google:
    """A token service: signed claims for tokens at /token, tokens for narrower ones at /exchange."""

    public_key: rsa.RSAPublicKey = field(default_factory=PRIVATE.public_key)
    address: str = ""
    claims: list[dict[str, object]] = field(default_factory=list)
    boundaries: list[object] = field(default_factory=list)

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, object]]:
        if path == "/token":
            return self._for_a_claim(form)
        if form["subject_token"] != "account-token":
            return 400, {"error": "invalid_grant"}
        self.boundaries.append(json.loads(form["options"]))
        return 200, {"access_token": "table-token", "expires_in": 3600}

    def _for_a_claim(self, form: dict[str, str]) -> tuple[int, dict[str, object]]:
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        try:
            claim = jwt.decode(form["assertion"], self.public_key, algorithms=["RS256"], audience=f"{self.address}/token")
        except jwt.PyJWTError:
            return 400, {"error": "invalid_grant"}
        self.claims.append(claim | {"kid": jwt.get_unverified_header(form["assertion"]).get("kid")})
        return 200, {"access_token": "account-token", "expires_in": 1200, "token_type": "Bearer"}


@contextmanager
def running(google: Google) -> Iterator[Google]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, told = google.answer(self.path, {name: values[0] for name, values in parse_qs(body).items()})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(told).encode())

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    google.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield google
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def google() -> Iterator[Google]:
    with running(Google()) as found:
        yield found


def document(google: Google, **other: object) -> str:
    told = {
        "type": "service_account",
        "client_email": EMAIL,
        "private_key": PEM,
        "private_key_id": "key-1",
        "token_uri": f"{google.address}/token",
    }
    return json.dumps(told | other)


def key_of(google: Google, **other: object) -> ServiceAccountKey:
    return ServiceAccountKey.parse(Secret(document(google, **other)), allow_http=True)


def test_the_account_signs_who_it_is_and_gets_a_token_that_is_held_to_the_table(google: Google) -> None:
    clock = SystemClock()
    now_ms = clock.now_ms()
    source = ServiceAccountToken(key_of(google), send, clock)
    tokens = DownscopedTokens(source, send, clock, 1800, f"{google.address}/exchange")
    credential = asyncio.run(tokens.vend(PLACE, Access.READ))
    assert credential.revealed()["gcs.oauth2.token"] == "table-token"
    # No later than the token that it was exchanged for.
    assert now_ms + 1_200_000 <= credential.expires_ms <= clock.now_ms() + 1_200_000
    (claim,) = google.claims
    assert (claim["iss"], claim["scope"], claim["kid"]) == (EMAIL, SCOPE, "key-1")
    assert claim["exp"] == claim["iat"] + SERVICE_ACCOUNT_CLAIM_S  # type: ignore[operator]
    assert google.boundaries == [access_boundary(PLACE, Access.READ)]


def test_a_key_that_google_does_not_know_gets_nothing() -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with running(Google(stranger.public_key())) as google:
        source = ServiceAccountToken(key_of(google), send, SystemClock())
        with pytest.raises(StoreRefused):
            asyncio.run(source.token())
    assert google.claims == []


@pytest.mark.parametrize("how", ["in an option", "in a file"])
def test_a_server_with_the_key_of_an_account_vends(
    google: Google, how: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    given = {"service_account_key": document(google)}
    if how == "in a file":
        file = tmp_path_factory.mktemp("keys") / "key.json"
        file.write_text(document(google))
        given = {"application_credentials": str(file)}
    settings = Settings("gs://lake/warehouse", {**given, "allow_http": "true"})
    flags = VendFlags(Mode.GCS, endpoint=f"{google.address}/exchange")
    vending = open_vending(flags, settings, SystemClock())
    assert vending is not None
    (credential,) = [asyncio.run(vending.vend(PLACE))]
    assert credential.revealed()["gcs.oauth2.token"] == "table-token"


def test_nothing_of_the_key_is_shown(google: Google) -> None:
    key = key_of(google)
    assert "PRIVATE" not in repr(key)
    assert PEM.splitlines()[1] not in repr(key)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"private_key": "canary"}, "cannot sign"),
        ({"private_key": PEM.replace("PRIVATE", "PUBLIC")}, "cannot sign"),
        ({"type": "authorized_user"}, "another kind"),
        ({"private_key": 7}, "no key of a service account"),
        ({"token_uri": "ftp://canary"}, "not https://host"),
    ],
)
def test_what_is_wrong_with_a_key_is_said_at_once_and_nothing_of_it_is_repeated(
    google: Google, other: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as wrong:
        key_of(google, **other)
    assert "canary" not in wrong.value.one_line()
    assert wrong.value.__cause__ is None


def test_a_key_is_not_believed_in_the_clear(google: Google) -> None:
    with pytest.raises(InvalidInput, match="not https://host"):
        ServiceAccountKey.parse(Secret(document(google)), allow_http=False)
