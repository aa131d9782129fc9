"""What makes an event's id, and what a draft must not say."""

import msgspec
import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import EventId
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, keyed_event_id, seal
from arco.ledger.envelope import EventType

SCOPE = Scope.of("acme", "prod")
FRESH = EventId("01K7A5V6M8YQ4Z3B2N1C0D9E8F")
POSITION = Position("01K7A5V6M800000000000000AB")
KEYED = Draft(
    type=EventType("execution.happened.v1"), source="test", data={"a": 1, "b": [2.5, None]}, idempotencykey="key-1"
)


def sealed(draft: Draft, scope: Scope = SCOPE, position: Position = POSITION, now_ms: int = 1):
    return seal(draft, scope, fresh_id=FRESH, position=position, now_ms=now_ms)


def changed(**fields) -> Draft:
    return msgspec.structs.replace(KEYED, **fields)


def test_hazard_06_an_event_sent_again_under_its_key_has_the_same_id():
    later = Position("01K7A5V6M800000000000000ZZ")
    assert sealed(KEYED).id == sealed(KEYED, position=later, now_ms=10**12).id == keyed_event_id(SCOPE, KEYED)


def test_the_id_of_a_key_never_changes_between_releases():
    assert keyed_event_id(SCOPE, KEYED) == "6T98TVWXB7TQCMA1MXS0JJC31R"


@pytest.mark.parametrize(
    "circumstance",
    [
        {"time_ms": 5},
        {"correlationid": "request-2"},
        {"causationid": FRESH},
        {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
        {"data": {"b": [2.5, None], "a": 1.0}},
    ],
    ids=["time", "correlation", "causation", "trace", "spelling"],
)
def test_how_it_was_sent_is_not_part_of_what_it_is(circumstance):
    assert sealed(changed(**circumstance)).id == sealed(KEYED).id


@pytest.mark.parametrize(
    "content",
    [
        {"data": {"a": 2}},
        {"idempotencykey": "key-2"},
        {"type": EventType("execution.happened.v2")},
        {"source": "other"},
        {"subject": "s"},
        {"streamid": "s"},
        {"sequence": 0},
        {"extensions": {"severity": 1}},
    ],
    ids=lambda content: next(iter(content)),
)
def test_a_key_used_for_another_event_makes_another_id(content):
    assert sealed(changed(**content)).id != sealed(KEYED).id


def test_one_key_in_two_scopes_makes_two_ids():
    scopes = [SCOPE, Scope.of("acme", "test"), Scope.of("other", "prod"), Scope.of("acmep", "rod")]
    assert len({sealed(KEYED, scope).id for scope in scopes}) == 4


def test_an_event_without_a_key_gets_the_fresh_id_and_its_own_if_it_has_one():
    own = EventId("01K7A5V2C6S2Q0R8T7V5W3X1Y9")
    assert sealed(changed(idempotencykey=None)).id == FRESH
    assert sealed(changed(idempotencykey=None, id=own)).id == own
    with pytest.raises(InvalidInput, match="without a key"):
        keyed_event_id(SCOPE, changed(idempotencykey=None))


def test_an_event_has_an_id_or_a_key_but_not_both():
    with pytest.raises(InvalidInput, match="both"):
        sealed(changed(id=FRESH))


def test_what_the_sender_leaves_open_is_filled_in():
    event = sealed(KEYED, now_ms=1_760_173_687_065)
    assert event.time == "2025-10-11T09:08:07.065Z"
    assert (event.tenantid, event.workspaceid, event.position) == ("acme", "prod", POSITION)
    assert sealed(changed(time_ms=0)).time == "1970-01-01T00:00:00.000Z"
    assert sealed(changed(sequence=12)).sequence == "0000000012"


@pytest.mark.parametrize(
    "wrong",
    [
        {"extensions": {"position": "mine"}},
        {"extensions": {"id": "mine"}},
        {"extensions": {"Upper": 1}},
        {"extensions": {"level": 1.5}},
        {"source": "two words"},
        {"subject": ""},
        {"idempotencykey": ""},
        {"sequence": -1},
        {"traceparent": "trace"},
        {"data": {"a": float("nan")}},
        {"data": {"a": {1, 2}}},
        {"data": {1: 2}},
        {"data": {"a": "\ud800"}},
    ],
    ids=repr,
)
def test_a_draft_that_could_not_be_read_back_is_refused(wrong):
    with pytest.raises(InvalidInput):
        sealed(changed(**wrong))
