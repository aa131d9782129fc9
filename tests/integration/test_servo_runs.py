"""Runs of small projects on real Spark: what they publish, what they hold back, what they leave as it was."""

import asyncio
import threading
import time
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f

from arco import (
    asset,
    changes_of,
    daily,
    dynamic,
    every,
    files,
    hourly,
    last,
    mapped,
    monthly,
    not_null,
    row_count,
    source,
    static,
    weekly,
    window,
)
from arco.fold.shredding import shred
from arco.fold.spark_session import Session
from arco.fold.tables import PARTITIONS
from arco.iceberg import changes
from arco.kernel.partition_key import PartitionKey
from arco.servo.deploy.dynamic_values import DynamicDimensions
from arco.servo.execute.pipeline import HowToRun
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from arco.servo.plan.planner import Mode, PlanRequest
from arco.storage.keys import Domain
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake
from fixtures.servo.runs import Runs, ended, exits, why

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

NOW_MS = 1_760_000_000_000
WEEK = daily("date", start="2025-01-01", end="2025-01-08")


@pytest.fixture
def runs(session: Session, home: Lake, tmp_path: Path) -> Runs:
    return Runs(home, session, tmp_path)


def of_days(run: Any, *, rows: int = 2, **columns: str) -> Any:
    """A few rows for each of the days that are asked for."""
    days = run.spark.createDataFrame([(day,) for day in run.values("date")], "date date")
    made = days.crossJoin(run.spark.range(rows).withColumnRenamed("id", "n"))
    return made.select("date", "n", *(f.expr(text).alias(name) for name, text in columns.items()))


@asset
def people(run):
    return run.spark.createDataFrame([(1, "Ada"), (2, "Bob")], "id bigint, name string")


@asset(partitions=WEEK)
def visits(run):
    return of_days(run, person="n + 1")


# Publishing


def test_a_run_publishes_tables_and_a_second_one_has_nothing_to_do(runs: Runs) -> None:
    @asset(partitions=WEEK)
    def named(visits, people):
        return visits.join(people, visits["person"] == people["id"]).select("date", "name")

    state = runs.run(people, visits, named)
    assert ended(state) == {"succeeded": 3}
    assert exits(state) == 0
    assert runs.rows("named")[:2] == [(date(2025, 1, 1), "Ada"), (date(2025, 1, 1), "Bob")]
    assert runs.frame("named").count() == 14
    assert runs.plan(people, visits, named).plan.spec.tasks == ()


def test_a_snapshot_says_where_it_came_from(runs: Runs) -> None:
    state = runs.run(people)
    summary = runs.table("people").snapshots[-1]["summary"]
    (task,) = state.tasks
    assert summary["arco.task-id"] == task
    assert summary["arco.asset"] == "db.people"
    assert {"arco.run-id", "arco.materialization-id", "arco.plan-fingerprint", "arco.code-version", "arco.checks"} <= set(
        summary
    )


def test_what_a_run_did_is_in_the_ledger(runs: Runs) -> None:
    @asset(checks=[row_count(min=1)])
    def checked(people):
        return people

    runs.run(people, checked)
    kinds = [event.type.partition(".")[2] for event in runs.events()]
    assert kinds[:2] == ["run_created.v1", "plan_generated.v1"]
    assert kinds[-1] == "run_completed.v1"
    assert (
        kinds.count("materialization_completed.v1") == kinds.count("task_started.v1") == kinds.count("task_ended.v1") == 2
    )
    (check,) = runs.events(Domain.QUALITY)
    assert check.data["result"]["passed"] is True
    assert check.data["asset"] == "db.checked"
    (edge,) = runs.events(Domain.LINEAGE)[0].data["edges"]
    assert (edge["from"], edge["to"]) == ("db.people", "db.checked")
    for domain in (Domain.EXECUTION, Domain.QUALITY, Domain.LINEAGE):
        for event in runs.events(domain):
            assert shred(event)  # it can be folded, and says something


def test_a_run_says_of_each_file_what_is_in_it(runs: Runs) -> None:
    runs.run(people, visits)
    told = {one.data["asset"]: one.data for one in runs.events() if one.type.endswith("materialization_completed.v1")}
    for name in ("people", "visits"):
        said = told[f"db.{name}"]
        assert 0 < said["files"] == len(said["file_stats"]) < 10
        assert sum(one["rows"] for one in said["file_stats"]) == said["rows"] == runs.frame(name).count()
        assert sum(one["bytes"] for one in said["file_stats"]) == said["bytes"]
        for one in said["file_stats"]:
            paths = {column["column"]: column for column in one["columns"]}
            assert set(paths) == set(runs.frame(name).columns)
            assert all(column["nulls"] == 0 and column["lower"] <= column["upper"] for column in paths.values())


