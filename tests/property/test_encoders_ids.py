"""Identifiers, positions, scopes and fingerprints over generated values: one spelling each, in order, never colliding."""

import uuid

from hypothesis import given, settings
from hypothesis import strategies as st

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.identity import dependency_fingerprint, edge_id, partition_id, task_id
from arco.kernel.ids import (
    AssetId,
    CodeVersionId,
    TransactionId,
    UlidSource,
    VersionId,
    decode_ulid,
    encode_ulid,
    new_uuid4,
    new_uuid7,
)
from arco.kernel.limits import POSITION_LEAD_MS_MAX
from arco.kernel.partition_key import PartitionKey
from arco.kernel.position import HybridClock, Position
from arco.kernel.scope import Scope
from stand_ins.hand_clock import ReadingsClock

promise = settings(max_examples=100)

ulid_numbers = st.integers(0, (1 << 128) - 1)
moments_ms = st.integers(0, (1 << 47) - 1)
seeds = st.integers(0, 1 << 32)
# Small texts over an alphabet of separators, so that two lists of fields are often nearly the same.
hostile_text = st.text(alphabet="a\0\x01,|:=/\\%é\u0301\U0001f600", max_size=4) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=8
)
field_lists = st.lists(hostile_text, max_size=4)
near_names = st.text(alphabet="aA0_-. /\\\n\0é", max_size=6) | st.from_regex(
    r"[a-z0-9]{0,3}[./][a-z0-9]{0,3}[./]?", fullmatch=True
)


