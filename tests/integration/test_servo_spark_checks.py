"""Checks on real rows: every kind, where they pass, fail, meet NULL or break; and every way of measuring says the same."""

import math
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from arco.kernel.errors import Unavailable
from arco.quality.builtin import (
    accepted_values,
    column_check,
    foreign_key,
    fresh,
    function_check,
    in_range,
    matches,
    not_null,
    row_count,
    schema_match,
    sql_check,
    unique,
)
from arco.quality.checks import Check, Severity
from arco.quality.results import CheckResult
from arco.servo.execute.data_files import Written
from arco.servo.execute.output_schema import with_new_ids
from arco.servo.execute.proved import proved
from arco.servo.execute.spark_checks import measure
from arco.servo.execute.spark_failures import is_cancelled
from arco.servo.execute.spark_guard import WATCHED_ROWS_MAX, Guard, is_worth_watching
from arco.servo.execute.spark_observe import observed
from arco.servo.execute.spark_read import open_files
from arco.servo.execute.spark_session import Session
from arco.servo.execute.spark_types import iceberg_schema, spark_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

NOON_MS = 1_735_732_800_000  # 2025-01-01 12:00 UTC
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
SCHEMA = """id long, amount double, small float, price decimal(9,2), status string, at timestamp, wall timestamp_ntz, day date,
    flag boolean, inner struct<deep: int>, `a.b` int"""


def orders(session: Session) -> DataFrame:
    """Four rows: two that are right, one with a NaN and values out of range, one of nothing but NULL."""
    rows: list[Any] = [
        (1, 1.5, 0.1, Decimal("1.50"), "new", NOON, datetime(2025, 1, 1), date(2025, 1, 1), True, (1,), 1),  # noqa: DTZ001
        (2, 9.5, 0.2, Decimal("9.50"), "paid", NOON, datetime(2025, 1, 2), date(2025, 1, 1), False, (2,), 1),  # noqa: DTZ001
        (2, math.nan, 0.3, Decimal("-1.00"), "ne", NOON, datetime(2025, 2, 1), date(2024, 1, 1), None, (None,), 2),  # noqa: DTZ001
        (None,) * 11,
    ]
    return session.spark.createDataFrame(rows, SCHEMA)


def found(checks: Sequence[Check], rows: DataFrame, **more: Any) -> dict[str, CheckResult]:
    facts: dict[str, Any] = {"tables": {}, "logical_time_ms": NOON_MS} | more
    return {result.check: result for result in measure(checks, rows, **facts)}


def failed_rows(checks: Sequence[Check], rows: DataFrame, **more: Any) -> dict[str, int | None]:
    results = found(checks, rows, **more)
    assert all(one.passed == (one.failed_rows == 0) for one in results.values())
    return {name: one.failed_rows for name, one in results.items()}


# Row rules


ROW_RULES: list[tuple[Check, int]] = [
    (not_null("id", name="id"), 1),
    (not_null("id", "inner.deep", name="id and deep"), 2),
    (not_null("a.b", name="a name with a dot"), 1),
    (in_range("amount", min=0, name="no NaN above a bound"), 2),
    (in_range("amount", max=100, name="no NaN below a bound"), 2),
    (in_range("amount", min=0, max=1.5, name="a bound belongs to the range"), 3),
    (in_range("amount", min=0, max=1.5, inclusive=False, name="unless it is left out"), 4),
    (in_range("amount", min=0, allow_null=True, name="NULL is allowed, NaN is not"), 1),
    (in_range("small", max=0.1, name="a float is compared as a float"), 3),
    (in_range("price", min=Decimal("1.50"), max=10, name="decimals"), 2),
    (in_range("id", min=-(2**70), max=2**70, name="bounds beyond a long"), 1),
    (in_range("day", min=date(2025, 1, 1), name="dates"), 2),
    (in_range("at", min=NOON, max=NOON, name="moments"), 1),
    (in_range("wall", max=datetime(2025, 1, 2), name="a wall clock is taken as it is"), 2),  # noqa: DTZ001
    (in_range("at", max=datetime(2025, 1, 1, 12), name="a moment by the clock of UTC"), 1),  # noqa: DTZ001
    (in_range("status", min="ne", max="new", name="text"), 2),
    (in_range("inner.deep", min=1, max=1, name="inside a struct"), 3),
    (accepted_values("status", ["new", "paid"], name="one of a list"), 2),
    (accepted_values("status", ["new", "paid"], allow_null=True, name="or NULL"), 1),
    (accepted_values("flag", [True], name="true"), 3),
    (accepted_values("small", [0.1, 0.2], name="one of some floats"), 2),
    (accepted_values("day", [date(2024, 1, 1), date(2025, 1, 1)], name="one of some days"), 1),
    (matches("status", "ne|paid", name="the whole text matches"), 2),
    (matches("status", "(n|e|w)+", allow_null=True, name="a group that is repeated"), 1),
    (sql_check("a predicate", "amount < 9 OR status = 'paid'"), 2),
    (sql_check("a predicate that is NULL", "NULL"), 4),
    (column_check(lambda: f.col("id") < 2, name="a Column", code="1"), 3),
    (column_check(lambda rows: rows["id"] >= 1, name="a Column of the rows", code="1"), 1),
]  # fmt: skip


