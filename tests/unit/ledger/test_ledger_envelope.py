"""One event: what is written, what is read back, and what is refused."""

import json

import pytest

from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.limits import LEDGER_EVENT_BYTES_MAX
from arco.ledger.envelope import ATTRIBUTES, EventTime, EventType, StreamSequence, decode, encode, read_attributes

LEAST = {
    "id": "01K7A5V6M8YQ4Z3B2N1C0D9E8F",
    "source": "arco/iceberg-rest",
    "type": "iceberg.metrics_reported.v1",
    "specversion": "1.0",
    "time": "2025-10-11T09:08:07.065Z",
    "datacontenttype": "application/json",
    "data": {"a": 1},
    "tenantid": "acme",
    "workspaceid": "prod",
    "position": "01K7A5V6M800000000000000AB",
}
MOST = {
    **LEAST,
    "subject": "größe/日本",
    "idempotencykey": "run-7/task-3",
    "streamid": "run:01K7A5V6M8YQ4Z3B2N1C0D9E8F",
    "sequence": "0000000007",
    "correlationid": "01K7A5V6M8YQ4Z3B2N1C0D9E8F",
    "causationid": "01K7A5V2C6S2Q0R8T7V5W3X1Y9",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}


def line(attributes: dict) -> bytes:
    return json.dumps(attributes, ensure_ascii=False, separators=(",", ":")).encode()


def test_the_attributes_are_those_of_cloudevents_and_the_ledgers_own():
    assert set(MOST) == ATTRIBUTES
    assert all(name.isalnum() and name.islower() for name in ATTRIBUTES)


def test_an_event_is_one_line_with_its_attributes_in_order_and_nothing_that_is_absent():
    assert encode(decode(line(LEAST))) == (
        b'{"data":{"a":1},"datacontenttype":"application/json","id":"01K7A5V6M8YQ4Z3B2N1C0D9E8F",'
        b'"position":"01K7A5V6M800000000000000AB","source":"arco/iceberg-rest","specversion":"1.0",'
        b'"tenantid":"acme","time":"2025-10-11T09:08:07.065Z","type":"iceberg.metrics_reported.v1","workspaceid":"prod"}'
    )


@pytest.mark.parametrize("attributes", [LEAST, MOST], ids=["least", "most"])
def test_an_event_reads_back_as_it_was_written(attributes):
    event = decode(line(attributes))
    assert decode(encode(event)) == event
    assert json.loads(encode(event)) == attributes


def test_attributes_of_a_newer_version_are_kept_and_written_again():
    newer = {**LEAST, "dataschema": "https://example.org/a", "severity": 3, "replayed": True}
    event = decode(line(newer))
    assert event.extensions == {"dataschema": "https://example.org/a", "severity": 3, "replayed": True}
    assert json.loads(encode(event)) == newer


def test_an_attribute_named_like_a_field_of_ours_is_an_attribute():
    event = decode(line({**LEAST, "extensions": "mine"}))
    assert event.extensions == {"extensions": "mine"}
    assert json.loads(encode(event))["extensions"] == "mine"


def test_a_null_is_an_absence():
    assert decode(line({**LEAST, "subject": None, "severity": None})) == decode(line(LEAST))


def test_integers_in_the_data_keep_every_digit():
    huge = {"snapshot-id": 9_007_199_254_740_993, "more": 10**40}
    assert decode(encode(decode(line({**LEAST, "data": huge})))).data == huge


