"""The checks of one output from its rows to their results, each in the first of these ways that is exact for it.

    split     checks that set rows aside: counted before anything is written (`spark_quarantine.py`)
    proved    what the footers of the files say: no pass at all
    watched   counted in the pass that writes, if the output is small and the files hold just as many rows
    measured  counted on what was written: keys, queries, functions, and everything that the ways above left open

Watching saves a job, which an output of a few rows feels, and costs more processor time a row than reading the columns back
(`bench/checks.py`): Spark counts on the way without generated code. So a large output is not watched: leave `watch` out, and
what it would have counted is measured. What must never enter: a kind of check by its name, and what is done about a failure.
"""

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import DataFrame

from arco.iceberg.shape import JsonObject
from arco.quality.checks import Check
from arco.quality.results import CheckResult
from arco.quality.schemas import Schema
from arco.servo.execute.data_files import Written
from arco.servo.execute.proved import needs_rows, proved
from arco.servo.execute.spark_checks import Tables, measure
from arco.servo.execute.spark_observe import Take, observed

WATCHED_ROWS_MAX = 200_000
"""Beyond so many rows a job of its own costs less than counting on the way."""


def is_worth_watching(rows: int | None) -> bool:
    """Whether an output of so many rows is watched; where nobody knows how many there are, it is not."""
    return rows is not None and 0 < rows <= WATCHED_ROWS_MAX


class Guard:
    """Watches one attempt to write an output. `schema` is the one that the output is published with.

    `known` are the results that are there before the write: those of the checks that set rows aside.
    """

    def __init__(
        self, checks: Sequence[Check], schema: JsonObject, *, logical_time_ms: int, known: Iterable[CheckResult] = ()
    ) -> None:
        self._checks = checks
        self._schema = schema
        self._logical_time_ms = logical_time_ms
        self._known = tuple(known)
        self._take: Take = lambda _: ()

    def watch(self, rows: DataFrame) -> DataFrame:
        """The rows to give to the writer in place of these. They are written once: a second action is not seen."""
        open_checks = [check for check in self._open(self._known) if needs_rows(check, self._schema)]
        watched, self._take = observed(open_checks, rows, logical_time_ms=self._logical_time_ms)
        return watched

    def results(
        self, written: Written, read_back: Callable[[], DataFrame], tables: Tables | None = None
    ) -> tuple[CheckResult, ...]:
        """One result for every check. The rows are read back only if something is left to be measured."""
        seen = self._take(written.rows) or ()
        known = (*self._known, *seen)
        known += proved(self._open(known), written, self._schema, logical_time_ms=self._logical_time_ms)
        if not self._open(known):
            found = {result.check: result for result in known}
            return tuple(found[check.name] for check in self._checks)
        return measure(
            self._checks,
            read_back(),
            tables=tables or {},
            logical_time_ms=self._logical_time_ms,
            schema=Schema.of(self._schema),
            known=known,
        )

    def _open(self, known: Iterable[CheckResult]) -> list[Check]:
        done = {result.check for result in known}
        return [check for check in self._checks if check.name not in done]
