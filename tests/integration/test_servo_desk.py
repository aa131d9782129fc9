"""Outputs that real Spark wrote and checks held back, released and discarded; and what their code logged."""

import logging
from pathlib import Path
from typing import Any

import pytest

from arco import asset, daily, row_count
from arco.fold.spark_session import Session
from arco.kernel.ids import RunId, TaskId
from arco.ledger.run_state import RunState
from arco.servo.execute.attempt_log import read_log
from arco.servo.execute.desk import Desk
from arco.servo.execute.desk_decisions import Verdict
from arco.servo.execute.held import Held, held_outputs, still_open
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake
from fixtures.servo.runs import Runs, ended

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

DAYS = daily("date", start="2025-01-01", end="2025-01-04")


@pytest.fixture
def runs(session: Session, home: Lake, tmp_path: Path) -> Runs:
    return Runs(home, session, tmp_path)


def orders(most: int) -> Any:
    """Three days of rows; more than `most` in a task are held back."""

    @asset(name="orders", partitions=DAYS, partitions_per_task=1, checks=[row_count(max=most)], gate="quarantine")
    def made(run):
        logging.getLogger("shop").info("making %s", run.values("date"))
        return run.spark.createDataFrame([(day, 1) for day in run.values("date") for _ in range(2)], "date date, n int")

    return made


def on_desk(runs: Runs) -> list[Held]:
    return still_open(held_outputs(runs.events()))


def decide(runs: Runs, one: Held, verdict: Verdict) -> None:
    runs.lake.run(Desk(runs.lake.another(), "ann").decide(one, verdict, "ann", "looked at it"))


def said(runs: Runs, state: RunState) -> set[str]:
    scope, run = runs.lake.catalog.parts.scope, RunId(runs.events()[0].data["run_id"])

    async def read() -> set[str]:
        found = [read_log(runs.lake.store, scope, run, TaskId(task)) for task in state.tasks]
        return {line.text for one in found async for _, some in one for line in some}

    return runs.lake.run(read())


def test_held_outputs_are_released_and_discarded_one_by_one(runs: Runs) -> None:
    made = orders(most=1)
    state = runs.run(made)
    assert ended(state) == {"quarantined": 3}
    assert "shop: making [datetime.date(2025, 1, 2)]" in said(runs, state)
    assert {"reading", "writing"} <= said(runs, state)
    first, second, third = on_desk(runs)
    decide(runs, first, Verdict.RELEASE)
    decide(runs, second, Verdict.RELEASE)  # main went on meanwhile, in another partition
    decide(runs, third, Verdict.DISCARD)
    assert on_desk(runs) == []
    assert sorted(runs.table("orders").refs) == ["main"]
    assert len(runs.rows("orders")) == 4
    left = runs.plan(made).plan.spec.tasks
    assert [task.partitions for task in left] == [third.partitions]  # what was released counts as published
