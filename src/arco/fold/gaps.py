"""Gaps that a manifest reports: segments that writers must have stored, and that no listing shows.

What must never enter: deciding that nothing is missing from a part of a listing; `folding.py` says what was looked at.
"""

from collections.abc import Iterable, Mapping

from arco.fold.manifests import Gap
from arco.ledger.segment_numbers import Ranges, holes


def gaps_of(writers: Mapping[str, Ranges]) -> list[Gap]:
    return [
        Gap(writer_id=writer, first=first, last=last)
        for writer in sorted(writers)
        for first, last in holes(writers[writer])
    ]


def still_open(gaps: Iterable[Gap], writers: Mapping[str, Ranges]) -> list[Gap]:
    """What is left of some gaps. None is added: a part of the segments cannot say that others are missing."""
    left = []
    for gap in gaps:
        for first, last in holes(writers.get(gap.writer_id, ())):
            low, high = max(first, gap.first), min(last, gap.last)
            if low <= high:
                left.append(Gap(writer_id=gap.writer_id, first=low, last=high))
    return left
