"""Outputs that real Spark wrote and checks held back, released and discarded; and what their code logged."""

import datetime as dt
import logging
from pathlib import Path
from typing import Any

import pytest

from arco import asset, daily, in_range, row_count
from arco.fold.spark_session import Session
from arco.kernel.errors import PartitionsTouched
from arco.kernel.ids import RunId, TaskId
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED
from arco.ledger.run_state import RunState
from arco.servo.execute.attempt_log import read_log
from arco.servo.execute.desk import Desk, Outcome
from arco.servo.execute.desk_decisions import Verdict
from arco.servo.execute.held import Held, decisions, held_outputs, published, rows_set_aside, still_open
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


def signed(bad: int = -1) -> Any:
    """Each day has a row that is well, and one that is set aside."""

    @asset(name="orders", partitions=DAYS, partitions_per_task=1, checks=[in_range("n", min=0, quarantine_rows=True)])
    def made(run):
        rows = [(day, n) for day in run.values("date") for n in (1, bad)]
        return run.spark.createDataFrame(rows, "date date, n int")

    return made


@asset(name="totals")
def totals(orders):
    return orders.groupBy().sum("n")


def rows_aside(runs: Runs) -> list[Held]:
    """Of each day, the first day first: tasks end in any order."""
    said = runs.events()
    found = rows_set_aside(runs.table("orders__quarantine"), decisions(said), published(said))
    return sorted(found, key=lambda one: str(one.partitions))


def released(runs: Runs, one: Held, who: str = "ann") -> Outcome:
    desk = Desk(runs.lake.another(), who, runs.lake.options)
    return runs.lake.run(desk.decide(one, Verdict.RELEASE, who, "they are right"))


def test_rows_that_were_set_aside_are_put_back_into_their_partitions_once(runs: Runs) -> None:
    assert ended(runs.run(signed(), totals)) == {"succeeded": 4}
    first, *others = rows_aside(runs)
    done = released(runs, first)
    day = dt.date(2025, 1, 1)
    assert sorted(runs.rows("orders"))[:2] == [(day, -1), (day, 1)]
    assert len(runs.rows("orders")) == 4
    last = runs.table("orders").snapshots[-1]
    assert (done.snapshot_id, last["summary"]["arco.released-rows"]) == (last["snapshot-id"], first.materialization_id)
    again = released(runs, first, who="bob")
    assert (again.decision.who, again.decision.why) == ("ann", "they are right")
    assert len(runs.rows("orders")) == 4
    assert [one.settled.verdict if one.settled else None for one in rows_aside(runs)] == ["released", None, None]
    # The partition counts as made from what it was made from, and what reads it is to be made again.
    assert [task.asset for task in runs.plan(signed(), totals).plan.spec.tasks] == ["db.totals"]
    for one in others:
        released(runs, one)
    assert len(runs.rows("orders")) == 6
    completed = [event.data for event in runs.events() if event.type == MATERIALIZATION_COMPLETED]
    assert [one["rows"] for one in completed if one["asset"] == "db.orders"] == [1, 1, 1, 2, 2, 2]


def test_rows_of_a_partition_that_was_published_since_are_not_put_back(runs: Runs) -> None:
    runs.run(signed())
    first, *_ = rows_aside(runs)
    runs.force(signed(bad=2), partitions={"date": "2025-01-01..2025-01-01"})
    with pytest.raises(PartitionsTouched):
        released(runs, first)
    assert len(runs.rows("orders")) == 4
    second = rows_aside(runs)[-1]
    released(runs, second)
    assert len(runs.rows("orders")) == 5
