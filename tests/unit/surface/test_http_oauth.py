"""The token endpoint: OAuth's own words, one token, and no such route unless it is turned on."""

import asyncio
import base64
from urllib.parse import urlencode

import pytest

from arco.kernel.secret import Secret
from arco.surface.http.access import Access
from arco.surface.http.app import App, Setup
from stand_ins.asgi import Answer, ask, make_app

TOKEN = "s3cret+token/=&%"
PATH = "/iceberg/v1/oauth/tokens"
FORM = "application/x-www-form-urlencoded"
GRANT = {"grant_type": "client_credentials"}


@pytest.fixture
def app() -> App:
    return make_app(Setup(access=Access(Secret(TOKEN)), oauth=True))


def send(app: App, form: dict[str, str] | str, **headers: str) -> Answer:
    body = form if isinstance(form, str) else urlencode(form)
    return asyncio.run(ask(app, "POST", PATH, body.encode(), **({"Content_Type": FORM} | headers)))


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def test_the_secret_is_exchanged_for_the_token_that_then_opens_the_door(app):
    answer = send(app, GRANT | {"client_id": "me", "client_secret": TOKEN, "scope": "catalog"})
    assert answer.status == 200
    assert answer.json == {"access_token": TOKEN, "token_type": "bearer", "scope": "catalog"}
    assert answer.headers["cache-control"] == "no-store"
    token = answer.json["access_token"]
    assert asyncio.run(ask(app, "GET", "/iceberg/v1/config", Authorization=f"Bearer {token}")).status == 200


def test_the_secret_may_come_in_a_basic_header_encoded_as_oauth_says(app):
    encoded = basic(f"me:{urlencode({'': TOKEN})[1:]}")
    assert send(app, GRANT, Authorization=encoded).json == {"access_token": TOKEN, "token_type": "bearer"}


REFUSED = {
    "a wrong secret": (GRANT | {"client_id": "a", "client_secret": "no"}, {}, 401, "invalid_client"),
    "no secret": (GRANT, {}, 401, "invalid_client"),
    "an empty secret": (GRANT | {"client_secret": ""}, {}, 401, "invalid_client"),
    "a wrong basic secret": (GRANT, {"Authorization": basic("me:no")}, 401, "invalid_client"),
    "a basic header that is none": (GRANT, {"Authorization": "Basic %%%"}, 401, "invalid_client"),
    "a secret twice": (GRANT | {"client_secret": TOKEN}, {"Authorization": basic("me:x")}, 400, "invalid_request"),
    "no grant": ({"client_secret": TOKEN}, {}, 400, "invalid_request"),
    "another grant": ({"grant_type": "password"}, {}, 400, "unsupported_grant_type"),
    "a token exchange": (
        {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": TOKEN},
        {},
        400,
        "unsupported_grant_type",
    ),
    "a parameter twice": ("grant_type=client_credentials&grant_type=password", {}, 400, "invalid_request"),
    "a form that does not parse": ("grant_type=%zz", {}, 400, "invalid_request"),
    "JSON": ('{"grant_type": "client_credentials"}', {"Content_Type": "application/json"}, 400, "invalid_request"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_oauths_own(app, case):
    form, headers, status, error = REFUSED[case]
    answer = send(app, form, **headers)
    assert (answer.status, answer.json["error"]) == (status, error)
    assert set(answer.json) == {"error", "error_description"}
    assert ("www-authenticate" in answer.headers) is (status == 401)
    assert TOKEN not in answer.body.decode()


def test_there_is_no_such_route_unless_it_is_turned_on():
    closed = make_app(Setup(access=Access(Secret(TOKEN))))
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert send(closed, GRANT | {"client_secret": TOKEN}).error == (401, "NotAuthorizedException")
    assert send(closed, GRANT | {"client_secret": TOKEN}, **bearer).error == (404, "NotFoundException")
