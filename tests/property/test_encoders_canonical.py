"""Canonical encoders over generated values: one spelling per value, one value per spelling."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from arco.kernel import canonical_json
from arco.kernel.canonical_json import canonical_bytes, parse_strict, request_hash
from arco.kernel.errors import ArcoError, InvalidInput, TooLarge
from arco.kernel.limits import JSON_DEPTH_MAX
from arco.kernel.partition_key import PartitionKey

promise = settings(max_examples=300)

# --- canonical JSON

# A double between 2^53 and 1e21 is spelled by its shortest digits; those digits name another integer than its value.
SMALLEST_ROUNDED, LARGEST_ROUNDED = 2.0**53, 1e21

json_text = st.text(max_size=12) | st.text(alphabet=',:"\\/{}[]\n\0\x7fé\u2028\ufb33\U0001f600', max_size=6)
json_numbers = (
    st.integers()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([-0.0, 1e21, 1e-7, 5e-324, 2.0**53, 2.0**63, 1e20, 0.1, 1.7976931348623157e308])
)


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(json_text, inner, max_size=5),
        max_leaves=15,
    )


json_values = nested(st.none() | st.booleans() | json_numbers | json_text)
# Without doubles nothing is rounded, and without long texts two values are often nearly the same.
exact_values = nested(st.none() | st.booleans() | st.integers(-1, 2) | st.integers() | st.sampled_from(["", "0", "null"]))


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: Python's own equality would let `true` pass for 1."""
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, int) and SMALLEST_ROUNDED <= abs(left) < LARGEST_ROUNDED:
        return left == float(right)
    return bool(left == right)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(item) for key, item in reversed(value.items())}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@promise
@given(json_values)
def test_canonical_json_reads_back_as_the_same_value(value):
    assert same(value, parse_strict(canonical_bytes(value)))


@promise
@given(json_values | exact_values)
@example({"b": 1, "a": [True, False, None, -(2**63) + 1, '\x00\x1f\x7f\u2028/\\"']})
@example({"\ue000": 1, "\U0001f600": 2})
@example([2**63, 1.0, 1e21])
def test_the_quick_way_to_write_spells_as_the_other_one(value):
    parts: list[str] = []
    canonical_json._write(value, parts, JSON_DEPTH_MAX)
    assert canonical_bytes(value) == "".join(parts).encode()


@promise
@given(json_values)
def test_canonical_json_is_its_own_canonical_form(value):
    once = canonical_bytes(value)
    assert canonical_bytes(parse_strict(once)) == once


@promise
@given(json_values)
def test_neither_key_order_nor_white_space_nor_escapes_change_the_hash(value):
    assert canonical_bytes(reordered(value)) == canonical_bytes(value)
    for spelling in (json.dumps(value, indent=3), json.dumps(reordered(value), ensure_ascii=False)):
        assert request_hash(parse_strict(spelling.encode())) == request_hash(value)


@promise
@given(json_values)
def test_other_readers_understand_canonical_json_as_we_do(value):
    text = canonical_bytes(value)
    assert json.loads(text) == parse_strict(text)
    assert same(value, json.loads(text))


@promise
@given(exact_values, exact_values)
@example(True, 1)
@example([0], [False])
@example({"a": None}, {})
@example(2**53, 2**53 + 1)
@example("é", "e\u0301")
def test_different_values_never_share_a_spelling(left, right):
    assert (canonical_bytes(left) == canonical_bytes(right)) == same(left, right)


@promise
@given(st.integers(), st.integers())
def test_different_integers_never_share_a_spelling(left, right):
    assert (canonical_bytes(left) == canonical_bytes(right)) == (left == right)


@promise
@given(st.lists(json_text, unique=True))
def test_keys_are_sorted_by_utf16_code_units(keys):
    text = canonical_bytes(dict.fromkeys(keys, 0)).decode()
    written = [key for key, _ in json.loads(text, object_pairs_hook=list)]
    assert written == sorted(keys, key=lambda key: list(memoryview(key.encode("utf-16-le")).cast("H")))


@promise
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_spelled_with_the_digits_that_bring_it_back(value):
    text = canonical_bytes(value).decode()
    assert float(text) == value
    assert len(text.lstrip("-").partition("e")[0]) <= 25
    assert ("e" in text) == (value != 0 and not 1e-6 <= abs(value) < 1e21)
    assert math.copysign(1, value) == (-1 if text[0] == "-" else 1) or value == 0


@promise
@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:\\ud80 019eE.-+tn', max_size=40).map(str.encode))
def test_any_bytes_are_read_exactly_or_refused_by_name(data):
    try:
        value = parse_strict(data)
    except ArcoError:
        return
    assert same(value, json.loads(data))


