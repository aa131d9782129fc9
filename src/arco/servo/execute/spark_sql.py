"""A statement of a person, and its answer as plain values. What must never enter: assets, and how an answer is shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from arco.kernel.errors import InvalidInput
from arco.servo.execute.spark_failures import failure_of


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows as they came, and whether there are more of them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool


def answered(spark: SparkSession, statement: str, rows_max: int) -> Answer:
    """Run one statement. What Spark says against it is said in one line."""
    try:
        found = spark.sql(statement)
        rows = found.take(rows_max + 1) if found.columns else []
    except (PySparkException, Py4JError) as error:
        failure = failure_of(error)
        raise InvalidInput(failure.message, hint=failure.hints[0].action if failure.condition is None else "") from None
    plain = tuple(tuple(_plain(value) for value in row) for row in rows[:rows_max])
    return Answer(tuple(found.columns), plain, len(rows) > rows_max)


def _plain(value: Any) -> Any:
    """A value without Spark's own types around it."""
    if isinstance(value, Row):
        return {word: _plain(inner) for word, inner in value.asDict().items()}
    if isinstance(value, Mapping):
        return {str(word): _plain(inner) for word, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else value
