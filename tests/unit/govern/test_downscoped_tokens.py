"""The documents and requests by which a token of GCS is held to one table."""

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco.govern.downscoped_tokens import (
    EXCHANGE,
    MACHINE,
    DownscopedTokens,
    GivenToken,
    MachineToken,
    access_boundary,
    quoted,
)
from arco.govern.token_services import Told
from arco.govern.vending import Access
from arco.kernel.errors import StoreRefused, Throttled
from arco.kernel.secret import Secret
from arco.storage.roots import Root
from stand_ins.hand_clock import HandClock

from .checked_places import UUID, place_of
from .scripted_service import ScriptedService

PLACE = place_of(Root("gs", "lake", "warehouse"))
FOLDER = f"warehouse/acme/sales/data/orders-{UUID}"


def unquoted(text: str) -> str:
    """A text of CEL, read as its grammar says; anything that ends it early is not one."""
    found = re.fullmatch(r"'((?:[^'\\\r\n]|\\U[0-9a-f]{8})*)'", text)
    assert found, text
    return re.sub(r"\\U([0-9a-f]{8})", lambda one: chr(int(one[1], 16)), found[1])


def test_the_boundary_is_this() -> None:
    objects = f"resource.name.startsWith('projects/_/buckets/lake/objects/{FOLDER}/')"
    listing = f"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('{FOLDER}/')"
    rule = {
        "availableResource": "//storage.googleapis.com/projects/_/buckets/lake",
        "availablePermissions": ["inRole:roles/storage.objectViewer"],
        "availabilityCondition": {"expression": f"{objects} || {listing}"},
    }
    assert access_boundary(PLACE, Access.READ) == {"accessBoundary": {"accessBoundaryRules": [rule]}}


def test_writing_is_another_role() -> None:
    (rule,) = access_boundary(PLACE, Access.WRITE)["accessBoundary"]["accessBoundaryRules"]
    assert rule["availablePermissions"] == ["inRole:roles/storage.objectUser"]


@pytest.mark.parametrize("name", ["it's", "a') || ('' == '", 'say "x"', "new\u2028line", "ü猫", "${x}", "*?", "a b"])
def test_cve_2026_42811_a_quote_in_a_name_ends_no_text(name: str) -> None:
    place = place_of(Root("gs", "lake", name))
    (rule,) = access_boundary(place, Access.WRITE)["accessBoundary"]["accessBoundaryRules"]
    found = re.fullmatch(
        r"resource\.name\.startsWith\(('[^']*')\) \|\| "
        r"api\.getAttribute\('storage\.googleapis\.com/objectListPrefix', ''\)\.startsWith\(('[^']*')\)",
        rule["availabilityCondition"]["expression"],
    )
    assert found
    assert unquoted(found[1]) == f"projects/_/buckets/lake/objects/{place.path}/"
    assert unquoted(found[2]) == f"{place.path}/"


@given(st.text())
def test_a_quoted_text_is_read_as_itself(text: str) -> None:
    assert quoted(text).isascii()
    assert unquoted(quoted(text)) == text


def vendor(service: ScriptedService) -> DownscopedTokens:
    return DownscopedTokens(GivenToken(Secret("source-canary")), service, HandClock(), 1800)


def told(**fields: object) -> Told:
    return Told(200, json.dumps(fields).encode())


def test_the_exchange_is_asked_for_this() -> None:
    service = ScriptedService(told(access_token="ya29.down", expires_in=600, token_type="Bearer"))
    credential = asyncio.run(vendor(service).vend(PLACE, Access.READ))
    (ask,), (form,) = service.asked, service.forms
    assert (ask.method, ask.url) == ("POST", EXCHANGE)
    assert ask.headers == {"Content-Type": "application/x-www-form-urlencoded"}
    assert json.loads(form.pop("options")) == access_boundary(PLACE, Access.READ)
    assert form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token": "source-canary",
    }
    now_ms = HandClock().now_ms()
    assert credential.prefix == f"gs://lake/{FOLDER}/"
    assert credential.revealed() == {
        "gcs.oauth2.token": "ya29.down",
        "gcs.oauth2.token-expires-at": str(now_ms + 600_000),
    }
    assert "canary" not in repr(service.asked)


def test_a_token_without_an_end_gets_the_one_that_was_configured() -> None:
    service = ScriptedService(told(access_token="x"))
    assert asyncio.run(vendor(service).vend(PLACE, Access.READ)).expires_ms == HandClock().now_ms() + 1_800_000


def test_a_token_of_the_machine_ends_no_later_than_its_source() -> None:
    service = ScriptedService(told(access_token="machine", expires_in=120), told(access_token="x", expires_in=3600))
    clock = HandClock()
    tokens = DownscopedTokens(MachineToken(service, clock), service, clock, 1800)
    credential = asyncio.run(tokens.vend(PLACE, Access.WRITE))
    assert credential.expires_ms == clock.now_ms() + 120_000
    assert [(one.method, one.url) for one in service.asked] == [("GET", MACHINE), ("POST", EXCHANGE)]
    assert service.asked[0].headers == {"Metadata-Flavor": "Google"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"access_token": 7}', b'{"access_token": ""}', b"\xff"])
def test_what_is_no_token_is_refused(body: bytes) -> None:
    with pytest.raises(StoreRefused):
        asyncio.run(vendor(ScriptedService(Told(200, body))).vend(PLACE, Access.READ))


def test_a_service_that_is_busy_is_one() -> None:
    with pytest.raises(Throttled):
        asyncio.run(vendor(ScriptedService(Told(429, b"{}"))).vend(PLACE, Access.READ))