class DrawnEntropy:
    """Bytes that hypothesis chooses, so that it can choose the worst."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def token_bytes(self, count: int) -> bytes:
        return self._data.draw(st.binary(min_size=count, max_size=count))

    def fraction(self) -> float:
        return self._data.draw(st.floats(0, 1, exclude_max=True))


# ULIDs


@promise
@given(ulid_numbers)
def test_a_ulid_reads_back_as_its_number(number):
    text = encode_ulid(number)
    assert len(text) == 26
    assert decode_ulid(text) == number
    assert AssetId(text).time_ms == number >> 80


@promise
@given(st.lists(ulid_numbers, min_size=2, max_size=6))
def test_ulids_sort_as_text_as_they_do_as_numbers(numbers):
    assert sorted(map(encode_ulid, numbers)) == [encode_ulid(number) for number in sorted(numbers)]


@promise
@given(ulid_numbers, st.integers(-2, 2))
def test_neighbouring_numbers_keep_their_order_as_text(number, step):
    other = min(max(number + step, 0), (1 << 128) - 1)
    assert (encode_ulid(number) < encode_ulid(other)) == (number < other)


@promise
@given(st.text(max_size=30) | st.text(alphabet="0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabil", min_size=26, max_size=26))
def test_text_is_a_ulid_only_in_its_one_spelling(text):
    try:
        number = decode_ulid(text)
    except InvalidInput:
        return
    assert encode_ulid(number) == text
    assert AssetId(text) == text


@promise
@given(st.lists(moments_ms | st.integers(-5, 5), min_size=2, max_size=12), st.data())
def test_ulids_of_one_process_grow_whatever_clock_and_randomness_do(readings, data):
    source = UlidSource(ReadingsClock(readings), DrawnEntropy(data))
    made = [source.next() for _ in readings]
    assert made == sorted(set(made))


# UUIDs


@promise
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_every_uuid7_is_valid_and_tells_its_time(at_ms, data):
    text = new_uuid7(ReadingsClock([at_ms]), DrawnEntropy(data))
    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant, str(parsed)) == (7, uuid.RFC_4122, text)
    assert TransactionId(text).time_ms == at_ms


@promise
@given(st.data())
def test_every_uuid4_is_valid(data):
    text = new_uuid4(DrawnEntropy(data))
    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant, str(parsed)) == (4, uuid.RFC_4122, text)


@promise
@given(st.integers(0, 10**10 - 1), st.integers(0, 10**10 - 1))
def test_version_numbers_have_one_spelling_each(one, other):
    assert int(VersionId.of(one)[2:]) == one
    assert (VersionId.of(one) == VersionId.of(other)) == (one == other)


# Positions


@promise
@given(st.lists(moments_ms, min_size=1, max_size=12), st.data())
def test_positions_grow_whatever_the_clock_does_and_whatever_is_seen(readings, data):
    hybrid = HybridClock(ReadingsClock(readings), DrawnEntropy(data))
    last = ""
    for reading in readings:
        if data.draw(st.booleans()):
            ahead = data.draw(st.integers(0, reading + POSITION_LEAD_MS_MAX))
            seen = Position(encode_ulid(ahead << 80 | data.draw(st.integers(0, (1 << 80) - 1))))
            try:
                hybrid.observe(seen)
            except InvalidInput:
                seen = Position("0" * 26)
            last = max(last, seen)
        made = hybrid.next()
        assert made > last
        last = made


# Fingerprints


@promise
@given(st.tuples(hostile_text, field_lists), st.tuples(hostile_text, field_lists))
def test_hazard_22_two_lists_of_fields_share_a_fingerprint_only_if_they_are_equal(one, other):
    assert (fingerprint(one[0], *one[1]) == fingerprint(other[0], *other[1])) == (one == other)


@promise
@given(hostile_text.filter(bool), st.data())
def test_hazard_22_cutting_one_text_elsewhere_gives_another_fingerprint(text, data):
    cuts = st.integers(0, len(text))
    one, other = data.draw(cuts), data.draw(cuts)
    same = fingerprint("p", text[:one], text[one:]) == fingerprint("p", text[:other], text[other:])
    assert same == (one == other)
    assert fingerprint("p", text) != fingerprint("p", text[:one], text[one:])


@promise
@given(ulid_numbers, ulid_numbers, hostile_text, hostile_text)
def test_derived_identifiers_are_equal_only_for_equal_inputs(one, other, text, another):
    a, b = AssetId(encode_ulid(one)), AssetId(encode_ulid(other))
    code = CodeVersionId("4f2a9c1")
    same_asset, same_text = a == b, text == another
    keys = PartitionKey.of(x=text), PartitionKey.of(x=another)
    assert (partition_id(a, keys[0]) == partition_id(b, keys[1])) == (same_asset and same_text)
    assert (task_id(a, text, code) == task_id(b, another, code)) == (same_asset and same_text)
    assert (edge_id(a, b, text) == edge_id(b, a, another)) == (same_asset and same_text)
    assert (dependency_fingerprint(a, b, text, another, "") == dependency_fingerprint(a, b, another, text, "")) == same_text


# Scopes and asset keys


@promise
@given(near_names)
def test_text_that_reads_as_a_scope_is_its_one_spelling(text):
    for parse, spell in ((Scope.parse_warehouse, "warehouse"), (Scope.parse_prefix, "prefix")):
        try:
            scope = parse(text)
        except InvalidInput:
            continue
        assert getattr(scope, spell) == text


@promise
@given(*[st.from_regex(r"[a-z0-9](?:[a-z0-9_-]{0,8}[a-z0-9])?", fullmatch=True)] * 2)
def test_every_scope_reads_back_from_both_spellings(tenant, workspace):
    scope = Scope.of(tenant, workspace)
    assert Scope.parse_warehouse(scope.warehouse) == Scope.parse_prefix(scope.prefix) == scope


@promise
@given(near_names)
def test_text_that_reads_as_an_asset_key_is_its_one_spelling(text):
    try:
        key = AssetKey.parse(text)
    except InvalidInput:
        return
    assert key.canonical() == text


@promise
@given(*[st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)] * 2)
def test_every_asset_key_reads_back(namespace, name):
    assert AssetKey.parse(f"{namespace}.{name}") == AssetKey(namespace, name)
