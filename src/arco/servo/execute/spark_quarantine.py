"""Rows set aside: the rows that fail a check with `quarantine_rows` go to another table, and each row to exactly one.

One verdict a row, computed once. Two writes that each computed it for themselves could disagree where the rows are not the same
twice (a random number, the time, a `first` without an order): a row would then be in both tables, or in none. So the rows are
kept, with their verdicts, from the count to the second write (`persist`, which spills to disk), and both writes read what was
kept. Writing both in one job, apart by the verdict, would need no keeping; but the two tables have different columns and field
ids, and a table without partitions would have to be sorted for it.

Rows that were kept can be lost with the executor that held them, and are then computed again. So the rows of both sides are
counted against all rows (`verify`) before anything is published.

The rule names are one text, `arco_rules`, joined by a comma: a list would send the table through the slower Arrow writer.
What must never enter: where the rows are written to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from arco.kernel.errors import InvalidInput, Unavailable
from arco.kernel.ids import clip
from arco.quality.checks import Check
from arco.quality.results import CheckResult, judged_rows, unmeasured
from arco.quality.schemas import quoted
from arco.servo.execute.released_rows import AT, RULES, RUN, TASK
from arco.servo.execute.spark_checks import reason_of
from arco.servo.execute.spark_verdicts import verdict

_FAILED = "__arco_failed"
_RIGHT, _WRONG = "0", "1"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a row in quarantine says of where it came from."""

    run_id: str
    task_id: str
    at_ms: int

    def columns(self) -> tuple[Column, ...]:
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")
        return (
            f.lit(self.run_id).alias(RUN),
            f.lit(self.task_id).alias(TASK),
            f.lit(f"{at}Z").cast("timestamp").alias(AT),
        )


@dataclass(frozen=True, slots=True)
class Split:
    """Both sides. `bad` is None if no row is set aside; `results` are those of the checks that set rows aside."""

    good: DataFrame
    bad: DataFrame | None = None
    results: tuple[CheckResult, ...] = ()
    rows: int | None = None
    rows_aside: int = 0
    kept: DataFrame | None = None

    def verify(self, good_rows: int, bad_rows: int) -> None:
        """That the files of both sides hold every row once. Rows that were kept and lost may have come out differently."""
        if self.rows is not None and (good_rows, bad_rows) != (self.rows - self.rows_aside, self.rows_aside):
            raise Unavailable(
                f"of {self.rows} rows {self.rows_aside} were to be set aside, and {good_rows} and {bad_rows} were written",
                hint="rows that Spark kept were lost, and came out differently: the task is to be tried again",
            )

    def release(self) -> None:
        """Let go of the rows that were kept, when both sides are written or never will be."""
        if self.kept is not None:
            self.kept.unpersist()


def split(checks: Sequence[Check], rows: DataFrame, stamp: Stamp) -> Split:
    """Compute all rows, count what fails, and keep both sides to be written. Nothing is computed if no check sets rows aside."""
    asked = [check for check in checks if check.quarantine_rows]
    if not asked:
        return Split(rows)
    _refuse_own_names(rows)
    verdicts, broken = _verdicts(asked, rows)
    try:
        return _counted(verdicts, rows, stamp, broken)
    except Exception as error:  # noqa: BLE001 - a row on which a check breaks; which one is found below
        reasons = _raising(verdicts, rows, error)
    sound = {check: one for check, one in verdicts.items() if check.name not in {result.check for result in reasons}}
    return _counted(sound, rows, stamp, broken + reasons)


def _verdicts(checks: Sequence[Check], rows: DataFrame) -> tuple[dict[Check, Column], list[CheckResult]]:
    """The checks that fit the rows, each with its verdict; and a failure for each that does not."""
    fitting: dict[Check, Column] = {}
    broken = []
    for check in checks:
        try:
            one = f.coalesce(verdict(check, rows), f.lit(False))
            rows.select(one).schema  # noqa: B018 - asking for it has Spark analyze it
            fitting[check] = one
        except Exception as error:  # noqa: BLE001 - a check that does not fit has failed, and sets nothing aside
            broken.append(unmeasured(check, reason_of(error)))
    return fitting, broken


def _counted(verdicts: dict[Check, Column], rows: DataFrame, stamp: Stamp, broken: list[CheckResult]) -> Split:
    if not verdicts:
        return Split(rows, results=tuple(broken))
    flags = [f.when(one, _RIGHT).otherwise(_WRONG) for one in verdicts.values()]
    kept = rows.select("*", f.concat(*flags).alias(_FAILED)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        failed = f.col(_FAILED)
        each = [f.count_if(f.substring(failed, place + 1, 1) == _WRONG) for place, _ in enumerate(verdicts)]
        total, aside, *counts = kept.agg(f.count(f.lit(1)), f.count_if(failed.contains(_WRONG)), *each).collect()[0]
    except BaseException:
        kept.unpersist()
        raise
    found = [judged_rows(check, failed_rows=one, total_rows=total) for check, one in zip(verdicts, counts, strict=True)]
    columns = [f.col(quoted((name,))) for name in rows.columns]
    good = kept.where(~failed.contains(_WRONG)).select(*columns)
    names = [f.when(f.substring(failed, place + 1, 1) == _WRONG, f.lit(check.name)) for place, check in enumerate(verdicts)]
    bad = kept.where(failed.contains(_WRONG)).select(*columns, f.concat_ws(", ", *names).alias(RULES), *stamp.columns())
    return Split(good, bad if aside else None, (*found, *broken), total, aside, kept)


def _raising(verdicts: dict[Check, Column], rows: DataFrame, error: Exception) -> list[CheckResult]:
    """The checks that break on some row. If it is none of them, it is the rows that cannot be computed."""
    reason_of(error)
    found = []
    for check, one in verdicts.items():
        try:
            rows.agg(f.count_if(one)).collect()
        except Exception as broken:  # noqa: BLE001 - as above
            found.append(unmeasured(check, reason_of(broken)))
    if found:
        rows.write.format("noop").mode("overwrite").save()  # raises what is wrong with the rows themselves
        return found
    raise error


def _refuse_own_names(rows: DataFrame) -> None:
    own = {RULES, RUN, TASK, AT, _FAILED}
    if taken := sorted(own & {name.casefold() for name in rows.columns}):
        raise InvalidInput(
            f"the output has a column {clip(taken[0])!r}, which rows in quarantine get", hint="name the column otherwise"
        )
