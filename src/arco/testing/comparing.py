"""Compare rows without their order, and say which are missing and which are too many."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from arco.kernel.ids import clip

_SHOWN_MAX = 10


def assert_same_rows(actual: Any, expected: Any) -> None:
    """That a DataFrame has exactly these rows, in any order: another DataFrame, or a list of dicts or tuples.

    Columns are compared by name where the expected rows name them. A time without a zone is UTC; NaN equals NaN.
    """
    columns, rows = _rows(actual)
    wanted_columns, wanted = _expected(expected, columns)
    if set(wanted_columns) != set(columns):
        raise AssertionError(f"columns differ: found {sorted(columns)}, expected {sorted(wanted_columns)}")
    found = Counter(_frozen([row[name] for name in columns]) for row in rows)
    asked = Counter(_frozen([row[name] for name in columns]) for row in wanted)
    if found != asked:
        raise AssertionError(
            "\n".join(
                [f"rows differ, as {columns}:", *_said("missing", asked - found), *_said("not expected", found - asked)]
            )
        )


def _expected(expected: Any, columns: list[str]) -> tuple[list[str], list[Mapping[str, Any]]]:
    if hasattr(expected, "toArrow"):
        return _rows(expected)
    rows = [_named(row, columns) for row in expected]
    named = {frozenset(row) for row in rows}
    if len(named) > 1:
        raise AssertionError(f"expected rows have different columns: {sorted(map(sorted, named))}")
    return (list(rows[0]) if rows else columns), rows


def _rows(frame: Any) -> tuple[list[str], list[Mapping[str, Any]]]:
    """By way of Arrow: collected rows would have their times in the zone of the machine."""
    table = frame.toArrow()
    return list(table.column_names), table.to_pylist(maps_as_pydicts="strict")


def _named(row: Any, columns: list[str]) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    as_dict = getattr(row, "asDict", None)
    if as_dict is not None:
        named: Mapping[str, Any] = as_dict(recursive=True)
        return named
    if len(row) != len(columns):
        raise AssertionError(f"an expected row has {len(row)} values, and there are {len(columns)} columns: {row!r}")
    return dict(zip(columns, row, strict=True))


def _frozen(value: Any) -> Any:
    """A value that can be counted; equal where a reader would say so."""
    match value:
        case float() if value != value:  # noqa: PLR0124 - only NaN differs from itself
            return "NaN"
        case datetime() if value.tzinfo is None:
            return value.replace(tzinfo=UTC)
        case dict():
            return tuple((name, _frozen(one)) for name, one in sorted(value.items()))
        case list() | tuple():
            return tuple(_frozen(one) for one in value)
        case _:
            return value


def _said(what: str, rows: Counter[Any]) -> Iterable[str]:
    for row, count in sorted(rows.items(), key=repr)[:_SHOWN_MAX]:
        yield f"  {what}: {clip(repr(row), 300)}{f' ({count} times)' if count > 1 else ''}"
    if len(rows) > _SHOWN_MAX:
        yield f"  {what}: {len(rows) - _SHOWN_MAX} more"
