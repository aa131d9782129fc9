"""A shared access signature is byte for byte what Microsoft's own library makes, for the folder of one table."""

import asyncio
import base64
from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest
from azure.storage.blob import generate_blob_sas

from arco.govern.shared_access import VERSION, SharedAccess, string_to_sign
from arco.govern.vending import Access
from arco.kernel.errors import InvalidInput
from arco.kernel.secret import Secret
from arco.storage.roots import Root
from stand_ins.hand_clock import HandClock

from .checked_places import UUID, place_of

KEY = base64.b64encode(b"canary of an account's key").decode()
HOST = "acct.dfs.core.windows.net"
ROOT = Root("az", "lake", "warehouse")


def signer(protocol: str = "https") -> SharedAccess:
    return SharedAccess("acct", HOST, Secret(KEY), HandClock(), 3600, protocol)


@pytest.mark.parametrize("path", ["warehouse", "", "a b/ü", "it's+%/x&y=z"])
@pytest.mark.parametrize(("access", "permissions"), [(Access.READ, "rl"), (Access.WRITE, "racwdl")])
def test_the_signature_is_microsofts(path: str, access: Access, permissions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of(Root("az", "lake", path))
    monkeypatch.setattr("azure.storage.blob._shared_access_signature.X_MS_VERSION", VERSION)
    ours = parse_qs(signer().token(place, access, 1_800_000_000))
    theirs = parse_qs(
        generate_blob_sas(
            "acct",
            "lake",
            place.path,
            account_key=KEY,
            permission=permissions,
            expiry=datetime.fromtimestamp(1_800_000_000, UTC),
            protocol="https",
            is_directory=True,
        )
    )
    assert ours == theirs


def test_what_is_signed_is_this() -> None:
    text = string_to_sign(permissions="rl", ends="2027-01-15T08:00:00Z", resource="/blob/acct/lake/a", protocol="https")
    assert text == f"rl\n\n2027-01-15T08:00:00Z\n/blob/acct/lake/a\n\n\nhttps\n{VERSION}\nd\n\n\n\n\n\n\n"


def test_clients_get_it_under_every_name_that_they_know() -> None:
    place = place_of(ROOT)
    credential = asyncio.run(signer().vend(place, Access.READ))
    ends_ms = HandClock().now_ms() // 1000 * 1000 + 3_600_000
    token = signer().token(place, Access.READ, ends_ms // 1000)
    assert credential.revealed() == {
        "adls.sas-token": token,
        f"adls.sas-token.{HOST}": token,
        "adls.sas-token-expires-at-ms": str(ends_ms),
        f"adls.sas-token-expires-at-ms.{HOST}": str(ends_ms),
    }
    assert credential.expires_ms == ends_ms
    fields = parse_qs(token)
    assert fields["sdd"] == [str(len(f"warehouse/acme/sales/data/orders-{UUID}".split("/")))]
    assert (fields["sr"], fields["sp"], fields["spr"]) == (["d"], ["rl"], ["https"])


def test_a_line_break_shifts_no_lines() -> None:
    with pytest.raises(InvalidInput):
        string_to_sign(permissions="rl", ends="x", resource="/blob/a/b/c\nd", protocol="https")


def test_a_key_that_is_none_is_said_to_be_without_showing_it() -> None:
    with pytest.raises(InvalidInput, match="not base64") as caught:
        SharedAccess("acct", HOST, Secret("not base64 canary"), HandClock(), 3600)
    assert "canary" not in caught.value.one_line()
