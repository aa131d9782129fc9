"""Planning: what is stale and why, in ranges, and the same bytes every time."""

import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from arco.kernel.errors import InvalidInput, NotFound, TooLarge
from arco.kernel.ids import encode_ulid
from arco.quality.builtin import foreign_key
from arco.servo.plan.document import Plan, PlannedTask, decode_plan
from arco.servo.plan.explanation import explain
from arco.servo.plan.facts import AssetFacts, FilesFact, HeldOutput, Materialization, PlanningSnapshot, TableFact
from arco.servo.plan.planner import Deployed, Mode, PlanRequest, plan
from arco.servo.plan.staleness import World
from arco.servo.sdk.authoring import asset, source
from arco.servo.sdk.dimensions import daily, dynamic, hourly, monthly, static, weekly
from arco.servo.sdk.inputs import changes_of, every, files, last, window
from arco.servo.sdk.project import Project, assembled
from arco.servo.sdk.selection import select

NOW_MS = int(datetime(2025, 1, 31, tzinfo=UTC).timestamp() * 1000)
DAYS = daily("date", start="2025-01-01")


def project(**changed: object) -> Project:
    """raw -> clean -> weekly (window), totals (every), report (month); customers beside them."""
    raw = source("raw", partitions=DAYS)
    customers = source("customers")

    @asset(partitions=DAYS, fresh_within="6h", **changed)  # type: ignore[arg-type]
    def clean(raw: object) -> object: ...

    @asset(partitions=DAYS, inputs={"clean": window("clean", -6, 0)}, tags="wide")
    def weekly(clean: object) -> object: ...

    @asset(inputs={"clean": every("clean")}, checks=[foreign_key("id", to="customers")])
    def totals(clean: object, customers: object) -> object: ...

    @asset(partitions=monthly("date", start="2025-01"))
    def report(clean: object) -> object: ...

    written = [one.written for one in (raw, customers, clean, weekly, totals, report)]
    return assembled(written, folder=Path(), name="shop", namespace="shop")


def deployed(made: Project) -> Deployed:
    return Deployed("deployment", made.code_version, {key: encode_ulid(n) for n, key in enumerate(made.assets, 1)})


def versions(*pieces: tuple[str, str, str]) -> list[dict[str, object]]:
    return [{"partitions": [{"date": [first, end]}], "version": version} for first, end, version in pieces]


def snapshot(assets: dict[str, AssetFacts] | None = None, at_ms: int = NOW_MS) -> PlanningSnapshot:
    tables = {
        "shop.raw": AssetFacts(
            table=TableFact(
                table_uuid="r", snapshot_id=7, metadata_location="m", versions=versions(("2025-01-01", "2025-01-31", "v1"))
            )
        ),
        "shop.customers": AssetFacts(table=TableFact(table_uuid="c", snapshot_id=3, metadata_location="m")),
    }
    return PlanningSnapshot(id="snapshot", at_ms=at_ms, assets=tables | (assets or {}))


def made_plan(made: Project, facts: PlanningSnapshot, **request: object) -> Plan:
    return plan(made.graph, facts, deployed(made), PlanRequest(**request))  # type: ignore[arg-type]


def published(made: Project, one: Plan, number: int = 1) -> dict[str, AssetFacts]:
    """What the facts are after a plan ran to its end."""
    found: dict[str, AssetFacts] = {}
    ids = {task.id: encode_ulid(number * 1000 + place) for place, task in enumerate(one.spec.tasks)}
    for task in one.spec.tasks:
        key = next(key for key in made.assets if str(key) == task.asset)
        inputs = {}
        for given in task.inputs:
            recorded = list(given.versions)
            for producer in given.made_by:
                maker = next(other for other in one.spec.tasks if other.id == producer)
                recorded.append({"partitions": maker.partitions, "version": ids[producer]})
            inputs[given.parameter] = recorded
        entry = Materialization(
            id=ids[task.id],
            run_id="r",
            task_id=task.id,
            partitions=task.partitions,
            code=made.assets[key].fingerprint,
            inputs=inputs,
            snapshot_id=1,
            published_ms=NOW_MS,
            position=encode_ulid(number),
            rows=300,
            bytes=3000,
        )
        before = found.get(task.asset, AssetFacts())
        found[task.asset] = AssetFacts(
            materializations=(*before.materializations, entry),
            table=TableFact(table_uuid=task.asset, snapshot_id=11, metadata_location="m"),
        )
    return found