def test_row_rules_count_the_rows_that_fail(session: Session) -> None:
    checks = [check for check, _ in ROW_RULES]
    assert failed_rows(checks, orders(session)) == {check.name: count for check, count in ROW_RULES}


def test_all_row_rules_and_aggregates_are_one_job(session: Session) -> None:
    rows = orders(session)
    with session.job("checks"):
        found([*(check for check, _ in ROW_RULES), row_count(min=1), fresh("at", within="1h")], rows)
    progress = session.progress("checks")
    assert progress is not None
    assert progress.stages_done <= 2  # the rows, and the sum of what their tasks counted


def test_no_rows_fail_no_row_rule(session: Session) -> None:
    results = found([check for check, _ in ROW_RULES], orders(session).where("id > 5"))
    assert {(one.passed, one.failed_rows, one.total_rows) for one in results.values()} == {(True, 0, 0)}


UNMEASURABLE: list[tuple[Check, str]] = [
    (not_null("nope"), "there is no column 'nope'"),
    (not_null("id.deep", name="deep"), "there is no column 'id.deep'"),
    (in_range("status", min=1), "column 'status' is string, which is not compared with 1"),
    (accepted_values("id", ["1"]), "column 'id' is bigint, which is not compared with '1'"),
    (matches("id", "[0-9]+"), "column 'id' is bigint, not text"),
    (matches("status", r"\p{Nope}", name="java"), "PatternSyntaxException"),
    (fresh("id", within="1h"), "column 'id' is bigint, neither a time nor a date"),
    (sql_check("no such column", "nope > 1"), "UNRESOLVED_COLUMN"),
    (sql_check("no verdict", "id"), "DATATYPE_MISMATCH"),
    (sql_check("no syntax", "id >"), "PARSE_SYNTAX_ERROR"),
    (sql_check("breaks on a row", "1 / (id - 2) > 0"), "DIVIDE_BY_ZERO"),
    (sql_check("no such table", query="SELECT 1 FROM {rows} JOIN nowhere"), "TABLE_OR_VIEW_NOT_FOUND"),
    (column_check(lambda: True, name="no column", code="1"), "returned bool, not a Column"),
    (column_check(lambda: 1 / 0, name="no answer", code="1"), "division by zero"),
    (function_check(lambda rows: "yes", name="no bool", code="1"), "returned str"),
    (function_check(lambda rows: rows.nope, name="no attribute", code="1"), "nope"),
    (foreign_key("id", to="default.nowhere"), "default.nowhere has no published version"),
    (unique("nope"), "there is no column 'nope'"),
]  # fmt: skip


def test_a_check_that_breaks_has_failed_with_its_reason_and_the_others_are_measured(session: Session) -> None:
    sound = [check for check, _ in ROW_RULES[:5]]
    results = found([*sound, *(check for check, _ in UNMEASURABLE)], orders(session))
    for check, reason in UNMEASURABLE:
        one = results[check.name]
        assert (one.passed, one.failed_rows) == (False, None)
        assert one.message.startswith("not measured: ")
        assert reason in one.message
        assert "\n" not in one.message
    assert [results[check.name].failed_rows for check in sound] == [count for _, count in ROW_RULES[:5]]


