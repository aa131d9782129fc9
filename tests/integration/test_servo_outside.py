"""On real Spark: a workspace that reads from another, a backfill of a year in three jobs, and a run that was asked for."""

import asyncio
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f

from arco import asset, daily
from arco.fold.spark_session import Session
from arco.kernel.errors import InvalidInput
from arco.kernel.scope import Scope
from arco.ledger.asked_runs import AskedRun, AskedRuns, request_id
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED, MaterializationCompleted
from arco.ledger.reading import events
from arco.ledger.run_entries import RunStatus
from arco.ledger.run_state import RunState
from arco.servo.execute.asking import start_asked
from arco.servo.execute.pipeline import HowToRun, Pipeline, Prepared
from arco.servo.execute.spark_read import read_table
from arco.servo.plan.planner import Mode, PlanRequest
from arco.servo.schedule.interventions import request_pause, request_resume
from arco.storage.keys import Domain
from arco.storage.paging import walk
from fixtures.servo.frames import MARKS, rows
from fixtures.servo.lake import Lake
from fixtures.servo.runs import Runs, ended

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

DEV, PROD = Scope.of("default", "dev"), Scope.of()
YEAR = daily("date", start="2024-01-01", end="2025-01-01")


@pytest.fixture
def runs(session: Session, home: Lake, tmp_path: Path) -> Runs:
    return Runs(home, session, tmp_path)


@asset
def numbers(run, upto: int = 3):
    return run.spark.range(upto)


@asset
def total(numbers):
    return numbers.groupBy().agg(f.count("*").alias("n"))


def in_dev(runs: Runs, *assets: Any, defer_to: Scope | None = PROD) -> Pipeline:
    made = runs.pipeline(*assets)
    return replace(made, catalog=made.catalog.beside(DEV), defer_to=defer_to)


def run(runs: Runs, pipeline: Pipeline, *words: str, **request: Any) -> tuple[Prepared, RunState]:
    async def whole() -> tuple[Prepared, RunState]:
        prepared = await pipeline.prepare(PlanRequest(words=words, **request))
        return prepared, await pipeline.drive(await pipeline.start(prepared, HowToRun()))

    return runs.lake.run(whole())


def objects(runs: Runs, scope: Scope) -> dict[str, int]:
    async def all_of_them() -> dict[str, int]:
        return {one.key: one.modified_ms async for one in walk(runs.lake.store, f"{scope.warehouse}/")}

    return runs.lake.run(all_of_them())


def rows_in_dev(runs: Runs, name: str) -> list[tuple[Any, ...]]:
    catalog = runs.lake.another().beside(DEV)
    table = runs.lake.run(catalog.tables.load(("db",), name))[1].metadata
    return rows(read_table(runs.session.spark, table, runs.lake.io))


