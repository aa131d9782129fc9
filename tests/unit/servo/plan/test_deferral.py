"""What is read from another workspace is read, pinned and named; it never passes for one's own."""

from pathlib import Path

import msgspec

from arco import asset, daily, source
from arco.servo.plan.deferral import for_making, lent_by
from arco.servo.plan.explanation import explain
from arco.servo.plan.facts import AssetFacts, Materialization, PlanningSnapshot, TableFact
from arco.servo.plan.planner import Mode, PlanRequest, plan
from arco.servo.plan.staleness import World
from arco.servo.plan.tasks import Deployed
from arco.servo.sdk.project import Project, assembled

PROD = "default/prod"
NOW_MS = 1_736_000_000_000  # the 4th of January 2025
DAYS = daily("date", start="2025-01-01", end="2025-01-04")
WEEK = [{"date": ["2025-01-01", "2025-01-04"]}]


@asset(partitions=DAYS)
def raw(run): ...


@asset(partitions=DAYS)
def clean(raw): ...


@asset
def total(clean): ...


events = source("events")


@asset
def counted(events): ...


def project() -> Project:
    written = [one.written for one in (raw, clean, total, events, counted)]
    return assembled(written, folder=Path(), name="shop", namespace="shop")


def published(made: Project, name: str, *, workspace: str = PROD, identity: str = "m1", snapshot: int = 7) -> AssetFacts:
    key = next(one for one in made.assets if one.name == name)
    return AssetFacts(
        materializations=(
            Materialization(
                id=identity,
                run_id="r",
                task_id="t",
                partitions=WEEK if made.assets[key].partitions.axes else [{}],
                code=made.assets[key].fingerprint,
                inputs={},
                snapshot_id=snapshot,
                published_ms=NOW_MS,
                position="p",
            ),
        ),
        table=TableFact(table_uuid="u", snapshot_id=snapshot, metadata_location="l", workspace=workspace),
    )


def planned(made: Project, assets: dict[str, AssetFacts], *words: str, mode: Mode = Mode.STALE):
    ids = {key: f"01J5GJ86R4PWRYZ046CWTGE8{number:02}" for number, key in enumerate(sorted(made.assets, key=str))}
    snapshot = PlanningSnapshot.taken(NOW_MS, assets)
    found = plan(made.graph, snapshot, Deployed("d", made.code_version, ids), PlanRequest(words=words, mode=mode))
    return {task.asset: task for task in found.spec.tasks}


def test_an_input_that_is_not_built_here_is_read_from_there_at_its_snapshot() -> None:
    made = project()
    tasks = planned(made, {"shop.clean": published(made, "clean")}, "total")
    (given,) = tasks["shop.total"].inputs
    assert (given.workspace, given.snapshot_id, given.made_by) == (PROD, 7, ())
    assert given.versions == [{"partitions": WEEK, "version": "m1"}]


def test_what_is_selected_is_made_here_though_it_is_published_there() -> None:
    made = project()
    lent = {f"shop.{name}": published(made, name) for name in ("raw", "clean", "total")}
    tasks = planned(made, lent, "clean", "total")
    assert sorted(tasks) == ["shop.clean", "shop.total"], "what is published there is not published here"
    assert [one.reason for one in tasks["shop.clean"].because] == ["never"]
    assert tasks["shop.clean"].inputs[0].workspace == PROD
    (own,) = tasks["shop.total"].inputs
    assert (own.workspace, own.made_by) == ("", (tasks["shop.clean"].id,))
    assert planned(made, lent, "raw", mode=Mode.BACKFILL), "nor does a backfill take it for there"


def test_what_was_made_of_it_is_stale_when_it_is_published_there_anew() -> None:
    made = project()
    own = published(made, "total", workspace="", identity="mine")
    read = msgspec.structs.replace(own.materializations[0], inputs={"clean": [{"partitions": WEEK, "version": "m1"}]})
    mine = msgspec.structs.replace(own, materializations=(read,))
    assert planned(made, {"shop.clean": published(made, "clean"), "shop.total": mine}, "total") == {}
    newer = published(made, "clean", identity="m2", snapshot=8)
    tasks = planned(made, {"shop.clean": newer, "shop.total": mine}, "total")
    assert [one.reason for one in tasks["shop.total"].because] == ["input"]


def test_a_source_and_a_table_that_nobody_here_published_are_read_as_a_whole() -> None:
    made = project()
    bare = AssetFacts(table=TableFact(table_uuid="u", snapshot_id=9, metadata_location="l", workspace=PROD))
    tasks = planned(made, {"shop.events": bare, "shop.clean": bare}, "counted", "total")
    for name in ("shop.counted", "shop.total"):
        (given,) = tasks[name].inputs
        assert (given.workspace, given.snapshot_id) == (PROD, 9)
        assert [one["version"] for one in given.versions] == ["snapshot 9"]


def test_an_explanation_says_where_an_input_is_from_and_asks_for_nothing_there() -> None:
    made = project()
    key = {one.name: one for one in made.assets}
    old = msgspec.structs.replace(published(made, "raw").materializations[0], code="other")
    lent = {
        "shop.raw": msgspec.structs.replace(published(made, "raw"), materializations=(old,)),
        "shop.clean": published(made, "clean"),
    }
    snapshot = PlanningSnapshot.taken(NOW_MS, lent)
    assert lent_by(snapshot, key["clean"]) is not None
    found = explain(World(made.graph, for_making(snapshot, [key["total"]])), key["total"], {})
    assert [(one.parameter, one.workspace, one.snapshot_id) for one in found.inputs] == [("clean", PROD, 7)]
    assert found.needs == (), "what is stale there is not for dev to make"


def test_facts_of_ones_own_are_left_as_they_are() -> None:
    made = project()
    snapshot = PlanningSnapshot.taken(NOW_MS, {"shop.clean": published(made, "clean", workspace="")})
    assert for_making(snapshot, list(made.assets)) is snapshot
