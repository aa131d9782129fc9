# SPDX-License-Identifier: Apache-2.0
"""What each run of the kit is known to give, test by test, and where a run differs from it.

A file has one line for every test that does not pass, and one for the number of those that do:

    # why these fail
    failed RESTCompatibilityKitCatalogTests testLoadTable
    skipped RESTCompatibilityKitCatalogTests testNamespaceWithSlash
    passed 145
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.kit import PASSED, Case

FOLDER = Path(__file__).with_name("expected")


@dataclass(frozen=True, slots=True)
class Expected:
    passed: int
    others: dict[tuple[str, str], str]  # the outcome of each test that does not pass, by class and name


def read(name: str) -> Expected:
    lines = [line.split("#")[0].split(maxsplit=2) for line in (FOLDER / f"{name}.txt").read_text().splitlines()]
    ((_, passed),) = [words for words in lines if words[:1] == [PASSED]]
    others = {(words[1], words[2].strip()): words[0] for words in lines if len(words) == 3}
    return Expected(int(passed), others)


def surprises(cases: Sequence[Case], expected: Expected) -> Iterator[str]:
    """A line for each way in which a run is not what was expected: better is a surprise, too."""
    for case in cases:
        known = expected.others.get((case.class_name, case.name), PASSED)
        if case.outcome != known:
            yield f"{case.class_name} {case.name} {case.outcome}, expected {known}{f': {case.message}' if case.message else ''}"
    ran = {(case.class_name, case.name) for case in cases}
    for class_name, name in sorted(set(expected.others) - ran):
        yield f"{class_name} {name} was not there"
    passed = sum(case.outcome == PASSED for case in cases)
    if passed != expected.passed:
        yield f"passed {passed}, expected {expected.passed}"
