"""A filter of the table format as a condition of Spark, with the format's meaning of null.

What must never enter: pruning. That is the scan's business; this is about single rows.
"""

from typing import Any

from pyiceberg.expressions import BooleanExpression, BoundTerm
from pyiceberg.expressions.literals import Literal
from pyiceberg.expressions.visitors import BoundBooleanExpressionVisitor, bind, rewrite_not, visit
from pyspark.sql import Column
from pyspark.sql import functions as f

from arco.iceberg.schemas import columns_by_id
from arco.iceberg.shape import JsonObject
from arco.quality.schemas import quoted
from arco.servo.execute.table_state import pyiceberg_schema


def spark_filter(where: BooleanExpression, schema: JsonObject) -> Column:
    """The rows that match, for a DataFrame with the columns of the schema."""
    return visit(bind(pyiceberg_schema(schema), rewrite_not(where), case_sensitive=True), _ToSpark(schema))


class _ToSpark(BoundBooleanExpressionVisitor[Column]):
    def __init__(self, schema: JsonObject) -> None:
        self._columns = columns_by_id(schema)

    def _column(self, term: BoundTerm) -> Column:
        return f.col(quoted(self._columns[term.ref().field.field_id].path))

    def _literal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._value(term, literal.value)

    def _value(self, term: BoundTerm, value: Any) -> Column:
        kind = str(term.ref().field.field_type)
        if kind == "date":
            return f.date_from_unix_date(f.lit(value))
        if kind == "timestamptz":
            return f.timestamp_micros(f.lit(value))
        if kind == "timestamp":
            return f.timestamp_micros(f.lit(value)).cast("timestamp_ntz")
        return f.lit(value)

    def visit_in(self, term: BoundTerm, literals: set[Any]) -> Column:
        return self._column(term).isin([self._value(term, one) for one in sorted(literals)])

    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> Column:
        return ~self.visit_in(term, literals) | self._column(term).isNull()

    def visit_is_nan(self, term: BoundTerm) -> Column:
        return f.isnan(self._column(term))

    def visit_not_nan(self, term: BoundTerm) -> Column:
        return ~f.isnan(self._column(term))

    def visit_is_null(self, term: BoundTerm) -> Column:
        return self._column(term).isNull()

    def visit_not_null(self, term: BoundTerm) -> Column:
        return self._column(term).isNotNull()

    def visit_equal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) == self._literal(term, literal)

    def visit_not_equal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return (self._column(term) != self._literal(term, literal)) | self._column(term).isNull()

    def visit_greater_than_or_equal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) >= self._literal(term, literal)

    def visit_greater_than(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) > self._literal(term, literal)

    def visit_less_than(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) < self._literal(term, literal)

    def visit_less_than_or_equal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) <= self._literal(term, literal)

    def visit_true(self) -> Column:
        return f.lit(True)

    def visit_false(self) -> Column:
        return f.lit(False)

    def visit_not(self, child_result: Column) -> Column:
        return ~child_result

    def visit_and(self, left_result: Column, right_result: Column) -> Column:
        return left_result & right_result

    def visit_or(self, left_result: Column, right_result: Column) -> Column:
        return left_result | right_result

    def visit_starts_with(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term).startswith(self._literal(term, literal))

    def visit_not_starts_with(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return ~self.visit_starts_with(term, literal) | self._column(term).isNull()
