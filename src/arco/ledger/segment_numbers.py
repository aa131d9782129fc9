"""Numbers of a writer's segments: which are known, and which are missing below the highest.

A writer gives number n + 1 only when n is stored, so a hole is a segment that was stored and is not there. Kept as ranges: a
writer may have given a million numbers, and lack one.
"""

from collections.abc import Iterable, Sequence

from arco.kernel.ids import WriterId

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


def gaps(seen: Iterable[tuple[WriterId, int]]) -> dict[WriterId, Ranges]:
    """What is missing of each writer that lacks something."""
    numbers: dict[WriterId, list[int]] = {}
    for writer, number in seen:
        numbers.setdefault(writer, []).append(number)
    missing = {writer: holes(ranges_of(numbers[writer])) for writer in sorted(numbers)}
    return {writer: ranges for writer, ranges in missing.items() if ranges}