def test_results_come_in_the_order_of_the_checks(session: Session) -> None:
    checks = [unique("id"), not_null("id"), function_check(lambda rows: True, name="f", code="1"), row_count(min=1)]
    results = measure(checks, orders(session), tables={}, logical_time_ms=NOON_MS)
    assert [one.check for one in results] == [check.name for check in checks]


# Aggregates


def test_aggregates_are_judged_by_their_numbers(session: Session) -> None:
    rows = orders(session)
    checks = [
        row_count(min=4, max=4, name="four"),
        row_count(min=5, name="five"),
        fresh("at", within="1h", name="now"),
        fresh("day", within="12h", name="today began twelve hours ago"),
        fresh("day", within="11h", name="too old"),
        fresh("wall", within="1h", name="a time in the future is fresh"),
    ]
    results = found(checks, rows)
    assert [name for name, one in results.items() if not one.passed] == ["five", "too old"]
    assert results["today began twelve hours ago"].measured == 12 * 3600
    empty = found(checks, rows.where("id is null"))
    assert [name for name, one in empty.items() if one.passed] == []
    assert "has no value" in empty["now"].message


# Keys


def test_keys(session: Session) -> None:
    rows = orders(session)
    checks: list[tuple[Check, int]] = [
        (unique("id", name="id"), 2),  # one of the two, and the NULL
        (unique("id", allow_null=True, name="id or NULL"), 1),
        (unique("id", "status", name="two columns"), 1),
        (unique("inner.deep", name="inside a struct"), 2),
        (foreign_key("id", to="default.known", name="fk"), 3),
        (foreign_key("id", to="default.known", allow_null=True, name="fk or NULL"), 2),
        (foreign_key(["id", "status"], to="default.known", to_columns=["id", "word"], name="fk of two"), 3),
    ]
    known = session.spark.createDataFrame([(1, "new"), (1, "new"), (7, "x"), (None, "y")], "id long, word string")
    counts = failed_rows([check for check, _ in checks], rows, tables={"default.known": known})
    assert counts == {check.name: count for check, count in checks}
    nothing = found([check for check, _ in checks], rows.limit(0), tables={"default.known": known})
    assert all(one.passed and one.total_rows == 0 for one in nothing.values())


def test_a_key_column_may_be_called_like_a_count(session: Session) -> None:
    rows = session.spark.createDataFrame([(1, 1), (1, 2)], "n long, is_null long")
    assert failed_rows([unique("n"), unique("is_null")], rows) == {"unique(n)": 1, "unique(is_null)": 0}


# Schemas, queries, functions


def test_schemas_are_compared_without_a_job(session: Session) -> None:
    rows = orders(session).select("id", "price", "inner")
    full = {"id": "long", "price": "decimal(9, 2)"}
    checks = [
        schema_match(full, allow_extra=True, name="extra columns are allowed"),
        schema_match(full, name="extra columns are refused"),
        schema_match({"id": "int"}, allow_extra=True, name="another type"),
        schema_match({"id": "long not null"}, allow_extra=True, name="may be NULL"),
    ]
    with session.job("schemas"):
        results = found(checks, rows)
    progress = session.progress("schemas")
    assert progress is not None
    assert progress.jobs == 0
    assert [one.passed for one in results.values()] == [True, False, False, False]
    assert "id is long, not int" in results["another type"].message


def test_queries_return_the_rows_that_are_wrong(session: Session) -> None:
    checks = [
        sql_check("one a status", query="SELECT status FROM {rows} GROUP BY status HAVING count(*) > 1"),
        sql_check("ids", query="SELECT * FROM {rows} WHERE id IS NULL OR id = 2"),
        sql_check("more than there are", query="SELECT 1 FROM {rows} a CROSS JOIN {rows} b"),
    ]
    counts = failed_rows(checks, orders(session))
    assert counts == {"one a status": 0, "ids": 3, "more than there are": 16}


