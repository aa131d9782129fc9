"""One event of the ledger: a CloudEvents 1.0 envelope, read strictly and written in one spelling.

The version of an event's data is the end of its type (`iceberg.metrics_reported.v1`), not a `dataschema`. Readers choose by
the type before they look at the data, and an unknown version is set aside without parsing it; a schema's address would only
hide the same number in text that somebody has to host. New fields keep the version, any other change makes a new one.

Extension names are lower-case letters and digits, as CloudEvents wants them. Attributes that this version does not know are
kept and written again. What must never enter: what an event means (one module per domain, such as `iceberg_events.py`), and
where it is stored (`segment.py`).
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, Self

import msgspec

from arco.kernel.canonical_json import JsonValue, canonical_bytes, parse_strict
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.ids import CorrelationId, EventId, Identifier, StreamId, clip
from arco.kernel.limits import JSON_DEPTH_MAX, LEDGER_EVENT_BYTES_MAX
from arco.kernel.position import Position
from arco.kernel.scope import TenantName, WorkspaceName

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_INTEGER_MAX = 2**31 - 1
_EXTENSION_NAME = re.compile(r"[a-z0-9]{1,64}")
_MESSAGE_CHARS_MAX = 300


class EventType(Identifier):
    """What happened: the domain, a name in the past tense, and the version of the data."""

    __slots__ = ()
    what = "event type"
    pattern = re.compile(r"[a-z]{1,32}\.[a-z][a-z0-9_]{0,62}\.v[1-9][0-9]{0,3}")
    form = "domain.name.vN in lower case, such as iceberg.metrics_reported.v1"

    @property
    def domain(self) -> str:
        return self.partition(".")[0]


class EventSource(Identifier):
    """What the event comes from: a URI reference."""

    __slots__ = ()
    what = "event source"
    pattern = re.compile(r"[A-Za-z0-9._~:/?#@!$&'()*+,;=%\[\]-]{1,200}")
    form = "1 to 200 characters of a URI reference"


class EventTime(Identifier):
    """When it happened, in the one spelling of RFC 3339 that the ledger writes."""

    __slots__ = ()
    what = "event time"
    pattern = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
    form = "YYYY-MM-DDTHH:MM:SS.mmmZ"

    def __new__(cls, text: str) -> Self:
        time = super().__new__(cls, text)
        try:
            datetime.fromisoformat(time)
        except ValueError:
            raise InvalidInput(f"{text!r} is not a moment that exists") from None
        return time

    @classmethod
    def at(cls, at_ms: int) -> Self:
        try:
            moment = _EPOCH + timedelta(milliseconds=at_ms)
        except OverflowError:
            raise InvalidInput(f"the time {at_ms} ms lies outside the years 1 to 9999") from None
        # Spelled by the clock's own library, so there is nothing to check.
        return str.__new__(cls, f"{moment.isoformat(timespec='milliseconds')[:-6]}Z")

    @property
    def time_ms(self) -> int:
        return _time_ms(self)


@lru_cache(1024)
def _time_ms(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND


class Subject(Identifier):
    """What the event is about, within its source."""

    __slots__ = ()
    what = "subject"
    pattern = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,1024}")
    form = "1 to 1024 characters, none of them a control character"


class EventKey(Identifier):
    """The sender's own name for one event: sent again under the same key, it is the same event."""

    __slots__ = ()
    what = "idempotency key"


class StreamSequence(Identifier):
    """A place in a stream: text in CloudEvents, with leading zeros so that the order of text is that of numbers."""

    __slots__ = ()
    what = "sequence"
    pattern = re.compile(r"[0-9]{10}")
    form = "ten digits, with leading zeros"

    def __new__(cls, text: str) -> Self:
        sequence = super().__new__(cls, text)
        if int(sequence) > _INTEGER_MAX:
            raise InvalidInput(f"{text!r} is greater than any sequence", hint=f"at most {_INTEGER_MAX}")
        return sequence

    @classmethod
    def of(cls, number: int) -> Self:
        return cls(f"{number:010}")

    @property
    def number(self) -> int:
        return int(self)