def brief(tasks: Iterable[PlannedTask]) -> dict[str, list[object]]:
    result: dict[str, list[object]] = {}
    for task in tasks:
        result.setdefault(task.asset.removeprefix("shop."), []).extend(task.partitions)
    return result


JANUARY = {"date": ["2025-01-01", "2025-01-31"]}


def test_what_was_never_published_is_made_upstream_first() -> None:
    made = project()
    one = made_plan(made, snapshot())
    assert brief(one.spec.tasks) == {"clean": [JANUARY], "weekly": [JANUARY], "totals": [{}]}
    by_asset = {task.asset: task for task in one.spec.tasks}
    clean = by_asset["shop.clean"]
    assert by_asset["shop.weekly"].depends_on == (clean.id,)
    assert by_asset["shop.totals"].inputs[1].snapshot_id == 3
    assert [why.reason for why in clean.because] == ["never"]
    assert clean.priority == 6 * 3600
    assert by_asset["shop.totals"].priority > clean.priority


def laid_out(partitions: object) -> Project:
    @asset(partitions=partitions)
    def days() -> object: ...

    @asset(inputs={"days": every("days")})
    def reader(days: object) -> object: ...

    return assembled([days.written, reader.written], folder=Path(), name="shop", namespace="shop")


@pytest.mark.parametrize(
    "before",
    [DAYS, daily("other", start="2025-01-01"), hourly("date", start="2025-01-01"), static("date", ["2", "a"]), None],
)
@pytest.mark.parametrize(
    "after", [weekly("date", start="2025-01-06"), monthly("date", start="2024-12"), static("other", ["2"]), DAYS, None]
)
def test_what_was_published_in_another_partitioning_is_stale_and_no_error(before: object, after: object) -> None:
    old, new = laid_out(before), laid_out(after)
    facts = published(old, made_plan(old, snapshot()))
    one = made_plan(new, snapshot(facts))
    if before == after:
        assert one.spec.tasks == ()
        return
    everything = World(new.graph, snapshot()).everything(next(iter(new.graph.order))).count()
    first = [task for task in one.spec.tasks if task.asset == "shop.days"]
    assert sum(task.partition_count for task in first) == everything
    assert {why.reason for task in first for why in task.because} <= {"layout", "code"}
    assert "shop.reader" in {task.asset for task in one.spec.tasks}
    again = made_plan(new, snapshot(facts | published(new, one, 2)))
    assert again.spec.tasks == ()


def test_an_earlier_partitioning_is_said_in_plan_and_explanation() -> None:
    old, new = laid_out(DAYS), laid_out(weekly("date", start="2025-01-06"))
    world = World(new.graph, snapshot(published(old, made_plan(old, snapshot()))))
    (key, _) = new.graph.order
    found = explain(world, key, {})
    assert [one.reason for one in found.stale] == ["layout"]
    assert any("partitioned otherwise" in note and "drop the table" in note for note in found.notes)


def test_a_table_that_is_replaced_as_a_whole_is_made_with_all_of_its_partitions_or_not_at_all() -> None:
    @asset(partitions=DAYS, mode="full", partitions_per_task=5)
    def whole(raw: object) -> object: ...

    raw = source("raw", partitions=DAYS)
    made = assembled([raw.written, whole.written], folder=Path(), name="shop", namespace="shop")
    facts = published(made, made_plan(made, snapshot()))
    assert made_plan(made, snapshot(facts)).spec.tasks == ()
    next_day = snapshot(facts, NOW_MS + 86_400_000)
    (task,) = made_plan(made, next_day, partitions={"date": "2025-01-31"}).spec.tasks
    assert task.partitions == [{"date": ["2025-01-01", "2025-02-01"]}]
    assert [(why.reason, why.partitions) for why in task.because] == [
        ("never", [{"date": ["2025-01-31", "2025-02-01"]}]),
        ("whole", [{"date": ["2025-01-01", "2025-01-31"]}]),
    ]
    # What lies under a publish of some days alone is gone from the table, whoever made it.
    alone = [{"date": ["2025-01-30", "2025-01-31"]}]
    lost = msgspec.structs.replace(facts["shop.whole"].materializations[0], id="z", partitions=alone)
    facts["shop.whole"] = msgspec.structs.replace(
        facts["shop.whole"], materializations=(*facts["shop.whole"].materializations, lost)
    )
    (task,) = made_plan(made, snapshot(facts)).spec.tasks
    assert task.partitions == [JANUARY]


