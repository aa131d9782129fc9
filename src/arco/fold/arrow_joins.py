"""The join of contributions on Arrow columns, derived from the declaration of a table alone: what the tasks of Spark do.

Rows are sorted by bucket, key and the order of a group; the first of each key has the group's values. An order that is absent
sorts last whichever side wins, and its group is null throughout, as `joins.py` has it. What must never enter: single rows.
"""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from arco.fold.arrow_rows import wide_schema
from arco.fold.vocabulary import BUCKET, Group, Table, Wins

_KEY = "key"


def joined(table: Table, rows: pa.Table) -> pa.Table:
    """One row a key, sorted by bucket and key."""
    # Wide: texts of many rows in one array may be more than two gigabytes.
    rows = rows.cast(wide_schema(table)).combine_chunks()
    if not rows.num_rows:
        return rows
    keys = (BUCKET, *table.key_names)
    first, *others = table.groups
    sort_keys = [*((name, "ascending") for name in keys), (first.order, _direction(first))]
    places = pc.sort_indices(rows, sort_keys=sort_keys)
    begins = _begins([rows.column(name).take(places) for name in keys])
    winners = places.filter(begins)
    if not others or len(winners) == rows.num_rows:
        return rows.take(winners)
    numbers = pa.chunked_array([pc.cumulative_sum(begins.cast(pa.int64()))])
    columns = {name: rows.column(name).take(winners) for name in (*keys, *_names(first))}
    for group in others:
        decided = _winners(group, numbers, rows.column(group.order).take(places), places)
        columns |= {name: rows.column(name).take(decided) for name in _names(group)}
    return pa.Table.from_arrays([columns[name] for name in table.column_names], schema=rows.schema)


def _winners(group: Group, numbers: pa.ChunkedArray, orders: pa.ChunkedArray, places: pa.Array) -> pa.Array:
    """The place of the row that decides a group, for each key. Keys are given by their numbers, in the order of the rows."""
    by_order = pa.Table.from_arrays([numbers, orders], names=[_KEY, group.order])
    sort_keys = [(_KEY, "ascending"), (group.order, _direction(group))]
    sorted_places = pc.sort_indices(by_order, sort_keys=sort_keys)
    return places.take(sorted_places.filter(_begins([numbers.take(sorted_places)])))


def _begins(keys: Sequence[pa.ChunkedArray]) -> pa.Array:
    """For each row whether its key is another than that of the row before it."""
    last = len(keys[0]) - 1
    differs = reduce(pc.or_, (pc.not_equal(values.slice(1), values.slice(0, last)) for values in keys))
    return pa.concat_arrays([pa.array([True]), *differs.chunks])


def _direction(group: Group) -> str:
    return "ascending" if group.wins is Wins.FIRST else "descending"


def _names(group: Group) -> list[str]:
    return [*(column.name for column in group.columns), group.order]
