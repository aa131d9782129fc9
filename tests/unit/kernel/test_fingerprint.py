"""Fingerprints: pinned values, and no collision by moving a boundary between fields."""

import hashlib

import pytest

from arco.kernel.fingerprint import content_hash, fingerprint, fingerprints


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("plan",), "c506640c31eb7b0344acb3d3115ebd4b8121fc7c88dd33951e637b59ef9f9801"),
        (("plan", ""), "5b0adc52c54b513992906473e5492acdd70ae7991e2244e95c65baa2ec4f7494"),
        (("plan", "ab", "c"), "07bafdbd32f774a1ac47e457a4554129052222fdd237b45b9b881ce024b19b15"),
        (("plan", "a", "bc"), "6ebcd8b2a83fca2beceeb80fde456ab728d80908883f0df832e45537614ccd87"),
    ],
)
def test_a_fingerprint_is_the_same_for_ever(fields, expected):
    assert fingerprint(*fields) == expected


# Lists of fields that become one text when they are joined, whatever stands between them.
CONFUSABLE = (
    (("ab", "c"), ("a", "bc"), ("abc",), ("", "abc"), ("abc", ""), ("a", "b", "c"), ("", "", "abc")),
    (("a,b",), ("a", "b"), ("a", ",b"), ("a,", "b")),
    (("a\0b",), ("a", "b"), ("a\0", "b"), ("a", "\0b")),
    (("a|b", "c"), ("a", "b|c"), ("a", "b", "c"), ("a|b|c",)),
    ((), ("",), ("", ""), ("", "", "")),
    (("\0" * 8,), ("\0" * 8, ""), ("\0" * 16,), ("", "\0" * 8)),
)


@pytest.mark.parametrize("lists", CONFUSABLE)
def test_hazard_22_fields_are_length_prefixed_so_a_boundary_cannot_move(lists):
    assert len({fingerprint("plan", *fields) for fields in lists}) == len(lists)


def test_hazard_22_a_field_that_imitates_a_length_prefix_does_not_split():
    imitation = b"a" + (1).to_bytes(8, "big") + b"b"
    assert fingerprint("plan", imitation) != fingerprint("plan", "a", "b")


def test_hazard_22_the_purpose_separates_kinds_over_the_same_fields():
    assert len({fingerprint(purpose, "a", "b") for purpose in ("plan", "edge", "task", "plana", "")}) == 5
    assert fingerprint("plan", "a") != fingerprint("plana")


def test_text_and_its_bytes_are_one_field():
    assert fingerprint("plan", "größe") == fingerprint("plan", "größe".encode())


def test_different_code_points_are_different_fields():
    assert fingerprint("plan", "\u00e9") != fingerprint("plan", "e\u0301")


@pytest.mark.parametrize("data", [b"", b"arco", bytes(range(256)) * 1000])
def test_a_content_hash_is_the_plain_hash_that_other_tools_print(data):
    assert content_hash(data) == hashlib.sha256(data).hexdigest()


def test_the_content_hash_of_nothing_is_the_well_known_one():
    assert content_hash(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_fingerprints_of_lists_that_differ_in_one_field_are_those_of_the_lists():
    many = fingerprints(("task", "größe"), ("code",))
    for field in ("", "a", "größe", "a" * 1000):
        assert many(field) == fingerprint("task", "größe", field, "code")
    assert fingerprint("plan", b"ab") == fingerprint("plan", "ab")
