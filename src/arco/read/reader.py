"""Asking a cut: relations of its tables in SQL, pruned to the files that can have the answer, run by DuckDB in this process.

A tail (what is not folded yet) is one more layer of every table it touches. What must never enter: the questions themselves;
there is one file for each kind of question.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from arco.fold.tables import TABLES
from arco.fold.vocabulary import BUCKET, Row, Table, bucket_of
from arco.fold.work import StateFile
from arco.read.cut import Cut
from arco.read.files import Files, Hold
from arco.read.views import grown, name, parquet, selected, text

Rows = list[dict[str, Any]]
T = TypeVar("T")


@cache
def _duckdb() -> Any:
    return import_module("duckdb")


@cache
def _arrow_rows() -> Any:
    return import_module("arco.fold.arrow_rows")  # it brings pyarrow: a server that nobody asks does without


class Reader:
    """One cut, open for questions. `tail` has contributions by the name of their table."""

    def __init__(self, cut: Cut, files: Files, tail: Mapping[str, Sequence[Row]] | None = None) -> None:
        self.cut = cut
        self._files = files
        self._hold = Hold()
        self._tail = {table: rows for table, rows in (tail or {}).items() if rows}
        self._session: Any = None
        self._opening = threading.Lock()
        self._made: dict[str, asyncio.Future[Any]] = {}
        self.touched: dict[str, StateFile] = {}
        """The files that questions were answered from, by their names."""
        self._opened: set[str] = set()

    async def relation(self, table: Table, spread: str | Collection[str] | None = None) -> str:
        """The rows of a table as a relation in SQL; with values of its spreading column, only the rows of those."""
        wanted = [spread] if isinstance(spread, str) else spread if spread is None else sorted(set(spread))
        layers = self.cut.layers(table, wanted)
        self.touched |= {file.key: file for file in layers.files()}
        relations: list[str] = []
        if layers.base:
            relations.append(await self._stored(table, layers.base))
        if layers.deltas:
            relations.append(await self._stored(table, [file for files in layers.deltas for file in files]))
        # A single delta is joined in itself, several are not joined with each other.
        unjoined = len(layers.deltas) > 1
        if table.name in self._tail:
            relations.append(await self._tail_of(table))
            unjoined = True
        if not relations:
            relations.append(await self._nothing_of(table))
        if unjoined and len(relations) == 1:
            relations.append(await self._nothing_of(table))
        chosen = selected(table, relations)
        if wanted is None:
            return f"({chosen})"
        buckets = ", ".join(str(bucket) for bucket in sorted({bucket_of(value) for value in wanted})) or "-1"
        values = ", ".join(text(value) for value in wanted) or "NULL"
        column = name(table.spread_by)
        # Of a list, files are only told which row groups can have it; of bounds, also which rows.
        bounds = f" AND {column} BETWEEN {text(wanted[0])} AND {text(wanted[-1])}" if len(wanted) > 1 else ""
        return f"(SELECT * FROM ({chosen}) WHERE {name(BUCKET)} IN ({buckets}) AND {column} IN ({values}){bounds})"

    def may_have(self, table: Table, spread: Collection[str]) -> bool:
        """Whether there can be rows of some values of a table's spreading column. Most questions about what is rare end here."""
        return table.name in self._tail or any(self.cut.layers(table, spread).files())

    async def name_tables(self, tables: Sequence[Table] = TABLES) -> None:
        """Tables by their names, for questions that people write themselves."""
        relations = await asyncio.gather(*(self.relation(table) for table in tables))
        await self._name(tables, relations)

    async def name_columns(self, tables: Sequence[Table] = TABLES) -> None:
        """Tables by their names, without rows: for questions that ask which tables there are."""
        await self._name(tables, [await self._nothing_of(table) for table in tables])

    async def _name(self, tables: Sequence[Table], relations: Sequence[str]) -> None:
        for table, relation in zip(tables, relations, strict=True):
            await self.rows(f"CREATE VIEW {name(table.name)} AS SELECT * FROM {relation}")

    def apart(self) -> "Reader":
        """Another reader of the same, with a session of its own: whoever asks for it closes it."""
        return Reader(self.cut, self._files, self._tail)

    def shut(self) -> None:
        """From now on SQL can read the files of relations that were made so far, and nothing else of this machine, for good."""
        paths = ", ".join(map(text, sorted(self._opened)))
        self.session.execute(
            f"SET allowed_paths = [{paths}]; SET enable_external_access = false; SET lock_configuration = true"
        )

    async def spread_in(self, table: Table, files: Collection[StateFile]) -> set[str]:
        """The values of the spreading column in some files of this cut, and in the tail."""
        relations = [parquet(await self._files.paths(files, self._hold))] if files else []
        if table.name in self._tail:
            relations.append(await self._tail_of(table))
        column = name(table.spread_by)
        found = [await self.rows(f"SELECT DISTINCT {column} AS value FROM {one}") for one in relations]
        return {row["value"] for rows in found for row in rows}

    async def once(self, what: str, make: Callable[[], Awaitable[T]]) -> T:
        """Something that many questions need, made once and held as long as this cut is open: a cut never changes."""
        if what not in self._made:
            made: asyncio.Future[Any] = asyncio.ensure_future(make())
            made.add_done_callback(lambda done: self._forget_failure(what, done))
            self._made[what] = made
        found: T = await asyncio.shield(self._made[what])
        return found

    def _forget_failure(self, what: str, done: "asyncio.Future[Any]") -> None:
        if done.cancelled() or done.exception() is not None:
            self._made.pop(what, None)

    async def kept(self, relation: str, select: Callable[[], Awaitable[str]]) -> str:
        """A small relation that many questions ask, held in memory."""

        async def make() -> str:
            await self.rows(f"CREATE TABLE {name(relation)} AS {await select()}")
            return name(relation)

        return await self.once(relation, make)

    async def aside(self, work: Callable[..., T], *about: Any) -> T:
        """Something that takes long, in a thread: others are answered meanwhile."""
        return await asyncio.to_thread(work, *about)

    async def arrow(self, sql: str) -> Any:
        """What a query gives, as an Arrow table."""
        return await asyncio.to_thread(lambda: self.session.cursor().execute(sql).to_arrow_table())

    async def rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """What a query gives, row by row."""
        return await asyncio.to_thread(self._rows, sql, values)

    def _rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Rows:
        cursor = self.session.cursor()
        try:
            cursor.execute(sql, values or None)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        finally:
            cursor.close()

    @property
    def session(self) -> Any:
        """DuckDB in memory. It runs SQL of Arco's own; for what people write it is shut first."""
        # Questions run in threads: two that come first must not open two databases.
        with self._opening:
            if self._session is None:
                session = _duckdb().connect(":memory:")
                # A question is small, and many are asked side by side: more threads for one cost more than they bring.
                session.execute("SET parquet_metadata_cache = true; SET threads = 1")
                self._session = session
            return self._session

    def close(self) -> None:
        self._hold = Hold()
        if self._session is not None:
            self._session.close()
            self._session = None

    async def _stored(self, table: Table, files: Collection[StateFile]) -> str:
        paths = await self._files.paths(files, self._hold)
        self._opened.update(paths)
        return grown(paths, await self._nothing_of(table)) if table.has_grown else parquet(paths)

    async def _tail_of(self, table: Table) -> str:
        return await self._held(f"tail_{table.name}", lambda: _arrow_rows().arrow_table(table, self._tail[table.name]))

    async def _nothing_of(self, table: Table) -> str:
        return await self._held(f"no_{table.name}", lambda: _arrow_rows().arrow_schema(table).empty_table())

    async def _held(self, relation: str, make: Callable[[], Any]) -> str:
        """Rows of this process as a relation, made once and in a thread."""

        async def load() -> str:
            await asyncio.to_thread(self._load, relation, make)
            return name(relation)

        return await self.once(relation, load)

    def _load(self, relation: str, make: Callable[[], Any]) -> None:
        cursor = self.session.cursor()
        try:
            cursor.register("given", make())  # a name of this cursor alone
            cursor.execute(f"CREATE TABLE {name(relation)} AS SELECT * FROM given")
        finally:
            cursor.close()