# Partitions


@pytest.mark.parametrize(
    ("axis", "rows", "transform"),
    [
        (hourly("at", start="2025-01-01T00", end="2025-01-01T03"), "timestamp'2025-01-01 0{}:30:00'", "hour"),
        (daily("at", start="2025-01-01", end="2025-01-04"), "timestamp'2025-01-0{} 05:00:00'", "day"),
        (weekly("at", start="2025-01-06", end="2025-01-27"), "date_add(date'2025-01-07', {}*7)", "identity"),
        (monthly("at", start="2025-01-01", end="2025-04-01"), "add_months(date'2025-01-15', {})", "month"),
        (static("at", [0, 1, 2]), "cast({} as int)", "identity"),
        (static("at", ["0", "1", "2"]), "cast({} as string)", "identity"),
    ],
    ids=lambda one: getattr(one, "kind", None) or str(one),
)
def test_every_kind_of_partition_is_replaced_alone(runs: Runs, axis: Any, rows: str, transform: str) -> None:
    first = 1 if transform == "day" else 0

    def made(spark: Any, numbers: Any, value: str) -> Any:
        parts = [spark.sql(f"select {rows.format(one)} at, '{value}' value") for one in numbers]
        frame = parts[0]
        for one in parts[1:]:
            frame = frame.union(one)
        return frame

    current = {"value": "old"}

    @asset(name="parts", partitions=axis)
    def parts(run):
        bounds = {axis.ordinal(value) for value in run.values("at")}
        low, _ = axis.bounds(NOW_MS)
        return made(run.spark, [one - low + first for one in sorted(bounds)], current["value"])

    assert ended(runs.run(parts)) == {"succeeded": 1}
    assert len(runs.rows("parts")) == 3
    contributed = [row for event in runs.events() for table, row in shred(event) if table is PARTITIONS]
    assert [(row["rows"], row["files"], row["sequence_number"]) for row in contributed] == [(1, 1, 1)] * 3
    keys = {axis.value(axis.bounds(NOW_MS)[0] + number) for number in range(3)}
    assert {row["partition_key"] for row in contributed} == {str(PartitionKey({"at": key})) for key in keys}
    current["value"] = "new"
    low, _ = axis.bounds(NOW_MS)
    text = axis.value(low + 1)
    said = text.isoformat() if hasattr(text, "isoformat") else str(text)
    assert ended(runs.force(parts, partitions={"at": said})) == {"succeeded": 1}
    assert sorted(row[1] for row in runs.rows("parts")) == ["new", "old", "old"]
    spec = runs.table("parts").document["partition-specs"][-1]
    assert [field["transform"] for field in spec["fields"]] == [transform]


