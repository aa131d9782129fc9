"""The join of contributions as Spark expressions, derived from the declaration of a table alone.

Per key and group, the contribution with the first or the last order gives all columns: `min_by` and `max_by` pass over orders
that are null, as `joins.py` does. Grouping is by bucket and key, so that what comes out is sorted as the files are.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from arco.fold.vocabulary import BUCKET, BUCKETS, Group, Kind, Table, Wins

_TYPES = {
    Kind.TEXT: "string",
    Kind.LONG: "bigint",
    Kind.REAL: "double",
    Kind.FLAG: "boolean",
    Kind.MOMENT: "timestamp_ntz",
    Kind.TEXTS: "array<string>",
}


def columns_ddl(table: Table, separator: str = " ") -> str:
    """The columns of a table in Spark's words; with `: ` as separator, the fields of a struct."""
    return ", ".join(f"`{column.name}`{separator}{_TYPES[column.kind]}" for column in table.columns())


def joined(table: Table, rows: DataFrame, parts: int) -> DataFrame:
    """One row a key, sorted by bucket and key within its part. One part needs no shuffle; several have buckets side by side."""
    keys = [BUCKET, *table.key_names]
    part = (f.col(BUCKET) * parts / BUCKETS).cast("int")
    together = rows.coalesce(1) if parts == 1 else rows.repartitionById(parts, part)
    groups = [_winner(group).alias(group.name) for group in table.groups]
    grouped = together.groupBy(*keys).agg(*groups)
    fields = [f.col(group.name)[name].alias(name) for group in table.groups for name in _names(group)]
    return grouped.select(*keys, *fields).sortWithinPartitions(*keys)


def _winner(group: Group) -> Column:
    values = f.struct(*_names(group))
    return (f.min_by if group.wins is Wins.FIRST else f.max_by)(values, f.col(group.order))


def _names(group: Group) -> list[str]:
    return [*(column.name for column in group.columns), group.order]
