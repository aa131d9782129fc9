"""Rows of state as Arrow and back: the types of the files, and nothing of how rows are joined or read.

A moment is milliseconds in a row and a timestamp of microseconds in a file: of UTC, and without a zone, because DuckDB needs an
extension to show one that has it.
"""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from arco.fold.vocabulary import Column, Kind, Row, Table

_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.LONG: pa.int64(),
    Kind.REAL: pa.float64(),
    Kind.FLAG: pa.bool_(),
    Kind.MOMENT: pa.timestamp("us"),
    Kind.TEXTS: pa.list_(pa.string()),
}
_WIDE = {Kind.TEXT: pa.large_string(), Kind.TEXTS: pa.list_(pa.large_string())}
_IN_MS = pa.timestamp("ms")


def arrow_schema(table: Table) -> pa.Schema:
    """The columns of a table's files."""
    return pa.schema([pa.field(column.name, _TYPES[column.kind]) for column in table.columns()])


def wide_schema(table: Table) -> pa.Schema:
    """The same columns, with room for texts of any length in all; in a file they are the same."""
    return pa.schema([pa.field(column.name, _WIDE.get(column.kind, _TYPES[column.kind])) for column in table.columns()])


def conformed(table: Table, found: pa.Table) -> pa.Table:
    """The rows of a file with the columns of today: one that came later is null, one that is no more is left out.

    In a key nothing is null: what came later there is the empty text in rows of before.
    """
    names = set(found.column_names)
    schema = arrow_schema(table)
    columns = [
        found.column(field.name) if field.name in names else pa.nulls(found.num_rows, field.type) for field in schema
    ]
    rows = pa.Table.from_arrays(columns, names=schema.names).cast(schema)
    for name in table.later_keys:
        rows = rows.set_column(rows.column_names.index(name), name, rows.column(name).fill_null(""))
    return rows


def arrow_table(table: Table, rows: Sequence[Row]) -> pa.Table:
    """Rows as a table."""
    return pa.Table.from_arrays([_array(column, rows) for column in table.columns()], schema=arrow_schema(table))


def rows_of(table: Table, found: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows as they were before they were written."""
    columns = {}
    for column in table.columns():
        values = found.column(column.name)
        # By their number: a year before 1 AD or after 9999 is none of Python's.
        columns[column.name] = (
            values.cast(_IN_MS).cast(pa.int64()).to_pylist() if column.kind is Kind.MOMENT else values.to_pylist()
        )
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _array(column: Column, rows: Sequence[Row]) -> pa.Array:
    values = list(map(itemgetter(column.name), rows))
    if column.kind is Kind.MOMENT:
        return pa.array(values, pa.int64()).cast(_IN_MS).cast(_TYPES[Kind.MOMENT])
    return pa.array(values, _TYPES[column.kind])
