"""Object names over generated keys: exact inverses, inside their scope, and nothing read that would be written otherwise."""

from datetime import date
from enum import StrEnum
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import Identifier, TransactionId, UlidIdentifier, UuidIdentifier, encode_ulid
from arco.kernel.scope import Scope
from arco.storage import keys
from arco.storage.keys import Day, FileName, Slug
from arco.storage.port import check_key

promise = settings(max_examples=20)
many = settings(max_examples=100)

LATEST_MS = (1 << 47) - 1

scopes = st.builds(Scope.of, *[st.from_regex(r"[a-z0-9](?:[a-z0-9_-]{0,9}[a-z0-9])?", fullmatch=True)] * 2)


@st.composite
def transactions(draw: st.DrawFn) -> TransactionId:
    at_ms, random = draw(st.integers(0, LATEST_MS)), draw(st.integers(0, (1 << 64) - 1))
    tail = f"7{random >> 52:03x}-{'89ab'[random & 3]}{random >> 40 & 0xFFF:03x}-{random >> 2 & (1 << 48) - 1:012x}"
    return TransactionId(f"{at_ms:012x}"[:8] + "-" + f"{at_ms:012x}"[8:] + "-" + tail)


def values_of(wanted: Any) -> st.SearchStrategy[Any]:
    """Values of the type of a field."""
    if wanted is Scope:
        return scopes
    if wanted is int:
        return st.integers(0, 10**20 - 1) | st.integers(0, 200_000)
    if issubclass(wanted, StrEnum):
        return st.sampled_from(wanted)
    if wanted is TransactionId:
        return transactions()
    if issubclass(wanted, UlidIdentifier):
        return st.integers(0, (1 << 128) - 1).map(encode_ulid).map(wanted)
    if issubclass(wanted, UuidIdentifier):
        return st.uuids().map(str).map(wanted)
    if wanted is Day:
        return st.dates().map(date.isoformat).map(Day)
    if wanted is FileName:
        return st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,9}", fullmatch=True), min_size=1, max_size=5).map(
            lambda parts: FileName("a" + ".".join(parts))
        )
    assert issubclass(wanted, Identifier)
    return st.from_regex(wanted.pattern, fullmatch=True).map(wanted)


def keys_of(kind: type[keys.Key]) -> st.SearchStrategy[keys.Key]:
    hints = get_type_hints(kind)
    return st.builds(kind, *(values_of(hints[field.name]) for field in fields(kind)))


any_key = st.one_of(*map(keys_of, keys.KINDS))


@pytest.mark.parametrize("kind", keys.KINDS, ids=lambda kind: kind.__name__)
def test_every_key_reads_back_from_its_name(kind):
    @promise
    @given(keys_of(kind))
    def reads_back(key: keys.Key) -> None:
        name = str(key)
        again = keys.parse(name)
        assert again == key
        assert type(again) is kind
        assert str(again) == name

    reads_back()


@many
@given(any_key)
def test_every_name_lies_inside_its_scope_and_suits_every_store(key):
    name = str(key)
    assert check_key(name) == name
    assert name.startswith(keys.prefix_of(key.scope))
    assert name.isascii()


@many
@given(any_key, any_key)
def test_two_keys_share_a_name_only_if_they_are_equal(one, other):
    assert (str(one) == str(other)) == (one == other)


@many
@given(any_key, scopes)
def test_one_key_in_two_scopes_has_two_names(key, scope):
    values = [getattr(key, field.name) for field in fields(key)]
    moved = type(key)(scope, *values[1:])
    assert (str(moved) == str(key)) == (scope == key.scope)


def accepted_only_as_itself(name: str) -> None:
    try:
        key = keys.parse(name)
    except InvalidInput:
        return
    assert str(key) == name


@settings(max_examples=200)
@given(any_key, st.data())
def test_a_name_that_was_tampered_with_is_refused_or_is_another_keys_own(key, data):
    name = str(key)
    at = data.draw(st.integers(0, len(name)))
    cut = data.draw(st.integers(0, 2))
    put = data.draw(st.text(alphabet="/.-_%\\\n\0 AZaz09é٣", max_size=2))
    accepted_only_as_itself(name[:at] + put + name[at + cut :])


@many
@given(
    any_key,
    st.sampled_from([str.upper, str.lower, str.title, str.swapcase, lambda name: name + "/", lambda name: name * 2]),
)
def test_another_spelling_of_a_name_is_refused_or_is_the_name(key, respell):
    accepted_only_as_itself(respell(str(key)))


@many
@given(any_key, any_key, st.data())
def test_the_head_of_one_name_with_the_tail_of_another_is_refused_or_is_a_name(one, other, data):
    heads, tails = str(one).split("/"), str(other).split("/")
    cut = data.draw(st.integers(0, min(len(heads), len(tails))))
    accepted_only_as_itself("/".join(heads[:cut] + tails[cut:]))


@many
@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["a", "_catalog", "data", "..", "", "core", "state", "x.json"])).map("/".join)
)
def test_any_text_is_refused_or_is_a_name(text):
    accepted_only_as_itself(text)


@many
@given(st.text(max_size=80))
def test_every_name_has_a_slug_and_a_slug_is_its_own(name):
    slug = Slug.from_name(name)
    assert Slug(slug) == slug
    assert Slug.from_name(slug) == slug