def test_functions_answer_with_a_bool_a_column_or_a_result(session: Session) -> None:
    def says(**more: Any) -> Callable[[DataFrame], CheckResult]:
        answer = {"check": "x", "kind": "x", "severity": Severity.WARNING, "passed": False, "failed_rows": 1} | more
        return lambda rows: CheckResult(**answer)

    checks = [
        function_check(lambda rows: rows.count() == 4, name="true", code="1"),
        function_check(lambda rows: False, name="false", code="1"),
        function_check(lambda rows: None, name="null", code="1"),
        function_check(lambda rows: f.col("id") > 1, name="column", code="1"),
        function_check(says(message="odd", quarantined_rows=1), name="result", code="1"),
    ]
    results = found(checks, orders(session))
    assert {name: one.passed for name, one in results.items()} == {
        "true": True, "false": False, "null": False, "column": False, "result": False,
    }  # fmt: skip
    assert results["column"].failed_rows == 2
    assert (results["result"].message, results["result"].severity) == ("odd", Severity.WARNING)
    assert results["result"].quarantined_rows == 0  # whatever it says, nothing was set aside


# In the pass that writes


def target(home: Lake, frame: DataFrame, spec: dict[str, Any] | None = None) -> Target:
    schema = with_new_ids(iceberg_schema(frame.schema))
    directory = f"{home.root}/out/{home.materialization()}"
    return Target(schema, directory, **({"spec": spec} if spec else {}))


def back(session: Session, where: Target, written: Written) -> DataFrame:
    """The output as it was written."""
    schema = spark_schema(where.schema)
    if not written.files:
        return session.spark.createDataFrame([], schema)
    return open_files(session.spark, schema, (one.file_path for one in written.files))


SAFE = [check for check, _ in ROW_RULES if check.kind not in {"sql", "column"} and "(n|e" not in check.expected]
AGGREGATES: list[Check] = [row_count(min=4), fresh("at", within="1h"), fresh("day", within="1d")]


def test_what_is_seen_in_the_pass_that_writes_is_what_is_counted_afterwards(session: Session, home: Lake) -> None:
    for rows in (orders(session), orders(session).where("id > 5"), orders(session).where("id is null")):
        checks = [*SAFE, *AGGREGATES]
        watched, take = observed(checks, rows, logical_time_ms=NOON_MS)
        where = target(home, rows)
        written = write(watched, where, home.io)
        seen = take(written.rows)
        assert seen is not None
        assert len(seen) == len(checks)
        assert seen == measure(checks, back(session, where, written), tables={}, logical_time_ms=NOON_MS)


def test_rows_are_counted_below_shuffles_and_sorts_of_the_writer(session: Session, home: Lake) -> None:
    rows = session.spark.range(1000).selectExpr("id", "id % 7 AS k", "if(id % 10 = 0, NULL, id) AS v", "array(id) AS list")
    for frame in (rows.drop("list"), rows):  # Spark's own writer, and Arrow's
        spec = {"spec-id": 0, "fields": [{"field-id": 1000, "source-id": 2, "name": "k", "transform": "identity"}]}
        where = target(home, frame, spec)
        watched, take = observed([not_null("v"), in_range("id", max=899)], frame, logical_time_ms=NOON_MS)
        written = write(watched, where, home.io)
        assert len(written.files) >= 7
        seen = take(written.rows)
        assert seen is not None
        assert [(one.failed_rows, one.total_rows) for one in seen] == [(100, 1000), (100, 1000)]


def test_checks_of_the_projects_own_code_never_stop_a_write(session: Session, home: Lake) -> None:
    rows = orders(session)
    checks: list[Check] = [sql_check("breaks", "1 / (id - 2) > 0"), matches("status", r"\p{Nope}"), not_null("id")]
    watched, take = observed(checks, rows, logical_time_ms=NOON_MS)
    assert write(watched, target(home, rows), home.io).rows == 4
    seen = take(4)
    assert seen is not None
    assert [one.check for one in seen] == ["not_null(id)"]


def failing_once(folder: Path, action: str = "") -> Callable[[Column], Column]:
    """A function of a row that fails the first time it is called in a test, after it did something."""
    mark = folder / "failed"

    def once(value: int) -> int:
        if not mark.exists():
            mark.touch()
            exec(action)
            raise ValueError("for once")
        return value

    return f.udf(once, "bigint")


