"""Asking a cut: relations of its tables in SQL, pruned to the files that can have the answer, run by DuckDB in this process.

A tail (what is not folded yet) is one more layer of every table it touches. What must never enter: the questions themselves;
there is one file for each kind of question.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from arco.fold.shapes import arrow_rows, arrow_schema
from arco.fold.vocabulary import BUCKET, Row, Table, bucket_of
from arco.read.cut import Cut
from arco.read.files import Files
from arco.read.views import name, parquet, selected

Answer = list[dict[str, Any]]


@cache
def _duckdb() -> Any:
    return import_module("duckdb")


class Reader:
    """One cut, open for questions. `tail` has contributions by the name of their table."""

    def __init__(self, cut: Cut, files: Files, tail: Mapping[str, Sequence[Row]] | None = None) -> None:
        self.cut = cut
        self._files = files
        self._tail = {table: rows for table, rows in (tail or {}).items() if rows}
        self._session: Any = None

    async def relation(self, table: Table, spread: str | None = None) -> str:
        """The rows of a table as a relation in SQL; with a value of its spreading column, only that value's rows."""
        layers = self.cut.layers(table, spread)
        relations: list[str] = []
        if layers.base:
            relations.append(parquet(await self._files.paths(layers.base)))
        if layers.deltas:
            relations.append(parquet(await self._files.paths(file for files in layers.deltas for file in files)))
        # A single delta is joined in itself, several are not joined with each other.
        unjoined = len(layers.deltas) > 1
        if table.name in self._tail:
            relations.append(self._tail_of(table))
            unjoined = True
        if not relations:
            relations.append(self._nothing_of(table))
        if unjoined and len(relations) == 1:
            relations.append(self._nothing_of(table))
        chosen = selected(table, relations)
        if spread is None:
            return f"({chosen})"
        key = next(column for column in table.key if column.name == table.spread_by)
        value = spread.replace("'", "''")
        return f"(SELECT * FROM ({chosen}) WHERE {name(BUCKET)} = {bucket_of(spread)} AND {name(key.name)} = '{value}')"

    async def rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Answer:
        """What a query gives, row by row."""
        return await asyncio.to_thread(self._rows, sql, values)

    def _rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Answer:
        cursor = self.session.cursor()
        try:
            cursor.execute(sql, values or None)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        finally:
            cursor.close()

    @property
    def session(self) -> Any:
        """DuckDB, with nothing of the machine open to it but what a question names."""
        if self._session is None:
            self._session = _duckdb().connect(":memory:")
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _tail_of(self, table: Table) -> str:
        relation = f"tail_{table.name}"
        self._hold(relation, lambda: arrow_rows(table, self._tail[table.name]))
        return name(relation)

    def _nothing_of(self, table: Table) -> str:
        relation = f"no_{table.name}"
        self._hold(relation, lambda: arrow_schema(table).empty_table())
        return name(relation)

    def _hold(self, relation: str, make: Any) -> None:
        known = self.session.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [relation]).fetchone()
        if known is None:
            rows = make()
            self.session.register("given", rows)
            self.session.execute(f"CREATE TABLE {name(relation)} AS SELECT * FROM given")
            self.session.unregister("given")
