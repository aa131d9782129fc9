"""The session itself: what it is set to, how far its jobs are, how they are stopped, and what its failures are called."""

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f

from arco.fold.spark_session import FIXED, Session, SparkSettings, open_session
from arco.kernel.errors import InvalidInput
from arco.ledger.failure_kinds import Category
from arco.servo.execute.spark_failures import failure_of, is_cancelled
from arco.servo.execute.spark_sql import Answer, answered
from fixtures.servo.frames import MARKS

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS


def test_the_session_has_the_settings_that_bytes_depend_on(session: Session) -> None:
    assert {word: session.spark.conf.get(word) for word in FIXED} == dict(FIXED)
    context = session.spark.sparkContext.getConf()
    assert context.get("spark.scheduler.mode") == "FAIR"
    assert (context.get("spark.driver.host"), context.get("spark.ui.enabled")) == ("127.0.0.1", "false")
    assert session.spark.conf.get("spark.sql.parquet.compression.codec") == "zstd"


def test_a_project_cannot_change_what_bytes_depend_on() -> None:
    with pytest.raises(InvalidInput, match=r"timeZone is 'Europe/Berlin'"):
        open_session(SparkSettings(conf={"spark.sql.session.timeZone": "Europe/Berlin"}))


def test_a_second_opening_attaches_to_the_session_that_runs(session: Session) -> None:
    again = open_session(SparkSettings(conf={"spark.sql.shuffle.partitions": "5"}))
    assert (again.ours, again.spark.sparkContext) == (False, session.spark.sparkContext)
    assert session.spark.conf.get("spark.sql.shuffle.partitions") == "5"
    again.stop()
    assert session.spark.range(3).count() == 3


def test_one_asset_has_settings_of_its_own_and_the_others_do_not_notice(session: Session) -> None:
    word = "spark.sql.shuffle.partitions"
    before = session.spark.conf.get(word)
    beside = session.with_settings({word: "7"})
    assert (beside.conf.get(word), session.spark.conf.get(word)) == ("7", before)
    assert {name: beside.conf.get(name) for name in FIXED} == dict(FIXED)
    assert session.with_settings({word: "7"}) is beside
    assert session.with_settings({}) is session.spark
    assert beside.sparkContext is session.spark.sparkContext
    for name in ("spark.sql.warehouse.dir", "spark.sql.shufle.partitions"):
        with pytest.raises(InvalidInput, match=r"Spark does not take .* for one asset alone"):
            session.with_settings({name: "7"})


def test_workers_are_this_python_and_know_the_project(session: Session) -> None:
    @f.udf("string")
    def which(_: int) -> str:
        return f"{sys.executable} {importlib.import_module('a_project_of_tests').ANSWER}"

    assert session.spark.range(1).select(which("id")).collect()[0][0] == f"{sys.executable} 42"


def run_slowly(session: Session, group: str, count: int) -> int:
    """A job with so many tasks, each of which takes a moment."""

    def slowly(value: int) -> int:
        time.sleep(0.2)
        return value

    work = session.spark.range(0, count, 1, count).select(f.udf(slowly, "bigint")("id"))
    with session.job(group, "slow work"):
        return int(work.collect()[-1][0])


def test_progress_counts_the_tasks_of_one_group_only(session: Session) -> None:
    with ThreadPoolExecutor(2) as pool:
        long, short = pool.submit(run_slowly, session, "long", 12), pool.submit(run_slowly, session, "short", 3)
        seen = []
        while not (long.done() and short.done()):
            seen.append(session.progress("long"))
            time.sleep(0.05)
        assert (long.result(), short.result()) == (11, 2)
    ends = session.progress("long"), session.progress("short"), session.progress("nobody")
    assert [(one.jobs, one.tasks_done, one.tasks) for one in ends if one] == [(1, 12, 12), (1, 3, 3), (0, 0, 0)]
    assert any(one is not None and 0 < one.tasks_done < 12 for one in seen)


def test_cancelling_stops_one_group_and_no_other(session: Session) -> None:
    with ThreadPoolExecutor(2) as pool:
        stopped, other = pool.submit(run_slowly, session, "stopped", 300), pool.submit(run_slowly, session, "other", 4)
        while not (stopped.done() or ((progress := session.progress("stopped")) and progress.tasks_done)):
            time.sleep(0.05)
        session.cancel("stopped")
        error = stopped.exception()
        assert error is not None
        assert is_cancelled(error)
        assert other.result() == 3
    assert session.spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def caught(work: Callable[[], Any]) -> BaseException:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - whatever it is: that is the question
        return error
    raise AssertionError("it did not fail")