def test_a_task_that_failed_once_is_counted_once(session: Session, home: Lake, tmp_path: Path) -> None:
    rows = session.spark.range(0, 1000, 1, 4)
    watched, take = observed([in_range("id", max=899)], rows, logical_time_ms=NOON_MS)
    broken = watched.select(failing_once(tmp_path)(f.col("id")).alias("id"))
    written = write(broken, target(home, rows), home.io)
    assert (tmp_path / "failed").exists()
    seen = take(written.rows)
    assert seen is not None
    assert (seen[0].failed_rows, seen[0].total_rows) == (100, 1000)


def test_a_stage_that_ran_twice_is_not_believed_and_counted_afterwards(
    session: Session, home: Lake, tmp_path: Path
) -> None:
    scratch = session.spark.sparkContext.getConf().get("spark.local.dir")
    lose = f"import glob, os\nfor one in glob.glob({scratch!r} + '/**/shuffle_*', recursive=True): os.remove(one)"
    rows = session.spark.range(1000)
    watched, take = observed([in_range("id", max=899)], rows, logical_time_ms=NOON_MS)
    shuffled = watched.repartition(2, "id").select(failing_once(tmp_path, lose)(f.col("id")).alias("id"))
    where = target(home, rows)
    written = write(shuffled, where, home.io)
    assert written.rows == 1000
    assert take(written.rows) is None  # Spark saw more rows than there are
    (result,) = measure([in_range("id", max=899)], back(session, where, written), tables={}, logical_time_ms=NOON_MS)
    assert (result.failed_rows, result.total_rows) == (100, 1000)


# From footers


def test_what_footers_prove_is_what_counting_finds(session: Session, home: Lake) -> None:
    for rows in (
        orders(session).where("id = 1"),
        orders(session),
        orders(session).where("id > 5"),
        orders(session).limit(2),
    ):
        where = target(home, rows)
        written = write(rows, where, home.io)
        checks = [*(check for check, _ in ROW_RULES), *AGGREGATES, not_null("id", "status", name="both")]
        known = proved(checks, written, where.schema, logical_time_ms=NOON_MS)
        counted = found(checks, back(session, where, written))
        assert len(known) >= 5
        assert {one.check: one for one in known} == {one.check: counted[one.check] for one in known}


def test_footers_prove_nothing_of_floats_or_of_what_is_out_of_range(session: Session, home: Lake) -> None:
    rows = orders(session)
    where = target(home, rows)
    written = write(rows, where, home.io)
    checks = [
        in_range("amount", min=0, allow_null=True),
        in_range("price", min=0, allow_null=True),
        accepted_values("status", ["new"]),
        not_null("id", "flag"),
    ]
    assert proved(checks, written, where.schema, logical_time_ms=NOON_MS) == ()


# All ways together


def random_check(chance: random.Random, number: int) -> Check:
    """A row rule or an aggregate with bounds that some rows are likely to miss."""
    name, allow_null = f"c{number}", chance.random() < 0.5
    low = chance.randint(-5, 3)
    high = low + chance.randint(0, 8)
    makers: list[Callable[[], Check]] = [
        lambda: not_null(*chance.sample(["i", "d", "x", "s", "at", "day"], chance.randint(1, 3)), name=name),
        lambda: in_range("i", min=low, max=high, allow_null=allow_null, inclusive=low == high, name=name),
        lambda: in_range("x", min=low, allow_null=allow_null, name=name),
        lambda: in_range("x", max=float(high), allow_null=allow_null, name=name),
        lambda: in_range("d", min=Decimal(low), max=high + 0.5, allow_null=allow_null, name=name),
        lambda: in_range("s", min=chance.choice("abc"), allow_null=allow_null, name=name),
        lambda: in_range("day", max=date(2025, 1, chance.randint(1, 9)), allow_null=allow_null, name=name),
        lambda: accepted_values("s", chance.sample(["a", "b", "c", "d"], 3), allow_null=allow_null, name=name),
        lambda: matches("s", chance.choice(["[a-c]", "a|b|c|d", "."]), allow_null=allow_null, name=name),
        lambda: sql_check(name, f"i > {low} OR s = 'a'"),
        lambda: row_count(min=chance.randint(0, 30), name=name),
        lambda: fresh(chance.choice(["at", "day"]), within=f"{chance.randint(1, 9)}d", name=name),
    ]
    return chance.choice(makers)()


