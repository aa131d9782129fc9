"""Explaining an asset: what is fresh and from what, what is stale and why, what was held back."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import encode_ulid
from arco.servo.plan.explanation import Explanation, explain
from arco.servo.plan.facts import AssetFacts, HeldOutput, Materialization, PlanningSnapshot, TableFact
from arco.servo.plan.planner import Deployed, PlanRequest, plan
from arco.servo.plan.staleness import World
from arco.servo.sdk.authoring import asset, source
from arco.servo.sdk.dimensions import daily
from arco.servo.sdk.project import Project, assembled

NOW_MS = int(datetime(2025, 1, 11, tzinfo=UTC).timestamp() * 1000)
DAYS = daily("date", start="2025-01-01")


def days(first: int, end: int) -> list[dict[str, object]]:
    return [{"date": [f"2025-01-{first:02}", f"2025-01-{end:02}"]}]


def project() -> Project:
    raw = source("raw", partitions=DAYS)

    @asset(partitions=DAYS, resources={"cores": 2})
    def clean(raw: object) -> object: ...

    @asset(partitions=DAYS)
    def report(clean: object) -> object: ...

    return assembled([one.written for one in (raw, clean, report)], folder=Path(), name="shop", namespace="shop")


def made(project: Project, name: str, number: int, first: int, end: int, inputs: dict[str, str]) -> Materialization:
    return Materialization(
        id=encode_ulid(number),
        run_id=f"run{number}",
        task_id="t",
        partitions=days(first, end),
        code=project.assets[AssetKey("shop", name)].fingerprint,
        inputs={word: [{"partitions": days(first, end), "version": version}] for word, version in inputs.items()},
        snapshot_id=number,
        published_ms=NOW_MS,
        position=encode_ulid(number),
        checks_failed=("late",) if number == 1 else (),
    )


def facts(project: Project, raw_versions: list[dict[str, object]], **more: AssetFacts) -> PlanningSnapshot:
    table = TableFact(table_uuid="u", snapshot_id=9, metadata_location="m", versions=raw_versions)
    assets = {"shop.raw": AssetFacts(table=table), **{f"shop.{name}": one for name, one in more.items()}}
    return PlanningSnapshot.taken(NOW_MS, assets)


def explained(project: Project, snapshot: PlanningSnapshot, name: str, **partitions: str) -> Explanation:
    return explain(World(project.graph, snapshot), AssetKey("shop", name), partitions)


V1 = [{"partitions": days(1, 11), "version": "v1"}]
CHANGED = [{"partitions": days(1, 5), "version": "v1"}, {"partitions": days(5, 6), "version": "v2"}]


def test_fresh_partitions_name_the_publish_that_made_them() -> None:
    one = project()
    both = (made(one, "clean", 1, 1, 8, {"raw": "v1"}), made(one, "clean", 2, 3, 5, {"raw": "v1"}))
    found = explained(one, facts(one, V1, clean=AssetFacts(materializations=both)), "clean", date="2025-01-01..2025-01-07")
    assert [(piece.run_id, piece.text, piece.checks_failed) for piece in found.fresh] == [
        ("run1", "date 2025-01-01 to 2025-01-02; date 2025-01-05 to 2025-01-07 (5 partitions)", ("late",)),
        ("run2", "date 2025-01-03 to 2025-01-04 (2 partitions)", ()),
    ]
    assert (found.stale, found.published, found.partitions) == ((), 7, 7)
    assert [(given.parameter, given.asset, given.snapshot_id, given.mapping) for given in found.inputs] == [
        ("raw", "shop.raw", 9, "identity")
    ]


def test_stale_partitions_name_the_first_fact_that_differs() -> None:
    one = project()
    clean = AssetFacts(materializations=(made(one, "clean", 1, 1, 8, {"raw": "v1"}),))
    found = explained(one, facts(one, CHANGED, clean=clean), "clean")
    assert [(piece.reason, piece.text, piece.published) for piece in found.stale] == [
        ("never", "date 2025-01-08 to 2025-01-10 (3 partitions)", False),
        ("input", "date 2025-01-05 to 2025-01-07 (3 partitions)", True),
    ]
    assert found.stale[1].detail == "shop.raw changed: date 2025-01-05 to 2025-01-07 (3 partitions)"
    assert [piece.text for piece in found.fresh] == ["date 2025-01-01 to 2025-01-04 (4 partitions)"]


def test_what_reads_something_stale_is_stale_and_says_what_it_needs() -> None:
    one = project()
    first = made(one, "clean", 1, 1, 11, {"raw": "v1"})
    report = AssetFacts(materializations=(made(one, "report", 2, 1, 11, {"clean": first.id}),))
    clean = AssetFacts(materializations=(first,))
    assert explained(one, facts(one, V1, clean=clean, report=report), "report").stale == ()
    versions = [{"partitions": days(1, 5), "version": "v1"}, {"partitions": days(5, 11), "version": "v2"}]
    found = explained(one, facts(one, versions, clean=clean, report=report), "report")
    assert [(piece.reason, piece.detail) for piece in found.stale] == [("upstream", "shop.clean is stale itself")]
    assert found.needs == ("shop.clean",)


def test_what_was_held_back_is_held_until_it_is_published_partition_by_partition() -> None:
    one = project()
    held = HeldOutput(
        id="h",
        run_id="r",
        partitions=days(2, 6),
        action="quarantine",
        reasons=("unique",),
        branch="b",
        position=encode_ulid(5),
    )
    before = made(one, "clean", 1, 1, 11, {"raw": "v1"})
    elsewhere, after = made(one, "clean", 6, 8, 9, {"raw": "v1"}), made(one, "clean", 7, 2, 4, {"raw": "v1"})
    clean = AssetFacts(materializations=(before, elsewhere, after), held=(held,))
    found = explained(one, facts(one, V1, clean=clean), "clean")
    assert [(piece.text, piece.branch) for piece in found.held] == [("date 2025-01-04 to 2025-01-05 (2 partitions)", "b")]
    assert [(piece.reason, piece.text) for piece in found.stale] == [
        ("quarantined", "date 2025-01-04 to 2025-01-05 (2 partitions)")
    ]


def test_a_source_is_explained_without_reasons() -> None:
    one = project()
    found = explained(one, facts(one, CHANGED), "raw")
    assert (found.kind, found.published, found.fresh, found.stale) == ("source", 5, (), ())


def test_notes_say_what_is_odd() -> None:
    one = project()
    table = TableFact(table_uuid="u", snapshot_id=1, metadata_location="m", external_commit=True)
    snapshot = PlanningSnapshot.taken(NOW_MS, {"shop.clean": AssetFacts(table=table)})
    assert explained(one, snapshot, "clean").notes == (
        "shop.clean: its table was last changed by somebody else, not by this asset",
        "shop.raw: there is no such table yet, and shop.clean reads it as raw",
    )


def test_tasks_carry_the_resources_of_their_asset() -> None:
    one = project()
    ids = {key: encode_ulid(number) for number, key in enumerate(one.assets, 1)}
    tasks = plan(one.graph, facts(one, V1), Deployed("d", one.code_version, ids), PlanRequest()).spec.tasks
    assert {task.asset: task.resources for task in tasks} == {"shop.clean": {"cores": 2.0}, "shop.report": {}}


@pytest.mark.parametrize("given", [{"cores": "4"}, {"cores": True}, {"": 1}, {"cores": -1}, {"cores": float("inf")}])
def test_resources_are_words_and_numbers(given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="resources"):

        @asset(resources=given)  # type: ignore[arg-type]
        def wrong() -> object: ...
