"""The join of contributions in memory: what the fold on Spark and fresh reads in DuckDB must agree with, row for row."""

from collections.abc import Iterable
from typing import Any

from arco.fold.vocabulary import Group, Row, Table, Wins

State = dict[tuple[Any, ...], dict[str, Any]]
"""The rows of one table by their key."""


def joined(table: Table, rows: Iterable[Row], into: State | None = None) -> State:
    """The state of a table after some contributions, on top of an earlier state. The earlier one is changed in place."""
    state: State = {} if into is None else into
    for row in rows:
        key = tuple(row[name] for name in table.key_names)
        known = state.get(key)
        if known is None:
            state[key] = dict(row)
            continue
        for group in table.groups:
            if _beats(group, row, known):
                known[group.order] = row[group.order]
                for column in group.columns:
                    known[column.name] = row[column.name]
    return state


def _beats(group: Group, new: Row, known: Row) -> bool:
    theirs, ours = new[group.order], known[group.order]
    if theirs is None or ours is None:
        return theirs is not None
    return bool(theirs < ours if group.wins is Wins.FIRST else theirs > ours)
