"""Numbers of segments: which of a writer's are known, and which are missing below the highest.

A writer gives number n + 1 only when n is stored, so a hole is a segment that was stored and is not there. What must never enter:
deciding that nothing is missing from a part of a listing; `folding.py` says what was looked at.
"""

from collections.abc import Iterable, Mapping, Sequence

from arco.fold.manifests import Gap

Ranges = tuple[tuple[int, int], ...]
"""Numbers, as ascending ranges that do not touch, both ends included."""


def ranges_of(numbers: Iterable[int]) -> Ranges:
    return united((((number, number),)) for number in numbers)


def united(several: Iterable[Sequence[Sequence[int]]]) -> Ranges:
    """All numbers of several sets of ranges."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((first, last) for ranges in several for first, last in ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def holes(ranges: Ranges) -> Ranges:
    """What is missing below the highest number."""
    starts = [1, *(last + 1 for _, last in ranges)]
    return tuple((start, first - 1) for start, (first, _) in zip(starts, ranges, strict=False) if start < first)


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