def test_a_dynamic_dimension_has_the_values_that_were_added(runs: Runs) -> None:
    @asset(partitions=dynamic("tenant"))
    def tenants(run):
        return run.spark.createDataFrame([(one, 1) for one in run.values("tenant")], "tenant string, n int")

    pipeline = runs.pipeline(tenants)
    deployment = runs.lake.run(pipeline.prepare(PlanRequest())).deployment
    parts = pipeline.catalog.parts
    dimensions = DynamicDimensions(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
    for value in ("acme", "umbrella"):
        runs.lake.run(dimensions.add(deployment.assets["db.tenants"].asset_id, "tenant", [value]))
        assert ended(runs.run(tenants)) == {"succeeded": 1}
    assert runs.rows("tenants") == [("acme", 1), ("umbrella", 1)]
    assert len(runs.table("tenants").snapshots) == 2
    assert runs.plan(tenants).plan.spec.tasks == ()


def test_two_dimensions_and_a_window(runs: Runs) -> None:
    regions = static("region", ["de", "fr"])

    @asset(partitions=[WEEK, regions])
    def sales(run):
        return of_days(run, rows=2, region="if(n = 0, 'de', 'fr')").where(f.col("region").isin(run.values("region")))

    @asset(partitions=WEEK, inputs={"week": window("sales", -1, 0)})
    def recent(run, week):
        days = run.spark.createDataFrame([(day,) for day in run.values("date")], "date date")
        return days.join(week, f.datediff(days["date"], week["date"]).between(0, 1)).groupBy(days["date"]).count()

    assert ended(runs.run(sales, recent)) == {"succeeded": 2}
    assert runs.rows("recent")[0] == (date(2025, 1, 1), 2)
    assert runs.rows("recent")[1] == (date(2025, 1, 2), 4)
    planned = runs.plan(sales, recent, partitions={"region": "fr", "date": "2025-01-03"}, words=("sales",)).plan
    assert planned.spec.tasks == ()


def test_three_dimensions_with_keys_of_their_own_types(runs: Runs) -> None:
    @asset(partitions=[WEEK, static("shard", [1, 2]), static("tier", [True, False])])
    def cells(run, said: str = "first"):
        keys = [
            (day, shard, tier) for day in run.values("date") for shard in run.values("shard") for tier in run.values("tier")
        ]
        return run.spark.createDataFrame(keys, "date date, shard int, tier boolean").withColumn("said", f.lit(said))

    assert ended(runs.run(cells)) == {"succeeded": 1}
    assert len(runs.rows("cells")) == 7 * 2 * 2
    only = {"date": "2025-01-03..2025-01-04", "shard": "2", "tier": "true"}
    state = runs.force(cells, partitions=only, parameters={"said": "again"})
    assert ended(state) == {"succeeded": 1}
    again = [row[:3] for row in runs.rows("cells") if row[3] == "again"]
    assert again == [(date(2025, 1, 3), 2, True), (date(2025, 1, 4), 2, True)]
    assert len(runs.rows("cells")) == 7 * 2 * 2


def test_a_mapping_of_the_projects_own_decides_what_is_read_and_what_is_stale(runs: Runs) -> None:
    def two_days_before(made):
        return [{"date": made["date"] - timedelta(days=2)}]

    @asset(partitions=WEEK)
    def sales(run, said: str = "first"):
        return of_days(run, rows=1, said=f"'{said}'")

    @asset(partitions=WEEK, inputs={"earlier": mapped("sales", two_days_before)})
    def later(earlier):
        return earlier.select(f.date_add("date", 2).alias("date"), f.col("date").alias("of"), "said")

    assert ended(runs.run(sales, later)) == {"succeeded": 2}
    assert [row[:2] for row in runs.rows("later")] == [(date(2025, 1, day), date(2025, 1, day - 2)) for day in range(3, 8)]
    runs.force(sales, later, words=("sales",), partitions={"date": "2025-01-02"})
    (task,) = runs.plan(sales, later).plan.spec.tasks
    assert (task.asset, task.partitions) == ("db.later", [{"date": ["2025-01-04", "2025-01-05"]}])


def test_rows_outside_the_partitions_of_a_task_are_refused(runs: Runs) -> None:
    @asset(partitions=WEEK)
    def astray(run):
        return run.spark.sql("select date'2024-12-31' date, 1 n")

    state = runs.run(astray)
    assert ended(state) == {"failed": 1}
    assert "outside the partitions" in why(state)[0]


@pytest.mark.parametrize("mode", ["replace", "append", "merge"])
def test_rows_of_other_partitions_are_refused_whatever_is_done_with_them(runs: Runs, mode: str) -> None:
    """Whoever reads the other partition would not be stale: nothing says that it has changed."""

    @asset(partitions=WEEK, mode=mode, key="n" if mode == "merge" else ())
    def astray(run):
        return run.spark.sql("select explode(array(date'2025-01-01', date'2025-01-02')) date, 1 n")

    state = runs.run(astray, partitions={"date": "2025-01-01"})
    assert ended(state) == {"failed": 1}
    assert "outside the partitions that are made: date = 2025-01-02" in why(state)[0]


def test_what_lies_between_the_partitions_of_a_task_is_left_as_it_is(runs: Runs) -> None:
    """Code is told from where to where, and the values of each dimension; what is published already may lie between."""

    @asset(partitions=WEEK)
    def days(run, version: int = 1):
        every_day = run.spark.sql("select explode(sequence(date'2024-12-01', date'2025-02-01')) date")
        return every_day.where(f.col("date") >= run.start).where(f.col("date") < run.end).withColumn("v", f.lit(version))

    @asset(partitions=[WEEK, static("region", ["de", "fr", "it"])], partition_by=["bucket(4, n)"])
    def grid(run, version: int = 1):
        regions = run.spark.createDataFrame([(one,) for one in run.values("region")], "region string")
        return of_days(run, rows=1, v=str(version)).crossJoin(regions)

    part = {"date": "2025-01-04", "region": "de,it"}
    assert ended(runs.run(days, grid, partitions=part)) == {"succeeded": 2}
    before = {name: runs.table(name).current_snapshot_id for name in ("days", "grid")}
    assert ended(runs.run(days, grid)) == {"succeeded": 2}
    assert runs.rows("days") == [(date(2025, 1, day), 1) for day in range(1, 8)]
    expected = [(date(2025, 1, day), 0, 1, region) for day in range(1, 8) for region in ("de", "fr", "it")]
    assert runs.rows("grid") == expected
    assert {name: runs.table(name).current_snapshot_id for name in before} != before
    assert runs.plan(days, grid).plan.spec.tasks == ()


@pytest.mark.parametrize("layout", [[], ["bucket(2, n)"]])
def test_partitions_that_the_layout_does_not_know_are_replaced_together(runs: Runs, layout: list[str]) -> None:
    """One file has rows of several of them, and no footer says that it has no others."""

    @asset(partitions=static("region", ["de", "fr", "it"]), partition_by=layout)
    def mixed(run, version: int = 1):
        regions = run.spark.createDataFrame([(one,) for one in run.values("region")], "region string")
        return regions.crossJoin(run.spark.range(2)).selectExpr("region", "id as n", f"{version} as v").coalesce(1)

    assert ended(runs.run(mixed)) == {"succeeded": 1}
    assert ended(runs.force(mixed, partitions={"region": "de,it"}, parameters={"version": "2"})) == {"succeeded": 1}
    newer = {"de": 2, "fr": 1, "it": 2}
    assert runs.rows("mixed") == [(region, n, newer[region]) for region in ("de", "fr", "it") for n in (0, 1)]


def test_what_code_registers_in_spark_is_its_own(runs: Runs) -> None:
    """Views of one name are usual; tasks run side by side, and one that read the other's would publish wrong rows."""
    together = threading.Barrier(2)

    def summed(rows: Any, ansi: str) -> Any:
        spark = rows.sparkSession
        rows.createOrReplaceTempView("mine")
        spark.udf.register("named", lambda: ansi)
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        together.wait(60)
        return spark.sql("select count(*) as rows, min(id) as first, min(named()) as own from mine")

    @asset(retry=0)
    def small(people):
        return summed(people.where("id = 1"), "true")

    @asset(retry=0)
    def all_of_them(people):
        return summed(people, "false")

    runs.run(people)
    assert ended(runs.run(people, small, all_of_them)) == {"succeeded": 2}
    assert runs.rows("small") == [(1, 1, "true")]
    assert runs.rows("all_of_them") == [(2, 1, "false")]
    assert runs.session.spark.catalog.listTables() == []


def test_code_that_ends_the_process_ends_its_task_alone(runs: Runs) -> None:
    @asset(retry=0)
    def leaves(run):
        raise SystemExit(3)

    state = runs.run(people, leaves)
    assert ended(state) == {"succeeded": 1, "failed": 1}
    assert "SystemExit" in why(state)[0]


def test_partitions_of_another_type_than_their_column_are_refused_by_name(runs: Runs) -> None:
    @asset(partitions=static("shop", [1, 2]))
    def numbered(run):
        return run.spark.sql("select '1' shop")

    (said,) = why(runs.run(numbered))
    assert "partitions by shop, such as 1, 2, and shop is a column of type string" in said


# Modes


def test_append_adds_and_merge_replaces_by_key(runs: Runs) -> None:
    @asset(mode="append")
    def log(run):
        return run.spark.sql("select 1 id")

    @asset(mode="merge", key="id")
    def state(run, low: int = 0):
        return run.spark.range(low, low + 3).selectExpr("id", f"{low} version")

    runs.run(log, state)
    runs.force(log, state, parameters={"low": "2"})
    assert runs.rows("log") == [(1,), (1,)]
    assert runs.rows("state") == [(0, 0), (1, 0), (2, 2), (3, 2), (4, 2)]


def test_a_full_refresh_replaces_everything_and_may_lose_columns(runs: Runs) -> None:
    @asset(name="whole", mode="full", compatibility="none")
    def before(run):
        return run.spark.sql("select 1 id, 'x' gone, 7 kind")

    @asset(name="whole", mode="full", compatibility="none")
    def after(run):
        return run.spark.sql("select 2 id, 'seven' kind")

    runs.run(before)
    assert ended(runs.run(after)) == {"succeeded": 1}
    assert runs.frame("whole").columns == ["id", "kind"]
    assert runs.rows("whole") == [(2, "seven")]


def test_an_empty_output_is_published(runs: Runs) -> None:
    @asset(partitions=WEEK)
    def nothing(run):
        return of_days(run).where("false")

    assert ended(runs.run(nothing)) == {"succeeded": 1}
    assert runs.rows("nothing") == []
    assert runs.plan(nothing).plan.spec.tasks == ()


def test_changes_are_what_was_appended_since(runs: Runs) -> None:
    more = {"first": 0}

    @asset(mode="append", name="arrivals")
    def arrivals(run):
        return run.spark.range(more["first"], more["first"] + 2)

    @asset(mode="append", inputs={"new": changes_of("arrivals")})
    def counted(new):
        return new.agg(f.count("*").alias("rows"), f.min("id").alias("first"))

    runs.run(arrivals, counted)
    assert runs.rows("counted") == [(2, 0)]
    more["first"] = 2
    runs.force(arrivals, counted, words=("arrivals",))
    assert ended(runs.run(arrivals, counted)) == {"succeeded": 1}
    assert runs.rows("counted") == [(2, 0), (2, 2)]


def test_anything_but_appends_reads_all_and_replaces_what_was_made(runs: Runs) -> None:
    @asset(mode="full", name="arrivals")
    def arrivals(run, rows: int = 2):
        return run.spark.range(rows)

    @asset(mode="append", inputs={"new": changes_of("arrivals")})
    def counted(new):
        return new.agg(f.count("*").alias("rows"))

    runs.run(arrivals, counted)
    runs.run(arrivals, counted, parameters={"rows": "5"})
    assert runs.rows("counted") == [(5,)]
    assert "arco.full-reads" in runs.table("counted").snapshots[-1]["summary"]


def test_two_runs_that_were_planned_alike_do_not_append_the_same_changes_twice(runs: Runs) -> None:
    @asset(mode="append", name="arrivals")
    def arrivals(run):
        return run.spark.range(2)

    @asset(mode="append", inputs={"new": changes_of("arrivals")})
    def seen(new):
        return new

    runs.run(arrivals, seen)
    runs.force(arrivals, seen, words=("arrivals",))
    pipeline = runs.pipeline(arrivals, seen)
    prepared = runs.lake.run(pipeline.prepare(PlanRequest()))
    both = [runs.lake.run(pipeline.start(prepared, HowToRun())) for _ in range(2)]
    first, second = (runs.lake.run(pipeline.drive(one)) for one in both)
    assert ended(first) == {"succeeded": 1}
    assert ended(second) == {"failed": 1}
    assert "appended twice" in why(second)[0]
    assert sorted(runs.rows("seen")) == [(0,), (0,), (1,), (1,)]
    assert runs.plan(arrivals, seen).plan.spec.tasks == ()


def test_what_is_forced_is_made_of_all_rows_and_not_of_none(runs: Runs) -> None:
    @asset(mode="append", name="arrivals")
    def arrivals(run):
        return run.spark.range(2)

    factor = {"is": 1}  # what no fingerprint sees

    @asset(mode="append", inputs={"new": changes_of("arrivals")})
    def scaled(new):
        return new.selectExpr(f"id * {factor['is']} as id")

    runs.run(arrivals, scaled)
    factor["is"] = 10
    assert ended(runs.force(arrivals, scaled, words=("scaled",))) == {"succeeded": 1}
    assert runs.rows("scaled") == [(0,), (10,)]
    assert "forced" in runs.table("scaled").snapshots[-1]["summary"]["arco.full-reads"]
    runs.force(arrivals, scaled, words=("arrivals",))
    assert ended(runs.run(arrivals, scaled)) == {"succeeded": 1}
    assert sorted(runs.rows("scaled")) == [(0,), (0,), (10,), (10,)]


def test_a_merge_that_has_to_read_all_loses_no_row_that_it_made_before(runs: Runs) -> None:
    @asset(mode="full", name="arrivals")
    def arrivals(run, low: int = 0):
        return run.spark.range(low, low + 3)

    @asset(mode="merge", key="id", inputs={"new": changes_of("arrivals")})
    def known(new):
        return new.withColumn("seen", f.lit(1))

    runs.run(arrivals, known)
    runs.run(arrivals, known, parameters={"low": "2"})
    assert "arco.full-reads" in runs.table("known").snapshots[-1]["summary"]
    assert [one[0] for one in runs.rows("known")] == [0, 1, 2, 3, 4]


# What stays


def test_a_failed_refresh_empties_neither_its_table_nor_that_of_whoever_reads_it(runs: Runs) -> None:
    """Spark Declarative Pipelines truncates both: the one that failed and the one that was only skipped."""

    @asset(name="first")
    def works(run):
        return run.spark.range(100)

    @asset(name="first")
    def fails(run):
        broken = f.when(f.col("id") == 57, f.raise_error(f.lit("broken on purpose")).cast("bigint")).otherwise(f.col("id"))
        return run.spark.range(100).select(broken.alias("id"))

    @asset
    def second(first):
        return first.withColumn("twice", f.col("id") * 2)

    assert ended(runs.run(works, second)) == {"succeeded": 2}
    before = [runs.table(name).current_snapshot_id for name in ("first", "second")]
    state = runs.run(fails, second)
    assert ended(state) == {"failed": 1, "skipped": 1}
    assert "broken on purpose" in why(state)[0]
    assert exits(state) == 1
    assert [len(runs.rows(name)) for name in ("first", "second")] == [100, 100]
    assert [runs.table(name).current_snapshot_id for name in ("first", "second")] == before


def test_code_that_raises_fails_with_its_own_line(runs: Runs) -> None:
    @asset
    def wrong(run):
        raise ZeroDivisionError("by hand")

    state = runs.run(wrong)
    assert "by hand" in why(state)[0]
    assert "test_servo_runs.py:" in why(state)[0]


def test_a_compatible_change_evolves_the_table_and_another_is_refused(runs: Runs) -> None:
    def version(query: str) -> Any:
        @asset(name="shape")
        def shape(run):
            return run.spark.sql(query)

        return shape

    runs.run(version("select 1 id"))
    assert ended(runs.run(version("select 2L id, 'x' note"))) == {"succeeded": 1}
    assert [field["type"] for field in runs.table("shape").current_schema["fields"]] == ["long", "string"]
    state = runs.run(version("select 'text' id, 'x' note"))
    assert ended(state) == {"failed": 1}
    assert "id" in why(state)[0]
    assert runs.rows("shape") == [(2, "x")]


def test_declared_columns_are_held_to(runs: Runs) -> None:
    def version(query: str) -> Any:
        @asset(name="declared", schema={"id": "long not null", "note": "string"})
        def declared(run):
            return run.spark.sql(query)

        return declared

    assert ended(runs.run(version("select 1L id, 'x' note"))) == {"succeeded": 1}
    other = runs.run(version("select 1L id, 'x' note, 2 more"))
    assert ended(other) == {"failed": 1}
    assert "more is not expected" in why(other)[0]
    assert ended(runs.run(version("select cast(null as bigint) id, 'x' note"))) == {"blocked": 1}
    assert runs.rows("declared") == [(1, "x")]


def test_what_is_required_inside_a_struct_is_required_where_there_is_one(runs: Runs) -> None:
    inner = {"type": "struct", "fields": [{"name": "low", "type": "int", "required": True}]}

    @asset(schema={"type": "struct", "fields": [{"name": "bounds", "type": inner}]})
    def ranges(run, low: str = "1"):
        return run.spark.sql(f"select named_struct('low', {low}) bounds union all select null")

    assert ended(runs.run(ranges)) == {"succeeded": 1}
    assert ended(runs.run(ranges, parameters={"low": "cast(null as int)"})) == {"blocked": 1}


def test_a_column_with_an_id_that_is_declared_under_a_new_name_is_renamed(runs: Runs) -> None:
    def version(name: str) -> Any:
        columns = [
            {"id": 1, "name": "id", "required": False, "type": "long"},
            {"id": 2, "name": name, "required": False, "type": "string"},
        ]

        @asset(name="renamed", schema={"type": "struct", "fields": columns}, mode="append")
        def renamed(run):
            return run.spark.sql(f"select 1L id, 'x' {name}")

        return renamed

    runs.run(version("note"))
    before = runs.table("renamed").current_schema["fields"]
    assert ended(runs.run(version("remark"))) == {"succeeded": 1}
    after = runs.table("renamed").current_schema["fields"]
    assert [one["name"] for one in after] == ["id", "remark"]
    assert [one["id"] for one in after] == [one["id"] for one in before]
    # Files from before the rename are still there, and their values are found.
    assert runs.rows("renamed") == [(1, "x"), (1, "x")]


# Inputs


def test_a_late_correction_makes_exactly_what_it_touches_stale(runs: Runs) -> None:
    schema = {"type": "struct", "fields": [
        {"id": 1, "name": "date", "required": False, "type": "date"},
        {"id": 2, "name": "n", "required": False, "type": "long"},
    ]}  # fmt: skip
    spec = {"fields": [{"name": "date", "transform": "identity", "source-id": 1}]}
    runs.lake.create("raw", schema, partition_spec=spec)
    _append(runs, "2025-01-01", "2025-01-02", "2025-01-03")
    raw = source("raw", partitions=WEEK)

    @asset(partitions=WEEK)
    def clean(raw):
        return raw

    @asset(partitions=WEEK, inputs={"two": window("clean", -1, 0)})
    def pairs(two, run):
        days = run.spark.createDataFrame([(day,) for day in run.values("date")], "date date")
        return days.join(two, f.datediff(days["date"], two["date"]).between(0, 1)).groupBy(days["date"]).count()

    assert ended(runs.run(raw, clean, pairs)) == {"succeeded": 2}
    _append(runs, "2025-01-02")
    planned = runs.plan(raw, clean, pairs).plan
    assert [task.partitions for task in planned.spec.tasks] == [
        [{"date": ["2025-01-02", "2025-01-03"]}],
        [{"date": ["2025-01-02", "2025-01-04"]}],
    ]
    runs.run(raw, clean, pairs)
    assert runs.frame("clean").count() == 4
    assert runs.plan(raw, clean, pairs).plan.spec.tasks == ()


def test_a_table_that_was_empty_when_the_plan_was_made_is_read_as_empty(runs: Runs) -> None:
    schema = {"type": "struct", "fields": [
        {"id": 1, "name": "date", "required": False, "type": "date"},
        {"id": 2, "name": "n", "required": False, "type": "long"},
    ]}  # fmt: skip
    runs.lake.create("raw", schema)
    raw = source("raw")

    @asset
    def copied(raw):
        return raw

    pipeline = runs.pipeline(raw, copied)
    started = runs.lake.run(pipeline.start(runs.lake.run(pipeline.prepare(PlanRequest())), HowToRun()))
    _append(runs, "2025-01-01")
    assert ended(runs.lake.run(pipeline.drive(started))) == {"succeeded": 1}
    assert runs.rows("copied") == []
    assert ended(runs.run(raw, copied)) == {"succeeded": 1}
    assert runs.rows("copied") == [(date(2025, 1, 1), 1)]


def _append(runs: Runs, *days: str) -> None:
    """A row for each day, by somebody else."""
    table = runs.table("raw")
    frame = runs.session.spark.createDataFrame([(date.fromisoformat(day), 1) for day in days], "date date, n bigint")
    runs.lake.publish("raw", table, write(frame, Target.of(table, runs.lake.materialization(), 1), runs.lake.io))


def test_files_are_inputs_and_other_files_make_it_stale(runs: Runs) -> None:
    (runs.folder / "landing").mkdir()
    (runs.folder / "landing" / "a.json").write_text('{"id": 1}\n')

    @asset(inputs={"dropped": files("landing/*.json")})
    def landed(dropped):
        return dropped

    runs.run(landed)
    (runs.folder / "landing" / "b.json").write_text('{"id": 2}\n')
    assert ended(runs.run(landed)) == {"succeeded": 1}
    assert runs.rows("landed") == [(1,), (2,)]


def test_a_file_is_read_by_its_name_and_not_as_a_pattern(runs: Runs) -> None:
    (runs.folder / "landing").mkdir()
    names = [
        "a.csv",
        "ab.csv",
        "a*.csv",
        "a?.csv",
        "r1.csv",
        "r[1].csv",
        "x{1,2}.csv",
        "b c.csv",
        "p%20.csv",
        "q\\t.csv",
        "k,l.csv",
    ]
    for number, name in enumerate(names):
        (runs.folder / "landing" / name).write_text(f"id\n{number}\n")

    @asset(inputs={"given": files("landing/*.csv", header="true")})
    def taken(given):
        return given.selectExpr("cast(id as int) as id")

    assert ended(runs.run(taken)) == {"succeeded": 1}
    assert sorted(runs.rows("taken")) == [(number,) for number in range(len(names))]


def test_reading_a_table_that_is_no_input_is_refused(runs: Runs) -> None:
    runs.run(people)
    path = _data_files(runs, "people")[0]

    @asset
    def sneaky(run):
        return run.spark.read.parquet(path)

    @asset
    def by_name(run):
        return run.spark.table("others")

    state = runs.run(people, sneaky)
    assert "not among its inputs" in why(state)[0]
    assert "test_servo_runs.py:" in why(state)[0]
    runs.session.spark.sql("create table if not exists others (id int) using parquet")
    try:
        (said,) = why(runs.run(by_name))
    finally:
        runs.session.spark.sql("drop table others")
    read_at = by_name.written.where.line + 2
    assert f"test_servo_runs.py:{read_at}: db.by_name reads the table spark_catalog.default.others by its name" in said


def _data_files(runs: Runs, name: str) -> list[str]:
    return [entry.data_file.file_path for entry in runs.lake.entries(runs.table(name))]


def test_every_and_last_read_what_they_say(runs: Runs) -> None:
    @asset(inputs={"rows": every("visits")})
    def total(rows):
        return rows.agg(f.count("*").alias("rows"))

    @asset(inputs={"rows": last("visits")})
    def newest(rows):
        return rows.agg(f.max("date").alias("date"), f.count("*").alias("rows"))

    runs.run(visits, total, newest)
    assert runs.rows("total") == [(14,)]
    assert runs.rows("newest") == [(date(2025, 1, 7), 2)]


def test_inputs_are_pinned_to_the_plan(runs: Runs) -> None:
    @asset
    def copy(people):
        return people

    runs.run(people)
    pipeline = runs.pipeline(people, copy)
    started = runs.lake.run(pipeline.start(runs.plan(people, copy), HowToRun()))
    runs.force(people, words=("people",))
    table = runs.table("people")
    runs.lake.commit("people", changes.SetProperties({"note": "moved on"}))
    state = runs.lake.run(pipeline.drive(started))
    assert ended(state) == {"succeeded": 1}
    read = runs.table("copy").snapshots[-1]["summary"]["arco.input-snapshots"]
    assert str(table.snapshots[0]["snapshot-id"]) in read
    assert str(table.current_snapshot_id) not in read


def test_times_are_utc_and_decimals_keep_their_scale(runs: Runs) -> None:
    @asset
    def typed(run):
        return run.spark.sql("select timestamp'2025-06-01 12:00:00 Europe/Berlin' at, cast(1.10 as decimal(10,2)) price")

    runs.run(typed)
    at, price = runs.rows("typed")[0]
    assert str(price) == "1.10"
    assert at.astimezone() == datetime.fromisoformat("2025-06-01T10:00:00+00:00")


# Others at the same time


def test_two_runs_that_race_for_one_partition_publish_both_and_neither_loses_the_other(runs: Runs) -> None:
    """Each replaces what it inspected, or sees that it was changed and tries again: the last one counts, whole."""

    def version(number: int) -> Any:
        @asset(name="raced", partitions=WEEK)
        def raced(run):
            return of_days(run, rows=3, version=str(number))

        return raced

    runs.run(version(0))
    pipelines = [runs.pipeline(version(number)) for number in (1, 2)]

    async def both() -> list[Any]:
        planned = [await one.prepare(PlanRequest(mode=Mode.FORCE)) for one in pipelines]
        started = [await one.start(plan, HowToRun()) for one, plan in zip(pipelines, planned, strict=True)]
        return await asyncio.gather(*(one.drive(run) for one, run in zip(pipelines, started, strict=True)))

    states = runs.lake.run(both())
    assert [ended(state) for state in states] == [{"succeeded": 1}, {"succeeded": 1}]
    found = runs.rows("raced")
    assert len(found) == 21
    assert len({row[2] for row in found}) == 1


@pytest.mark.parametrize("published", [False, True], ids=["there is no table", "there is a table"])
def test_tasks_that_set_rows_aside_at_once_make_one_quarantine_together(runs: Runs, published: bool) -> None:
    """None of them may be tried again: whoever finds that another is about to create the table waits for it."""
    together, first = threading.Barrier(4), {"all": "true" if published else "false"}
    days = daily("date", start="2025-01-01", end="2025-01-05")

    @asset(partitions=days, partitions_per_task=1, retry=0, checks=[not_null("even", quarantine_rows=True)])
    def parted(run):
        together.wait()
        return of_days(run, rows=4, even=f"if(n % 2 = 0 or {first['all']}, n, null)")

    if published:
        assert ended(runs.run(parted)) == {"succeeded": 4}
        first["all"] = "false"
    state = runs.force(parted)
    assert ended(state) == {"succeeded": 4}
    assert {its.attempt for its in state.tasks.values()} == {1}
    every_day = [date(2025, 1, day) for day in range(1, 5)]
    assert runs.rows("parted") == [(day, n, n) for day in every_day for n in (0, 2)]
    aside = runs.frame("parted__quarantine").select("date", "n", "arco_task_id")
    assert sorted((row[0], row[1]) for row in aside.collect()) == [(day, n) for day in every_day for n in (1, 3)]
    assert aside.select("arco_task_id").distinct().count() == 4
    assert len(runs.table("parted__quarantine").snapshots) == 4


def test_an_interrupted_run_ends_in_order_and_what_is_published_stays(runs: Runs) -> None:
    @asset
    def slow(people):
        return people.select(f.udf(_wait, "bigint")("id").alias("id"))

    pipeline = runs.pipeline(people, slow)

    async def interrupted() -> Any:
        prepared = await pipeline.prepare(PlanRequest())
        watching = _Watching(next(task.id for task in prepared.plan.spec.tasks if task.asset == "db.slow"))
        started = await pipeline.start(prepared, HowToRun())
        driving = asyncio.ensure_future(replace(pipeline, observer=watching).drive(started))
        await watching.writing.wait()
        driving.cancel()
        return await driving

    state = runs.lake.run(interrupted())
    assert ended(state) == {"succeeded": 1, "cancelled": 1}
    assert state.run.status.value == "cancelled"
    assert runs.rows("people") == [(1, "Ada"), (2, "Bob")]
    assert [task.asset for task in runs.plan(people, slow).plan.spec.tasks] == ["db.slow"]


class _Watching:
    """Tells when a task has begun to write."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.writing = asyncio.Event()

    def saw(self, entry: Any, state: Any) -> None:
        return

    def progressed(self, task: str, facts: Any) -> None:
        if task == self.task and facts["phase"] == "writing":
            self.writing.set()


def _wait(value: int) -> int:
    time.sleep(600)
    return value


def test_a_task_that_takes_too_long_is_stopped(runs: Runs) -> None:
    @asset(timeout=2, retry=0)
    def endless(people):
        return people.select(f.udf(_wait, "bigint")("id").alias("id"))

    runs.run(people)
    state = runs.run(people, endless)
    assert ended(state) == {"failed": 1}
    assert "longer than 2 s" in why(state)[0]
