"""A line of the ledger is read alike, quickly or strictly: the same value, of the same types, or the same refusal."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from arco.kernel.canonical_json import canonical_bytes, parse_strict
from arco.kernel.errors import ArcoError
from arco.ledger.envelope import ATTRIBUTES, _parsed, _read_carefully, read_attributes

numbers = (
    st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from((2**63, 2**64, 1e21))
)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
pieces = st.sampled_from(
    [
        *'{}[]:,"\\',
        "null",
        "true",
        "1",
        "-0",
        "1.0",
        "1e5",
        "1E400",
        '"a"',
        '"\\u0061"',
        '"\\ud800"',
        "\ud800",
        "\x00",
        " ",
        "NaN",
    ]
)


def outcome(parse: object, line: object) -> tuple[object, str]:
    try:
        value = parse(line)  # type: ignore[operator]
    except ArcoError as error:
        return type(error), ""
    return "read", repr(value)


@settings(max_examples=300)
@given(values)
def test_values_in_their_one_spelling_are_read_as_the_strict_reader_reads_them(value: object) -> None:
    for line in (canonical_bytes(value), json.dumps(value).encode()):  # type: ignore[arg-type]
        assert outcome(_parsed, line) == outcome(parse_strict, line)


@settings(max_examples=300)
@given(st.lists(pieces, max_size=8).map("".join))
@example('{"a":1,"a":1}')
@example('{"a":1,"a":2}')
@example('{"b":1,"a":2}')
@example('"\\ud800"')
@example("[" * 65 + "]" * 65)
@example("18446744073709551616")
@example("1e999")
def test_whatever_is_no_such_line_is_refused_alike(text: str) -> None:
    line = text.encode("utf-8", "surrogatepass")
    assert outcome(_parsed, line) == outcome(parse_strict, line)


ULID = "01K7A5V6M8YQ4Z3B2N1C0D9E8F"
EVENT = {
    "id": ULID,
    "source": "arco/servo",
    "type": "execution.run_created.v1",
    "specversion": "1.0",
    "time": "2025-01-01T00:00:00.000Z",
    "datacontenttype": "application/json",
    "data": {"a": [1, {"b": None}]},
    "tenantid": "acme",
    "workspaceid": "prod",
    "position": ULID,
}
MORE = {
    "subject": "shop.orders",
    "idempotencykey": "k",
    "streamid": "s",
    "sequence": "0000000001",
    "correlationid": "c",
    "causationid": ULID,
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}
odd = values | st.sampled_from(("", "1.0", ULID, b"1", 1.0, {1: 2}, "2025-02-30T00:00:00.000Z"))


@settings(max_examples=300)
@given(
    st.sets(st.sampled_from(sorted(MORE))),
    st.dictionaries(st.sampled_from((*sorted(ATTRIBUTES), "extensions", "other", "Other")), odd, max_size=2),
    st.sets(st.sampled_from(sorted(EVENT)), max_size=1),
)
def test_attributes_are_read_alike_quickly_or_carefully(
    there: set[str], changed: dict[str, object], gone: set[str]
) -> None:
    whole = {**EVENT, **{name: MORE[name] for name in there}, **changed}
    attributes = {name: value for name, value in whole.items() if name not in gone}
    quick, careful = outcome(read_attributes, attributes), outcome(_read_carefully, attributes)
    assert quick == careful
    if not changed and not gone:
        assert quick[0] == "read"
