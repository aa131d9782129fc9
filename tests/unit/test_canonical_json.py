"""Canonical JSON: the published vectors, and what the vectors of another language cannot say."""

import hashlib
import json
import struct
import sys
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest

from arco.kernel.canonical_json import canonical_bytes, parse_strict, request_hash
from arco.kernel.errors import ArcoError, InvalidInput, TooLarge
from arco.kernel.limits import JSON_BODY_BYTES_MAX, JSON_DEPTH_MAX, JSON_NUMBER_DIGITS_MAX

VECTORS = json.loads((Path(__file__).parents[1] / "fixtures" / "canonical_json.json").read_text("ascii"))


def vectors(section: str, key: str) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in VECTORS[section] if key in vector]


def input_bytes(vector: dict[str, Any]) -> bytes:
    if "input_hex" in vector:
        return bytes.fromhex(vector["input_hex"])
    if "input_repeat" in vector:
        return "".join(piece["text"] * piece["times"] for piece in vector["input_repeat"]).encode()
    return vector["input"].encode()


def double(vector: dict[str, Any]) -> float:
    return struct.unpack(">d", bytes.fromhex(vector["bits"]))[0]


def assert_one_short_line(error: ArcoError) -> None:
    assert "\n" not in error.message
    assert len(error.message) < 200


@pytest.mark.parametrize("vector", vectors("accepted", "canonical"))
def test_every_text_has_one_canonical_spelling(vector):
    canonical = vector["canonical"].encode()
    assert canonical_bytes(parse_strict(input_bytes(vector))) == canonical
    assert canonical_bytes(parse_strict(canonical)) == canonical


@pytest.mark.parametrize("vector", vectors("doubles", "canonical"))
def test_doubles_are_spelled_as_javascript_spells_them(vector):
    assert canonical_bytes(double(vector)).decode() == vector["canonical"]
    assert float(vector["canonical"]) == double(vector)


@pytest.mark.parametrize("vector", vectors("doubles", "error"))
def test_a_double_that_is_no_number_has_no_spelling(vector):
    with pytest.raises(InvalidInput, match=vector["error"]):
        canonical_bytes([double(vector)])


@pytest.mark.parametrize("vector", vectors("refused", "error"))
def test_what_two_readers_could_understand_differently_is_refused(vector):
    with pytest.raises(ArcoError) as caught:
        parse_strict(input_bytes(vector))
    assert caught.value.code == vector["code"]
    assert vector["error"] in caught.value.message
    assert_one_short_line(caught.value)


def test_the_published_file_holds_enough_of_each():
    assert len(VECTORS["accepted"]) >= 40
    assert len(VECTORS["refused"]) >= 20


def test_a_text_at_the_size_limit_is_read_and_one_byte_more_is_refused():
    assert parse_strict(b"[1]", max_bytes=3) == [1]
    with pytest.raises(TooLarge, match="4 bytes is over the limit of 3 bytes"):
        parse_strict(b"[12]", max_bytes=3)
    with pytest.raises(TooLarge):
        parse_strict(b" " * (JSON_BODY_BYTES_MAX + 1))


def test_depth_counts_arrays_and_objects_and_nothing_inside_strings():
    assert parse_strict(b'{"a":["[[[\\"[[[\\\\"]}', max_depth=2) == {"a": ['[[["[[[\\']}
    assert parse_strict(b'"[[["', max_depth=0) == "[[["
    assert parse_strict(b'["\\\\",[]]', max_depth=2) == ["\\", []]
    with pytest.raises(TooLarge, match="deeper than 1 levels"):
        parse_strict(b'["\\\\",[]]', max_depth=1)
    with pytest.raises(TooLarge):
        parse_strict(b'["\\\\\\"",[[]]]', max_depth=2)


@pytest.mark.parametrize("hostile", [b"[", b'{"a":', b'["', b'"[', b'[{"\\"":', b"[]", b'"', b'\\"[', b"]["])
def test_no_pile_of_brackets_reaches_the_interpreters_stack(hostile):
    with pytest.raises((InvalidInput, TooLarge)) as caught:
        parse_strict(hostile * 100_000)
    assert_one_short_line(caught.value)


