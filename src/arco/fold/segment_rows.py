"""One segment to the rows of one head, and a report of what was in it: what every Spark task does, without Spark.

An event that cannot be folded is refused and kept with its line; a segment that is damaged is refused whole. Neither stops the
others. Ranges make few events many rows, so rows come in windows: how many there are is known after the first. What must never
enter: the store, and any memory of other segments.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from arco.fold.shredding import shred_for
from arco.fold.vocabulary import Row
from arco.fold.work import Refused
from arco.kernel.errors import CorruptObject, InvalidInput, UnknownFormat
from arco.ledger.envelope import encode
from arco.ledger.segment import decode_segment
from arco.storage.keys import ArchivedSegmentKey, Head, SegmentKey, parse

WINDOW_ROWS = 100_000


class SegmentReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment came to, as a task says it to the driver. `rows` are those of the window, `rows_in_all` of the segment.

    `missing`: it is no longer there.
    """

    segment: str
    missing: bool = False
    rows_in_all: int = 0
    writer_id: str | None = None
    writer_seq: int = 0
    events: int = 0
    rows: dict[str, int] = {}
    first_position: str | None = None
    last_position: str | None = None
    refused: tuple[Refused, ...] = ()


@dataclass(frozen=True, slots=True)
class Shredded:
    """The rows of a segment by the name of their table, and what is said of it."""

    rows: Mapping[str, list[Row]]
    report: SegmentReport


def shred_segment(head: Head, name: str, data: bytes, start: int = 0, rows_max: int = WINDOW_ROWS) -> Shredded:
    """The rows that a segment contributes to the tables of a head, from one of them on, and as many as the window has."""
    key = _segment_key(name)
    try:
        segment = decode_segment(key, data)
    except (CorruptObject, UnknownFormat) as error:
        unknown = isinstance(error, UnknownFormat)
        refused = Refused(segment=name, event_id=None, reason=error.message, line=b"", unknown=unknown)
        return Shredded({}, SegmentReport(segment=name, refused=(refused,)))
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    bad: list[Refused] = []
    passed = 0
    for event in segment.events:
        try:
            contributed = shred_for(head, event)
        except (InvalidInput, UnknownFormat) as error:
            unknown = isinstance(error, UnknownFormat)
            bad.append(
                Refused(segment=name, event_id=str(event.id), reason=error.message, line=encode(event), unknown=unknown)
            )
            continue
        for table, row in contributed[max(0, start - passed) : max(0, start + rows_max - passed)]:
            rows[table.name].append(row)
        passed += len(contributed)
    report = SegmentReport(
        segment=name,
        rows_in_all=passed,
        writer_id=str(segment.writer_id),
        writer_seq=segment.writer_seq,
        events=len(segment.events) - len(bad),
        rows={table: len(some) for table, some in rows.items()},
        first_position=str(segment.events[0].position),
        last_position=str(segment.events[-1].position),
        refused=tuple(bad),
    )
    return Shredded(rows, report)


def _segment_key(name: str) -> SegmentKey:
    """The key that a segment was written under: one that was moved aside keeps what it says of itself."""
    key = parse(name)
    if isinstance(key, SegmentKey):
        return key
    if isinstance(key, ArchivedSegmentKey):
        return SegmentKey(key.scope, key.domain, key.day, key.segment)
    raise InvalidInput(f"{name} is no segment of the ledger")
