"""How soon a run is seen: in a fresh read the moment that it has ended, and in the folded state after one micro-batch.

Nothing waits and nothing is timed here; `bench/visible.py` measures the seconds.
"""

from pathlib import Path
from typing import Any

import pytest

from arco import asset, daily, not_null
from arco.fold.folding import ALL_HEADS, Folding
from arco.fold.heads import Heads
from arco.fold.passes import Pass, fold_pass
from arco.fold.spark_session import Session
from arco.read.library import Binding, Library
from arco.storage.keys import Head
from arco.surface.folds import Lake as FoldedLake
from arco.surface.folds import folding_of
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake
from fixtures.servo.runs import Runs, ended

from .spark_local import opened

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

DAYS = daily("date", start="2025-01-01", end="2025-01-04")
RUNS = "SELECT run_id, state FROM runs ORDER BY run_id"
MADE = "SELECT asset, partition_key, run_id FROM partitions ORDER BY asset, partition_key"


@asset(partitions=DAYS, checks=[not_null("date")])
def days(run: Any) -> Any:
    return run.spark.createDataFrame([(day,) for day in run.values("date")], "date date")


@asset
def counted(days: Any) -> Any:
    return days.groupBy().count()


@pytest.fixture
def runs(session: Session, home: Lake, tmp_path: Path) -> Runs:
    return Runs(home, session, tmp_path)


def test_a_run_is_in_fresh_reads_when_it_ends_and_folded_by_one_micro_batch(runs: Runs) -> None:
    """The first run and its fold warm everything up, as a server that has been there for a while."""
    assert ended(runs.run(days, counted)) == {"succeeded": 2}
    folded(runs)
    state = runs.force(days, counted)
    assert ended(state) == {"succeeded": 2}
    fresh = asked(runs, fresh=True)
    this = max(row["run_id"] for row in fresh[RUNS])
    assert [row["state"] for row in fresh[RUNS]] == ["succeeded", "succeeded"]
    assert [(row["asset"], row["run_id"]) for row in fresh[MADE]] == [("db.counted", this)] + [("db.days", this)] * 3
    before = numbers(runs)
    assert this not in {row["run_id"] for row in asked(runs)[MADE]}, "nobody has folded it"
    done = folded(runs)
    news = [head for head, one in done.rounds.items() if one.segments]
    assert {Head.EXECUTION, Head.QUALITY, Head.ICEBERG} <= set(news)
    assert [numbers(runs)[head] - before[head] for head in news] == [1] * len(news), "one micro-batch each"
    assert asked(runs) == fresh
    assert not any(one.segments for one in folded(runs).rounds.values()), "nothing was left"


def folded(runs: Runs) -> Pass:
    """One pass of a fold, in the session that is open."""

    async def go() -> Pass:
        parts = runs.lake.another().parts
        lake = FoldedLake(runs.lake.root, runs.lake.options)
        async with folding_of(parts, lake, opened(runs.session)) as folding:
            return await _passed(folding)

    return runs.lake.run(go())


async def _passed(folding: Folding) -> Pass:
    done = await fold_pass(folding)
    assert not done.failed
    return done


def heads_of(runs: Runs) -> Heads:
    parts = runs.lake.catalog.parts
    return Heads(runs.lake.store, parts.scope, parts.clock, parts.entropy)


def numbers(runs: Runs) -> dict[Head, int]:
    """How many manifests each head has published."""

    async def go() -> dict[Head, int]:
        found = {head: (await heads_of(runs).read(head)).manifest for head in ALL_HEADS}
        return {head: 0 if one is None else one.sequence for head, one in found.items()}

    return runs.lake.run(go())


def asked(runs: Runs, *, fresh: bool = False) -> dict[str, list[dict[str, Any]]]:
    """What runs there are and what they made, in the state as it is at this moment."""
    library = Library(heads_of(runs), folder=Path(runs.lake.root.removeprefix("file://")))

    async def rows() -> dict[str, list[dict[str, Any]]]:
        reader = (await library.open(Binding(fresh=fresh))).reader
        await reader.name_tables()
        return {sql: list(await reader.rows(sql)) for sql in (RUNS, MADE)}

    try:
        return runs.lake.run(rows())
    finally:
        library.close()
