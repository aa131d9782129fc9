"""Measuring checks with Spark on what was written: as few passes over the rows as possible, and every verdict null-safe.

    rows and aggregates   one aggregate over the columns they name: one job, one scan
    keys                  one shuffle each
    schemas               no rows at all
    queries, functions    as they were written, one by one

Files hold every row once, however often Spark tried a task, so what is counted here is exact; `spark_observe.py` counts on the
way, for less. A check that breaks has failed and says why, and the others are measured all the same. What must never enter:
what is done about a failure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.quality.checks import Check, Level
from arco.quality.kinds import ForeignKey, FunctionCheck, SchemaMatch, SqlQuery, Unique
from arco.quality.results import CheckResult, judged_rows, judged_schema, judged_verdict, unmeasured
from arco.quality.schemas import Schema
from arco.servo.execute.spark_failures import failure_of, is_cancelled
from arco.servo.execute.spark_types import iceberg_schema
from arco.servo.execute.spark_verdicts import aggregate, call, find, is_own_code, judged

Tables = Mapping[str, DataFrame]
"""The assets that foreign keys point to, by their keys, pinned as the plan says."""

_REASON_CHARS_MAX = 300
# What a task raised, where Spark says only that a task failed.
_IN_TASK = re.compile(r"\(TID \d+\) \([^)]*\): (.+)", re.DOTALL)


def measure(
    checks: Sequence[Check],
    rows: DataFrame,
    *,
    tables: Tables,
    logical_time_ms: int,
    schema: Schema | None = None,
    known: Iterable[CheckResult] = (),
) -> tuple[CheckResult, ...]:
    """One result for every check, in their order; what is known already is not measured again.

    `rows` is the output read back. `schema` is the one it is published with, which says more than Spark keeps (what is
    required); without it Spark's is taken, where every column may be null.
    """
    found = {result.check: result for result in known}
    todo = [check for check in checks if check.name not in found]
    work = _Measuring(rows, tables, logical_time_ms, schema)
    results = [*work.fused([check for check in todo if check.level in {Level.ROW, Level.AGGREGATE}])]
    results += [work.alone(check) for check in todo if check.level not in {Level.ROW, Level.AGGREGATE}]
    found |= {result.check: result for result in results}
    return tuple(found[check.name] if check.name in found else unmeasured(check, "there is no result") for check in checks)


def reason_of(error: Exception) -> str:
    """Why a check could not be measured, in one line. What is no fault of the check is raised: somebody stopped the task, or
    something failed that may pass by itself."""
    failure = failure_of(error)
    if is_cancelled(error) or failure.transient:
        raise error
    inside = _IN_TASK.search(failure.message)
    lines = (inside[1] if inside else failure.message).strip().splitlines()
    return clip(lines[0] if lines else type(error).__name__, _REASON_CHARS_MAX)


class _Measuring:
    """One output under check."""

    def __init__(self, rows: DataFrame, tables: Tables, logical_time_ms: int, schema: Schema | None) -> None:
        self._rows = rows
        self._tables = tables
        self._logical_time_ms = logical_time_ms
        self._schema = schema

    @cached_property
    def _total(self) -> int:
        return self._rows.count()

    # Rows and aggregates: one pass

    def fused(self, checks: Sequence[Check]) -> list[CheckResult]:
        ready: list[tuple[Check, Column]] = []
        results = []
        for check in checks:
            try:
                number = aggregate(check, self._rows)
                if is_own_code(check):
                    # What does not fit the rows is refused here, by the name of its check, and not in the job of all.
                    self._rows.agg(number).schema  # noqa: B018 - asking for it has Spark analyze it
                ready.append((check, number))
            except Exception as error:  # noqa: BLE001 - one check that breaks must not hide what the others find
                results.append(unmeasured(check, reason_of(error)))
        return results + self._counted(ready)

    def _counted(self, ready: Sequence[tuple[Check, Column]]) -> list[CheckResult]:
        if not ready:
            return []
        try:
            numbers = (number.alias(f"m{place}") for place, (_, number) in enumerate(ready))
            found = self._rows.agg(f.count(f.lit(1)).alias("total"), *numbers).collect()[0]
        except Exception as error:  # noqa: BLE001 - a row on which a check breaks
            reason, half = reason_of(error), len(ready) // 2
            if not half:
                return [unmeasured(ready[0][0], reason)]
            return self._counted(ready[:half]) + self._counted(ready[half:])
        self._total = int(found["total"])
        facts = {"total_rows": self._total, "logical_time_ms": self._logical_time_ms}
        return [judged(check, found[f"m{place}"], **facts) for place, (check, _) in enumerate(ready)]

    # Keys, schemas, queries and functions: one by one

    def alone(self, check: Check) -> CheckResult:
        try:
            match check:
                case Unique():
                    return self._unique(check)
                case ForeignKey():
                    return self._foreign_key(check)
                case SchemaMatch():
                    return judged_schema(check, actual=self._schema or Schema.of(iceberg_schema(self._rows.schema)))
                case SqlQuery():
                    wrong = self._rows.sparkSession.sql(check.query, rows=self._rows).count()
                    return judged_rows(check, failed_rows=wrong, total_rows=max(wrong, self._total))
                case FunctionCheck():
                    return self._function(check)
                case _:
                    return unmeasured(check, f"{check.kind} is not known here")
        except Exception as error:  # noqa: BLE001 - a check that breaks is a check that failed, whatever broke it
            return unmeasured(check, reason_of(error))

    def _unique(self, check: Unique) -> CheckResult:
        """Of rows that share a key all but one failed; a key with a NULL in it failed, unless it is allowed."""
        keys, is_null = _keys(self._rows, check.columns)
        without_key = f.lit(0) if check.allow_null else f.col("n")
        surplus = f.when(is_null, without_key).otherwise(f.col("n") - 1)
        found = keys.agg(f.sum(surplus).alias("failed"), f.sum("n").alias("total")).collect()[0]
        return judged_rows(check, failed_rows=int(found["failed"] or 0), total_rows=int(found["total"] or 0))

    def _foreign_key(self, check: ForeignKey) -> CheckResult:
        target = self._tables.get(check.to)
        if target is None:
            return unmeasured(check, f"{check.to} has no published version")
        keys, is_null = _keys(self._rows, check.columns)
        names = [f"k{place}" for place, _ in enumerate(check.columns)]
        there = target.select(
            *(find(target.schema, one)[0].alias(name) for one, name in zip(check.to_columns, names, strict=True))
        )
        joined = keys.join(there.distinct().withColumn("there", f.lit(True)), names, "left")
        without_key = f.lit(0) if check.allow_null else f.col("n")
        missing = f.when(is_null, without_key).when(f.col("there").isNull(), f.col("n")).otherwise(f.lit(0))
        found = joined.agg(f.sum(missing).alias("failed"), f.sum("n").alias("total")).collect()[0]
        return judged_rows(check, failed_rows=int(found["failed"] or 0), total_rows=int(found["total"] or 0))

    def _function(self, check: FunctionCheck) -> CheckResult:
        made = call(check.function, self._rows)
        if isinstance(made, CheckResult):
            # It answers under its own definition, and nothing was set aside for it.
            own = replace(made, check=check.name, kind=check.kind, fingerprint=check.fingerprint)
            return replace(own, quarantined_rows=0)
        if isinstance(made, Column):
            found = self._rows.agg(f.count_if(made), f.count(f.lit(1))).collect()[0]
            return judged_rows(check, failed_rows=int(found[1]) - int(found[0]), total_rows=int(found[1]))
        if made is None or isinstance(made, bool):
            return judged_verdict(check, verdict=made)
        raise InvalidInput(
            f"{check.name} returned {type(made).__name__}", hint="return a bool, a Spark Column or a CheckResult"
        )


def _keys(rows: DataFrame, columns: Sequence[str]) -> tuple[DataFrame, Column]:
    """Every key with the number of its rows, and whether a key is NULL: it is when any of its columns is."""
    named = [find(rows.schema, one)[0].alias(f"k{place}") for place, one in enumerate(columns)]
    is_null = reduce(or_, (f.col(f"k{place}").isNull() for place, _ in enumerate(columns)))
    keys = rows.select(*named).groupBy(*(f"k{place}" for place, _ in enumerate(columns)))
    return keys.agg(f.count(f.lit(1)).alias("n")), is_null