def test_a_value_that_contains_itself_is_refused():
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TooLarge, match="contains itself"):
        canonical_bytes(loop)


def test_what_is_written_can_be_read_back_at_the_limits():
    deep: Any = 1
    for _ in range(JSON_DEPTH_MAX):
        deep = [deep]
    assert parse_strict(canonical_bytes(deep)) == deep
    with pytest.raises(TooLarge):
        canonical_bytes([deep])
    longest = 10**JSON_NUMBER_DIGITS_MAX - 1
    assert parse_strict(canonical_bytes([longest, -longest])) == [longest, -longest]
    for over in (longest + 1, -longest - 1, 10**100_000):
        with pytest.raises(TooLarge, match="more than 1000 digits"):
            canonical_bytes(over)


def test_the_interpreters_own_limit_on_digits_never_shows():
    before = sys.get_int_max_str_digits()
    value = -(7 ** (JSON_NUMBER_DIGITS_MAX - 1) * 10**150)  # zeros at the end, 995 digits
    text = canonical_bytes(value)
    sys.set_int_max_str_digits(640)  # the lowest that Python allows
    try:
        assert canonical_bytes(value) == text
        assert parse_strict(text) == value
        with pytest.raises(TooLarge):
            parse_strict(b"9" * 1001)
    finally:
        sys.set_int_max_str_digits(before)


def test_different_snapshot_ids_never_become_one_number():
    ids = [2**62 + step for step in range(64)]
    assert len({canonical_bytes(one) for one in ids}) == len(ids)
    assert parse_strict(canonical_bytes(ids)) == ids


def test_booleans_are_never_numbers():
    assert canonical_bytes([True, 1, False, 0, 1.0]) == b"[true,1,false,0,1]"
    assert [type(value) for value in parse_strict(b"[true,1]")] == [bool, int]


def test_named_constants_are_spelled_by_their_values():
    class Colour(StrEnum):
        RED = "red"

    class Level(IntEnum):
        HIGH = 3

    assert canonical_bytes({Colour.RED: [Colour.RED, Level.HIGH]}) == b'{"red":["red",3]}'


@pytest.mark.parametrize(
    "value",
    [(1, 2), {1}, b"bytes", bytearray(b"x"), Decimal(1), object(), 1j, [object()], {"a": (1,)}],
    ids=lambda value: repr(type(value).__name__),
)
def test_what_is_not_json_is_refused(value):
    with pytest.raises(InvalidInput, match="has no JSON form"):
        canonical_bytes(value)


@pytest.mark.parametrize("key", [1, None, True, 1.5, b"a", ("a",)])
def test_keys_that_are_not_strings_are_refused_and_never_converted(key):
    with pytest.raises(InvalidInput, match="not a string"):
        canonical_bytes({"a": 1, key: 2})


@pytest.mark.parametrize("value", ["\ud800", ["x\udfff"], {"\ud800": 1}, {"\ud800": 1, "é": 2}, {"a": "\udc00"}])
def test_a_lone_surrogate_has_no_spelling(value):
    with pytest.raises(InvalidInput, match="lone surrogate"):
        canonical_bytes(value)


def test_a_message_never_repeats_a_huge_text():
    key = b'"' + b"k" * 1_000_000 + b'"'
    for hostile in (b"{" + key + b":1," + key + b":2}", key + b"x", b"[" + key, b"1" * 1_000_000):
        with pytest.raises(ArcoError) as caught:
            parse_strict(hostile)
        assert_one_short_line(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_request_hash_is_sha256_over_the_canonical_bytes():
    expected = hashlib.sha256(b'{"a":[1,2],"b":null}').hexdigest()
    assert request_hash({"b": None, "a": [1, 2.0]}) == expected


def test_fields_of_a_hashed_list_cannot_slide_into_each_other():
    hashes = {request_hash(fields) for fields in (["ab", "c"], ["a", "bc"], ["abc"], ["ab,c"], ['ab","c'])}
    assert len(hashes) == 5