class TraceParent(Identifier):
    """The trace that the event belongs to, as W3C Trace Context writes it."""

    __slots__ = ()
    what = "traceparent"
    pattern = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
    form = "version-trace-parent-flags in lower-case hexadecimal digits"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event. `extensions` holds the attributes that this version does not know."""

    id: EventId
    source: EventSource
    type: EventType
    specversion: Literal["1.0"]
    time: EventTime
    datacontenttype: Literal["application/json"]
    subject: Subject | None = None
    data: dict[str, Any]
    tenantid: TenantName
    workspaceid: WorkspaceName
    idempotencykey: EventKey | None = None
    streamid: StreamId | None = None
    sequence: StreamSequence | None = None
    correlationid: CorrelationId | None = None
    causationid: EventId | None = None
    position: Position
    traceparent: TraceParent | None = None
    extensions: dict[str, bool | int | str] = {}


ATTRIBUTES = frozenset(Event.__struct_fields__) - {"extensions"}
"""The attributes that this version knows, by the names they are written under."""


def read_attributes(attributes: dict[str, Any]) -> Event:
    """An event from its attributes by name. A null is an absence, as CloudEvents says; nothing is converted."""
    try:
        return Event(**{name: _READERS[name](value) for name, value in attributes.items()})
    except (KeyError, TypeError, InvalidInput):
        return _read_carefully(attributes)  # and say what is wrong with them


def _read_carefully(attributes: dict[str, Any]) -> Event:
    known = attributes
    if attributes.keys() - ATTRIBUTES or None in attributes.values():
        others = {name: value for name, value in attributes.items() if name not in ATTRIBUTES and value is not None}
        for name, value in others.items():
            _check_extension(name, value)
        known = {name: value for name, value in attributes.items() if name in ATTRIBUTES and value is not None}
        known["extensions"] = others
    try:
        return msgspec.convert(known, Event, dec_hook=identifier)
    except UnicodeEncodeError:
        raise InvalidInput(
            "not an event: a text in it holds a lone surrogate", hint="send text that is valid Unicode"
        ) from None
    except msgspec.ValidationError as error:
        raise InvalidInput(clip(f"not an event: {error}".replace("`", ""), _MESSAGE_CHARS_MAX)) from None


def encode(event: Event) -> bytes:
    """One line without its end. Equal events have equal bytes."""
    attributes = {name: getattr(event, name) for name in ATTRIBUTES}
    present: dict[str, JsonValue] = {name: value for name, value in attributes.items() if value is not None}
    line = canonical_bytes({**event.extensions, **present})
    if len(line) > LEDGER_EVENT_BYTES_MAX:
        raise TooLarge(f"event {event.id} has {len(line)} bytes", hint=f"an event has at most {LEDGER_EVENT_BYTES_MAX}")
    return line


def decode(line: bytes) -> Event:
    """The event of one line. Whatever two readers could understand differently is refused."""
    value = _parsed(line)
    if not isinstance(value, dict):
        raise InvalidInput("not an event: a JSON object is expected")
    return read_attributes(value)


_decoded, _encoded = msgspec.json.Decoder().decode, msgspec.json.Encoder(order="sorted").encode


def _parsed(line: bytes) -> JsonValue:
    """What `parse_strict` gives, sooner for a line in its one spelling, as every line is that was written here.

    A text that is the same when it is read and written again has one meaning: no key twice, no number that two readers round
    differently. Any other text, and one that could be too deep, is read strictly.
    """
    if len(line) <= LEDGER_EVENT_BYTES_MAX and line.count(b"{") + line.count(b"[") <= JSON_DEPTH_MAX:
        try:
            value: JsonValue = _decoded(line)
            if _encoded(value) == line:
                return value
        except (msgspec.MsgspecError, UnicodeError, OverflowError):
            pass  # the strict reader says what is wrong with it
    return parse_strict(line, max_bytes=LEDGER_EVENT_BYTES_MAX)


def _check_extension(name: str, value: object) -> None:
    if _EXTENSION_NAME.fullmatch(name) is None:
        raise InvalidInput(f"{clip(name)!r} is not the name of an attribute", hint="use lower-case letters and digits")
    if isinstance(value, bool | str):
        return
    if not isinstance(value, int) or not -_INTEGER_MAX - 1 <= value <= _INTEGER_MAX:
        raise InvalidInput(f"attribute {name} is no boolean, text or integer of 32 bits", hint="put it into the data")


def identifier(wanted: type, value: object) -> Any:
    """How msgspec reads identifiers: from text, by their own rules. One that is of the kind already was checked before."""
    if type(value) is wanted:
        return value
    if isinstance(value, str) and issubclass(wanted, Identifier):
        return wanted(value)
    raise TypeError(f"Expected `str`, got `{type(value).__name__}`")


_TEXTS = frozenset({str})


def _document(value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not _TEXTS.issuperset(map(type, value)):
        raise TypeError
    return {**value}


def _only(text: str) -> Callable[[Any], str]:
    def read(value: object) -> str:
        if value != text:
            raise TypeError
        return text

    return read


# How each attribute is read that is as it should be; whatever is not is read again, carefully. What many events of a segment have
# in common is looked at once.
_READERS: dict[str, Callable[[Any], Any]] = {
    "id": EventId,
    "source": lru_cache(256)(EventSource),
    "type": lru_cache(256)(EventType),
    "specversion": _only("1.0"),
    "time": lru_cache(1024)(EventTime),
    "datacontenttype": _only("application/json"),
    "subject": lru_cache(1024)(Subject),
    "data": _document,
    "tenantid": lru_cache(256)(TenantName),
    "workspaceid": lru_cache(256)(WorkspaceName),
    "idempotencykey": EventKey,
    "streamid": lru_cache(1024)(StreamId),
    "sequence": StreamSequence,
    "correlationid": lru_cache(1024)(CorrelationId),
    "causationid": EventId,
    "position": Position,
    "traceparent": TraceParent,
}
