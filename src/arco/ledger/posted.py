"""Events of other systems, as they send them: CloudEvents 1.0, or our own drafts, which are the same without the ceremony.

Everything that could be understood in two ways is refused, with what is wrong. An event that has an id or a key may be sent
again: it stays one event. CloudEvents ids are any text; one that is no ULID becomes the key that the event's id is made of.
What must never enter: I/O, and what OpenLineage means (`openlineage.py`).
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import EventId, clip
from arco.kernel.limits import EVENT_LEAD_MS_MAX
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventKey, EventTime, EventType, identifier
from arco.ledger.event_types import EVENT_KINDS, EventKind
from arco.ledger.posted_values import check_values
from arco.storage.keys import Domain

_OWN_SOURCES = "arco/"
_TEXTS = frozenset(
    {"type", "source", "subject", "id", "idempotencykey", "streamid", "correlationid", "causationid", "traceparent", "time"}
)
_KNOWN = _TEXTS | {"specversion", "datacontenttype", "data", "sequence", "tenantid", "workspaceid", "time_ms"}
_NEVER = {
    "position": "the ledger gives positions",
    "data_base64": "the data is a JSON object in data",
}
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def posted_draft(value: object, scope: Scope, own_key: str | None = None) -> Draft:
    """The draft of an event that somebody sent. `own_key` names it if it has neither an id nor a key."""
    if not isinstance(value, dict):
        raise InvalidInput("an event is a JSON object")
    given: dict[str, Any] = {name: item for name, item in value.items() if item is not None}
    _check_attributes(given, scope)
    kind = _kind(given)
    _check_data(given, kind)
    event_id, key = _identity(given, own_key)
    at_ms = _time_ms(given)
    if kind.says_when and at_ms is None and (event_id or key):
        raise InvalidInput(
            "time is missing", hint=f"say when it happened: a {kind.name} that may be sent again has one time"
        )
    return Draft(
        type=kind.name,
        source=_source(given),
        data=given["data"],
        subject=given.get("subject"),
        id=event_id,
        idempotencykey=key,
        streamid=given.get("streamid"),
        sequence=_sequence(given.get("sequence")),
        correlationid=given.get("correlationid"),
        causationid=None if "causationid" not in given else EventId(given["causationid"]),
        traceparent=given.get("traceparent"),
        time_ms=at_ms,
        extensions={name: item for name, item in given.items() if name not in _KNOWN},
    )


def time_ms_of(text: str) -> int:
    """A moment of RFC 3339, in milliseconds. One without an offset is taken for UTC, which is what such senders mean."""
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise InvalidInput(f"{clip(text)!r} is not a moment that exists", hint="such as 2025-10-11T09:08:07Z") from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int((aware - _EPOCH).total_seconds() * 1000)


def refuse_times_ahead(drafts: Sequence[Draft], now_ms: int) -> Sequence[Draft]:
    """Drafts that others sent, if none says that it happened later than clocks may differ."""
    for draft in drafts:
        lead_ms = 0 if draft.time_ms is None else draft.time_ms - now_ms
        if lead_ms > EVENT_LEAD_MS_MAX:
            when = EventTime.at(draft.time_ms or 0)
            raise InvalidInput(
                f"time {when} lies {lead_ms // 1000} s ahead of this server's clock",
                hint=f"set the sender's clock: at most {EVENT_LEAD_MS_MAX // 1000} s are taken",
            )
    return drafts


def _check_attributes(given: dict[str, Any], scope: Scope) -> None:
    for name, reason in _NEVER.items():
        if name in given:
            raise InvalidInput(f"{name} cannot be sent", hint=reason)
    for name in sorted(_TEXTS & given.keys()):
        if not isinstance(given[name], str):
            raise InvalidInput(f"{name} is not text")
    if given.get("specversion", "1.0") != "1.0":
        raise InvalidInput("specversion is not 1.0")
    if given.get("datacontenttype", "application/json") != "application/json":
        raise InvalidInput("datacontenttype is not application/json")
    for name, own in (("tenantid", scope.tenant), ("workspaceid", scope.workspace)):
        if given.get(name, own) != own:
            raise InvalidInput(f"{name} is not {own}", hint="choose the workspace with ?warehouse=tenant/workspace")


def _kind(given: dict[str, Any]) -> EventKind:
    if "type" not in given:
        raise InvalidInput("type is missing")
    kind = EVENT_KINDS.get(EventType(given["type"]))
    if kind is None:
        raise InvalidInput(f"there is no event type {given['type']}", hint="docs/formats/events.md lists them")
    if not kind.posted:
        raise InvalidInput(f"{kind.name} is said by Arco alone", hint="docs/formats/events.md says which types are open")
    return kind


def _check_data(given: dict[str, Any], kind: EventKind) -> None:
    if not isinstance(given.get("data"), dict):
        raise InvalidInput("data is missing, or is not a JSON object")
    try:
        payload = msgspec.convert(given["data"], kind.payload, dec_hook=identifier)
    except msgspec.ValidationError as error:
        raise InvalidInput(clip(f"data: {error}".replace("`", ""), 300)) from None
    if kind.domain is Domain.EXECUTION:
        check_values(payload)


def _source(given: dict[str, Any]) -> str:
    source = str(given.get("source", ""))
    if not source:
        raise InvalidInput("source is missing", hint="say what system the event comes from")
    if source.lower().startswith(_OWN_SOURCES):
        raise InvalidInput(
            f"source {clip(source)!r} is Arco's own", hint=f"use one that does not begin with {_OWN_SOURCES}"
        )
    return source


def _identity(given: dict[str, Any], own_key: str | None) -> tuple[EventId | None, str | None]:
    """The event's own id, or the key that makes one."""
    key, said = given.get("idempotencykey"), given.get("id")
    if "specversion" in given and not said:
        raise InvalidInput("id is missing", hint="CloudEvents want one, unique within the source")
    if key is not None:
        return None, key
    if said is None:
        return None, own_key
    if EventId.pattern.fullmatch(said):
        return EventId(said), None
    return None, said if EventKey.pattern.fullmatch(said) else fingerprint("cloud event id", said)


def _sequence(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("sequence is neither a whole number nor its digits")
    return value


def _time_ms(given: dict[str, Any]) -> int | None:
    if "time_ms" in given:
        at_ms = given["time_ms"]
        if "time" in given or isinstance(at_ms, bool) or not isinstance(at_ms, int):
            raise InvalidInput("time_ms is not a whole number, or there is a time beside it")
        return at_ms
    if "time" not in given:
        return None
    if _RFC3339.fullmatch(given["time"]) is None:
        raise InvalidInput(f"time {clip(given['time'])!r} is not RFC 3339", hint="such as 2025-10-11T09:08:07Z")
    return time_ms_of(given["time"])
