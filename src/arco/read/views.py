"""Tables of state as SQL for DuckDB: the join of a declaration over files, base and deltas and what is not folded yet.

A base is joined already and is read as it is. Where there is more than one layer, rows of one key are joined group by group, as
everywhere. Conditions on key columns, the bucket among them, reach the files: grouping is by them.
What must never enter: which files there are, and any question that is asked of a table.
"""

from collections.abc import Sequence

from arco.fold.vocabulary import BUCKET, Group, Table, Wins


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A name in SQL."""
    return '"' + value.replace('"', '""') + '"'


def parquet(paths: Sequence[str]) -> str:
    """The rows of some files."""
    return f"read_parquet([{', '.join(text(path) for path in paths)}])"


def grown(paths: Sequence[str], nothing: str) -> str:
    """The rows of files of which some, or all, were written before a column was added; `nothing` has all columns."""
    files = f"read_parquet([{', '.join(text(path) for path in paths)}], union_by_name = true)"
    return f"(SELECT * FROM {nothing} UNION ALL BY NAME SELECT * FROM {files})"


def selected(table: Table, layers: Sequence[str]) -> str:
    """The rows of a table, from relations that have all its columns. With no layer it is empty."""
    columns = ", ".join(_column(table, column) for column in table.column_names)
    if len(layers) == 1:
        return f"SELECT {columns} FROM {layers[0]}"
    union = " UNION ALL ".join(f"SELECT {columns} FROM {layer}" for layer in layers)
    keys = ", ".join(name(key) for key in (BUCKET, *table.key_names))
    winners = ", ".join(_winner(group) for group in table.groups)
    values = ", ".join(_unpacked(group) for group in table.groups)
    return f"SELECT {keys}, {values} FROM (SELECT {keys}, {winners} FROM ({union}) GROUP BY {keys})"


def _column(table: Table, column: str) -> str:
    return f"coalesce({name(column)}, '') AS {name(column)}" if column in table.later_keys else name(column)


def _winner(group: Group) -> str:
    """All columns of a group from the contribution that wins it; null if none has it."""
    pick = "arg_min" if group.wins is Wins.FIRST else "arg_max"
    packed = ", ".join(f"{name(column)} := {name(column)}" for column in _columns(group))
    return f"{pick}(struct_pack({packed}), {name(group.order)}) AS {name(group.name)}"


def _unpacked(group: Group) -> str:
    return ", ".join(f"{name(group.name)}.{name(column)} AS {name(column)}" for column in _columns(group))


def _columns(group: Group) -> tuple[str, ...]:
    return (*(column.name for column in group.columns), group.order)