def test_what_is_forced_does_not_go_on_from_the_last_publish() -> None:
    @asset(mode="append", inputs={"new": changes_of("customers")})
    def seen(new: object) -> object: ...

    made = assembled([source("customers").written, seen.written], folder=Path(), name="shop", namespace="shop")
    facts = published(made, made_plan(made, snapshot()))
    before = msgspec.structs.replace(facts["shop.seen"].materializations[0], input_snapshots={"new": 2})
    facts["shop.seen"] = msgspec.structs.replace(facts["shop.seen"], materializations=(before,))
    changed = snapshot(facts)
    changed.assets["shop.customers"] = AssetFacts(table=TableFact(table_uuid="c", snapshot_id=4, metadata_location="m"))
    (standard,) = made_plan(made, changed).spec.tasks
    (forced,) = made_plan(made, changed, mode=Mode.FORCE).spec.tasks
    assert [task.inputs[0].since for task in (standard, forced)] == [2, None]


def test_what_is_due_first_goes_first_by_the_time_that_is_left() -> None:
    @asset(fresh_within="1h")
    def strict() -> object: ...

    @asset(fresh_within="6h")
    def late() -> object: ...

    @asset
    def whenever() -> object: ...

    made = assembled([one.written for one in (strict, late, whenever)], folder=Path(), name="shop", namespace="shop")
    facts = {
        "shop.strict": AssetFacts(fresh_until_ms=NOW_MS + 1_800_000),
        "shop.late": AssetFacts(fresh_until_ms=NOW_MS - 60_000),
    }
    found = {task.asset: task.priority for task in made_plan(made, snapshot(facts)).spec.tasks}
    assert (found["shop.late"], found["shop.strict"]) == (-60, 1800)
    assert found["shop.whenever"] > 1800


def test_what_was_held_back_is_planned_again_until_it_is_published() -> None:
    """Whatever is read without it would be made of what is missing; and a check that was mended is no change of code."""
    made = project()
    facts = published(made, made_plan(made, snapshot()))
    held = HeldOutput(
        id=encode_ulid(99),
        run_id="r",
        partitions=[{"date": ["2025-01-04", "2025-01-06"]}],
        action="block_downstream",
        reasons=("unique(id)",),
        branch="held-x",
        position=encode_ulid(2),
    )
    facts["shop.clean"] = msgspec.structs.replace(facts["shop.clean"], held=(held,))
    for _ in range(2):
        first, *rest = made_plan(made, snapshot(facts)).spec.tasks
        assert (first.asset, first.partitions) == ("shop.clean", held.partitions)
        assert [why.reason for why in first.because] == ["quarantined"]
        assert all(first.id in task.depends_on for task in rest if task.asset in {"shop.weekly", "shop.totals"})
    again = published(made, made_plan(made, snapshot(facts)), 3)
    for key, found in again.items():
        facts[key] = msgspec.structs.replace(
            facts[key], materializations=(*facts[key].materializations, *found.materializations)
        )
    assert made_plan(made, snapshot(facts)).spec.tasks == ()


def test_when_all_is_published_nothing_is_left() -> None:
    made = project()
    facts = published(made, made_plan(made, snapshot()))
    again = made_plan(made, snapshot(facts))
    assert again.spec.tasks == ()
    later = made_plan(made, snapshot(facts, at_ms=NOW_MS + 7 * 3600 * 1000))
    assert [why.reason for task in later.spec.tasks for why in task.because if task.asset == "shop.clean"] == ["deadline"]


