"""`arco query`: SQL over the catalog's own state, one cut of it at a time."""

import sys
from datetime import date, datetime
from importlib import import_module
from typing import Any

from arco.fold.tables import TABLES
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.read.library import Binding
from arco.read.own_questions import ask
from arco.surface.cli.asking import asking
from arco.surface.cli.flags import Where
from arco.surface.cli.printing import print_grid, print_json


async def query(where: Where, sql: str, binding: Binding, *, json: bool) -> None:
    """Print what a query gives."""
    async with asking(where, binding) as asked:
        reader = asked.reader
        _refuse_all_but_one_select(sql)
        try:
            rows = await ask(reader, sql)
        except import_module("duckdb").Error as error:
            raise InvalidInput(
                clip(str(error), 600), hint="the tables are " + ", ".join(one.name for one in TABLES)
            ) from None
        if json:
            print_json({"snapshot": reader.cut.snapshot_id, "rows": [_plain(row) for row in rows]})
            return
        headers = list(rows[0]) if rows else []
        print_grid(headers or ["no rows"], [[_cell(value) for value in row.values()] for row in rows])


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
