"""Freshness: what has to be begun so that it is made before it is too old, from recorded facts alone."""

from pathlib import Path

from arco.kernel.asset_key import AssetKey
from arco.servo.plan.facts import AssetFacts, Materialization, PlanningSnapshot, TableFact
from arco.servo.plan.freshness import Deadline, Urgent, deadlines, urgent
from arco.servo.plan.planner import Deployed, PlanRequest, plan
from arco.servo.plan.staleness import World
from arco.servo.sdk.authoring import asset
from arco.servo.sdk.project import Project, assembled

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
CLEAN, TOTALS = AssetKey("shop", "clean"), AssetKey("shop", "totals")


def project() -> Project:
    @asset
    def clean(run: object) -> object: ...

    @asset(fresh_within="6h")
    def totals(clean: object) -> object: ...

    return assembled([clean.written, totals.written], folder=Path(), name="shop", namespace="shop")


def made(one: Project, key: AssetKey, number: int, published_ms: int, took_ms: int | None) -> Materialization:
    inputs = {"clean": [{"partitions": [{}], "version": "clean1"}]} if key == TOTALS else {}
    return Materialization(
        id=f"{key.name}{number}",
        run_id="r",
        task_id="t",
        partitions=[{}],
        code=one.assets[key].fingerprint,
        inputs=inputs,
        snapshot_id=number,
        published_ms=published_ms,
        position=f"{number:026}",
        started_ms=None if took_ms is None else published_ms - took_ms,
    )


def world(one: Project, at_ms: int, *totals: Materialization) -> World:
    table = TableFact(table_uuid="t", snapshot_id=1, metadata_location="m")
    clean = AssetFacts(materializations=(made(one, CLEAN, 1, 0, 20 * MINUTE_MS),), table=table)
    facts = {str(CLEAN): clean}
    if totals:
        facts[str(TOTALS)] = AssetFacts(materializations=totals, table=table)
    return World(one.graph, PlanningSnapshot.taken(at_ms, facts))


def test_begin_is_the_deadline_minus_what_it_takes_with_everything_it_needs() -> None:
    one = project()
    last = made(one, TOTALS, 1, HOUR_MS, 10 * MINUTE_MS)
    found = deadlines(world(one, 2 * HOUR_MS, last), [TOTALS, CLEAN])
    assert found == [Deadline(TOTALS, 7 * HOUR_MS, 7 * HOUR_MS - 30 * MINUTE_MS, ("totals1",))]


def test_it_is_urgent_from_that_moment_on_and_not_before() -> None:
    one = project()
    last = made(one, TOTALS, 1, HOUR_MS, 10 * MINUTE_MS)
    begin_ms = 7 * HOUR_MS - 30 * MINUTE_MS
    assert urgent(world(one, begin_ms - 1, last), [TOTALS]) is None
    assert urgent(world(one, begin_ms, last), [TOTALS]) == Urgent(
        ("shop.totals",), ("totals1",), 7 * HOUR_MS + 1000, 6 * 3600, "shop.totals would not be fresh in time"
    )


def test_the_longest_of_the_last_publishes_is_expected() -> None:
    one = project()
    history = [made(one, TOTALS, number, HOUR_MS + number, took) for number, took in enumerate([90, 1, 2, 8, 3, 4], 1)]
    (found,) = deadlines(world(one, 2 * HOUR_MS, *history), [TOTALS])
    assert found.fresh_until_ms - found.begin_ms == 20 * MINUTE_MS + 8  # the first is too long ago to count


def test_what_nobody_knows_the_time_of_begins_at_its_deadline() -> None:
    one = project()
    (found,) = deadlines(world(one, 2 * HOUR_MS, made(one, TOTALS, 1, HOUR_MS, None)), [TOTALS])
    assert found.fresh_until_ms - found.begin_ms == 20 * MINUTE_MS


def test_what_was_never_published_is_due_at_once() -> None:
    found = urgent(world(project(), 5 * HOUR_MS), [TOTALS])
    assert found is not None
    assert (found.assets, found.due_by_ms) == (("shop.totals",), 5 * HOUR_MS + 1000)
    assert urgent(world(project(), 5 * HOUR_MS), [CLEAN]) is None  # may get as old as it likes


def test_a_plan_for_a_deadline_makes_what_is_still_fresh() -> None:
    one = project()
    last = made(one, TOTALS, 1, HOUR_MS, 10 * MINUTE_MS)
    now = world(one, 7 * HOUR_MS - 30 * MINUTE_MS, last)
    deployed = Deployed("d", one.code_version, {CLEAN: "1" * 26, TOTALS: "2" * 26})
    asked = urgent(now, [TOTALS])
    assert asked is not None
    without = plan(one.graph, now.snapshot, deployed, PlanRequest(words=asked.assets))
    with_it = plan(one.graph, now.snapshot, deployed, PlanRequest(words=asked.assets, due_by_ms=asked.due_by_ms))
    assert without.spec.tasks == ()
    (task,) = with_it.spec.tasks
    assert task.asset == "shop.totals"
    assert "fresh for 1800 s more" in str(task.because)
