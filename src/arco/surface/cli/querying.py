"""`arco query`: SQL over the catalog's own state, one cut of it at a time."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from importlib import import_module
from typing import Any

from arco.fold.heads import Heads
from arco.fold.tables import TABLES
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.read.library import Binding, Library
from arco.read.reader import Reader
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import print_grid, print_json, say_aside


@asynccontextmanager
async def asking(where: Where, binding: Binding) -> AsyncIterator[Reader]:
    """A reader of the state that a command is about."""
    async with opened(where) as at:
        parts = at.catalog.parts
        library = Library(Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy), folder=at.folder)
        found = await library.open(binding)
        if found.warning is not None:
            say_aside(found.warning)
        try:
            yield found.reader
        finally:
            found.reader.close()
            library.close()


async def query(where: Where, sql: str, binding: Binding, *, json: bool) -> None:
    """Print what a query gives."""
    async with asking(where, binding) as reader:
        _refuse_all_but_one_select(sql)
        await reader.name_tables()
        try:
            rows = await reader.rows(sql)
        except import_module("duckdb").Error as error:
            raise InvalidInput(
                clip(str(error), 600), hint="the tables are " + ", ".join(one.name for one in TABLES)
            ) from None
        if json:
            print_json({"snapshot": reader.cut.snapshot_id, "rows": [_plain(row) for row in rows]})
            return
        headers = list(rows[0]) if rows else []
        print_grid(headers or ["no rows"], [[_cell(value) for value in row.values()] for row in rows])


def moment(text: str | None) -> int | None:
    """A time as people write it, in milliseconds; UTC unless it says otherwise."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{clip(text)!r} is no time", hint="write it as ISO 8601, such as 2025-01-31T12:00") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def given(sql: str) -> str:
    """The query, from the command line or from standard input."""
    return sys.stdin.read() if sql == "-" else sql


def _refuse_all_but_one_select(sql: str) -> None:
    duckdb = import_module("duckdb")
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise InvalidInput(clip(str(error), 600)) from None
    kinds = [one.type.name for one in statements]
    if kinds not in (["SELECT"], ["EXPLAIN"]):
        raise InvalidInput("a query is one SELECT", hint="state is made by the fold and never changed by hand")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, date | datetime) else value for key, value in row.items()}


def _cell(value: Any) -> str | None:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return None if value is None else str(value)