def random_rows(chance: random.Random, session: Session) -> DataFrame:
    nulls = chance.choice([0.0, 0.2, 1.0])

    def or_null(value: Any) -> Any:
        return None if chance.random() < nulls else value

    rows = [
        (
            or_null(chance.randint(-5, 8)),
            or_null(chance.choice([math.nan, -0.0, math.inf, chance.uniform(-5, 8)])),
            or_null(Decimal(chance.randint(-500, 800)) / 100),
            or_null(chance.choice(["a", "b", "c", "d", ""])),
            or_null(datetime(2025, 1, chance.randint(1, 9), tzinfo=UTC)),
            or_null(date(2025, 1, chance.randint(1, 9))),
        )
        for _ in range(chance.choice([0, 1, 30]))
    ]
    return session.spark.createDataFrame(rows, "i int, x double, d decimal(9,2), s string, at timestamp, day date")


@pytest.mark.parametrize("seed", range(6))
def test_every_way_of_measuring_says_the_same(session: Session, home: Lake, seed: int) -> None:
    chance = random.Random(seed)
    rows = random_rows(chance, session)
    checks = [random_check(chance, number) for number in range(25)]
    where = target(home, rows)
    watched, take = observed(checks, rows, logical_time_ms=NOON_MS)
    guard = Guard(checks, where.schema, logical_time_ms=NOON_MS)
    written = write(guard.watch(watched), where, home.io)
    counted = found(checks, back(session, where, written))
    seen = take(written.rows)
    assert seen is not None
    assert {one.check: one for one in seen} == {one.check: counted[one.check] for one in seen}
    known = proved(checks, written, where.schema, logical_time_ms=NOON_MS)
    assert {one.check: one for one in known} == {one.check: counted[one.check] for one in known}
    assert guard.results(written, lambda: back(session, where, written)) == tuple(counted.values())


def test_rows_are_not_read_back_if_nothing_is_left_to_measure(session: Session, home: Lake) -> None:
    checks = [not_null("id"), in_range("amount", min=0), accepted_values("status", ["new"]), row_count(min=1)]
    rows = orders(session)
    where = target(home, rows)
    guard = Guard(checks, where.schema, logical_time_ms=NOON_MS)
    written = write(guard.watch(rows), where, home.io)

    def never() -> DataFrame:
        raise AssertionError("the rows were read back")

    assert [one.failed_rows for one in guard.results(written, never)] == [1, 2, 3, None]


def test_only_outputs_known_to_be_small_are_watched() -> None:
    assert is_worth_watching(1)
    assert is_worth_watching(WATCHED_ROWS_MAX)
    for rows in (None, 0, WATCHED_ROWS_MAX + 1):
        assert not is_worth_watching(rows)


def test_an_output_that_was_not_watched_is_measured_to_the_same_results(session: Session, home: Lake) -> None:
    checks = [*SAFE, *AGGREGATES]
    rows = orders(session)
    where = target(home, rows)
    written = write(rows, where, home.io)
    counted = found(checks, back(session, where, written))
    guard = Guard(checks, where.schema, logical_time_ms=NOON_MS)
    assert guard.results(written, lambda: back(session, where, written)) == tuple(counted.values())


def test_a_failure_that_may_pass_by_itself_is_no_verdict(session: Session) -> None:
    def unreachable(rows: DataFrame) -> bool:
        raise Unavailable("the store is not there")

    with pytest.raises(Unavailable):
        found([function_check(unreachable, name="f", code="1")], orders(session))


def test_a_check_whose_job_is_cancelled_is_no_verdict(session: Session) -> None:
    def slowly(value: int) -> int:
        time.sleep(0.2)
        return value

    def slow(rows: DataFrame) -> bool:
        return bool(session.spark.range(0, 300, 1, 300).select(f.udf(slowly, "bigint")("id")).collect())

    def work() -> None:
        with session.job("slow check"):
            found([function_check(slow, name="slow", code="1")], orders(session))

    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(work)
        while not (checking.done() or ((progress := session.progress("slow check")) and progress.tasks_done)):
            time.sleep(0.05)
        session.cancel("slow check")
        error = checking.exception()
    assert error is not None
    assert is_cancelled(error)
