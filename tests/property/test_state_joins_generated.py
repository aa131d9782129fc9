"""One definition of a join, executed in memory, in Arrow and in DuckDB: any contributions in any layers give the same rows."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from arco.fold.arrow_joins import joined as joined_columns
from arco.fold.arrow_rows import arrow_table, rows_of
from arco.fold.joins import joined
from arco.fold.tables import TABLES
from arco.fold.vocabulary import BUCKET, Column, Kind, Row, Table, bucket_of
from arco.fold.work import StateFile
from arco.kernel.clock import SystemClock
from arco.read.cut import Cut, Layers
from arco.read.files import Files
from arco.read.reader import Reader
from arco.storage.memory import MemoryStore
from fixtures.state.state_files import state_file

_VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.TEXT: st.sampled_from(["", "a", "b'c", 'd"e', "ü", "zz"]),
    Kind.LONG: st.integers(-(2**63), 2**63 - 1),
    Kind.REAL: st.sampled_from([0.0, 0.5, -1.25]),
    Kind.FLAG: st.booleans(),
    Kind.MOMENT: st.integers(0, 4_000_000_000_000),
    Kind.TEXTS: st.lists(st.sampled_from(["x", "y", ""]), max_size=2),
}


@st.composite
def contributions(draw: st.DrawFn, table: Table) -> dict[str, Any]:
    """A row with a small key, so that keys meet, and each group there or not. Equal orders mean equal values."""
    row: dict[str, Any] = {column.name: draw(_key(column)) for column in table.key}
    for group in table.groups:
        order = draw(st.none() | st.integers(0, 5).map(lambda number: f"{number:04}"))
        row[group.order] = order
        for column in group.columns:
            row[column.name] = None if order is None else _value(column, order, tuple(row[key] for key in table.key_names))
    row[BUCKET] = bucket_of(row[table.spread_by])
    return row


def _key(column: Column) -> st.SearchStrategy[Any]:
    return st.sampled_from(["k1", "k'2", ""]) if column.kind is Kind.TEXT else st.integers(0, 2)


def _value(column: Column, *decides: object) -> Any:
    """A value that follows from what decides it: two contributions with one order cannot differ."""
    seed = int(hashlib.sha256(repr((column.name, decides)).encode()).hexdigest()[:12], 16)
    choices: dict[Kind, Sequence[Any]] = {
        Kind.TEXT: ("", "a", "b'c", 'd"e', "ü", None),
        Kind.LONG: (-(2**63), 0, 2**63 - 1, None),
        Kind.REAL: (0.0, 0.5, -1.25, None),
        Kind.FLAG: (True, False, None),
        Kind.MOMENT: (0, 1, 4_000_000_000_000, None),
        Kind.TEXTS: ([], ["x"], ["y", ""], None),
    }
    options = choices[column.kind]
    return options[seed % len(options)]


@settings(max_examples=60)
@given(data=st.data(), table=st.sampled_from(TABLES))
def test_layers_in_duckdb_are_joined_as_in_memory(data: st.DataObject, table: Table, tmp_path_factory: Any) -> None:
    rows = data.draw(st.lists(contributions(table), max_size=14))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), min_size=2, max_size=2)))
    base, delta, tail = rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :]
    expected = joined(table, rows)
    folder = tmp_path_factory.mktemp("state")
    layers = Layers(
        _written(table, folder, "base", joined(table, base).values()),
        tuple(one for one in [_written(table, folder, "delta", joined(table, delta).values())] if one),
    )
    found = asyncio.run(_read(table, layers, folder, tail))
    assert {tuple(row[key] for key in table.key_names): row for row in found} == expected
    assert len(found) == len(expected)


@settings(max_examples=60)
@given(data=st.data(), table=st.sampled_from(TABLES))
def test_columns_in_arrow_are_joined_as_in_memory(data: st.DataObject, table: Table) -> None:
    rows = data.draw(st.lists(contributions(table), max_size=14))
    cut = data.draw(st.integers(0, len(rows)))
    chunks = [arrow_table(table, rows[:cut]), arrow_table(table, rows[cut:])]
    found = list(rows_of(table, joined_columns(table, pa.concat_tables(chunks))))
    keys = [tuple(row[key] for key in table.key_names) for row in found]
    assert dict(zip(keys, found, strict=True)) == joined(table, rows)
    assert len(set(keys)) == len(keys)


def _written(table: Table, folder: Path, name: str, rows: Any) -> tuple[StateFile, ...]:
    given_rows: list[Row] = list(rows)
    if not given_rows:
        return ()
    file, data = state_file(table, given_rows, f"{name}.parquet")
    (folder / file.key).write_bytes(data)
    return (file,)


async def _read(table: Table, layers: Layers, folder: Path, tail: list[dict[str, Any]]) -> list[dict[str, Any]]:
    reader = Reader(
        Cut("snapshot", 0, {table.name: layers}), Files(MemoryStore(SystemClock()), folder=folder), {table.name: tail}
    )
    try:
        relation = await reader.relation(table)
        return list(rows_of(table, reader.session.execute(f"SELECT * FROM {relation}").to_arrow_table()))
    finally:
        reader.close()
