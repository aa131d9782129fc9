"""A segment: one immutable object of 1 to N events, as JSON lines under a header line.

The header names the writer and the segment's number with it, counts the events, and carries a checksum over itself and all
lines. A writer's numbers are dense (`writer.py` says why), so a reader that has seen number 7 knows which of 1 to 6 it has not.
What must never enter: I/O, and repairing: a segment that is damaged in any place is refused whole, with its name and the line.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, TypeVar

import msgspec

from arco.kernel.canonical_json import JsonValue, canonical_bytes, parse_strict
from arco.kernel.errors import CorruptObject, InvalidInput, TooLarge, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import SegmentId, WriterId, clip
from arco.kernel.limits import LEDGER_SEGMENT_BYTES_MAX, LEDGER_SEGMENT_EVENTS_MAX
from arco.ledger.envelope import Event, decode, identifier
from arco.storage.keys import Domain, SegmentKey

FORMAT = "arco.ledger_segment"
FORMAT_VERSION = 1
_HEADER_BYTES_MAX = 4096

T = TypeVar("T")
_Number = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class _Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str
    format_version: int
    segment: SegmentId
    domain: Domain
    writer_id: WriterId
    writer_seq: _Number
    events: _Number
    checksum: str


@dataclass(frozen=True, slots=True)
class Segment:
    """What one object of the ledger says."""

    key: SegmentKey
    writer_id: WriterId
    writer_seq: int
    events: tuple[Event, ...]


def segment_sized(lines: Iterable[tuple[T, bytes]]) -> Iterator[list[tuple[T, bytes]]]:
    """Lines, each with what it is of, in groups that fit into one segment each; their order stays."""
    group: list[tuple[T, bytes]] = []
    size_bytes = 0
    for of, line in lines:
        if group and (len(group) >= LEDGER_SEGMENT_EVENTS_MAX or size_bytes + len(line) >= LEDGER_SEGMENT_BYTES_MAX):
            yield group
            group, size_bytes = [], 0
        group.append((of, line))
        size_bytes += len(line) + 1
    if group:
        yield group


def encode_segment(key: SegmentKey, writer_id: WriterId, writer_seq: int, lines: Sequence[bytes]) -> bytes:
    """The bytes of a segment, from events that are lines already."""
    if not lines:
        raise InvalidInput("a segment without events", hint="append at least one")
    if len(lines) > LEDGER_SEGMENT_EVENTS_MAX:
        raise TooLarge(f"{len(lines)} events in one segment", hint=f"at most {LEDGER_SEGMENT_EVENTS_MAX}")
    body = b"".join(line + b"\n" for line in lines)
    if len(body) > LEDGER_SEGMENT_BYTES_MAX:
        raise TooLarge(f"events of {len(body)} bytes in one segment", hint=f"at most {LEDGER_SEGMENT_BYTES_MAX}")
    header: dict[str, JsonValue] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "segment": key.segment,
        "domain": key.domain,
        "writer_id": writer_id,
        "writer_seq": writer_seq,
        "events": len(lines),
        "checksum": _checksum(key.segment, key.domain, writer_id, writer_seq, len(lines), body),
    }
    return canonical_bytes(header) + b"\n" + body


def decode_segment(key: SegmentKey, data: bytes) -> Segment:
    """The segment that an object holds, or CorruptObject with the object's name and the line."""
    first, end, body = data.partition(b"\n")
    header = _read_header(key, first, whole=bool(end))
    lines = body.split(b"\n")
    if lines.pop() != b"":
        raise _damaged(key, len(lines) + 2, "it is cut off")
    if len(lines) != header.events:
        raise _damaged(key, len(lines) + 1, f"the object ends after {len(lines)} of {header.events} events")
    events = tuple(_read_event(key, number, line) for number, line in enumerate(lines, start=2))
    _check_order(key, events)
    expected = _checksum(header.segment, header.domain, header.writer_id, header.writer_seq, header.events, body)
    if header.checksum != expected:
        raise _damaged(key, 1, f"the checksum does not fit lines 1 to {len(lines) + 1}")
    return Segment(key, header.writer_id, header.writer_seq, events)


def _checksum(segment: str, domain: str, writer_id: str, writer_seq: int, events: int, body: bytes) -> str:
    return fingerprint("ledger segment", segment, domain, writer_id, str(writer_seq), str(events), body)


def _read_header(key: SegmentKey, line: bytes, *, whole: bool) -> _Header:
    if not whole:
        raise _damaged(key, 1, "it is cut off")
    try:
        fields = parse_strict(line, max_bytes=_HEADER_BYTES_MAX)
        _check_format(key, fields)
        header = msgspec.convert(fields, _Header, dec_hook=identifier)
        respelled = canonical_bytes(fields) != line
    except msgspec.ValidationError as error:
        raise _damaged(key, 1, str(error).replace("`", "")) from None
    except (InvalidInput, TooLarge) as error:
        raise _damaged(key, 1, error.message) from None
    if respelled:
        # The checksum covers what the header says, and this covers how it says it: no byte is left to chance.
        raise _damaged(key, 1, "it is not spelled as it was written")
    if (header.segment, header.domain) != (key.segment, key.domain):
        raise _damaged(key, 1, f"it belongs to segment {header.segment} of {header.domain}")
    return header


def _check_format(key: SegmentKey, fields: JsonValue) -> None:
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise InvalidInput("it is not the header of a segment")
    if fields.get("format_version") != FORMAT_VERSION:
        raise UnknownFormat(f"{key} has format version {clip(str(fields.get('format_version')))}, not {FORMAT_VERSION}")


def _read_event(key: SegmentKey, number: int, line: bytes) -> Event:
    try:
        event = decode(line)
    except (InvalidInput, TooLarge) as error:
        raise _damaged(key, number, error.message) from None
    if event.type.domain != key.domain:
        raise _damaged(key, number, f"it has an event of another domain: {event.type}")
    if (event.tenantid, event.workspaceid) != (key.scope.tenant, key.scope.workspace):
        raise _damaged(key, number, f"it has an event of {event.tenantid}/{event.workspaceid}")
    return event


def _check_order(key: SegmentKey, events: tuple[Event, ...]) -> None:
    for number, (before, after) in enumerate(pairwise(events), start=3):
        if after.position <= before.position:
            raise _damaged(key, number, f"its position {after.position} does not follow {before.position}")


def _damaged(key: SegmentKey, line: int, reason: str) -> CorruptObject:
    return CorruptObject(f"{key} line {line}: {reason}")
