"""What checks do to an output, on real Spark: every action of the table, rows that are set aside, keys of other tables."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f

from arco import asset, foreign_key, in_range, not_null, row_count, unique
from arco.fold.spark_session import Session
from arco.quality.checks import Severity
from arco.quality.gates import EFFECTS, POLICIES, Action, Downstream, GatingPolicy
from arco.servo.execute.pipeline import HowToRun
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake
from fixtures.servo.runs import Runs, ended, exits

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS


@pytest.fixture
def runs(session: Session, home: Lake, tmp_path: Path) -> Runs:
    return Runs(home, session, tmp_path)


@asset
def people(run: Any) -> Any:
    return run.spark.createDataFrame([(1, "Ada"), (2, "Bob")], "id bigint, name string")


@pytest.mark.parametrize(
    ("action", "own", "other", "code", "main"),
    [
        (Action.CONTINUE, "succeeded", "succeeded", 0, True),
        (Action.WARN, "succeeded", "succeeded", 0, True),
        (Action.BLOCK_DOWNSTREAM, "blocked", "skipped", 3, False),
        (Action.QUARANTINE, "quarantined", "succeeded", 3, False),
        (Action.FAIL_TASK, "failed", "skipped", 1, False),
        (Action.FAIL_RUN, "failed", "skipped", 1, False),
    ],
    ids=lambda one: getattr(one, "value", None),
)
def test_every_action_does_what_its_row_of_the_table_says(
    runs: Runs, action: Action, own: str, other: str, code: int, main: bool
) -> None:
    policy = GatingPolicy("own", error=action)

    @asset(gate=policy, checks=[in_range("id", max=5)])
    def guarded(run, first: int = 0):
        return run.spark.range(first, first + 3)

    @asset
    def reader(guarded):
        return guarded.agg(f.max("id").alias("greatest"))

    assert exits(runs.run(guarded, reader)) == 0
    before = runs.table("guarded").current_snapshot_id
    state = runs.run(guarded, reader, parameters={"first": "4"})
    found = {its.status.value for its in state.tasks.values()}
    assert found == {own, other}
    assert exits(state) == code
    assert (runs.table("guarded").current_snapshot_id != before) is main
    assert max(runs.rows("guarded")) == ((6,) if main else (2,))
    branches = [name for name in runs.table("guarded").refs if name.startswith("held-")]
    assert len(branches) == (0 if main else 1)
    if branches:
        assert max(runs.rows("guarded", ref=branches[0])) == (6,)
        assert runs.plan(guarded, reader, parameters={"first": "4"}).plan.spec.tasks
    assert runs.rows("reader") == [(6,) if main else (2,)]


def test_every_cell_of_the_policies_ends_as_its_action_says(runs: Runs) -> None:
    """Each severity under each policy, in one run; but for the cell that would end the run, which has a run of its own below."""
    guarded, readers, cells = [], [], {}
    for policy in POLICIES.values():
        for severity in Severity:
            if policy.action(severity) is Action.FAIL_RUN:
                continue
            name = f"{policy.name}_{severity.value}"
            cells[name] = EFFECTS[policy.action(severity)]

            @asset(name=name, gate=policy, checks=[in_range("id", max=5, severity=severity.value)])
            def one(run, first: int = 0):
                return run.spark.range(first, first + 3)

            @asset(name=f"{name}_reader", inputs={"rows": name})
            def reader(rows):
                return rows.agg(f.max("id").alias("greatest"))

            guarded.append(one)
            readers.append(reader)
    assert len(cells) == 11
    assert exits(runs.run(*guarded, *readers)) == 0
    tasks = {one.asset: one.id for one in runs.plan(*guarded, *readers, parameters={"first": "4"}).plan.spec.tasks}
    state = runs.run(*guarded, *readers, parameters={"first": "4"})
    assert exits(state) == 3
    for name, effect in cells.items():
        own = state.tasks[tasks[f"db.{name}"]]
        assert own.status.value == effect.task.value, name
        downstream = state.tasks[tasks[f"db.{name}_reader"]].status.value
        assert downstream == ("skipped" if effect.downstream is Downstream.SKIPPED else "succeeded"), name
        assert max(runs.rows(name)) == ((6,) if effect.main_moves else (2,)), name
        branches = [ref for ref in runs.table(name).refs if ref.startswith("held-")]
        assert bool(branches) is effect.kept_on_branch, name


def test_a_check_that_fails_the_run_cancels_the_rest_of_it(runs: Runs) -> None:
    @asset(checks=[row_count(min=10, severity="critical")])
    def first(run):
        return run.spark.range(3)

    @asset(inputs={"people": "people"})
    def second(people):
        return people

    state = runs.run(first, people, second, how=HowToRun(parallelism=1))
    assert ended(state) == {"failed": 1, "cancelled": 2}
    assert exits(state) == 1


def test_a_first_output_that_is_held_back_leaves_an_empty_table(runs: Runs) -> None:
    @asset(checks=[row_count(min=10)])
    def small(run):
        return run.spark.range(3)

    @asset
    def counted(small):
        return small.agg(f.count("*").alias("rows"))

    assert ended(runs.run(small, counted)) == {"blocked": 1, "skipped": 1}
    assert runs.rows("small") == []
    (its,) = runs.run(small, counted, words=("counted",)).tasks.values()
    assert its.failure is not None, "nothing is made of what is missing"
    assert "db.counted reads db.small, of which nothing was ever published" in its.failure.message


def test_bad_rows_are_set_aside_with_their_rules(runs: Runs) -> None:
    @asset(checks=[not_null("name", quarantine_rows=True), in_range("n", min=0, quarantine_rows=True)])
    def rows(run):
        return run.spark.sql("select * from values (1, 'a'), (-1, 'b'), (2, null), (-2, null) as t(n, name)")

    state = runs.run(rows)
    assert exits(state) == 0
    assert runs.rows("rows") == [(1, "a")]
    # What the log had before either commit was sent is where both are: so whoever settles the attempt finds them.
    (its,) = state.tasks.values()
    assert its.staged is not None
    assert its.staged.publish is not None
    assert its.staged.publish.aside is not None
    table = runs.table("rows__quarantine")
    beside = its.staged.publish.aside
    assert (table.table_uuid, table.current_snapshot_id) == (beside.table_uuid, beside.snapshot_id)
    aside = runs.frame("rows__quarantine").select("n", "name", "arco_rules").collect()
    assert sorted(tuple(row) for row in aside if row[1]) == [(-1, "b", "in_range(n)")]
    assert {row[2] for row in aside if row[0] == -2} == {"not_null(name), in_range(n)"}


def test_keys_are_checked_against_the_pinned_table(runs: Runs) -> None:
    @asset(checks=[foreign_key("person", to="people", to_columns="id"), unique("person")])
    def known(run, person: int = 1):
        return run.spark.sql(f"select {person} person")

    assert exits(runs.run(people, known)) == 0
    assert exits(runs.run(people, known, parameters={"person": "9"})) == 3
