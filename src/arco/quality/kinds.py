"""The kinds of checks, one class each: what it needs to know, what it refuses, and what it expects in words.

What must never enter: how a kind is measured (the executor's business), and conveniences for authors (`builtin.py`).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import CHECK_VALUES_MAX
from arco.quality.checks import Check, Level, Literal, between, check_one_family, check_order, is_text
from arco.quality.schemas import Schema

_MANY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount(Check):
    """How many rows are published: after quarantined rows were taken out."""

    kind = "row_count"
    level = Level.AGGREGATE
    min: int | None = None
    max: int | None = None

    def _check_rule(self) -> None:
        given = [bound for bound in (self.min, self.max) if bound is not None]
        if not given:
            raise InvalidInput(f"check {self.name} has neither min nor max", hint="write row_count(min=1)")
        if any(type(bound) is not int or bound < 0 for bound in given):
            raise InvalidInput(f"check {self.name}: min and max are whole numbers of rows, not {given}")
        check_order(self, self.min, self.max)

    @property
    def expected(self) -> str:
        return between("rows", self.min, self.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNull(Check):
    kind = "not_null"
    level = Level.ROW
    columns_min, columns_max = 1, _MANY

    @property
    def expected(self) -> str:
        return f"no NULL in {', '.join(self.columns)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCheck(Check):
    """A check on values: NULL fails, unless it is allowed. A NULL in any column of a composite key makes the key NULL."""

    allow_null: bool = False

    @property
    def _or_null(self) -> str:
        return " or NULL" if self.allow_null else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique(ValueCheck):
    """No key twice. Of rows that share a key all but one count as failed."""

    kind = "unique"
    level = Level.RELATION
    columns_min, columns_max = 1, _MANY

    @property
    def expected(self) -> str:
        return f"({', '.join(self.columns)}) unique{self._or_null}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InRange(ValueCheck):
    """Between two bounds, which belong to the range unless `inclusive` is off. NaN is in no range."""

    kind = "in_range"
    level = Level.ROW
    columns_min, columns_max = 1, 1
    min: Literal | None = None
    max: Literal | None = None
    inclusive: bool = True

    def _check_rule(self) -> None:
        given = [bound for bound in (self.min, self.max) if bound is not None]
        if not given:
            raise InvalidInput(f"check {self.name} has neither min nor max", hint='write in_range("amount", min=0)')
        check_one_family(self, given)
        if isinstance(given[0], bool):
            raise InvalidInput(f"check {self.name}: true and false have no range", hint="use accepted_values")
        check_order(self, self.min, self.max)
        if not self.inclusive and self.min is not None and self.min == self.max:
            raise InvalidInput(f"check {self.name}: nothing lies between {self.min} and {self.max}")

    @property
    def expected(self) -> str:
        return between(self.column, self.min, self.max, inclusive=self.inclusive) + self._or_null


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedValues(ValueCheck):
    """One of a list. The order of the list means nothing, so it is kept sorted."""

    kind = "accepted_values"
    level = Level.ROW
    columns_min, columns_max = 1, 1
    values: tuple[Literal, ...] = ()

    def _check_rule(self) -> None:
        if not self.values:
            raise InvalidInput(f"check {self.name} accepts no value at all", hint="list at least one")
        if len(self.values) > CHECK_VALUES_MAX:
            raise InvalidInput(
                f"check {self.name} lists {len(self.values)} values, over the limit of {CHECK_VALUES_MAX}",
                hint="keep them in a table and use foreign_key",
            )
        if None in self.values:
            raise InvalidInput(f"check {self.name} lists NULL", hint="write allow_null=True")
        check_one_family(self, self.values)
        if len(set(self.values)) < len(self.values):
            raise InvalidInput(f"check {self.name} lists a value twice", hint="list each once")
        ordered: list[Any] = list(self.values)  # of one family, so they have an order
        object.__setattr__(self, "values", tuple(sorted(ordered)))

    @property
    def expected(self) -> str:
        shown = ", ".join(str(value) for value in self.values[:10])
        more = f" and {len(self.values) - 10} more" if len(self.values) > 10 else ""
        return f"{self.column} one of {clip(shown, 200)}{more}{self._or_null}"


# What Java's regular expressions have and Python's lack: whoever uses it is told of mistakes by Spark, not here.
_JAVA_ONLY = re.compile(r"\\[pPhHRXzZQEGk]|\(\?<\w|&&|\\x\{")
_PYTHON_ONLY = re.compile(r"(?<!\\)\(\?(?:P[<=>]|\()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches(ValueCheck):
    """The whole text matches a regular expression in Java's syntax, which is Spark's."""

    kind = "matches"
    level = Level.ROW
    columns_min, columns_max = 1, 1
    regex: str = ""

    def _check_rule(self) -> None:
        if not is_text(self.regex):
            raise InvalidInput(f"check {self.name} has no regular expression", hint='write matches("code", "[A-Z]{3}")')
        if found := _PYTHON_ONLY.search(self.regex):
            raise InvalidInput(
                f"check {self.name}: {found[0]!r} is Python's syntax, and Spark reads Java's",
                hint="write (?<name>…) for a named group",
            )
        try:
            re.compile(self.regex)
        except re.error as error:
            if not _JAVA_ONLY.search(self.regex):
                raise InvalidInput(
                    f"check {self.name}: {clip(self.regex)!r} is not a regular expression: {error}"
                ) from None

    @property
    def whole(self) -> str:
        """The expression to give to Spark's `rlike`, which looks for a match anywhere."""
        return rf"\A(?:{self.regex})\z"

    @property
    def expected(self) -> str:
        return f"{self.column} matches {clip(self.regex)}{self._or_null}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey(ValueCheck):
    """Every key is found in another asset, in the version that the plan pinned."""

    kind = "foreign_key"
    level = Level.RELATION
    columns_min, columns_max = 1, _MANY
    to: str = ""
    to_columns: tuple[str, ...] = ()

    def _check_rule(self) -> None:
        if not is_text(self.to):
            raise InvalidInput(f"check {self.name} says not where the keys are", hint='write to="customers"')
        if "." in self.to:
            AssetKey.parse(self.to)
        else:
            AssetKey("default", self.to)  # the project says which namespace; the name is checked now
        if len(self.to_columns) != len(self.columns):
            raise InvalidInput(f"check {self.name} compares {len(self.columns)} columns with {len(self.to_columns)}")

    @property
    def expected(self) -> str:
        return f"({', '.join(self.columns)}) in {self.to}({', '.join(self.to_columns)}){self._or_null}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh(Check):
    """The newest value is not older than this, seen from the run's logical time, which is the same for every attempt."""

    kind = "fresh"
    level = Level.AGGREGATE
    columns_min, columns_max = 1, 1
    within_s: int = 0

    def _check_rule(self) -> None:
        if self.within_s <= 0:
            raise InvalidInput(f"check {self.name}: nothing is fresh within {self.within_s} s", hint='write within="6h"')

    @property
    def expected(self) -> str:
        return f"newest {self.column} within {self.within_s} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMatch(Check):
    """The output has these columns, by name. They may stand in any order, and be stricter about NULL than asked."""

    kind = "schema_match"
    level = Level.SCHEMA
    schema: Schema
    allow_extra: bool = False

    def _check_rule(self) -> None:
        if not self.schema.columns:
            raise InvalidInput(f"check {self.name} expects no columns", hint="name at least one")

    @property
    def expected(self) -> str:
        shown = ", ".join(f"{column.full_name} {column.type}" for column in self.schema.columns)
        return clip(shown, 200) + (", and others" if self.allow_extra else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlPredicate(Check):
    """An expression over a row's columns that must be true."""

    kind = "sql"
    level = Level.ROW
    predicate: str = ""

    def _check_rule(self) -> None:
        if not is_text(self.predicate):
            raise InvalidInput(f"check {self.name} has no predicate", hint='write sql_check("paid", "amount >= 0")')
        if re.match(r"\s*(select|with|from)\b", self.predicate, re.IGNORECASE):
            raise InvalidInput(
                f"check {self.name}: a query is not a predicate", hint="give it as query=, returning the failing rows"
            )

    @property
    def expected(self) -> str:
        return clip(" ".join(self.predicate.split()), 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuery(Check):
    """A query over `{rows}`, the output under check, that returns the rows which are wrong."""

    kind = "sql_query"
    level = Level.RELATION
    query: str = ""

    def _check_rule(self) -> None:
        try:
            names = {name for _, name, _, _ in Formatter().parse(self.query) if name is not None}
        except ValueError as error:
            raise InvalidInput(
                f"check {self.name}: {error} in the query", hint="write {{ and }} for plain braces"
            ) from None
        if names != {"rows"}:
            unknown = ", ".join(sorted(names - {"rows"})) or "nothing"
            raise InvalidInput(
                f"check {self.name}: the query reads {unknown} in braces",
                hint="read the output as {rows}, and nothing else in braces",
            )

    @property
    def expected(self) -> str:
        return f"no rows from {clip(' '.join(self.query.split()), 200)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCheck(Check):
    """A function that returns a Spark Column: the verdict of each row. `code` stands for the function in documents."""

    kind = "column"
    level = Level.ROW
    function: Callable[..., Any] = field(compare=False, repr=False)
    code: str

    @property
    def expected(self) -> str:
        return f"{self.name} is true"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCheck(Check):
    """A function of the rows that returns a bool, a Spark Column (the verdict of each row) or a CheckResult."""

    kind = "function"
    level = Level.FUNCTION
    function: Callable[..., Any] = field(compare=False, repr=False)
    code: str

    @property
    def expected(self) -> str:
        return f"{self.name} holds"


KINDS: tuple[type[Check], ...] = (
    RowCount, NotNull, Unique, InRange, AcceptedValues, Matches, ForeignKey, Fresh, SchemaMatch,
    SqlPredicate, SqlQuery, ColumnCheck, FunctionCheck,
)  # fmt: skip
