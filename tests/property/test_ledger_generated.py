"""Events and segments over generated values: exact round trips, and nothing damaged is ever read."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import ArcoError, CorruptObject, InvalidInput, TooLarge, UnknownFormat
from arco.kernel.ids import EventId, SegmentId, WriterId, encode_ulid
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, keyed_event_id, seal
from arco.ledger.envelope import ATTRIBUTES, Event, EventType, decode, encode
from arco.ledger.segment import decode_segment, encode_segment
from arco.storage.keys import Day, Domain, SegmentKey

many = settings(max_examples=100)

SCOPE = Scope.of("acme", "prod")
KEY = SegmentKey(SCOPE, Domain.ICEBERG, Day("2025-10-11"), SegmentId("01K7A5V6M8YQ4Z3B2N1C0D9E8F"))

ulids = st.integers(0, (1 << 128) - 1).map(encode_ulid)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# Doubles above 2^53 read back as the integers that their shortest digits name; that is canonical_json's own promise.
numbers = st.integers(-(10**30), 10**30) | st.floats(-(2.0**52), 2.0**52, allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=12,
)
given_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@+:-]{0,20}", fullmatch=True)
extensions = st.dictionaries(
    st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True).filter(lambda name: name not in ATTRIBUTES),
    st.booleans() | st.integers(-(2**31), 2**31 - 1) | text,
    max_size=3,
)
drafts = st.builds(
    Draft,
    type=st.sampled_from([EventType("iceberg.metrics_reported.v1"), EventType("iceberg.other_thing.v12")]),
    source=st.from_regex(r"[A-Za-z0-9._~:/-]{1,20}", fullmatch=True),
    data=st.dictionaries(text, values, max_size=4),
    subject=st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20),
    idempotencykey=st.none() | st.from_regex(r"[\x21-\x7e]{1,30}", fullmatch=True),
    streamid=st.none() | given_ids,
    sequence=st.none() | st.integers(0, 2**31 - 1),
    correlationid=st.none() | given_ids,
    causationid=st.none() | ulids.map(EventId),
    traceparent=st.none() | st.just("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    time_ms=st.none() | st.integers(-62_135_596_800_000, 253_402_300_799_999),
    extensions=extensions,
)


def event_of(draft: Draft, number: int = 1) -> Event:
    place = encode_ulid(number)
    return seal(draft, SCOPE, fresh_id=EventId(place), position=Position(place), now_ms=number)


events = st.builds(event_of, drafts)


@st.composite
def segments(draw: st.DrawFn) -> tuple[WriterId, int, list[Event]]:
    chosen = draw(st.lists(drafts, min_size=1, max_size=4))
    return (
        WriterId(draw(ulids)),
        draw(st.integers(1, 2**63 - 1)),
        [event_of(draft, number) for number, draft in enumerate(chosen, start=1)],
    )


@many
@given(events)
def test_an_event_reads_back_as_it_was_written(event):
    line = encode(event)
    assert b"\n" not in line
    assert decode(line) == event
    assert encode(decode(line)) == line


@many
@given(drafts, drafts)
def test_two_drafts_share_an_id_only_if_they_say_the_same_under_the_same_key(one, other):
    one, other = (msgspec.structs.replace(draft, idempotencykey=draft.idempotencykey or "k") for draft in (one, other))
    assert (keyed_event_id(SCOPE, one) == keyed_event_id(SCOPE, other)) == (_content(one) == _content(other))
    assert keyed_event_id(SCOPE, one) == event_of(one, 1).id == event_of(one, 2).id


def _content(draft: Draft) -> tuple:
    plain = (draft.idempotencykey, draft.type, draft.source, draft.subject, draft.streamid, draft.sequence)
    return (*plain, canonical_bytes(draft.data), canonical_bytes(draft.extensions))


@many
@given(segments())
def test_a_segment_reads_back_as_it_was_written(parts):
    writer, number, its = parts
    read = decode_segment(KEY, encode_segment(KEY, writer, number, [encode(event) for event in its]))
    assert (read.writer_id, read.writer_seq, list(read.events)) == (writer, number, its)


@settings(max_examples=200)
@given(segments(), st.data())
def test_a_segment_that_was_tampered_with_is_refused_with_its_name(parts, data):
    writer, number, its = parts
    whole = encode_segment(KEY, writer, number, [encode(event) for event in its])
    at = data.draw(st.integers(0, len(whole)))
    cut = data.draw(st.integers(0, 4))
    put = data.draw(st.binary(max_size=4) | st.sampled_from([b"\n", b"0", b'"', b",", b"}", b" ", b"{}\n", b"[[[["]))
    damaged = whole[:at] + put + whole[at + cut :]
    if damaged == whole:
        return
    with pytest.raises((CorruptObject, UnknownFormat), match=str(KEY)):
        decode_segment(KEY, damaged)


hostile_lines = st.one_of(
    st.binary(max_size=60),
    values.map(canonical_bytes),
    st.dictionaries(st.sampled_from(sorted(ATTRIBUTES)) | text, values, max_size=20).map(canonical_bytes),
    st.integers(1, 200).map(lambda depth: b'{"data":' + b"[" * depth),
)


@settings(max_examples=200)
@given(hostile_lines)
def test_a_hostile_line_is_refused_and_named_wherever_it_stands(line):
    with pytest.raises((InvalidInput, TooLarge)):
        decode(line)
    whole = encode_segment(KEY, WriterId(encode_ulid(1)), 1, [encode(event_of(_PLAIN)), line])
    with pytest.raises(CorruptObject, match=str(KEY)):
        decode_segment(KEY, whole)


@settings(max_examples=200)
@given(st.binary(max_size=200) | values.map(canonical_bytes))
def test_bytes_that_are_no_segment_are_refused_by_name(data):
    with pytest.raises(ArcoError, match=str(KEY)):
        decode_segment(KEY, data)


_PLAIN = Draft(type=EventType("iceberg.metrics_reported.v1"), source="test", data={})
