"""A segment: its bytes, and every way to damage it."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import CorruptObject, InvalidInput, TooLarge, UnknownFormat
from arco.kernel.ids import EventId, SegmentId, WriterId
from arco.kernel.limits import LEDGER_SEGMENT_BYTES_MAX, LEDGER_SEGMENT_EVENTS_MAX
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import EventType, encode
from arco.ledger.iceberg_events import MetricsReported
from arco.ledger.segment import decode_segment, encode_segment
from arco.storage.keys import Day, Domain, SegmentKey, parse

SCOPE = Scope.of("acme", "prod")
WRITER = WriterId("01K7A5V2C6S2Q0R8T7V5W3X1Y9")
KEY = SegmentKey(SCOPE, Domain.ICEBERG, Day("2025-10-11"), SegmentId("01K7A5V6M8YQ4Z3B2N1C0D9E8F"))
NAME = "acme/prod/_catalog/ledger/iceberg/2025-10-11/01K7A5V6M8YQ4Z3B2N1C0D9E8F.jsonl"


def event(number: int, *, scope: Scope = SCOPE, kind: str = "iceberg.metrics_reported.v1", data: dict | None = None):
    draft = Draft(type=EventType(kind), source="test", data=data or {"n": number})
    return seal(
        draft,
        scope,
        fresh_id=EventId(f"01K7A5V6M8000000000000{number:04}"),
        position=Position(f"01K7A5V6M8000000000000{number:04}"),
        now_ms=number,
    )


def segment(*numbers: int) -> bytes:
    return encode_segment(KEY, WRITER, 7, [encode(event(number)) for number in numbers])


def header_with(**fields) -> bytes:
    first, _, rest = segment(1, 2).partition(b"\n")
    header = {**json.loads(first), **fields}
    kept = {name: value for name, value in header.items() if value is not ...}
    return canonical_bytes(kept) + b"\n" + rest


def test_a_segment_reads_back_as_it_was_written():
    read = decode_segment(KEY, segment(1, 2, 3))
    assert (read.key, read.writer_id, read.writer_seq) == (KEY, WRITER, 7)
    assert read.events == (event(1), event(2), event(3))


def test_a_segment_is_a_header_and_one_line_for_each_event():
    lines = segment(1, 2).split(b"\n")
    assert lines[0] == (
        b'{"checksum":"' + json.loads(lines[0])["checksum"].encode() + b'","domain":"iceberg","events":2,'
        b'"format":"arco.ledger_segment","format_version":1,"segment":"01K7A5V6M8YQ4Z3B2N1C0D9E8F",'
        b'"writer_id":"01K7A5V2C6S2Q0R8T7V5W3X1Y9","writer_seq":7}'
    )
    assert lines[1:] == [encode(event(1)), encode(event(2)), b""]


def test_the_documented_example_is_a_segment():
    page = (Path(__file__).resolve().parents[3] / "docs" / "formats" / "ledger-segment.md").read_text()
    name = re.search(r"^`(default/\S+\.jsonl)`$", page, re.MULTILINE)
    example = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert name
    assert example
    key = parse(name[1])
    assert isinstance(key, SegmentKey)
    [reported] = decode_segment(key, example[1].encode()).events
    assert MetricsReported.of(reported).table == "orders"


def test_the_checksum_is_sha_256_over_length_prefixed_fields():
    first, _, body = segment(1, 2).partition(b"\n")
    fields = (b"ledger segment", KEY.segment.encode(), b"iceberg", WRITER.encode(), b"7", b"2", body)
    by_hand = hashlib.sha256(b"".join(len(field).to_bytes(8, "big") + field for field in fields))
    assert json.loads(first)["checksum"] == by_hand.hexdigest()


def test_text_with_line_breaks_of_every_kind_stays_on_its_line():
    text = "a\nb\rc\u2028d\u2029e\x85f\x0bg\x1ch"
    data = encode_segment(KEY, WRITER, 1, [encode(event(1, data={"text": text}))])
    assert data.count(b"\n") == 2
    assert b"\r" not in data
    assert decode_segment(KEY, data).events[0].data == {"text": text}


def test_a_segment_cut_off_at_any_byte_is_refused_with_its_name():
    whole = segment(1, 2)
    for end in range(len(whole)):
        with pytest.raises(CorruptObject, match=f"^{NAME} line [123]: "):
            decode_segment(KEY, whole[:end])


def test_a_segment_with_any_byte_changed_is_refused():
    whole = segment(1, 2)
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        with pytest.raises((CorruptObject, UnknownFormat), match=NAME):
            decode_segment(KEY, bytes(damaged))


@pytest.mark.parametrize(("line", "at"), [(2, 1), (3, 2), (4, 3)])
def test_a_line_that_is_no_event_is_named_by_its_number(line, at):
    lines = segment(1, 2, 3).split(b"\n")
    lines[at] = b'{"specversion":"1.0"}'
    with pytest.raises(CorruptObject, match=f"{NAME} line {line}: not an event"):
        decode_segment(KEY, b"\n".join(lines))


def test_lines_in_another_order_are_refused():
    with pytest.raises(CorruptObject, match="line 3: its position"):
        decode_segment(KEY, segment(2, 1))


def test_an_event_repeated_in_place_of_another_is_refused():
    lines = segment(1, 2).split(b"\n")
    with pytest.raises(CorruptObject, match="line 3: its position"):
        decode_segment(KEY, b"\n".join([lines[0], lines[1], lines[1], b""]))


def test_a_line_of_another_segment_in_place_of_one_of_ours_is_refused():
    ours, theirs = segment(1, 2).split(b"\n"), segment(1, 3).split(b"\n")
    with pytest.raises(CorruptObject, match="line 1: the checksum does not fit lines 1 to 3"):
        decode_segment(KEY, b"\n".join([*ours[:2], theirs[2], b""]))


@pytest.mark.parametrize(
    ("stranger", "complaint"),
    [
        (event(2, scope=Scope.of("other", "prod")), "line 3: it has an event of other/prod"),
        (event(2, scope=Scope.of("acme", "test")), "line 3: it has an event of acme/test"),
        (event(2, kind="audit.happened.v1"), "line 3: it has an event of another domain"),
    ],
    ids=["tenant", "workspace", "domain"],
)
def test_an_event_of_somebody_else_is_refused(stranger, complaint):
    data = encode_segment(KEY, WRITER, 1, [encode(event(1)), encode(stranger)])
    with pytest.raises(CorruptObject, match=complaint):
        decode_segment(KEY, data)


@pytest.mark.parametrize(
    "other",
    [
        SegmentKey(SCOPE, Domain.ICEBERG, KEY.day, SegmentId("01K7A5V6M8YQ4Z3B2N1C0D9E8G")),
        SegmentKey(SCOPE, Domain.AUDIT, KEY.day, KEY.segment),
    ],
    ids=["name", "domain"],
)
def test_a_segment_under_another_name_is_refused(other):
    with pytest.raises(CorruptObject, match="line 1: it belongs to segment"):
        decode_segment(other, segment(1))


@pytest.mark.parametrize(
    "fields",
    [
        {"format": "arco.lease"},
        {"format": ...},
        {"segment": 7},
        {"domain": "gossip"},
        {"writer_id": "me"},
        {"writer_seq": 0},
        {"writer_seq": 1.5},
        {"writer_seq": 2**63},
        {"writer_seq": 8},
        {"events": 0},
        {"events": 1},
        {"events": 3},
        {"events": "2"},
        {"checksum": "0" * 64},
        {"checksum": ...},
        {"surprise": 1},
        {"writer_id": "0" * 5000},
    ],
    ids=repr,
)
def test_a_header_that_does_not_fit_is_refused(fields):
    with pytest.raises(CorruptObject, match=NAME):
        decode_segment(KEY, header_with(**fields))


def test_a_header_spelled_differently_is_refused():
    with pytest.raises(CorruptObject, match="line 1: it is not spelled"):
        decode_segment(KEY, segment(1).replace(b",", b", ", 1))


@pytest.mark.parametrize("version", [2, 0, "1", None, ...])
def test_a_segment_of_a_newer_version_is_not_guessed_at(version):
    with pytest.raises(UnknownFormat, match=NAME):
        decode_segment(KEY, header_with(format_version=version))


def test_a_segment_holds_at_least_one_event_and_at_most_so_many():
    lines = [encode(event(1))]
    with pytest.raises(InvalidInput):
        encode_segment(KEY, WRITER, 1, [])
    with pytest.raises(TooLarge):
        encode_segment(KEY, WRITER, 1, lines * (LEDGER_SEGMENT_EVENTS_MAX + 1))
    with pytest.raises(TooLarge):
        encode_segment(KEY, WRITER, 1, [b"x" * LEDGER_SEGMENT_BYTES_MAX])
