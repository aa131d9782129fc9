"""What every payload of an event has in common: a frozen struct, read tolerantly and written whole.

One struct a type of event, in one module a domain (`execution_events.py` and its siblings); `event_types.py` lists them all.
New fields get a default and keep the version; any other change is a new type beside the old one. What must never enter: what
one domain means, and reading state.
"""

from typing import Any, Self, TypeVar

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import EventId, clip, encode_ulid
from arco.ledger.drafts import Draft
from arco.ledger.envelope import Event, EventType, identifier

SERVO = "arco/servo"
"""The source of what Servo says. Nobody else may write under a source that begins with `arco/`."""

P = TypeVar("P", bound=msgspec.Struct)


def derived_event_id(at_ms: int, *about: str) -> str:
    """The id of an event that several processes may announce: the same for all of them, and known before it happens."""
    return str(EventId(encode_ulid(at_ms << 80 | int(fingerprint("event", *about)[:20], 16))))


def read_payload(event: Event, kind: type[P]) -> P:
    """What an event says, as a struct. Fields that the struct does not know are passed over; they stay in the event."""
    try:
        return msgspec.convert(event.data, kind, dec_hook=identifier)
    except msgspec.ValidationError as error:
        raise InvalidInput(clip(f"event {event.id}: {error}".replace("`", ""), 300)) from None


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """What an event says. Fields that a later version adds are passed over when it is read."""

    def data(self) -> dict[str, Any]:
        """As it is read back: lists where there are tuples, texts where there are ids."""
        decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self, enc_hook=str))
        return decoded

    def draft(self, kind: EventType, event_id: str, *, subject: str, run_id: str, sequence: int | None = None) -> Draft:
        """The event of this payload in a run, under an id that is known before anything is published."""
        return Draft(
            type=kind,
            source=SERVO,
            subject=subject,
            id=EventId(event_id),
            data=self.data(),
            streamid=run_id,
            sequence=sequence,
            correlationid=run_id,
        )

    @classmethod
    def of(cls, event: Event) -> Self:
        return read_payload(event, cls)
