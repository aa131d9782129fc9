"""Every type of event: read and written alike, documented field by field, and never dropped when it is not known."""

import json
import re
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import jsonschema_rs
import msgspec
import pytest

from arco.kernel.ids import EventId, Identifier
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger import audit_events, catalog_events, execution_events, iceberg_events, lineage_events, quality_events
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import Event, EventType, decode, encode
from arco.ledger.event_types import EVENT_KINDS, Reason, SetAside, json_schemas, read_data, unknown_fields
from arco.ledger.payloads import Payload
from arco.storage.keys import Domain

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "formats" / "events.md").read_text()
MODULES = (audit_events, catalog_events, execution_events, iceberg_events, lineage_events, quality_events)
NAMES = sorted(EVENT_KINDS)


def event_of(kind: str, data: dict) -> Event:
    sealed = seal(
        Draft(type=EventType(kind), source="test", data=data),
        Scope.of(),
        fresh_id=EventId("01K7A5V6M8YQ4Z3B2N1C0D9E8F"),
        position=Position("01K7A5V6M800000000000000AB"),
        now_ms=1,
    )
    return decode(encode(sealed))


def section(heading: str) -> str:
    found = re.search(rf"^#+ `{re.escape(heading)}`$(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"{heading} has no section"
    return found[1]


def example(name: str) -> dict:
    (block,) = re.findall(r"```json\n(.*?)\n```", section(name), re.DOTALL)
    return json.loads(block)


def rows(heading: str) -> list[tuple[str, ...]]:
    table = re.findall(r"^\| (`.*) \|$", section(heading), re.MULTILINE)
    return [tuple(row.split(" | ")) for row in table]


# Structs in the words of the page


_SIMPLE = {int: "number", float: "number", str: "text", bool: "true or false", type(None): "null", Any: "anything"}


def type_text(kind: Any) -> str:
    if get_origin(kind) in {Union, UnionType}:
        return _either([word for one in get_args(kind) for word in type_words(one)])
    return _either(type_words(kind))


def type_words(kind: Any) -> list[str]:
    if kind in _SIMPLE:
        return [_SIMPLE[kind]]
    if get_origin(kind) is Literal:
        return [f"`{word}`" for word in get_args(kind)]
    if get_origin(kind) in {tuple, list}:
        return [f"list of {type_text(get_args(kind)[0])}"]
    if get_origin(kind) is dict:
        value = get_args(kind)[1]
        return ["object" if value is Any else f"object of {type_text(value)}"]
    if issubclass(kind, Identifier):
        return ["text"]
    return [f"`{kind.__name__}`"]


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def fields_of(struct: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """The fields of a struct as they are written, with their types in words."""
    hints = get_type_hints(struct)
    return [(f"`{one.encode_name}`", type_text(hints[one.name])) for one in msgspec.structs.fields(struct)]


def structs_of(kind: Any) -> set[type[msgspec.Struct]]:
    """All structs that a type is made of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {kind}.union(*(structs_of(hint) for hint in get_type_hints(kind).values()))
    return set().union(*(structs_of(one) for one in get_args(kind)))


# The registry


def test_every_type_that_a_module_names_is_registered() -> None:
    named = {value for module in MODULES for value in vars(module).values() if isinstance(value, EventType)}
    assert named == set(EVENT_KINDS)


def test_every_payload_that_a_module_has_is_registered() -> None:
    declared = {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Payload) and not value.__subclasses__()
    }
    assert declared <= {kind.payload for kind in EVENT_KINDS.values()}
    assert len({kind.payload for kind in EVENT_KINDS.values()}) == len(EVENT_KINDS)


def test_every_domain_of_the_ledger_has_types() -> None:
    assert {kind.domain for kind in EVENT_KINDS.values()} == set(Domain)


def test_others_may_not_say_what_only_arco_knows() -> None:
    closed = {kind.domain for kind in EVENT_KINDS.values()} - {kind.domain for kind in EVENT_KINDS.values() if kind.posted}
    assert closed == {Domain.CATALOG, Domain.AUDIT}
    assert not EVENT_KINDS["iceberg.table_committed.v1"].posted


# The page


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_documented_with_its_type_and_no_other(name: str) -> None:
    payload = EVENT_KINDS[name].payload
    assert [(row[0], row[1]) for row in rows(name)] == fields_of(payload)
    for struct in structs_of(payload) - {payload}:
        assert [(row[0], row[1]) for row in rows(struct.__name__)] == fields_of(struct), struct.__name__
    assert all(len(row) == 3 and row[2] for row in rows(name)), "every field has a meaning"


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_who_may_send_it(name: str) -> None:
    kind = EVENT_KINDS[name]
    assert section(name).strip().startswith(f"`{kind.payload.__name__}`{', open' if kind.posted else ''}.")


def test_the_page_has_no_type_that_is_not_there() -> None:
    headings = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
    assert sorted(headings) == NAMES
    assert set(re.findall(r"`((?:[a-z]+\.)[a-z_]+\.v\d+)`", PAGE)) == set(NAMES)


def test_every_reason_for_setting_aside_is_documented() -> None:
    assert [reason for reason in Reason if f"| `{reason.value}` |" not in PAGE] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_what_the_code_writes(name: str) -> None:
    read = read_data(event_of(name, example(name)))
    assert not isinstance(read, SetAside), read
    assert type(read) is EVENT_KINDS[name].payload
    assert json.loads(msgspec.json.encode(read, enc_hook=str)) == example(name)


# The schemas


@pytest.mark.parametrize("name", NAMES)
def test_the_example_fits_the_schema(name: str) -> None:
    jsonschema_rs.validator_for(json_schemas()[name]).validate(example(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_refuses_what_the_reader_refuses(name: str) -> None:
    schema = jsonschema_rs.validator_for(json_schemas()[name])
    for field in msgspec.structs.fields(EVENT_KINDS[name].payload):
        if not field.required:
            continue
        less = {key: value for key, value in example(name).items() if key != field.encode_name}
        refused = read_data(event_of(name, less))
        assert isinstance(refused, SetAside), field.encode_name
        assert refused.reason is Reason.INVALID_DATA
        assert f"`{field.encode_name}`".replace("`", "") in refused.message
        assert not schema.is_valid(less)


def test_schemas_can_be_stored_and_compared() -> None:
    assert json.loads(json.dumps(json_schemas())) == json_schemas()
    assert {schema["$id"] for schema in json_schemas().values()} == {f"urn:arco:event:{name}" for name in NAMES}


# What is not known


@pytest.mark.parametrize("name", NAMES)
def test_a_field_that_is_not_known_is_kept_and_does_not_disturb(name: str) -> None:
    event = event_of(name, {**example(name), "added later": {"by": ["somebody"]}})
    assert not isinstance(read_data(event), SetAside)
    assert unknown_fields(event) == {"added later": {"by": ["somebody"]}}
    assert decode(encode(event)).data["added later"] == {"by": ["somebody"]}


@pytest.mark.parametrize("name", NAMES)
def test_a_version_that_is_not_known_is_set_aside_whatever_it_says(name: str) -> None:
    newer = f"{name.rpartition('.')[0]}.v9"
    event = event_of(newer, {"anything": "at all"})
    aside = read_data(event)
    assert isinstance(aside, SetAside)
    assert (aside.event, aside.type, aside.reason) == (event.id, newer, Reason.UNKNOWN_VERSION)
    assert unknown_fields(event) == event.data


def test_a_type_that_is_not_known_is_set_aside() -> None:
    aside = read_data(event_of("quality.moon_risen.v1", {}))
    assert isinstance(aside, SetAside)
    assert aside.reason is Reason.UNKNOWN_TYPE
    assert "quality.moon_risen" in aside.message
