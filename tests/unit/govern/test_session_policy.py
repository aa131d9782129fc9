"""A session policy lets its session at the files of one table, whatever the folders above it are called."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco.govern.session_policy import literal, session_policy
from arco.govern.vending import Access
from arco.kernel.errors import AccessDenied, InvalidInput
from arco.storage.roots import Root

from .checked_places import OTHER, UUID, place_of
from .policy_reader import allows, pattern_of

HOSTILE = ["plain", "w*", "q?", "d${aws:username}", "$", "${*}", "a\"b'c", "back\\slash", "ü/猫", 'x","y', "{}[]", "a b"]
WORDS = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_characters="/\\\x7f"), min_size=1, max_size=12
)


def policy(root: Root, access: Access = Access.WRITE) -> str:
    return session_policy(place_of(root), access)


def test_the_document_is_this() -> None:
    folder = f"warehouse/acme/sales/data/orders-{UUID}"
    assert json.loads(policy(Root("s3", "lake", "warehouse"), Access.READ)) == {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [f"arn:aws:s3:::lake/{folder}/*"]},
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": ["arn:aws:s3:::lake"],
                "Condition": {"StringLike": {"s3:prefix": [f"{folder}/*"]}},
            },
        ],
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_cve_2026_42810_a_name_is_no_pattern(name: str) -> None:
    root = Root("s3", "lake", name.replace("\\", "_"))
    document, own = policy(root), place_of(root).path
    assert document.isascii()
    assert allows(document, "s3:GetObject", f"arn:aws:s3:::lake/{own}/data/f.parquet")
    assert allows(document, "s3:ListBucket", "arn:aws:s3:::lake", f"{own}/")
    for other in (own.replace(UUID, OTHER), "x/" + own, own + "x", own.upper(), "warehouse", "", "zzz/acme/sales/data"):
        assert not allows(document, "s3:GetObject", f"arn:aws:s3:::lake/{other}/data/f.parquet")
        assert not allows(document, "s3:ListBucket", "arn:aws:s3:::lake", f"{other}/")
    assert not allows(document, "s3:ListBucket", "arn:aws:s3:::lake")


@given(mine=WORDS, other=WORDS)
def test_a_literal_matches_itself_alone(mine: str, other: str) -> None:
    assert pattern_of(literal(mine)).fullmatch(mine)
    assert bool(pattern_of(literal(mine)).fullmatch(other)) == (mine == other)


@given(st.lists(WORDS.filter(lambda word: word not in {".", ".."}), min_size=1, max_size=3).map("/".join), WORDS)
def test_no_folder_reaches_into_another(path: str, guess: str) -> None:
    try:
        place = place_of(Root("s3", "lake", path))
    except AccessDenied:
        return  # a path that winds: nothing is vended there
    document = session_policy(place, Access.WRITE)
    key = f"{guess}/acme/sales/data/orders-{UUID}/f"
    assert allows(document, "s3:PutObject", f"arn:aws:s3:::lake/{key}") == key.startswith(f"{place.path}/")


def test_reading_does_not_write() -> None:
    read = policy(Root("s3", "lake", ""), Access.READ)
    key = f"arn:aws:s3:::lake/{place_of(Root('s3', 'lake', '')).path}/f"
    for action in ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
        assert not allows(read, action, key)
        assert allows(policy(Root("s3", "lake", "")), action, key)


def test_nobody_gets_at_the_bucket_itself() -> None:
    document = json.loads(policy(Root("s3", "lake", "")))
    assert {action for one in document["Statement"] for action in one["Action"]} == {
        "s3:GetObject",
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:AbortMultipartUpload",
        "s3:ListMultipartUploadParts",
        "s3:ListBucket",
    }


def test_a_key_of_the_store_is_named_where_files_are_encrypted() -> None:
    arn = "arn:aws:kms:eu-west-1:111122223333:key/1234"
    place = place_of(Root("s3", "lake", ""))
    write = json.loads(session_policy(place, Access.WRITE, partition="aws-cn", kms_key=arn))["Statement"]
    assert write[2] == {"Effect": "Allow", "Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Resource": [arn]}
    assert write[0]["Resource"][0].startswith("arn:aws-cn:s3:::lake/")


def test_a_folder_that_is_too_long_for_a_policy_is_said_to_be() -> None:
    with pytest.raises(InvalidInput, match="too long for a session policy"):
        policy(Root("s3", "lake", "/".join(["*" * 60] * 10)))