@pytest.mark.parametrize("name", sorted(LEAST))
def test_an_event_without_a_required_attribute_is_refused_by_its_name(name):
    with pytest.raises(InvalidInput, match=name):
        decode(line({key: value for key, value in LEAST.items() if key != name}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "01k7a5v6m8yq4z3b2n1c0d9e8f"),
        ("id", 7),
        ("source", ""),
        ("source", "two words"),
        ("source", "arco\u00e9"),
        ("type", "metrics_reported"),
        ("type", "iceberg.metrics_reported"),
        ("type", "iceberg.metrics_reported.v0"),
        ("type", "Iceberg.metrics_reported.v1"),
        ("type", "iceberg.metrics_reported.v1\n"),
        ("specversion", "0.3"),
        ("specversion", 1.0),
        ("time", "2025-10-11T09:08:07Z"),
        ("time", "2025-10-11T09:08:07.065+00:00"),
        ("time", "2025-02-30T09:08:07.065Z"),
        ("time", "2025-10-11T24:08:07.065Z"),
        ("time", 1760173687065),
        ("datacontenttype", "application/xml"),
        ("data", "text"),
        ("data", [1]),
        ("subject", ""),
        ("subject", "line\nline"),
        ("subject", "x" * 1025),
        ("tenantid", "Acme"),
        ("workspaceid", "../prod"),
        ("idempotencykey", "two words"),
        ("idempotencykey", "x" * 201),
        ("streamid", " run"),
        ("sequence", 7),
        ("sequence", "7"),
        ("sequence", "-000000007"),
        ("sequence", "9999999999"),
        ("correlationid", "a\u0000b"),
        ("causationid", "somebody"),
        ("position", "now"),
        ("traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        ("traceparent", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("data_base64", "aGVsbG8="),
        ("Severity", 3),
        ("tenant_id", "acme"),
        ("x" * 65, 1),
        ("severity", 1.5),
        ("severity", 2**31),
        ("severity", {"level": 3}),
        ("severity", [3]),
    ],
)
def test_a_value_that_means_nothing_is_refused_and_never_converted(name, value):
    with pytest.raises(InvalidInput):
        decode(line({**LEAST, name: value}))


@pytest.mark.parametrize("name", [*sorted(ATTRIBUTES - {"data"}), "severity\ud800"])
def test_a_lone_surrogate_of_a_caller_is_refused(name):
    with pytest.raises(InvalidInput):
        read_attributes({**LEAST, name: "\ud800"})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b'"event"',
        b"{",
        b"\xff\xfe",
        b'{"id":"a","id":"b"}',
        b'{"data":{"a":NaN}}',
        b'{"data":{"a":"\\ud800"}}',
        b"\xef\xbb\xbf{}",
    ],
)
def test_a_line_that_is_no_event_is_refused(text):
    with pytest.raises(InvalidInput):
        decode(text)


def test_a_long_refusal_is_cut_short():
    with pytest.raises(InvalidInput) as refusal:
        decode(line({**LEAST, "x" * 5000: 1}))
    assert len(refusal.value.message) < 400


def test_an_event_of_the_greatest_size_passes_and_one_byte_more_does_not():
    room = LEDGER_EVENT_BYTES_MAX - len(encode(decode(line({**LEAST, "data": {"a": ""}}))))
    largest = encode(decode(line({**LEAST, "data": {"a": "x" * room}})))
    assert len(largest) == LEDGER_EVENT_BYTES_MAX
    assert encode(decode(largest)) == largest
    with pytest.raises(TooLarge):
        decode(largest.replace(b'"a":"x', b'"a":"xx'))


def test_an_event_that_grew_past_the_limit_is_not_written():
    event = decode(line({**LEAST, "data": {"a": 1}}))
    event.data["a"] = "x" * LEDGER_EVENT_BYTES_MAX
    with pytest.raises(TooLarge):
        encode(event)


def test_data_nested_deeper_than_a_reader_takes_is_not_written():
    deep: dict = {}
    for _ in range(64):
        deep = {"a": deep}
    with pytest.raises(TooLarge):
        encode(decode(line(LEAST)).__class__(**{**_fields(decode(line(LEAST))), "data": deep}))


def _fields(event) -> dict:
    return {name: getattr(event, name) for name in event.__struct_fields__}


@pytest.mark.parametrize("at_ms", [0, 1, 999, 1_760_173_687_065, 253_402_300_799_999, -1, -62_135_596_800_000])
def test_a_time_reads_back_to_the_millisecond(at_ms):
    assert EventTime.at(at_ms).time_ms == at_ms


@pytest.mark.parametrize("at_ms", [253_402_300_800_000, -62_135_596_800_001, 10**30])
def test_a_time_outside_the_calendar_is_refused(at_ms):
    with pytest.raises(InvalidInput, match="years"):
        EventTime.at(at_ms)


def test_times_and_sequences_sort_as_text():
    assert EventTime.at(999) < EventTime.at(1000) < EventTime.at(10**12)
    assert StreamSequence.of(9) < StreamSequence.of(10) < StreamSequence.of(2**31 - 1)
    assert StreamSequence.of(10).number == 10


@pytest.mark.parametrize("number", [-1, 2**31, 10**10])
def test_a_sequence_outside_its_range_is_refused(number):
    with pytest.raises(InvalidInput):
        StreamSequence.of(number)


def test_a_type_names_its_domain():
    assert EventType("iceberg.metrics_reported.v1").domain == "iceberg"
