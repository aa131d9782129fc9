"""Definitions of checks: what is accepted, what is refused with which words, names, documents and fingerprints."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from arco.kernel.errors import InvalidInput
from arco.quality.builtin import (
    accepted_values,
    column_check,
    duration_s,
    foreign_key,
    fresh,
    function_check,
    in_range,
    matches,
    not_null,
    row_count,
    schema_match,
    source_fingerprint,
    sql_check,
    unique,
)
from arco.quality.checks import Level, Severity, named
from arco.quality.gates import Action
from arco.quality.kinds import KINDS

LOCAL = datetime(2025, 1, 2, tzinfo=UTC).replace(tzinfo=None)


def late_share(rows):
    return rows is not None


ONE_OF_EACH = (
    row_count(min=1),
    not_null("order_id"),
    unique("order_id", "line"),
    in_range("amount", min=0),
    accepted_values("status", ["new", "paid"]),
    matches("email", r"[^@]+@[^@]+"),
    foreign_key("customer_id", to="customers"),
    fresh("updated_at", within="6h"),
    schema_match({"order_id": "long not null"}),
    sql_check("paid", "amount >= 0"),
    sql_check("open", query="SELECT * FROM {rows} WHERE open"),
    column_check(late_share, name="late"),
    function_check(late_share),
)


def test_there_is_a_constructor_for_every_kind():
    assert [type(check) for check in ONE_OF_EACH] == list(KINDS)


@pytest.mark.parametrize(
    ("check", "name", "level", "expected"),
    [
        (ONE_OF_EACH[0], "row_count", "aggregate", "rows >= 1"),
        (ONE_OF_EACH[1], "not_null(order_id)", "row", "no NULL in order_id"),
        (ONE_OF_EACH[2], "unique(order_id, line)", "relation", "(order_id, line) unique"),
        (ONE_OF_EACH[3], "in_range(amount)", "row", "amount >= 0"),
        (ONE_OF_EACH[4], "accepted_values(status)", "row", "status one of new, paid"),
        (ONE_OF_EACH[5], "matches(email)", "row", "email matches [^@]+@[^@]+"),
        (ONE_OF_EACH[6], "foreign_key(customer_id)", "relation", "(customer_id) in customers(customer_id)"),
        (ONE_OF_EACH[7], "fresh(updated_at)", "aggregate", "newest updated_at within 21600 s"),
        (ONE_OF_EACH[8], "schema_match", "schema", "order_id long"),
        (ONE_OF_EACH[9], "paid", "row", "amount >= 0"),
        (ONE_OF_EACH[10], "open", "relation", "no rows from SELECT * FROM {rows} WHERE open"),
        (ONE_OF_EACH[11], "late", "row", "late is true"),
        (ONE_OF_EACH[12], "late_share", "function", "late_share holds"),
        (in_range("a", min=1, max=2, inclusive=False, allow_null=True), "in_range(a)", "row", "a > 1 and a < 2 or NULL"),
        (
            accepted_values("a", range(12)),
            "accepted_values(a)",
            "row",
            "a one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",
        ),
    ],
)
def test_a_check_has_a_name_a_level_and_words_for_what_it_expects(check, name, level, expected):
    assert (check.name, check.level.value, check.expected) == (name, level, expected)
    assert check.severity is Severity.ERROR


def test_a_given_name_and_severity_win():
    check = unique("id", name="one row each", severity="warning")
    assert (check.name, check.severity) == ("one row each", Severity.WARNING)


@pytest.mark.parametrize("check", ONE_OF_EACH, ids=lambda check: check.kind)
def test_only_checks_with_a_verdict_for_each_row_can_quarantine(check):
    if check.level is Level.ROW:
        assert replace(check, quarantine_rows=True).describe()["quarantine_rows"] is True
    else:
        with pytest.raises(InvalidInput, match="quarantine_rows needs a verdict for each row"):
            replace(check, quarantine_rows=True)


REFUSED = {
    "no column": (not_null, "not_null names no column"),
    "a column that is no text": (lambda: unique(3), "3 is not a column name"),
    "an empty column": (lambda: not_null(" "), "' ' is not a column name"),
    "a column twice": (lambda: unique("a", "b", "a"), "column 'a' is named twice"),
    "a severity nobody knows": (lambda: not_null("a", severity="bad"), "'bad' is no severity"),
    "a name with a line break": (lambda: not_null("a", name="x\ny"), "is not a check name"),
    "a name too long": (lambda: not_null(*(f"column_{n}" for n in range(30))), "is not a check name"),
    "no bounds of rows": (row_count, "has neither min nor max"),
    "half a row": (lambda: row_count(min=1.5), "whole numbers of rows"),
    "true rows": (lambda: row_count(min=True), "whole numbers of rows"),
    "negative rows": (lambda: row_count(max=-1), "whole numbers of rows"),
    "rows the wrong way round": (lambda: row_count(min=2, max=1), "min 2 is above max 1"),
    "no bounds": (lambda: in_range("a"), "has neither min nor max"),
    "bounds the wrong way round": (lambda: in_range("a", min=2, max=1), "min 2 is above max 1"),
    "bounds of two types": (lambda: in_range("a", min=1, max="9"), "mixes numbers and text"),
    "a date and a time": (
        lambda: in_range("a", min=date(2025, 1, 1), max=LOCAL),
        "mixes dates and timestamps",
    ),
    "times with and without a zone": (
        lambda: in_range("a", min=LOCAL, max=datetime(2025, 1, 2, tzinfo=UTC)),
        "mixes timestamps and timestamps with a zone",
    ),
    "an infinite bound": (lambda: in_range("a", max=float("inf")), "cannot be compared with inf"),
    "a decimal that is no number": (lambda: in_range("a", max=Decimal("NaN")), "cannot be compared with Decimal"),
    "a range of booleans": (lambda: in_range("a", min=False), "true and false have no range"),
    "an empty range": (lambda: in_range("a", min=1, max=1, inclusive=False), "nothing lies between 1 and 1"),
    "no values": (lambda: accepted_values("a", []), "accepts no value at all"),
    "values in one text": (lambda: accepted_values("a", "new"), "are not a list"),
    "NULL among the values": (lambda: accepted_values("a", ["x", None]), "lists NULL"),
    "a value twice": (lambda: accepted_values("a", [1, 1.0]), "lists a value twice"),
    "values of two types": (lambda: accepted_values("a", [1, "1"]), "mixes numbers and text"),
    "a boolean among numbers": (lambda: accepted_values("a", [1, True]), "mixes numbers and true and false"),
    "a list as a value": (lambda: accepted_values("a", [["x"]]), "cannot be compared with"),
    "too many values": (lambda: accepted_values("a", range(10_001)), "over the limit of 10000"),
    "no expression": (lambda: matches("a", ""), "has no regular expression"),
    "an expression that is none": (lambda: matches("a", "(x"), "is not a regular expression: missing \\)"),
    "a named group as Python writes it": (lambda: matches("a", "(?P<year>[0-9]+)"), "is Python's syntax"),
    "no other asset": (lambda: foreign_key("a", to=""), "says not where the keys are"),
    "no asset name": (lambda: foreign_key("a", to="Customers"), "is not an asset name"),
    "more columns here than there": (lambda: foreign_key(["a", "b"], to="c", to_columns="x"), "compares 2 columns with 1"),
    "no duration": (lambda: fresh("a", within="soon"), "'soon' is not a duration"),
    "a duration without a unit": (lambda: fresh("a", within="6"), "'6' is not a duration"),
    "no time at all": (lambda: fresh("a", within="0h"), "nothing is fresh within 0 s"),
    "a schema without columns": (lambda: schema_match({}), "expects no columns"),
    "a type of another engine": (lambda: schema_match({"a": "bigint"}), "'bigint' is not a type"),
    "an empty predicate": (lambda: sql_check("a", "  "), "has no predicate"),
    "a query as a predicate": (lambda: sql_check("a", "SELECT 1"), "a query is not a predicate"),
    "both forms": (lambda: sql_check("a", "x > 0", query="SELECT * FROM {rows}"), "needs either a predicate or query="),
    "neither form": (lambda: sql_check("a"), "needs either a predicate or query="),
    "SQL without a name": (lambda: sql_check("", "x > 0"), "needs a name"),
    "a query of nothing": (lambda: sql_check("a", query="SELECT 1"), "the query reads nothing in braces"),
    "a query of another table": (lambda: sql_check("a", query="FROM {rows} JOIN {t}"), "the query reads t in braces"),
    "a query with a lone brace": (lambda: sql_check("a", query="FROM {rows} WHERE x = '{'"), "in the query"),
    "a lambda without a name": (lambda: function_check(lambda rows: True), "made of a lambda needs a name"),
    "a function without source": (lambda: function_check(len), "the source of .* cannot be read"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_told_when_it_is_written(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_two_checks_of_one_name_are_refused():
    assert list(named(ONE_OF_EACH)) == [check.name for check in ONE_OF_EACH]
    with pytest.raises(InvalidInput, match=r"there are two checks 'in_range\(a\)'"):
        named([in_range("a", min=0), in_range("a", max=9, severity="warning")])


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90s", 90), ("30m", 1800), ("6h", 21_600), ("1d 12h", 129_600), ("2w", 1_209_600), (timedelta(hours=1), 3600)],
)
def test_durations(written, seconds):
    assert duration_s(written) == seconds


def test_the_document_of_a_check():
    assert in_range("amount", min=Decimal("0.50"), max=9, severity="critical", quarantine_rows=True).describe() == {
        "name": "in_range(amount)",
        "kind": "in_range",
        "level": "row",
        "severity": "critical",
        "columns": ["amount"],
        "quarantine_rows": True,
        "rule": {"allow_null": False, "min": {"decimal": "0.50"}, "max": 9, "inclusive": True},
    }


def test_a_function_is_in_the_document_by_the_fingerprint_of_its_source():
    assert ONE_OF_EACH[12].describe()["rule"] == {"code": source_fingerprint(late_share)}
    assert function_check(len, code="abc").describe()["rule"] == {"code": "abc"}


def test_the_fingerprint_of_a_check_is_the_same_for_ever():
    pinned = "4d5ad27c628b3828ead88664e941b2b4f644be16fe24a4276b639ae3a198bdb9"
    assert not_null("order_id").fingerprint == pinned


DIFFERENT = [
    *ONE_OF_EACH,
    not_null("order_id", severity="warning"),
    not_null("order_id", quarantine_rows=True),
    not_null("order", "_id"),
    in_range("amount", max=0),
    in_range("amount", min="0"),
    in_range("amount", min=Decimal(0)),
    in_range("amount", min=0, inclusive=False),
    in_range("amount", min=0, allow_null=True),
    in_range("amount", min=date(2025, 1, 2)),
    in_range("amount", min=LOCAL),
    in_range("amount", min=datetime(2025, 1, 2, tzinfo=UTC)),
    schema_match({"order_id": "long"}),
    schema_match({"order_id": "long not null"}, allow_extra=True),
]


def test_different_checks_have_different_fingerprints():
    assert len({check.fingerprint for check in DIFFERENT}) == len(DIFFERENT)


def test_what_means_the_same_has_the_same_fingerprint():
    assert accepted_values("a", {"x", "y"}) == accepted_values("a", ["y", "x"])
    moment = datetime(2025, 1, 1, 12, tzinfo=UTC)
    elsewhere = moment.astimezone(timezone(timedelta(hours=2)))
    assert in_range("a", min=moment).fingerprint == in_range("a", min=elsewhere).fingerprint
    assert foreign_key("a", to="b").fingerprint == foreign_key(["a"], to="b", to_columns=["a"]).fingerprint


def test_a_pattern_is_for_the_whole_text():
    assert matches("a", "x|y").whole == r"\A(?:x|y)\z"
    assert matches("a", r"\p{L}+(?<rest>.*)").regex == r"\p{L}+(?<rest>.*)"


def test_severities_and_actions_are_ordered_by_rank_and_not_with_each_other():
    assert max(Severity) is Severity.CRITICAL
    assert Severity.INFO < Severity.WARNING <= Severity.WARNING < Severity.ERROR < Severity.CRITICAL
    with pytest.raises(TypeError):
        _ = Severity.INFO < Action.WARN
