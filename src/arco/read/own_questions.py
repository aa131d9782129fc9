"""Questions that people write themselves, in SQL, over the tables of one cut.

Only files of the tables that a question names are touched, and it can read nothing else of this machine: DuckDB is shut before it
hears the question. What must never enter: questions of Arco's own, and what may be asked.
"""

from collections.abc import Sequence
from importlib import import_module

from arco.fold.tables import TABLES
from arco.fold.vocabulary import Table
from arco.read.reader import Reader, Rows


async def ask(reader: Reader, sql: str) -> Rows:
    """What a question gives. Errors are DuckDB's, and those of files that are damaged or gone."""
    wanted = await reader.aside(_named, sql)
    apart = reader.apart()  # what is shut stays shut, and others ask this reader too
    try:
        if wanted:
            await apart.name_tables(wanted)
        else:
            await apart.name_columns(TABLES)
        await apart.aside(apart.shut)
        return await apart.rows(sql)
    finally:
        apart.close()


def _named(sql: str) -> Sequence[Table]:
    """The tables that a question names; all of them if it cannot be told."""
    duckdb = import_module("duckdb")
    # Where names are looked for, functions are bound: that would open the files that they are given.
    with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as parsing:
        try:
            names = {name.lower() for name in parsing.get_table_names(sql)}
        except duckdb.PermissionException:
            raise
        except duckdb.Error:
            return TABLES  # it names tables by an expression, or is wrong: DuckDB says so when it is asked
    return [table for table in TABLES if table.name in names]
