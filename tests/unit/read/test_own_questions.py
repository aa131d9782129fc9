"""SQL that people write: it touches the files of what it names, and nothing else of the machine."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.passes import fold_pass
from arco.fold.tables import TABLES
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import CorruptObject
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.execution_events import RUN_CREATED, RunCreated
from arco.ledger.lineage_events import LINEAGE_RECORDED
from arco.ledger.payloads import derived_event_id
from arco.read.library import Library
from arco.read.own_questions import ask
from arco.read.reader import Reader
from arco.storage.keys import Domain
from arco.storage.local import LocalStore
from fixtures.state.arrow_work import ArrowWork

SCOPE = Scope.of()
RUN = "01JCW4ZZZZ0000000000000002"
EDGE = {"from": "raw", "from_namespace": "files", "kind": "whole", "to": "orders", "to_namespace": "files"}


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a run and an edge in its state."""
    root = tmp_path_factory.mktemp("lake's [own]")

    async def make() -> None:
        clock, entropy = SystemClock(), SystemEntropy()
        store = LocalStore(str(root), clock, entropy)
        ledger = Appender(store, SCOPE, clock, entropy)
        begun = RunCreated(
            run_id=RUN, project="shop", deployment="d", code_version="c", trigger="manual", triggered_by="me", tasks=1
        )
        await ledger.append(Domain.EXECUTION, [begun.draft(RUN_CREATED, derived_event_id(1, RUN), subject=RUN, run_id=RUN)])
        data = {"run_id": RUN, "task_id": "task_1", "edges": [EDGE]}
        await ledger.append(Domain.LINEAGE, [Draft(type=LINEAGE_RECORDED, source="test", idempotencykey="1", data=data)])
        await ledger.close()
        await fold_pass(Folding(Heads(store, SCOPE, clock, entropy), ArrowWork(store, SCOPE)))

    asyncio.run(make())
    return root


@pytest.fixture
def asked(folded: Path) -> Callable[[Callable[[Reader], Awaitable[Any]]], Any]:
    def go(question: Callable[[Reader], Awaitable[Any]], root: Path = folded) -> Any:
        async def opened() -> Any:
            clock, entropy = SystemClock(), SystemEntropy()
            library = Library(Heads(LocalStore(str(root), clock, entropy), SCOPE, clock, entropy), folder=root)
            try:
                return await question((await library.open()).reader)
            finally:
                library.close()

        return asyncio.run(opened())

    return go


def test_a_question_touches_the_files_of_the_tables_that_it_names(asked: Any, folded: Path) -> None:
    async def question(reader: Reader) -> None:
        gone = [folded / file.key for file in reader.cut.tables["lineage_edges"].files()]
        aside = [path.rename(path.with_suffix(".aside")) for path in gone]
        try:
            assert await ask(reader, "SELECT run_id FROM Runs") == [{"run_id": RUN}]
            assert await ask(reader, "SELECT 1 AS one") == [{"one": 1}]
            with pytest.raises(CorruptObject, match=f"{gone[0].name} is gone"):
                await ask(reader, "SELECT * FROM runs WHERE EXISTS (SELECT 1 FROM main.lineage_edges)")
            with pytest.raises(CorruptObject, match=f"{gone[0].name} is gone"):
                await ask(reader, "SELECT * FROM query_table('lineage_' || 'edges')")
        finally:
            for path, place in zip(aside, gone, strict=True):
                path.rename(place)

    asked(question)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) AS n FROM runs, lineage_edges", [{"n": 1}]),
        ("WITH runs AS (SELECT 7 AS n) SELECT n FROM runs", [{"n": 7}]),
        ("SELECT count(*) AS n FROM query('SELECT * FROM ' || 'runs')", [{"n": 1}]),
        ("SELECT count(*) AS n FROM query_table(['runs', 'runs'])", [{"n": 2}]),
        ("SELECT count(*) AS n FROM (SHOW TABLES) WHERE name = 'lineage_edges'", [{"n": 1}]),
    ],
)
def test_tables_are_found_however_they_are_named(asked: Any, sql: str, rows: list[dict[str, Any]]) -> None:
    assert asked(lambda reader: ask(reader, sql)) == rows


def test_which_tables_there_are_is_told_whole(asked: Any) -> None:
    shown = {row["name"] for row in asked(lambda reader: ask(reader, "SHOW TABLES"))}
    assert shown >= {table.name for table in TABLES}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{other}')",
        "SELECT * FROM '{other}'",
        "SELECT runs.* FROM runs, read_text('{other}')",
        "SELECT runs.* FROM runs, glob('{folder}/*')",
        "SELECT * FROM runs, read_parquet('{edges}')",
    ],
)
def test_sql_reads_nothing_of_the_machine_but_what_it_names(asked: Any, folded: Path, tmp_path: Path, sql: str) -> None:
    other = tmp_path / "other.csv"
    other.write_text("secret\n1\n")

    async def question(reader: Reader) -> None:
        edges = next(reader.cut.tables["lineage_edges"].files()).key
        written = sql.format(other=other, folder=tmp_path, edges=f"{folded}/{edges}".replace("'", "''"))
        with pytest.raises(duckdb.Error, match=r"disabled by configuration|does not exist"):
            await ask(reader, written)
        assert await reader.rows("SELECT count(*) AS n FROM " + await reader.relation(TABLES[0])), "others go on asking"

    asked(question)


def test_a_lake_that_is_named_from_here_is_read(asked: Any, folded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folded.parent)
    here = Path(os.curdir) / folded.name
    assert asked(lambda reader: ask(reader, "SELECT run_id FROM runs"), here) == [{"run_id": RUN}]