FAILURES = {
    "SELECT nope FROM range(1)": (Category.SCHEMA_VIOLATION, "UNRESOLVED_COLUMN"),
    "SELECT * FROM nowhere": (Category.MISSING_DEPENDENCY, "TABLE_OR_VIEW_NOT_FOUND"),
    "SELECT * FROM parquet.`/no/such/folder`": (Category.MISSING_DEPENDENCY, "PATH_NOT_FOUND"),
    "SELECT 1 / (id - id) FROM range(1)": (Category.TRANSFORM, "DIVIDE_BY_ZERO"),
    "SELECT cast('x' || id AS INT) FROM range(1)": (Category.TRANSFORM, "CAST_INVALID_INPUT"),
    "SELEC 1": (Category.TRANSFORM, "PARSE_SYNTAX_ERROR"),
    "SELECT raise_error('bad row') FROM range(1)": (Category.TRANSFORM, "USER_RAISED_EXCEPTION"),
}


@pytest.mark.parametrize("statement", FAILURES)
def test_what_spark_says_is_classified(session: Session, statement: str) -> None:
    failure = failure_of(caught(lambda: session.spark.sql(statement).collect()))
    category, condition = FAILURES[statement]
    assert (failure.category, failure.transient) == (category, False)
    assert failure.condition is not None
    assert failure.condition.startswith(condition)
    assert failure.hints
    assert "\n" not in failure.message


def test_the_plan_is_no_part_of_what_is_said(session: Session) -> None:
    failure = failure_of(caught(lambda: session.spark.range(3).where("nope is not null")))
    assert "`nope` cannot be resolved" in failure.message
    assert "Filter" not in failure.message
    assert not failure.message.endswith(";")


def test_an_error_in_a_worker_names_what_was_raised_and_where(session: Session) -> None:
    def fails(value: int) -> int:
        raise KeyError(f"no such thing as {value}")

    error = caught(lambda: session.spark.range(1).select(f.udf(fails, "int")("id")).collect())
    failure = failure_of(error)
    assert failure.category is Category.TRANSFORM
    assert "KeyError: 'no such thing as 0'" in failure.message
    assert failure.where is not None
    assert Path(failure.where.rpartition(":")[0]).name == Path(__file__).name
    assert not is_cancelled(error)


def test_a_format_that_spark_lacks_is_a_matter_of_configuration(session: Session) -> None:
    failure = failure_of(caught(lambda: session.spark.read.format("nosuchformat").load("/x")))
    assert (failure.category, failure.condition) == (Category.CONFIGURATION, "DATA_SOURCE_NOT_FOUND")


def test_a_bucket_without_its_connector_is_a_matter_of_configuration(session: Session) -> None:
    failure = failure_of(caught(lambda: session.spark.read.parquet("s3://nobody/x").collect()))
    assert failure.category is Category.CONFIGURATION


def test_without_java_the_reason_is_one_line() -> None:
    code = (
        "from arco.fold.spark_session import *\n"
        "try: open_session(SparkSettings())\n"
        "except Exception as error: print(error.one_line())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "/nowhere", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith("Java is missing, and Spark runs on it: install a JRE of version 17")
    assert found.stdout.count("\n") == 1


def test_a_statement_is_answered_with_plain_values_or_one_line(session: Session) -> None:
    found = answered(session.spark, "SELECT id, array(struct(id AS a)) l, map('k', X'00ff') m FROM range(3)", 2)
    assert found == Answer(("id", "l", "m"), ((0, [{"a": 0}], {"k": "00ff"}), (1, [{"a": 1}], {"k": "00ff"})), more=True)
    with pytest.raises(InvalidInput, match=r"^\[TABLE_OR_VIEW_NOT_FOUND\]") as refused:
        answered(session.spark, "SELECT * FROM nowhere", 2)
    assert "\n" not in refused.value.one_line()
    assert "Relation" not in refused.value.one_line()


@pytest.mark.parametrize(
    ("hidden", "says"),
    [
        ("", "what answers at sc://127.0.0.1:{port} is no Spark Connect server: check the port"),
        ("grpc", "Spark Connect is not there: [PACKAGE_NOT_INSTALLED]"),
    ],
    ids=["another server", "no packages"],
)
def test_without_spark_connect_the_reason_is_one_line(hidden: str, says: str) -> None:
    code = (
        "import sys\n"
        "if sys.argv[2]: sys.modules[sys.argv[2]] = None\n"
        "from arco.fold.spark_session import *\n"
        "try: open_session(SparkSettings(f'sc://127.0.0.1:{sys.argv[1]}/;user_id=secret'))\n"
        "except Exception as error: print(error.one_line())"
    )
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other, ThreadPoolExecutor(1) as pool:
        pool.submit(other.serve_forever)
        port = other.server_address[1]
        command = [sys.executable, "-c", code, str(port), hidden]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        other.shutdown()
    assert found.stdout.startswith(says.format(port=port)), found.stderr
    assert found.stdout.count("\n") == 1
    assert "secret" not in found.stdout
    assert not hidden or "pip install 'arco[connect]'" in found.stdout


def test_planning_loads_no_spark() -> None:
    pure = ("failures", "publish", "sources", "snapshots", "output_schema", "scans", "target", "data_files", "table_files")
    code = (
        "import sys\n"
        + "\n".join(f"import arco.servo.execute.{name}" for name in pure)
        + "\nprint('pyspark' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
