"""The checks as people write them: `not_null("order_id")`, `row_count(min=1)`, `fresh("updated_at", within="6h")`.

Each function brings what was written into the one form that `kinds.py` keeps and verifies. What must never enter: rules.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint as hashed
from arco.kernel.ids import clip
from arco.quality.checks import Literal, Severity
from arco.quality.kinds import (
    AcceptedValues,
    ColumnCheck,
    ForeignKey,
    Fresh,
    FunctionCheck,
    InRange,
    Matches,
    NotNull,
    RowCount,
    SchemaMatch,
    SqlPredicate,
    SqlQuery,
    Unique,
)
from arco.quality.schemas import Schema

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_DURATION = re.compile(r"(?:[0-9]{1,9}[smhdw]\s*)+")


def duration_s(written: str | timedelta) -> int:
    """`6h`, `30m`, `1d 12h` or a timedelta, as whole seconds."""
    if isinstance(written, timedelta):
        return int(written.total_seconds())
    if _DURATION.fullmatch(str(written).strip()) is None:
        raise InvalidInput(f"{clip(str(written))!r} is not a duration", hint='write "30m", "6h" or "1d 12h"')
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smhdw])", written))


def row_count(
    *,
    min: int | None = None,  # noqa: A002
    max: int | None = None,  # noqa: A002
    severity: Severity | str = Severity.ERROR,
    name: str = "",
) -> RowCount:
    """The number of published rows."""
    return RowCount(min=min, max=max, severity=Severity.of(severity), name=name)


def not_null(
    *columns: str, severity: Severity | str = Severity.ERROR, quarantine_rows: bool = False, name: str = ""
) -> NotNull:
    """No NULL in any of these columns."""
    return NotNull(columns=columns, severity=Severity.of(severity), quarantine_rows=quarantine_rows, name=name)


def unique(*columns: str, allow_null: bool = False, severity: Severity | str = Severity.ERROR, name: str = "") -> Unique:
    """No combination of these columns twice."""
    return Unique(columns=columns, allow_null=allow_null, severity=Severity.of(severity), name=name)


def in_range(
    column: str,
    *,
    min: Literal | None = None,  # noqa: A002
    max: Literal | None = None,  # noqa: A002
    inclusive: bool = True,
    allow_null: bool = False,
    severity: Severity | str = Severity.ERROR,
    quarantine_rows: bool = False,
    name: str = "",
) -> InRange:
    """Every value between two bounds, or on the right side of one."""
    return InRange(
        columns=(column,),
        min=min,
        max=max,
        inclusive=inclusive,
        allow_null=allow_null,
        severity=Severity.of(severity),
        quarantine_rows=quarantine_rows,
        name=name,
    )


def accepted_values(
    column: str,
    values: Iterable[Literal],
    *,
    allow_null: bool = False,
    severity: Severity | str = Severity.ERROR,
    quarantine_rows: bool = False,
    name: str = "",
) -> AcceptedValues:
    """Every value one of a list."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(f"the accepted values of {clip(str(column))!r} are not a list", hint='write ["new", "paid"]')
    return AcceptedValues(
        columns=(column,),
        values=tuple(values),
        allow_null=allow_null,
        severity=Severity.of(severity),
        quarantine_rows=quarantine_rows,
        name=name,
    )


def matches(
    column: str,
    regex: str,
    *,
    allow_null: bool = False,
    severity: Severity | str = Severity.ERROR,
    quarantine_rows: bool = False,
    name: str = "",
) -> Matches:
    """Every text matches a regular expression, from its first character to its last."""
    return Matches(
        columns=(column,),
        regex=regex,
        allow_null=allow_null,
        severity=Severity.of(severity),
        quarantine_rows=quarantine_rows,
        name=name,
    )


def foreign_key(
    columns: str | Sequence[str],
    *,
    to: str,
    to_columns: str | Sequence[str] | None = None,
    allow_null: bool = False,
    severity: Severity | str = Severity.ERROR,
    name: str = "",
) -> ForeignKey:
    """Every key is found in another asset, under the same column names unless others are given."""
    return ForeignKey(
        columns=_names(columns),
        to=to,
        to_columns=_names(columns if to_columns is None else to_columns),
        allow_null=allow_null,
        severity=Severity.of(severity),
        name=name,
    )


def fresh(column: str, *, within: str | timedelta, severity: Severity | str = Severity.ERROR, name: str = "") -> Fresh:
    """The newest value of a time or date column is recent, seen from the run's logical time."""
    return Fresh(columns=(column,), within_s=duration_s(within), severity=Severity.of(severity), name=name)


def schema_match(
    schema: Schema | Mapping[str, Any],
    *,
    allow_extra: bool = False,
    severity: Severity | str = Severity.ERROR,
    name: str = "",
) -> SchemaMatch:
    """The output has these columns: `{"order_id": "long not null"}`, or a schema as Iceberg writes it."""
    return SchemaMatch(schema=Schema.of(schema), allow_extra=allow_extra, severity=Severity.of(severity), name=name)


def sql_check(
    name: str,
    predicate: str | None = None,
    *,
    query: str | None = None,
    severity: Severity | str = Severity.ERROR,
    quarantine_rows: bool = False,
) -> SqlPredicate | SqlQuery:
    """A predicate that must be true for every row, or a query over `{rows}` that returns the rows which are wrong."""
    if not name:
        raise InvalidInput("a SQL check needs a name", hint='write sql_check("paid", "amount >= 0")')
    if (predicate is None) == (query is None):
        raise InvalidInput(f"check {clip(name)} needs either a predicate or query=")
    rank = Severity.of(severity)
    if predicate is not None:
        return SqlPredicate(name=name, predicate=predicate, severity=rank, quarantine_rows=quarantine_rows)
    return SqlQuery(name=name, query=query or "", severity=rank, quarantine_rows=quarantine_rows)


def column_check(
    function: Callable[..., Any],
    *,
    severity: Severity | str = Severity.ERROR,
    quarantine_rows: bool = False,
    name: str = "",
    code: str | None = None,
) -> ColumnCheck:
    """A function that returns a Spark Column: true for every row that is right."""
    return ColumnCheck(
        function=function,
        code=code or source_fingerprint(function),
        severity=Severity.of(severity),
        quarantine_rows=quarantine_rows,
        name=name or _function_name(function),
    )


def function_check(
    function: Callable[..., Any], *, severity: Severity | str = Severity.ERROR, name: str = "", code: str | None = None
) -> FunctionCheck:
    """A function of the rows that says whether they are right."""
    return FunctionCheck(
        function=function,
        code=code or source_fingerprint(function),
        severity=Severity.of(severity),
        name=name or _function_name(function),
    )


def source_fingerprint(function: Callable[..., Any]) -> str:
    """Of the text of a function alone: what it calls, and values it closes over, are not in it."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        raise InvalidInput(
            f"the source of {clip(repr(function))} cannot be read",
            hint="define it in a file, or give a fingerprint as code=",
        ) from None
    return hashed("function", textwrap.dedent(source))


def _function_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise InvalidInput("a check made of a lambda needs a name", hint="give name=")
    return str(name)


def _names(written: str | Sequence[str]) -> tuple[str, ...]:
    return (written,) if isinstance(written, str) else tuple(written)
