"""What the Security Token Service is asked, and what becomes of its answers."""

import asyncio
import json
import re

import pytest

from arco.govern.assume_role import AssumeRole, Role
from arco.govern.aws_signature import AwsKeys, signed_form
from arco.govern.session_policy import LISTS_OR_SAYS_NO_PREFIX, policy_of, session_policy
from arco.govern.token_services import Told
from arco.govern.vending import Access, Credential, Grant
from arco.kernel.errors import ArcoError, InvalidInput, StoreRefused, Throttled, Unavailable
from arco.kernel.secret import Secret
from arco.storage.roots import Root
from stand_ins.hand_clock import HandClock

from .checked_places import OTHER, place_of
from .scripted_service import ScriptedService, assumed, refused

ARN = "arn:aws:iam::123456789012:role/lake/vend"
KEYS = AwsKeys("AKIDEXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
PLACE = place_of(Root("s3", "lake", "warehouse"))


def asking(service: ScriptedService, **more: str) -> AssumeRole:
    role = Role(ARN, "https://sts.eu-west-1.amazonaws.com", "eu-west-1", 3600, **more)
    return AssumeRole(role, KEYS, service, HandClock())


def vend(service: ScriptedService, access: Access = Access.WRITE) -> Credential:
    return asyncio.run(asking(service).vend(PLACE, access))


def test_the_form_asks_for_one_folder_and_one_role() -> None:
    service = ScriptedService(assumed())
    vend(service)
    (form,) = service.forms
    assert re.fullmatch(r"arco-write-[0-9a-f]{32}", form.pop("RoleSessionName"))
    assert form.pop("Policy") == session_policy(PLACE, Access.WRITE)
    assert form == {"Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": ARN, "DurationSeconds": "3600"}


def test_an_external_id_is_sent_if_there_is_one() -> None:
    service = ScriptedService(assumed())
    asyncio.run(asking(service, external_id="it & that").vend(PLACE, Access.READ))
    assert service.forms[0]["ExternalId"] == "it & that"
    assert json.loads(service.forms[0]["Policy"])["Statement"][0]["Action"] == ["s3:GetObject"]


def test_the_answer_becomes_what_clients_read() -> None:
    credential = vend(ScriptedService(assumed()))
    assert credential.prefix == f"{PLACE.uri}/"
    assert credential.expires_ms == 1_767_229_200_000
    assert credential.revealed() == {
        "s3.access-key-id": "ASIA-SESSION",
        "s3.secret-access-key": "secret-canary",
        "s3.session-token": "token-canary",
        "s3.session-token-expires-at-ms": "1767229200000",
        "client.region": "eu-west-1",
    }


def test_nothing_secret_prints_itself() -> None:
    service = ScriptedService(assumed())
    shown = repr(vend(service)) + repr(service.asked) + repr(assumed()) + repr(KEYS)
    assert not re.search(r"canary|wJalr|ASIA", shown)


@pytest.mark.parametrize(
    ("told", "error"),
    [
        (refused(403, "AccessDenied"), StoreRefused),
        (refused(400, "PackedPolicyTooLarge"), StoreRefused),
        (refused(400, "Throttling"), Throttled),
        (refused(503, "ServiceUnavailable"), Throttled),
        (refused(500, "InternalFailure"), Unavailable),
        (Told(200, b"<html>"), StoreRefused),
        (Told(200, b"<a><AccessKeyId>x</AccessKeyId></a>"), StoreRefused),
        (Told(200, assumed(expires="soon").body), StoreRefused),
        (Told(302, b""), StoreRefused),
        (Told(200, b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'), StoreRefused),
    ],
)
def test_every_other_answer_is_an_error_that_says_no_secret(told: Told, error: type[ArcoError]) -> None:
    with pytest.raises(error) as caught:
        vend(ScriptedService(told))
    assert "canary" not in caught.value.one_line()


@pytest.mark.parametrize(
    "arn", ["", "role/vend", "arn:aws:iam::1:role/x", "arn:aws:iam::123456789012:user/x", f"{ARN}\n", "*"]
)
def test_what_is_no_role_is_refused(arn: str) -> None:
    with pytest.raises(InvalidInput, match="is not a role"):
        Role(arn, "https://sts.amazonaws.com", "us-east-1", 3600)


def test_the_signature_is_amazons() -> None:
    """In its form; that a service takes it is shown where one is asked (tests/integration/test_vended_on_s3.py)."""
    headers = signed_form("https://sts.amazonaws.com/", b"Action=X", KEYS, region="us-east-1", service="sts", at_ms=0)
    assert headers["x-amz-date"] == "19700101T000000Z"
    assert headers["authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/19700101/us-east-1/sts/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, Signature="
    )
    assert "x-amz-security-token" not in headers
    session = AwsKeys("A", Secret("b"), Secret("c"))
    more = signed_form("https://sts.amazonaws.com/", b"", session, region="us-east-1", service="sts", at_ms=0)
    assert more["x-amz-security-token"] == "c"
    assert "host;x-amz-date;x-amz-security-token" in more["authorization"]


GRANTS = (Grant(PLACE, Access.READ), Grant(place_of(Root("s3", "lake", "warehouse"), OTHER), Access.WRITE, stem=True))


def test_one_session_is_asked_for_several_places_for_as_long_as_it_is_needed() -> None:
    service = ScriptedService(assumed())
    credential = asyncio.run(asking(service).vend_together(GRANTS, "run/task/1", 1800))
    (form,) = service.forms
    assert re.fullmatch(r"arco-task-[0-9a-f]{32}", form["RoleSessionName"])
    assert form["DurationSeconds"] == "1800"
    assert form["Policy"] == policy_of(GRANTS, listing=LISTS_OR_SAYS_NO_PREFIX)
    assert credential.hidden["s3.session-token"] == Secret("token-canary")


def test_listing_is_held_to_the_places_where_the_store_is_not_amazons() -> None:
    """Amazon's own says of a missing name that it is forbidden, unless one may list without a prefix."""
    service = ScriptedService(assumed())
    role = Role(ARN, "https://s3.example:8333", "eu-west-1", 3600)
    asyncio.run(AssumeRole(role, KEYS, service, HandClock()).vend_together(GRANTS, "run/task/1", 1800))
    assert service.forms[0]["Policy"] == policy_of(GRANTS)
    assert list(json.loads(policy_of(GRANTS))["Statement"][-1]["Condition"]) == ["StringLike"]
