# SPDX-License-Identifier: Apache-2.0
"""A run of the kit that differs from its list is noticed, in every way in which it can differ."""

import re
from pathlib import Path

import pytest

from tests.conformance import expectations
from tests.conformance.kit import FAILED, PASSED, SKIPPED, TABLES, Case, read_reports
from tests.conformance.rck import MORE, RUNS
from tests.conformance.server import server_errors

EXPECTED = expectations.Expected(2, {(TABLES, "known"): FAILED, (TABLES, "off"): SKIPPED})
CASES = (
    Case(TABLES, "one", PASSED),
    Case(TABLES, "two", PASSED),
    Case(TABLES, "known", FAILED, "as ever"),
    Case(TABLES, "off", SKIPPED),
)


def surprises(*cases: Case) -> list[str]:
    return list(expectations.surprises(cases, EXPECTED))


def test_what_was_expected_is_no_surprise() -> None:
    assert surprises(*CASES) == []


@pytest.mark.parametrize(
    ("place", "instead", "said"),
    [
        (0, Case(TABLES, "one", FAILED, "409"), f"{TABLES} one failed, expected passed: 409"),
        (0, Case(TABLES, "one", SKIPPED), f"{TABLES} one skipped, expected passed"),
        (2, Case(TABLES, "known", PASSED), f"{TABLES} known passed, expected failed"),
        (3, Case(TABLES, "off", PASSED), f"{TABLES} off passed, expected skipped"),
        (2, Case(TABLES, "new", PASSED), f"{TABLES} known was not there"),
    ],
)
def test_each_difference_is_one(place: int, instead: Case, said: str) -> None:
    cases = list(CASES)
    cases[place] = instead
    assert said in surprises(*cases)


def test_a_test_that_vanished_is_missed_by_the_count() -> None:
    assert surprises(*CASES[1:]) == ["passed 1, expected 2"]


def test_every_run_has_its_list() -> None:
    assert {path.stem for path in expectations.FOLDER.iterdir()} == set(RUNS)


def test_the_lists_fit_each_other() -> None:
    folder, dots, s3 = (expectations.read(name) for name in ("folder", "dots", "s3"))
    assert {name for _, name in folder.others.keys() - dots.others.keys()} == {
        "testNamespaceWithDot",
        "testTableNameWithDot",
    }
    assert {words for words, outcome in s3.others.items() if outcome == SKIPPED} == set(dots.others)
    assert {expected.passed + len(expected.others) for expected in (folder, dots, s3)} == {157}
    # Whatever the kit skips is tried beside it.
    assert {name for _, name in dots.others} == {name for names in MORE.values() for name in names}


def test_reports_are_read_by_outcome(tmp_path: Path) -> None:
    (tmp_path / "TEST-a.xml").write_text(
        '<testsuite><testcase classname="x.A" name="one"/>'
        '<testcase classname="x.A" name="two"><skipped/></testcase>'
        '<testcase classname="x.A" name="three"><failure message="no&#10;more"/></testcase>'
        '<testcase classname="x.A" name=""><error>java.lang.Error: set-up</error></testcase></testsuite>'
    )
    assert read_reports(tmp_path) == [
        Case("A", "one", PASSED),
        Case("A", "two", SKIPPED),
        Case("A", "three", FAILED, "no"),
        Case("A", "(set-up)", FAILED, "java.lang.Error: set-up"),
    ]


@pytest.mark.parametrize("form", ["text", "json"])
def test_exceptions_of_the_server_are_counted(tmp_path: Path, form: str) -> None:
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 1\n    x()\nKeyError: 1'
    line = (
        traceback
        if form == "text"
        else '{"level":"error","error":"' + re.sub('"', r'\\"', traceback).replace("\n", "\\n") + '"}'
    )
    (tmp_path / "server.log").write_text(f"started\n{line}\nstopped\n{line}\n")
    assert server_errors(tmp_path) == ["KeyError: 1 (2 times)"]
