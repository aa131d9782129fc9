"""Checks counted in the pass that writes: the numbers come along with the rows, and no row is read a second time.

Spark adds up what its tasks saw, and says plainly that this may be more than there is: a stage that runs again, because an
executor and what it held are gone, is counted again. The footers of the files know how many rows there are, since every row is
written once. So the numbers are taken only if they are about exactly that many rows; otherwise nothing is said, and the caller
counts what was written (`spark_checks.py`).

Only checks that cannot raise are attached: one that breaks on a row would take the output with it. The observed frame must be
what is given to the writer, with nothing above it that drops or adds rows: a limit would stop the counting too.
What must never enter: checks of the project's own code.
"""

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f

from arco.kernel.errors import InvalidInput
from arco.quality.checks import Check
from arco.quality.kinds import Matches
from arco.quality.results import CheckResult
from arco.servo.execute.spark_verdicts import aggregate, cannot_raise, judged

_TOTAL = "total"

Take = Callable[[int], tuple[CheckResult, ...] | None]
"""Given the number of rows in the files: the results of the checks that were attached, or None if they must be counted.

Only to be asked after the write has succeeded: before that, Spark lets whoever asks wait.
"""


def observed(checks: Sequence[Check], rows: DataFrame, *, logical_time_ms: int) -> tuple[DataFrame, Take]:
    """The rows to be written in place of these, and how to take what was seen. Checks without a result are left to others."""
    attached = _attachable(checks, rows)
    if not attached:
        return rows, lambda _: ()
    seeing = Observation()
    numbers = [number.alias(f"m{place}") for place, (_, number) in enumerate(attached)]
    watched = rows.observe(seeing, f.count(f.lit(1)).alias(_TOTAL), *numbers)

    def take(rows_written: int) -> tuple[CheckResult, ...] | None:
        found = seeing.get
        if found.get(_TOTAL) != rows_written:
            return None
        facts = {"total_rows": rows_written, "logical_time_ms": logical_time_ms}
        return tuple(judged(check, found[f"m{place}"], **facts) for place, (check, _) in enumerate(attached))

    return watched, take


def _attachable(checks: Sequence[Check], rows: DataFrame) -> list[tuple[Check, Column]]:
    known_texts = _compiled([check for check in checks if isinstance(check, Matches)], rows)
    found = []
    for check in checks:
        if not cannot_raise(check) or (isinstance(check, Matches) and check.regex not in known_texts):
            continue
        try:
            found.append((check, aggregate(check, rows)))
        except InvalidInput:
            continue  # it does not fit these rows, and whoever measures it says why
    return found


def _compiled(checks: Sequence[Matches], rows: DataFrame) -> set[str]:
    """The regular expressions that Java takes. Asked of one row of Spark's own, since each is compiled only when it is used."""
    if not checks:
        return set()
    try:
        tried = (f.lit("").rlike(check.whole).alias(f"m{place}") for place, check in enumerate(checks))
        rows.sparkSession.sql("SELECT 1").select(*tried).collect()
    except (PySparkException, Py4JError):
        return set() if len(checks) == 1 else {text for check in checks for text in _compiled([check], rows)}
    return {check.regex for check in checks}