def test_a_late_correction_concerns_exactly_what_reads_it() -> None:
    made = project()
    facts = published(made, made_plan(made, snapshot()))
    corrected = versions(
        ("2025-01-01", "2025-01-10", "v1"), ("2025-01-10", "2025-01-11", "v2"), ("2025-01-11", "2025-01-31", "v1")
    )
    raw = AssetFacts(table=TableFact(table_uuid="r", snapshot_id=8, metadata_location="m", versions=corrected))
    again = made_plan(made, snapshot(facts | {"shop.raw": raw}))
    assert brief(again.spec.tasks) == {
        "clean": [{"date": ["2025-01-10", "2025-01-11"]}],
        "weekly": [{"date": ["2025-01-10", "2025-01-17"]}],
        "totals": [{}],
    }
    why = {task.asset: task.because for task in again.spec.tasks}
    assert [one.reason for one in why["shop.clean"]] == ["input"]
    assert "shop.raw changed: date 2025-01-10 (1 partition)" in why["shop.clean"][0].detail
    assert [one.reason for one in why["shop.weekly"]] == ["upstream"]
    assert again.spec.tasks[0].estimate.rows == 10


def test_other_code_makes_again_what_it_made_and_what_follows() -> None:
    facts = published(project(), made_plan(project(), snapshot()))
    changed = project(mode="append")
    again = made_plan(changed, snapshot(facts))
    reasons = {task.asset: [why.reason for why in task.because] for task in again.spec.tasks}
    assert reasons["shop.clean"] == ["code"]
    assert reasons["shop.weekly"] == ["upstream"]


def test_a_changed_table_of_a_check_makes_nothing_stale() -> None:
    raw = source("raw")
    customers = source("customers")

    @asset(checks=[foreign_key("id", to="customers")])
    def orders(raw: object) -> object: ...

    made = assembled([one.written for one in (raw, customers, orders)], folder=Path(), name="s", namespace="shop")
    tables = {
        "shop.raw": AssetFacts(table=TableFact(table_uuid="r", snapshot_id=7, metadata_location="m")),
        "shop.customers": AssetFacts(table=TableFact(table_uuid="c", snapshot_id=3, metadata_location="m")),
    }
    first = made_plan(made, PlanningSnapshot(id="s", at_ms=NOW_MS, assets=tables))
    assert [one.snapshot_id for one in first.spec.tasks[0].inputs] == [7, 3]
    moved = tables | {"shop.customers": AssetFacts(table=TableFact(table_uuid="c", snapshot_id=4, metadata_location="m"))}
    facts = PlanningSnapshot(id="s", at_ms=NOW_MS, assets=moved | published(made, first))
    assert made_plan(made, facts).spec.tasks == ()


def test_files_are_a_fact() -> None:
    @asset(inputs={"drop": files("landing/*.json")})
    def landed(drop: object) -> object: ...

    made = assembled([landed.written], folder=Path(), name="s", namespace="shop")

    def facts(fingerprint: str) -> AssetFacts:
        return AssetFacts(files={"drop": FilesFact(fingerprint=fingerprint, files=("landing/a.json",), bytes=1)})

    first = made_plan(made, PlanningSnapshot(id="s", at_ms=NOW_MS, assets={"shop.landed": facts("one")}))
    assert first.spec.tasks[0].inputs[0].files == ("landing/a.json",)
    done = published(made, first)["shop.landed"]

    def after(fingerprint: str) -> PlanningSnapshot:
        return PlanningSnapshot(
            id="s",
            at_ms=NOW_MS,
            assets={"shop.landed": AssetFacts(materializations=done.materializations, files=facts(fingerprint).files)},
        )

    assert made_plan(made, after("one")).spec.tasks == ()
    assert [why.reason for why in made_plan(made, after("two")).spec.tasks[0].because] == ["input"]