def test_what_dev_has_not_built_is_read_from_prod_pinned_and_recorded(runs: Runs) -> None:
    assert ended(runs.run(numbers, total)) == {"succeeded": 2}
    snapshot = runs.table("numbers").current_snapshot_id
    before = objects(runs, PROD)

    prepared, state = run(runs, in_dev(runs, numbers, total), "total")
    assert ended(state) == {"succeeded": 1}
    (planned,) = prepared.plan.spec.tasks[0].inputs
    assert (planned.workspace, planned.snapshot_id) == ("default/default", snapshot)
    assert rows_in_dev(runs, "total") == [(3,)]
    assert objects(runs, PROD) == before, "dev writes nothing to prod"

    table = runs.lake.run(runs.lake.another().beside(DEV).tables.load(("db",), "total"))[1].metadata
    assert table.snapshots[-1]["summary"]["arco.input-workspaces"] == '{"numbers":"default/default"}'
    told = [MaterializationCompleted.of(one) for one in runs.lake.run(events(runs.lake.store, DEV, Domain.EXECUTION))
            if one.type == MATERIALIZATION_COMPLETED]  # fmt: skip
    assert [(one.input_workspaces, one.input_snapshots) for one in told] == [
        ({"numbers": "default/default"}, {"numbers": snapshot})
    ]
    again, _ = run(runs, in_dev(runs, numbers, total), "total")
    assert again.plan.spec.tasks == (), "nothing changed there"

    runs.force(numbers, parameters={"upto": "5"}, words=("numbers",))
    newer, _ = run(runs, in_dev(runs, numbers, total), "total")
    assert [one.reason for one in newer.plan.spec.tasks[0].because] == ["input"]
    assert rows_in_dev(runs, "total") == [(5,)]

    both, _ = run(runs, in_dev(runs, numbers, total), "numbers", "total")
    assert {one.asset for one in both.plan.spec.tasks} == {"db.numbers", "db.total"}, "what is asked for is made here"
    assert rows_in_dev(runs, "total") == [(3,)]
    own = runs.lake.run(in_dev(runs, numbers, total).prepare(PlanRequest(words=("total",), mode=Mode.FORCE)))
    assert own.plan.spec.tasks[0].inputs[0].workspace == "", "what dev has built is read in dev"

    with pytest.raises(InvalidInput, match="from itself"):
        runs.lake.run(in_dev(runs, numbers, total, defer_to=DEV).prepare(PlanRequest()))


def test_a_year_of_partitions_is_filled_in_three_jobs_with_one_event_a_range(runs: Runs) -> None:
    @asset(partitions=YEAR)
    def days(run):
        made = run.spark.createDataFrame([(day,) for day in run.values("date")], "date date")
        return made.select("date", f.lit(1).alias("n"))

    pipeline = runs.pipeline(days)

    async def whole() -> tuple[int, RunState]:
        request = PlanRequest(mode=Mode.BACKFILL, partitions_per_task=150)
        prepared = await pipeline.prepare(request)
        assert [task.partition_count for task in prepared.plan.spec.tasks] == [150, 150, 66]
        started = await pipeline.start(prepared, HowToRun(parallelism=1))
        parts = pipeline.catalog.parts
        assert await request_pause(started.log, "ann", "not yet", parts.clock, parts.entropy)
        driving = asyncio.create_task(pipeline.drive(await pipeline.open(started.log.run)))
        claimed = len(started.log.state.active)
        assert await request_resume(started.log, "ann", parts.clock, parts.entropy)
        return claimed, await driving

    claimed, state = runs.lake.run(whole())
    assert (claimed, state.run.status) == (0, RunStatus.SUCCEEDED)
    first, last = date(2024, 1, 1), date(2024, 12, 31)
    assert runs.frame("days").agg(f.count("*"), f.min("date"), f.max("date")).collect()[0][:] == (366, first, last)
    told = [MaterializationCompleted.of(one) for one in runs.events() if one.type == MATERIALIZATION_COMPLETED]
    assert len(told) == 3
    assert told[0].partitions == [{"date": ["2024-01-01", str(first + timedelta(150))]}]
    left = runs.plan(days, mode=Mode.BACKFILL, partitions_per_task=150)
    assert left.plan.spec.tasks == (), "what is there is not filled again"


def test_a_run_that_was_asked_for_is_made(runs: Runs) -> None:
    pipeline = runs.pipeline(numbers, total)

    async def whole() -> RunState:
        await pipeline.deployments.deploy(pipeline.project, by="ann")
        parts = pipeline.catalog.parts
        requests = AskedRuns(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
        wanted = AskedRun(id=request_id("one"), project="tests", make=("+total",), asked_ms=parts.clock.now_ms())
        await requests.ask(wanted)
        (started,) = await start_asked(pipeline)
        assert started.log.run == wanted.run
        return await pipeline.drive(started)

    assert ended(runs.lake.run(whole())) == {"succeeded": 2}
    assert runs.rows("total") == [(3,)]
