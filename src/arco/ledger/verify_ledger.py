"""The ledger, looked at again: every segment, where it was written and where it was moved aside, and the numbers of its writers.

A number that is missing below a writer's highest is a segment that was stored and is gone. Whoever writes meanwhile may be seen
with its next segment and without the one before; so what seems to be missing is looked for again, and counts if it still is. The
ledger is read before the archive: a segment is copied before it is taken away.
"""

from arco.ledger.segment import decode_segment
from arco.ledger.segment_numbers import Ranges, holes, united
from arco.storage.findings import Report
from arco.storage.keys import ArchivedSegmentKey, Domain, Key, SegmentKey
from arco.storage.looking import Judge, Look
from arco.storage.port import Object

_LOST = "restore it from a backup or a copy of the root; readers of the ledger have not seen its events"


async def verify_ledger(look: Look) -> None:
    """Every domain, one after the other."""
    for domain in Domain:
        numbers = _Numbers()
        if await _read(look, domain, numbers):
            look.report.note(
                f"gaps in the ledger of {domain.value} were not looked for: some of its segments cannot be read"
            )
        elif numbers.missing():
            await _look_again(look, domain, numbers)


async def _read(look: Look, domain: Domain, numbers: "_Numbers") -> int:
    """How many segments are damaged."""
    kinds: dict[type[Key], Judge] = {SegmentKey: numbers.take, ArchivedSegmentKey: numbers.take_archived}
    lying = await look.each("segment_unreadable", "segments", kinds, "ledger", domain.value, todo=_LOST)
    moved = await look.each("segment_unreadable", "archived_segments", kinds, "archive", domain.value, todo=_LOST)
    return lying + moved


async def _look_again(look: Look, domain: Domain, before: "_Numbers") -> None:
    """What was written before the first look had begun is seen by the second."""
    numbers = _Numbers()
    await _read(Look(look.store, look.scope, Report(), look.progress), domain, numbers)
    for writer, missing in before.missing().items():
        for first, last in _common(missing, numbers.missing().get(writer, ())):
            called = f"segment {first} is" if first == last else f"segments {first} to {last} are"
            what = f"{called} missing from the ledger of {domain.value}, of writer {writer}"
            look.report.find("segment_gap", f"{domain.value}/{writer}", what, _LOST)


class _Numbers:
    """The numbers that the segments of each writer have."""

    def __init__(self) -> None:
        self._seen: dict[str, Ranges] = {}

    def take(self, key: SegmentKey, found: Object) -> None:
        segment = decode_segment(key, found.data)
        number = segment.writer_seq
        self._seen[segment.writer_id] = united((self._seen.get(segment.writer_id, ()), ((number, number),)))

    def take_archived(self, key: ArchivedSegmentKey, found: Object) -> None:
        """A segment that was moved says what it said where it was written."""
        self.take(SegmentKey(key.scope, key.domain, key.day, key.segment), found)

    def missing(self) -> dict[str, Ranges]:
        lacking = {writer: holes(self._seen[writer]) for writer in sorted(self._seen)}
        return {writer: ranges for writer, ranges in lacking.items() if ranges}


def _common(some: Ranges, others: Ranges) -> Ranges:
    """The numbers that are in both."""
    both = ((max(one[0], other[0]), min(one[1], other[1])) for one in some for other in others)
    return tuple((first, last) for first, last in both if first <= last)