def test_modes_and_selections() -> None:
    made = project()
    facts = snapshot(published(made, made_plan(made, snapshot())))
    forced = made_plan(made, facts, words=("clean",), mode=Mode.FORCE, partitions={"date": "2025-01-05..2025-01-06"})
    assert brief(forced.spec.tasks) == {"clean": [{"date": ["2025-01-05", "2025-01-07"]}]}
    assert [why.reason for why in forced.spec.tasks[0].because] == ["forced"]
    assert made_plan(made, facts, mode=Mode.BACKFILL).spec.tasks == ()
    names = {key.name for key in select(made.graph, ["clean+"])}
    assert names == {"clean", "weekly", "totals", "report"}
    assert {key.name for key in select(made.graph, ["+weekly"])} == {"clean", "weekly"}
    assert {key.name for key in select(made.graph, ["tag:wide", "shop.totals"])} == {"weekly", "totals"}
    with pytest.raises(NotFound, match="no asset 'clen'"):
        select(made.graph, ["clen"])
    with pytest.raises(NotFound, match="no asset has the tag"):
        select(made.graph, ["tag:nothing"])
    with pytest.raises(InvalidInput, match="raw: there is nothing to make, it is all written by others") as said:
        made_plan(made, snapshot(), words=("raw",))
    assert said.value.hint == "name what reads it: raw+"
    with pytest.raises(InvalidInput, match="no selected asset has a dimension 'day'"):
        made_plan(made, facts, partitions={"day": "2025-01-01"})


def test_shares_cover_everything_once() -> None:
    raw = source("raw", partitions=[DAYS, static("region", ["a", "b", "c"])])

    @asset(partitions=[DAYS, static("region", ["a", "b", "c"])], partitions_per_task=7)
    def clean(raw: object) -> object: ...

    made = assembled([raw.written, clean.written], folder=Path(), name="s", namespace="shop")
    table = TableFact(table_uuid="r", snapshot_id=7, metadata_location="m")
    one = made_plan(made, PlanningSnapshot(id="s", at_ms=NOW_MS, assets={"shop.raw": AssetFacts(table=table)}))
    assert max(task.partition_count for task in one.spec.tasks) <= 7
    assert sum(task.partition_count for task in one.spec.tasks) == 30 * 3
    assert len({task.id for task in one.spec.tasks}) == len(one.spec.tasks)
    with pytest.raises(TooLarge, match="expands to more than 3 tasks"):
        made_plan(made, PlanningSnapshot(id="s", at_ms=NOW_MS, assets={"shop.raw": AssetFacts(table=table)}), tasks_max=3)


@pytest.mark.parametrize(
    ("days", "regions", "new"),
    [
        (daily("date", start="2024-12-30"), ["a"], {"date": ["2024-12-30", "2025-01-01"], "region": [["a"]]}),
        (daily("date", start="2025-01-01", end="2025-01-31"), ["a"], None),
        (DAYS, ["b", "a"], {"date": ["2025-01-01", "2025-01-31"], "region": [["b"]]}),
    ],
    ids=["begins earlier", "ends", "one value more"],
)
def test_where_dimensions_reach_farther_only_what_is_new_is_made(days: object, regions: list[str], new: object) -> None:
    def sales(*axes: object) -> Project:
        @asset(partitions=axes, mode="append")  # type: ignore[call-overload]
        def sold(run: object) -> object: ...

        return assembled([sold.written], folder=Path(), name="s", namespace="shop")

    before = sales(DAYS, static("region", ["a"]))
    facts = published(before, made_plan(before, PlanningSnapshot(id="s", at_ms=NOW_MS, assets={})))
    after = sales(days, static("region", regions))
    tasks = made_plan(after, PlanningSnapshot(id="s", at_ms=NOW_MS, assets=facts)).spec.tasks
    assert [task.partitions for task in tasks] == ([] if new is None else [[new]])


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_what_read_a_partition_that_is_none_any_more_is_made_without_it(is_dynamic: bool) -> None:
    def sales(regions: list[str], start: str = "2025-01-01") -> Project:
        axis = dynamic("region") if is_dynamic else static("region", regions)

        @asset(partitions=[daily("date", start=start), axis])
        def sold(run: object) -> object: ...

        @asset(partitions=static("region", ["a", "b"]))
        def of_region(sold: object) -> object: ...

        @asset(partitions=DAYS)
        def of_day(sold: object) -> object: ...

        @asset(inputs={"sold": every("sold")})
        def total(sold: object) -> object: ...

        written = [one.written for one in (sold, of_region, of_day, total)]
        return assembled(written, folder=Path(), name="s", namespace="shop")

    def known(facts: dict[str, AssetFacts], regions: list[str]) -> PlanningSnapshot:
        listed = {"region": regions} if is_dynamic else {}
        mine = msgspec.structs.replace(facts.get("shop.sold", AssetFacts()), dynamic=listed)
        return PlanningSnapshot(id="s", at_ms=NOW_MS, assets=facts | {"shop.sold": mine})

    before, less = sales(["a", "b"]), sales(["a"])
    facts = published(before, made_plan(before, known({}, ["a", "b"])))
    assert made_plan(before, known(facts, ["a", "b"])).spec.tasks == ()
    one = made_plan(less, known(facts, ["a"]))
    assert brief(one.spec.tasks) == {"of_region": [{"region": [["b"]]}], "of_day": [JANUARY], "total": [{}]}
    assert {why.detail for task in one.spec.tasks for why in task.because} == {
        "shop.sold changed: region b is no partition any more"
    }
    after = {name: facts[name].materializations + made.materializations for name, made in published(less, one, 2).items()}
    facts |= {name: msgspec.structs.replace(facts[name], materializations=made) for name, made in after.items()}
    assert made_plan(less, known(facts, ["a"])).spec.tasks == ()
    later = sales(["a"], start="2025-01-03")
    made = brief(made_plan(later, known(facts, ["a"])).spec.tasks)
    first_days = {"date": ["2025-01-01", "2025-01-03"]}
    assert made == {"of_region": [{"region": [["a"]]}], "of_day": [first_days], "total": [{}]}


