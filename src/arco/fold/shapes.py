"""Tables of state as Arrow: the schema of a table's files, and rows in it. Arrow is loaded when it is first needed."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

from arco.fold.vocabulary import Kind, Row, Table


@cache
def _arrow() -> Any:
    return import_module("pyarrow")


@cache
def arrow_schema(table: Table) -> Any:
    """The schema of a table's files. Moments are UTC in microseconds, without a zone: DuckDB needs no extension for them."""
    pa = _arrow()
    types = {
        Kind.TEXT: pa.string(),
        Kind.LONG: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.FLAG: pa.bool_(),
        Kind.MOMENT: pa.timestamp("us"),
        Kind.TEXTS: pa.list_(pa.string()),
    }
    return pa.schema([(column.name, types[column.kind]) for column in table.columns()])


def arrow_rows(table: Table, rows: Iterable[Row]) -> Any:
    """Rows as one Arrow table. In rows a moment is milliseconds."""
    pa = _arrow()
    schema = arrow_schema(table)
    given = list(rows)
    moments = {column.name for column in table.columns() if column.kind is Kind.MOMENT}
    arrays = []
    for field in schema:
        values = [row[field.name] for row in given]
        if field.name in moments:
            values = [None if value is None else value * 1000 for value in values]
        arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def plain_rows(table: Table, found: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table, moments as milliseconds again."""
    pa = _arrow()
    moments = [column.name for column in table.columns() if column.kind is Kind.MOMENT]
    for name in moments:
        at = found.schema.get_field_index(name)
        micros = found.column(at).cast(pa.timestamp("us")).cast(pa.int64())
        found = found.set_column(at, name, micros)
    rows: list[dict[str, Any]] = found.to_pylist()
    for row in rows:
        for name in moments:
            if row[name] is not None:
                row[name] //= 1000
    return rows
