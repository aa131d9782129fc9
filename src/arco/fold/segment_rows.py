"""One segment to the rows of one head, and a report of what was in it: what every task of the fold does, and fresh reads do.

An event that cannot be folded is refused and kept with its line; a segment that is damaged is refused whole. Neither stops the
others. Ranges make few events many rows, so rows are handed on event by event, and nobody has to hold those of a whole segment.
What must never enter: the store, and any memory of other segments.
"""

from collections.abc import Callable, Sequence

import msgspec

from arco.fold.contributions import Contribution
from arco.fold.shredding import shred_for
from arco.fold.work import Appended, Refused
from arco.kernel.errors import CorruptObject, InvalidInput, UnknownFormat
from arco.kernel.position import Position
from arco.ledger.envelope import Event, encode
from arco.ledger.payloads import SERVO
from arco.ledger.segment import decode_segment
from arco.storage.keys import ArchivedSegmentKey, Domain, Head, SegmentKey, parse


class SegmentReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment came to, as a task says it to the driver. One that is damaged has no writer."""

    segment: str
    writer_id: str | None = None
    writer_seq: int = 0
    events: int = 0
    first_position: str | None = None
    last_position: str | None = None
    refused: tuple[Refused, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def appended(self) -> Appended | None:
        """When it was told, and what of; None if nothing of it was folded."""
        if self.first_position is None or not self.types:
            return None
        return Appended(self.segment, Position(self.first_position).time_ms, self.types)


def shred_segment(head: Head, name: str, data: bytes, take: Callable[[Sequence[Contribution]], None]) -> SegmentReport:
    """Hand on the rows that a segment contributes to the tables of a head, event by event."""
    key = _segment_key(name)
    try:
        segment = decode_segment(key, data)
    except (CorruptObject, UnknownFormat) as error:
        unknown = isinstance(error, UnknownFormat)
        refused = Refused(segment=name, event_id=None, reason=error.message, line=b"", unknown=unknown)
        return SegmentReport(segment=name, refused=(refused,))
    bad: list[Refused] = []
    types: set[str] = set()
    for event in segment.events:
        try:
            contributed = shred_for(head, event)
        except (InvalidInput, UnknownFormat) as error:
            bad.append(_refused(name, event, error))
            continue
        types.add(str(event.type))
        take(contributed)
    return SegmentReport(
        segment=name,
        writer_id=str(segment.writer_id),
        writer_seq=segment.writer_seq,
        events=len(segment.events) - len(bad),
        first_position=str(segment.events[0].position),
        last_position=str(segment.events[-1].position),
        refused=tuple(bad),
        types=tuple(sorted(types)),
    )


def _refused(name: str, event: Event, error: InvalidInput | UnknownFormat) -> Refused:
    unknown = isinstance(error, UnknownFormat)
    # Of runs planning asks Servo alone. What others say of partitions by hand counts, if a newer Arco understands it.
    beside_plans = event.source != SERVO and (event.type.domain == Domain.EXECUTION or not unknown)
    reason, line = error.message, encode(event)
    return Refused(name, str(event.id), reason, line, unknown=unknown, beside_plans=beside_plans)


def _segment_key(name: str) -> SegmentKey:
    """The key that a segment was written under: one that was moved aside keeps what it says of itself."""
    key = parse(name)
    if isinstance(key, SegmentKey):
        return key
    if isinstance(key, ArchivedSegmentKey):
        return SegmentKey(key.scope, key.domain, key.day, key.segment)
    raise InvalidInput(f"{name} is no segment of the ledger")