def test_the_newest_of_an_input_is_enough() -> None:
    rates = source("rates", partitions=DAYS)

    @asset(inputs={"rates": last("rates")})
    def now(rates: object) -> object: ...

    made = assembled([rates.written, now.written], folder=Path(), name="s", namespace="shop")
    table = TableFact(
        table_uuid="r", snapshot_id=7, metadata_location="m", versions=versions(("2025-01-01", "2025-01-31", "v"))
    )
    one = made_plan(made, PlanningSnapshot(id="s", at_ms=NOW_MS, assets={"shop.rates": AssetFacts(table=table)}))
    assert one.spec.tasks[0].inputs[0].partitions == [{"date": ["2025-01-30", "2025-01-31"]}]


def test_the_newest_of_an_input_is_the_newest_that_is_there() -> None:
    late = source("late", partitions=[static("region", ["a", "b"]), DAYS])

    @asset(partitions=DAYS)
    def made_here(run: object) -> object: ...

    @asset(inputs={"late": last("late"), "own": last("made_here")})
    def now(late: object, own: object) -> object: ...

    made = assembled([one.written for one in (late, made_here, now)], folder=Path(), name="s", namespace="shop")
    there = [{"partitions": [{"region": [["a", "b"]], "date": ["2025-01-01", "2025-01-29"]}], "version": "v"}]
    table = TableFact(table_uuid="r", snapshot_id=7, metadata_location="m", versions=there)
    facts = PlanningSnapshot(id="s", at_ms=NOW_MS, assets={"shop.late": AssetFacts(table=table)})

    def read(**request: object) -> dict[str, object]:
        one = made_plan(made, facts, **request)
        return {given.parameter: given.partitions for given in one.spec.tasks[-1].inputs}

    newest = [{"region": [["a", "b"]], "date": ["2025-01-28", "2025-01-29"]}]
    assert read(words=("now",)) == {"late": newest, "own": []}
    planned = read(words=("made_here", "now"), partitions={"date": "2025-01-10"})
    assert planned == {"late": newest, "own": [{"date": ["2025-01-10", "2025-01-11"]}]}


def test_a_plan_is_the_same_bytes_in_every_process() -> None:
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/unit'];"
        "from servo.test_planning import *;"
        "print(made_plan(project(), snapshot()).fingerprint)"
    )
    root = Path(__file__).parents[3]
    where = {"PYTHONPATH": os.pathsep.join(sys.path)}
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env={"PYTHONHASHSEED": seed, **where},
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert prints == {f"{made_plan(project(), snapshot()).fingerprint}\n"}


def test_a_stored_plan_comes_back_equal() -> None:
    one = made_plan(project(), snapshot())
    assert decode_plan(one.encode()) == one


def test_versions_lie_over_each_other() -> None:
    made = project()
    world = World(made.graph, snapshot(published(made, made_plan(made, snapshot()))))
    key = next(key for key in made.assets if key.name == "clean")
    assert world.present(key) == world.everything(key)
    assert len(world.versions(key).pieces) == 1
