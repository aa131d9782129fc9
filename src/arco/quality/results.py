"""What was found: one result per check, and per partition range where a check was measured range by range.

The executor measures numbers, the functions here judge them, so that a verdict means the same on every engine. What must
never enter: what is done about a failure, and a result that says more than was measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.kernel.errors import BrokenInvariant, InvalidInput
from arco.kernel.limits import CHECK_SAMPLE_ROWS_MAX
from arco.quality.checks import Check, Severity
from arco.quality.kinds import Fresh, RowCount, SchemaMatch
from arco.quality.schemas import Schema, mismatches


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found. `None` is "not known"; `partitions` None is everything that the task wrote."""

    check: str
    kind: str
    severity: Severity
    passed: bool
    message: str = ""
    columns: tuple[str, ...] = ()
    expected: str = ""
    measured: Any = None
    failed_rows: int | None = None
    total_rows: int | None = None
    quarantined_rows: int = 0
    partitions: str | None = None
    sample_rows: int = 0
    sample_rows_max: int = CHECK_SAMPLE_ROWS_MAX
    fingerprint: str = ""

    def __post_init__(self) -> None:
        if self.quarantined_rows > (self.failed_rows or 0):
            raise InvalidInput(f"check {self.check}: more rows were quarantined than failed")
        if self.failed_rows is not None and self.total_rows is not None and self.failed_rows > self.total_rows:
            raise InvalidInput(f"check {self.check}: more rows failed than there are")

    @property
    def rows_set_aside(self) -> bool:
        """Whether every row that failed is in the quarantine table, and none of them in what would be published."""
        return not self.passed and bool(self.failed_rows) and self.quarantined_rows == self.failed_rows

    def document(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_document(cls, document: object) -> "CheckResult":
        """A stored result. Fields that a newer Arco added are left out."""
        try:
            return msgspec.convert(document, cls)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"not a check result: {error}") from None


def _result(check: Check, *, passed: bool, message: str, **facts: Any) -> CheckResult:
    return CheckResult(
        check=check.name,
        kind=check.kind,
        severity=check.severity,
        passed=passed,
        message=message,
        columns=check.columns,
        expected=check.expected,
        fingerprint=check.fingerprint,
        **facts,
    )


# --- judging


def judged_rows(check: Check, *, failed_rows: int, total_rows: int, sample_rows: int = 0) -> CheckResult:
    """A check that counts rows: it passes when none failed. A row whose verdict is NULL is among the failed.

    With `quarantine_rows` every failed row is set aside, and the result says so.
    """
    message = f"{failed_rows} of {total_rows} rows failed: expected {check.expected}" if failed_rows else ""
    return _result(
        check,
        passed=failed_rows == 0,
        message=message,
        measured=failed_rows,
        failed_rows=failed_rows,
        total_rows=total_rows,
        quarantined_rows=failed_rows if check.quarantine_rows else 0,
        sample_rows=sample_rows,
    )


def judged_count(check: RowCount, *, rows: int) -> CheckResult:
    passed = (check.min is None or rows >= check.min) and (check.max is None or rows <= check.max)
    message = "" if passed else f"{rows} rows: expected {check.expected}"
    return _result(check, passed=passed, message=message, measured=rows, total_rows=rows)


def judged_freshness(check: Fresh, *, latest_ms: int | None, logical_time_ms: int) -> CheckResult:
    """The age of the newest value, seen from the run's logical time. No value at all is a failure."""
    if latest_ms is None:
        return _result(check, passed=False, message=f"{check.column} has no value: expected {check.expected}")
    age_ms = logical_time_ms - latest_ms
    passed = age_ms <= check.within_s * 1000
    message = "" if passed else f"newest {check.column} is {-(-age_ms // 1000)} s old: expected {check.expected}"
    return _result(check, passed=passed, message=message, measured=age_ms / 1000)


def judged_schema(check: SchemaMatch, *, actual: Schema) -> CheckResult:
    wrong = mismatches(check.schema, actual, allow_extra=check.allow_extra)
    return _result(check, passed=not wrong, message="; ".join(wrong), measured=wrong)


def judged_verdict(check: Check, *, verdict: bool | None) -> CheckResult:
    """A check that answers for itself. An answer that is neither true nor false is a failure."""
    passed = verdict is True
    message = "" if passed else f"the answer was {'NULL' if verdict is None else 'false'}: expected {check.expected}"
    return _result(check, passed=passed, message=message, measured=verdict)


def unmeasured(check: Check, why: str) -> CheckResult:
    """A check that could not be measured has failed."""
    return _result(check, passed=False, message=f"not measured: {why}")


# --- many


def complete(checks: Iterable[Check], results: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """The results, and a failure for each check that has none: what was not looked at must not pass the gate."""
    seen = {result.check for result in results}
    return (*results, *(unmeasured(check, "there is no result") for check in checks if check.name not in seen))


def total(results: Sequence[CheckResult]) -> CheckResult:
    """One check measured range by range, in total: it passes where every range passes; counts that are not known stay so."""
    if not results or len({(each.check, each.fingerprint) for each in results}) != 1:
        raise BrokenInvariant("a total is of one check, measured at least once")
    failed = [each for each in results if not each.passed]
    first = failed[0] if failed else results[0]
    message = (
        f"{len(failed)} of {len(results)} ranges failed; {first.partitions or 'all'}: {first.message}" if failed else ""
    )
    return CheckResult(
        check=first.check,
        kind=first.kind,
        severity=max(each.severity for each in results),
        passed=not failed,
        message=message,
        columns=first.columns,
        expected=first.expected,
        measured={"ranges": len(results), "ranges_failed": len(failed)},
        failed_rows=_sum(each.failed_rows for each in results),
        total_rows=_sum(each.total_rows for each in results),
        quarantined_rows=sum(each.quarantined_rows for each in results),
        sample_rows=sum(each.sample_rows for each in results),
        sample_rows_max=sum(each.sample_rows_max for each in results),
        fingerprint=first.fingerprint,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
