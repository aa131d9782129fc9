"""Results: how measured numbers are judged, documents both ways, and totals over ranges."""

from dataclasses import replace

import pytest

from arco.kernel.errors import BrokenInvariant, InvalidInput
from arco.quality.builtin import fresh, function_check, not_null, row_count, schema_match, unique
from arco.quality.results import (
    CheckResult,
    complete,
    judged_count,
    judged_freshness,
    judged_rows,
    judged_schema,
    judged_verdict,
    total,
    unmeasured,
)
from arco.quality.schemas import Schema


def holds(rows):
    return bool(rows)


HOUR_MS = 3600 * 1000
NOW_MS = 1_750_000_000_000


def test_rows_pass_when_none_failed():
    good = judged_rows(not_null("a"), failed_rows=0, total_rows=10)
    bad = judged_rows(not_null("a"), failed_rows=3, total_rows=10, sample_rows=2)
    assert (good.passed, good.message, good.failed_rows, good.total_rows) == (True, "", 0, 10)
    assert (bad.passed, bad.message) == (False, "3 of 10 rows failed: expected no NULL in a")
    assert (bad.columns, bad.measured, bad.sample_rows, bad.sample_rows_max) == (("a",), 3, 2, 20)
    assert (bad.rows_set_aside, bad.quarantined_rows) == (False, 0)
    assert bad.fingerprint == not_null("a").fingerprint


def test_failed_rows_of_a_check_that_quarantines_are_set_aside():
    check = not_null("a", quarantine_rows=True)
    assert judged_rows(check, failed_rows=3, total_rows=10).rows_set_aside
    assert not judged_rows(check, failed_rows=0, total_rows=10).rows_set_aside


@pytest.mark.parametrize(
    ("bounds", "rows", "passed"),
    [
        ({"min": 1}, 0, False),
        ({"min": 1}, 1, True),
        ({"max": 5}, 5, True),
        ({"max": 5}, 6, False),
        ({"min": 2, "max": 3}, 1, False),
        ({"min": 2, "max": 3}, 2, True),
        ({"min": 0, "max": 0}, 0, True),
    ],
)
def test_both_bounds_of_a_count_belong_to_it(bounds, rows, passed):
    found = judged_count(row_count(**bounds), rows=rows)
    assert (found.passed, found.measured) == (passed, rows)
    assert bool(found.message) is not passed


@pytest.mark.parametrize(
    ("latest_ms", "passed"),
    [
        (NOW_MS, True),
        (NOW_MS - 6 * HOUR_MS, True),
        (NOW_MS - 6 * HOUR_MS - 1, False),
        (NOW_MS + HOUR_MS, True),
        (None, False),
    ],
)
def test_freshness_is_seen_from_the_logical_time_and_no_value_is_not_fresh(latest_ms, passed):
    found = judged_freshness(fresh("at", within="6h"), latest_ms=latest_ms, logical_time_ms=NOW_MS)
    assert found.passed is passed
    assert bool(found.message) is not passed
    assert found.measured == (None if latest_ms is None else (NOW_MS - latest_ms) / 1000)


@pytest.mark.parametrize(
    ("actual", "allow_extra", "wrong"),
    [
        ({"id": "long not null", "note": "string"}, False, []),
        ({"note": "string not null", "id": "long not null"}, False, []),
        ({"id": "long", "note": "string"}, False, ["id may be NULL"]),
        ({"id": "int not null", "note": "string"}, False, ["id is int, not long"]),
        ({"id": "long not null"}, False, ["note is missing"]),
        ({"id": "long not null", "note": "string", "x": "int"}, False, ["x is not expected"]),
        ({"id": "long not null", "note": "string", "x": "int"}, True, []),
    ],
)
def test_a_schema_matches_by_name(actual, allow_extra, wrong):
    check = schema_match({"id": "long not null", "note": "string"}, allow_extra=allow_extra)
    found = judged_schema(check, actual=Schema.of(actual))
    assert (found.passed, found.measured, found.message) == (not wrong, wrong, "; ".join(wrong))


@pytest.mark.parametrize(("verdict", "passed"), [(True, True), (False, False), (None, False)])
def test_a_verdict_that_is_null_is_a_failure(verdict, passed):
    found = judged_verdict(function_check(holds), verdict=verdict)
    assert found.passed is passed
    assert bool(found.message) is not passed


def test_what_was_not_measured_has_failed():
    checks = (not_null("a"), unique("a"))
    measured = (judged_rows(checks[0], failed_rows=0, total_rows=1),)
    found = complete(checks, measured)
    assert found == (*measured, unmeasured(checks[1], "there is no result"))
    assert not found[1].passed
    assert complete(checks, found) == found


def test_counts_that_cannot_be_are_refused():
    good = judged_rows(not_null("a"), failed_rows=1, total_rows=1)
    with pytest.raises(InvalidInput, match="more rows were quarantined than failed"):
        replace(good, quarantined_rows=2)
    with pytest.raises(InvalidInput, match="more rows failed than there are"):
        replace(good, failed_rows=2)


EXAMPLES = [
    judged_rows(not_null("a", severity="critical"), failed_rows=3, total_rows=10),
    judged_count(row_count(min=1), rows=0),
    judged_freshness(fresh("at", within="1h"), latest_ms=1, logical_time_ms=NOW_MS),
    judged_schema(schema_match({"a": "int"}), actual=Schema.of({"b": "int"})),
    replace(judged_verdict(function_check(holds), verdict=None), partitions="date:2025-01-01..2025-01-31"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_a_result_is_read_back_as_it_was_written(example):
    assert CheckResult.from_document(example.document()) == example
    assert CheckResult.from_document({**example.document(), "added_later": 1}) == example


@pytest.mark.parametrize(
    "spoil", [{"severity": "bad"}, {"passed": "yes"}, {"failed_rows": "3"}, {"columns": "a"}, {"check": None}]
)
def test_a_document_that_is_no_result_is_refused(spoil):
    with pytest.raises(InvalidInput, match="not a check result"):
        CheckResult.from_document({**EXAMPLES[0].document(), **spoil})


def test_a_document_without_its_verdict_is_refused():
    document = EXAMPLES[0].document()
    del document["passed"]
    with pytest.raises(InvalidInput, match="passed"):
        CheckResult.from_document(document)


def test_a_total_passes_where_every_range_passes():
    check = not_null("a", quarantine_rows=True)
    ranges = [
        replace(judged_rows(check, failed_rows=failed, total_rows=10, sample_rows=failed), partitions=name)
        for name, failed in (("jan", 0), ("feb", 2), ("mar", 1))
    ]
    found = total(ranges)
    assert (found.passed, found.failed_rows, found.total_rows, found.quarantined_rows) == (False, 3, 30, 3)
    assert found.message == "2 of 3 ranges failed; feb: 2 of 10 rows failed: expected no NULL in a"
    assert found.measured == {"ranges": 3, "ranges_failed": 2}
    assert (found.partitions, found.sample_rows, found.sample_rows_max) == (None, 3, 60)
    assert found.rows_set_aside
    assert total(ranges[:1]).passed


def test_a_count_that_is_not_known_stays_so_in_the_total():
    known = judged_count(row_count(min=0), rows=5)
    assert total([known, known]).total_rows == 10
    assert total([known, known]).failed_rows is None
    assert total([known, unmeasured(row_count(min=0), "no time")]).total_rows is None


def test_a_total_is_of_one_check():
    one, other = (judged_count(row_count(min=least), rows=5) for least in (1, 2))
    for results in ([], [one, other]):
        with pytest.raises(BrokenInvariant):
            total(results)