@promise
@given(json_values, st.integers(0, 5))
def test_the_depth_limit_refuses_exactly_what_is_deeper(value, max_depth):
    text = canonical_bytes(value)
    if depth(value) > max_depth:
        with pytest.raises(TooLarge):
            parse_strict(text, max_depth=max_depth)
    else:
        assert same(value, parse_strict(text, max_depth=max_depth))


# --- partition keys

HOSTILE = ",=:%/\\ \n\0é2CcDn"
names = st.text(alphabet=HOSTILE, min_size=1, max_size=3) | st.text(min_size=1, max_size=6)
strings = (
    st.text(alphabet=HOSTILE, max_size=4)
    | st.text(max_size=8)
    | st.sampled_from(["", "null", "n:null", "true", "1", "-1", "2025-01-15", "x,b=s:y", "e\u0301", "é"])
)
offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# From the year 2 to the year 9998: at every offset the year stays within 1 to 9999.
instants = st.integers(-62_100_000_000_000_000, 253_300_000_000_000_000).map(lambda us: EPOCH + timedelta(microseconds=us))
timestamps = st.builds(datetime.astimezone, instants, offsets | st.just(UTC))
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2) | strings | st.dates() | timestamps
)
dimension_maps = st.dictionaries(names, scalars, max_size=5)
near_maps = st.dictionaries(
    st.text(alphabet="a,=", min_size=1, max_size=2),
    st.sampled_from([None, True, False, 0, 1, "", "1", "null", "true", "a", ",", "=", "a,a=s:", "%2C", "é"]),
    max_size=2,
)


def identity(dimensions: dict[str, Any]) -> frozenset[Any]:
    """What makes two keys the same, said without any encoding."""
    return frozenset((name, type(value), value) for name, value in dimensions.items())


@promise
@given(dimension_maps)
def test_a_partition_key_reads_back_as_the_same_key(dimensions):
    key = PartitionKey(dimensions)
    again = PartitionKey.parse(key.canonical())
    assert again == key
    assert again.canonical() == key.canonical()
    assert identity(dict(again)) == identity(dict(key)) == identity(dimensions)


@promise
@given(dimension_maps, dimension_maps)
def test_distinct_keys_never_share_an_encoding(left, right):
    same_spelling = PartitionKey(left).canonical() == PartitionKey(right).canonical()
    assert same_spelling == (identity(left) == identity(right))


@settings(max_examples=1500)
@given(near_maps, near_maps)
def test_keys_that_nearly_collide_never_share_an_encoding(left, right):
    one, other = PartitionKey(left), PartitionKey(right)
    same_key = identity(left) == identity(right)
    assert (one.canonical() == other.canonical()) == same_key
    assert (one == other) == same_key
    assert len({one, other}) == (1 if same_key else 2)


@promise
@given(dimension_maps)
def test_an_encoding_inside_a_string_is_only_a_string(dimensions):
    spelling = PartitionKey(dimensions).canonical()
    assume(len(spelling) < 1000)
    wrapped = PartitionKey({"a": spelling})
    assert dict(PartitionKey.parse(wrapped.canonical())) == {"a": spelling}
    assert wrapped.canonical() != spelling


@promise
@given(dimension_maps, st.randoms(use_true_random=False))
def test_the_order_of_input_never_shows(dimensions, random):
    shuffled = list(dimensions.items())
    random.shuffle(shuffled)
    key = PartitionKey(dict(shuffled))
    assert key.canonical() == PartitionKey(dimensions).canonical()
    assert [name for name, _ in key] == sorted(dimensions, key=lambda name: name.encode())


@promise
@given(timestamps, offsets)
def test_one_instant_has_one_encoding_at_every_offset(instant, offset):
    assert PartitionKey({"t": instant}) == PartitionKey({"t": instant.astimezone(offset)})


@promise
@given(dimension_maps)
def test_an_encoding_is_safe_in_a_log_line_and_a_header(dimensions):
    spelling = PartitionKey(dimensions).canonical()
    assert spelling.isascii()
    assert spelling.isprintable()
    assert " " not in spelling


@promise
@given(dimension_maps, st.data())
def test_a_changed_encoding_is_another_key_or_is_refused(dimensions, data):
    spelling = PartitionKey(dimensions).canonical()
    at = data.draw(st.integers(0, len(spelling)))
    piece = data.draw(st.sampled_from([*HOSTILE, "", "%2C", "%41", "a=", "s:", "0"]))
    cut = data.draw(st.integers(0, 3))
    changed = spelling[:at] + piece + spelling[at + cut :]
    try:
        key = PartitionKey.parse(changed)
    except InvalidInput:
        return
    assert key.canonical() == changed
    assert (key == PartitionKey(dimensions)) == (changed == spelling)
