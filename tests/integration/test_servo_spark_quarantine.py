"""Rows set aside: every row on exactly one side, with the rules it failed, whatever the rows are made of."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from arco.fold.spark_session import Session
from arco.kernel.errors import InvalidInput, Unavailable
from arco.quality.builtin import accepted_values, column_check, in_range, matches, not_null, row_count, sql_check
from arco.quality.checks import Check
from arco.quality.gates import STRICT, Action, decide
from arco.servo.execute.output_schema import with_new_ids
from arco.servo.execute.spark_quarantine import Split, Stamp, split
from arco.servo.execute.spark_types import has_untaggable, iceberg_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

STAMP = Stamp("run-1", "task-1", 1_735_732_800_123)
CHECKS: list[Check] = [
    not_null("id", quarantine_rows=True),
    in_range("amount", min=0, quarantine_rows=True),
    matches("status", "[a-z]+", quarantine_rows=True, name="status, in words"),
    sql_check("paid", "status <> 'paid' OR amount > 5", quarantine_rows=True),
    row_count(min=1),
]


@pytest.fixture
def rows(session: Session) -> DataFrame:
    data: list[Any] = [(1, 1.0, "new"), (2, math.nan, "new"), (None, -1.0, "2"), (4, 9.0, "paid"), (5, None, None)]
    return session.spark.createDataFrame(data, "id long, amount double, status string")


@pytest.fixture
def splitting() -> Iterator[Any]:
    done: list[Split] = []

    def splits(checks: Sequence[Check], rows: DataFrame) -> Split:
        done.append(split(checks, rows, STAMP))
        return done[-1]

    yield splits
    for one in done:
        one.release()


def ids(frame: DataFrame | None) -> list[Any]:
    assert frame is not None
    return sorted((row["id"] for row in frame.select("id").collect()), key=repr)


def test_each_row_is_on_one_side_with_the_rules_it_failed(rows: DataFrame, splitting: Any) -> None:
    both = splitting(CHECKS, rows)
    assert ids(both.good) == [1, 4]
    assert both.good.columns == rows.columns
    assert both.bad is not None
    rules = {row["id"]: row["arco_rules"] for row in both.bad.collect()}
    assert rules == {
        2: "in_range(amount)",
        None: "not_null(id), in_range(amount), status, in words",
        5: "in_range(amount), status, in words, paid",
    }
    row = both.bad.first()
    assert row is not None
    assert (row["arco_run_id"], row["arco_task_id"]) == ("run-1", "task-1")
    assert row["arco_at"].astimezone(UTC) == datetime(2025, 1, 1, 12, 0, 0, 123000, UTC)
    assert not has_untaggable(iceberg_schema(both.bad.schema))


def test_results_say_how_many_rows_were_set_aside_and_the_gate_only_warns(rows: DataFrame, splitting: Any) -> None:
    both = splitting(CHECKS, rows)
    counts = {one.check: (one.failed_rows, one.total_rows, one.quarantined_rows) for one in both.results}
    assert counts == {
        "not_null(id)": (1, 5, 1),
        "in_range(amount)": (3, 5, 3),
        "status, in words": (2, 5, 2),
        "paid": (1, 5, 1),
    }
    assert (both.rows, both.rows_aside) == (5, 3)
    assert decide(both.results, STRICT).action is Action.WARN


def test_without_such_checks_nothing_is_computed(session: Session, rows: DataFrame, splitting: Any) -> None:
    with session.job("nothing"):
        both = splitting([not_null("id")], rows)
    progress = session.progress("nothing")
    assert progress is not None
    assert progress.jobs == 0
    assert (both.good, both.bad, both.results) == (rows, None, ())


def test_where_no_row_fails_there_is_no_other_side(rows: DataFrame, splitting: Any) -> None:
    for some in (rows.where("id = 1"), rows.where("false")):
        both = splitting(CHECKS, some)
        assert both.bad is None
        assert both.good.count() == some.count() == both.rows
        assert all(one.passed for one in both.results)


@pytest.mark.parametrize("made", ["rand() < 0.5", "shuffle(array(true, false))[0]"])
def test_rows_that_come_out_differently_each_time_go_to_one_side(
    session: Session, home: Lake, splitting: Any, made: str
) -> None:
    surely_new = f.udf(lambda _: __import__("random").SystemRandom().random(), "double").asNondeterministic()
    rows = session.spark.range(0, 2000, 1, 4).select("id", surely_new("id").alias("dice"), f.expr(made).alias("coin"))
    assert ids(rows.where("dice < 0.5")) != ids(rows.where("dice < 0.5"))  # twice computed, twice different
    checks = [in_range("dice", min=0.5, quarantine_rows=True), sql_check("coin", "coin", quarantine_rows=True)]
    both = splitting(checks, rows)
    sides = [written(home, frame) for frame in (both.good, both.bad)]
    both.verify(*(one.count() for one in sides))
    assert sorted(ids(sides[0]) + ids(sides[1])) == list(range(2000))
    assert sides[0].where("dice < 0.5 OR NOT coin").count() == 0
    assert sides[1].where("dice >= 0.5 AND coin").count() == 0
    named = sides[1].selectExpr(
        "contains(arco_rules, 'in_range(dice)') = (dice < 0.5) AS a", "endswith(arco_rules, 'coin') = (NOT coin) AS b"
    )
    assert named.where("NOT a OR NOT b").count() == 0
    assert both.results[0].failed_rows == sides[1].where("dice < 0.5").count()


def test_a_verdict_that_is_a_matter_of_luck_is_given_once(session: Session, home: Lake, splitting: Any) -> None:
    luck = column_check(lambda: f.rand() < 0.5, name="luck", code="1", quarantine_rows=True)
    both = splitting([luck], session.spark.range(0, 2000, 1, 4))
    sides = [written(home, frame) for frame in (both.good, both.bad)]
    both.verify(*(one.count() for one in sides))
    assert sorted(ids(sides[0]) + ids(sides[1])) == list(range(2000))
    assert both.results[0].failed_rows == sides[1].count() > 0


def written(home: Lake, frame: DataFrame) -> DataFrame:
    """Written as an output is, and read again."""
    where = Target(with_new_ids(iceberg_schema(frame.schema)), f"{home.root}/out/{home.materialization()}")
    done = write(frame, where, home.io)
    return frame.sparkSession.read.parquet(*(one.file_path for one in done.files))


def test_a_check_that_breaks_sets_nothing_aside_and_has_failed(rows: DataFrame, splitting: Any) -> None:
    broken: list[Check] = [
        sql_check("breaks on a row", "1 / (id - 1) > 0", quarantine_rows=True),
        sql_check("does not fit", "nope", quarantine_rows=True),
        not_null("id", quarantine_rows=True),
    ]
    both = splitting(broken, rows)
    assert {one.check: (one.passed, one.quarantined_rows) for one in both.results} == {
        "breaks on a row": (False, 0),
        "does not fit": (False, 0),
        "not_null(id)": (False, 1),
    }
    assert ids(both.good) == [1, 2, 4, 5]
    assert decide(both.results, STRICT).action is Action.BLOCK_DOWNSTREAM
    assert splitting(broken[:2], rows).good.count() == 5


def test_rows_that_cannot_be_computed_are_no_failure_of_a_check(rows: DataFrame, splitting: Any) -> None:
    broken = rows.withColumn("status", f.expr("string(assert_true(id < 4))"))
    with pytest.raises(PySparkException, match="is not true"):
        splitting([accepted_values("status", ["new"], quarantine_rows=True)], broken)


def test_an_output_with_a_column_of_the_quarantine_is_refused(rows: DataFrame, splitting: Any) -> None:
    with pytest.raises(InvalidInput, match="arco_run_id"):
        splitting(CHECKS, rows.withColumn("ARCO_run_id", f.lit(1)))


def test_sides_that_do_not_hold_every_row_once_are_not_published(rows: DataFrame, splitting: Any) -> None:
    both = splitting(CHECKS, rows)
    both.verify(2, 3)
    for counts in ((2, 2), (3, 2), (2, 4)):
        with pytest.raises(Unavailable, match="of 5 rows 3 were to be set aside"):
            both.verify(*counts)


def test_what_was_kept_is_let_go(session: Session, rows: DataFrame) -> None:
    both = split(CHECKS, rows, STAMP)
    assert both.kept is not None
    assert both.kept.storageLevel.useMemory
    both.release()
    assert not both.kept.storageLevel.useMemory
