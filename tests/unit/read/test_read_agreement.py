"""The state against the truth: every kind of difference is named, and what agrees is silent."""

from dataclasses import replace

import pytest

from arco.fold.tables import ASSETS, ICEBERG_TABLES, MATERIALIZATIONS, RUNS
from arco.read.agreement import Disagreement, RunTruth, Truths, disagreements
from unit.read.ground import Ground


@pytest.fixture
def truths(ground: Ground) -> Truths:
    """What would be true if the state were right, from the state itself."""

    async def read(reader):
        async def pairs(table, key, value, where="true"):
            rows = await reader.rows(f"SELECT {key} AS k, {value} AS v FROM {await reader.relation(table)} WHERE {where}")
            return {row["k"]: row["v"] for row in rows if row["v"] is not None}

        outputs = await pairs(MATERIALIZATIONS, "materialization_id", "run_id")
        states = await pairs(RUNS, "run_id", "state", "ended_at IS NOT NULL")
        runs = {
            run: RunTruth(state, frozenset(one for one, by in outputs.items() if by == run))
            for run, state in states.items()
        }
        tables = await pairs(ICEBERG_TABLES, "table_uuid", "metadata_location")
        return Truths(tables, runs, await pairs(ASSETS, "asset_id", "asset", "NOT coalesce(retired, false)"))

    return ground.ask(read)


def test_a_state_that_is_right_disagrees_with_nothing(ground: Ground, truths: Truths) -> None:
    assert truths.tables
    assert truths.assets
    assert any(one.published for one in truths.runs.values())
    assert ground.ask(disagreements, truths) == []


def test_what_the_state_lacks_or_says_otherwise_is_named(ground: Ground, truths: Truths) -> None:
    table, location = next(iter(truths.tables.items()))
    run, truth = next((run, one) for run, one in truths.runs.items() if one.published)
    asset, key = next(iter(truths.assets.items()))
    other = Truths(
        {**truths.tables, table: "elsewhere", "f" * 32: "new"},
        {**truths.runs, run: RunTruth("failed", truth.published | {"lost"})},
        {**{one: name for one, name in truths.assets.items() if one != asset}, "A" * 26: "shop.unheard"},
    )
    found = ground.ask(disagreements, other)
    assert found == sorted(
        [
            Disagreement("asset", asset, None, key),
            Disagreement("asset", "A" * 26, "shop.unheard", None),
            Disagreement("output", "lost", f"published by run {run}", None),
            Disagreement("run", run, "failed", truth.state),
            Disagreement("table", table, "elsewhere", location),
            Disagreement("table", "f" * 32, "new", None),
        ],
        key=lambda one: (one.about, one.subject),
    )


def test_tables_and_runs_that_only_the_state_knows_are_no_disagreement(ground: Ground, truths: Truths) -> None:
    assert ground.ask(disagreements, replace(truths, tables={}, runs={})) == []
