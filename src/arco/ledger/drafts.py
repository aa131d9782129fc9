"""What a sender knows of an event before it is appended, and how it becomes one.

The failure this prevents (hazard 6), in order:
  1. a sender appends an event, and dies before it hears of it
  2. its successor looks whether the event is there, does not find it yet, and appends it again under a new id
  3. the first one arrives late: the event happened twice

So nobody looks. The sender's key and what the event says make its id: sent again, from whatever process, it is the same event,
and readers keep one of each id. The id covers the content as well as the key, so that a key used for two different events
cannot hide the second one behind the first. When and by what request it was sent (time, position, correlation, causation,
trace) is not part of it: that may differ each time it is sent, and the one with the first position counts.
"""

from typing import Any

import msgspec

from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import EventId, encode_ulid
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.envelope import ATTRIBUTES, Event, EventTime, EventType, StreamSequence, read_attributes


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An event to be appended.

    With an `id` or an `idempotencykey` it may be appended again after an outcome that stayed unknown; with neither it gets a
    new id each time.
    """

    type: EventType
    source: str
    data: dict[str, Any]
    subject: str | None = None
    id: EventId | None = None
    idempotencykey: str | None = None
    streamid: str | None = None
    sequence: int | None = None
    correlationid: str | None = None
    causationid: EventId | None = None
    traceparent: str | None = None
    time_ms: int | None = None
    extensions: dict[str, bool | int | str] = {}


def keyed_event_id(scope: Scope, draft: Draft) -> EventId:
    """The id of an event that has a key. It is a ULID in form only: its first characters say nothing of the time."""
    if draft.idempotencykey is None:
        raise InvalidInput("an event without a key has no id of its own", hint="give it an idempotency key")
    digest = fingerprint(
        "ledger event",
        scope.tenant,
        scope.workspace,
        draft.idempotencykey,
        draft.type,
        draft.source,
        draft.subject or "",
        draft.streamid or "",
        "" if draft.sequence is None else str(draft.sequence),
        canonical_bytes(draft.data),
        canonical_bytes(dict(draft.extensions)),
    )
    return EventId(encode_ulid(int(digest[:32], 16)))


def seal(draft: Draft, scope: Scope, *, fresh_id: EventId, position: Position, now_ms: int) -> Event:
    """The event of a draft: what the sender left open is filled in. `fresh_id` is used if it names none."""
    if draft.id is not None and draft.idempotencykey is not None:
        raise InvalidInput("an event has both an id and an idempotency key", hint="give one of them: the key makes the id")
    taken = sorted(ATTRIBUTES & draft.extensions.keys())
    if taken:
        raise InvalidInput(f"{taken[0]} is no extension", hint="give it by its own name")
    event_id = draft.id or fresh_id
    if draft.idempotencykey is not None:
        event_id = keyed_event_id(scope, draft)
    return read_attributes(
        {
            **draft.extensions,
            "id": event_id,
            "source": draft.source,
            "type": draft.type,
            "specversion": "1.0",
            "time": EventTime.at(now_ms if draft.time_ms is None else draft.time_ms),
            "datacontenttype": "application/json",
            "subject": draft.subject,
            "data": draft.data,
            "tenantid": scope.tenant,
            "workspaceid": scope.workspace,
            "idempotencykey": draft.idempotencykey,
            "streamid": draft.streamid,
            "sequence": None if draft.sequence is None else StreamSequence.of(draft.sequence),
            "correlationid": draft.correlationid,
            "causationid": draft.causationid,
            "position": position,
            "traceparent": draft.traceparent,
        }
    )
