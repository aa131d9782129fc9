"""Plans of generated projects and facts: the same bytes in every process, every wanted partition once, makers before readers.

A second process with another hash seed makes the same plans from the same seeds; so nothing in a plan depends on the order of a
set or on when it was made.
"""

import os
import random
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import encode_ulid
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.places import Places
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.document import Plan
from arco.servo.plan.facts import AssetFacts, FilesFact, HeldOutput, Materialization, PlanningSnapshot, TableFact
from arco.servo.plan.planner import Deployed, Mode, PlanRequest, plan
from arco.servo.plan.staleness import World
from arco.servo.plan.versions import Versions
from arco.servo.sdk.authoring import Written
from arco.servo.sdk.definitions import AssetKind, CallSite
from arco.servo.sdk.dimensions import daily, monthly, partitioned, static, weekly
from arco.servo.sdk.inputs import Input, every, files, last, same, window
from arco.servo.sdk.project import Project, assembled

START = date(2025, 1, 1)
NOW_MS = int(datetime(2025, 2, 10, tzinfo=UTC).timestamp() * 1000)
DAYS = daily("date", start=START)
SHAPES = (
    partitioned(None),
    partitioned(DAYS),
    partitioned(weekly("date", start="2024-12-30")),
    partitioned(monthly("date", start="2025-01")),
    partitioned([DAYS, static("region", ["de", "fr", "it"])]),
    partitioned(static("region", ["de", "fr"])),
)
SEEDS = range(40)


def made_project(draw: random.Random) -> Project:
    written: list[Written] = []
    for number in range(draw.randint(2, 8)):
        kind = AssetKind.SOURCE if number < 2 and draw.random() < 0.7 else AssetKind.SQL
        shape = draw.choice(SHAPES)
        inputs: dict[str, Input] = {}
        for above in draw.sample(written, min(len(written), draw.randint(0, 3))) if kind is AssetKind.SQL else ():
            ways = [every, same]
            if above.partitions.axes:
                ways.append(last)
            if all(any(axis.name == "date" for axis in one.axes) for one in (shape, above.partitions)):
                ways.append(lambda name: window(name, -2, 1, dimension="date"))
            inputs[f"p_{above.name}"] = draw.choice(ways)(above.name)
        if kind is AssetKind.SQL and draw.random() < 0.2:
            inputs["landed"] = files("landing/*.json")
        written.append(
            Written(
                name=f"a{number}",
                kind=kind,
                where=CallSite("test", number),
                sql=None if kind is AssetKind.SOURCE else f"select {draw.randint(0, 9)}",
                inputs=inputs,
                parameters={},
                partitions=shape,
                partitions_per_task=draw.choice([None, 1, 4, 7]),
                fresh_within_s=draw.choice([None, None, 3600]),
                tags=("even",) if number % 2 == 0 else (),
                resources={"cores": 2.0} if draw.random() < 0.3 else {},
            )
        )
    return assembled(written, folder=Path(), name="p", namespace="p")


def some(draw: random.Random, partitioning: Partitioning) -> PartitionSet:
    """Part of what there is."""
    box = [axis.bounds(NOW_MS) for axis in partitioning.axes]
    cut = []
    for first, end in box:
        low = draw.randint(first, max(first, end - 1))
        cut.append((low, draw.randint(low, end)))
    return PartitionSet.box(cut)


def made_facts(draw: random.Random, made: Project) -> PlanningSnapshot:
    facts: dict[str, AssetFacts] = {}
    for number, (key, asset) in enumerate(made.assets.items()):
        shape = asset.partitions

        def versions(of: Partitioning, count: int) -> list[dict[str, Any]]:
            return [{"partitions": of.document(some(draw, of)), "version": f"v{draw.randint(0, 3)}"} for _ in range(count)]

        if asset.is_source:
            table = TableFact(table_uuid="u", snapshot_id=7, metadata_location="m", versions=versions(shape, 3))
            facts[str(key)] = AssetFacts(table=table)
            continue
        ids = [encode_ulid(number * 100 + one) for one in range(1, draw.randint(1, 6))]
        recorded = tuple(
            Materialization(
                id=one,
                run_id="r",
                task_id="t",
                partitions=shape.document(some(draw, shape)),
                code=draw.choice([asset.fingerprint, "old"]),
                inputs={
                    given.parameter: versions(made.assets[given.asset].partitions, 2)
                    for given in asset.inputs
                    if given.asset is not None and draw.random() < 0.9
                },
                snapshot_id=3,
                published_ms=NOW_MS - draw.choice([0, 10**7]),
                position=one,
                rows=draw.choice([None, 10]),
            )
            for one in ids
        )
        held = HeldOutput(
            id="h", run_id="r", partitions=shape.document(some(draw, shape)), action="quarantine", reasons=("x",), branch="b",
            position=encode_ulid(number * 100 + 3),
        )  # fmt: skip
        facts[str(key)] = AssetFacts(
            materializations=recorded,
            table=TableFact(table_uuid="u", snapshot_id=draw.choice([None, 5]), metadata_location="m"),
            files={"landed": FilesFact(fingerprint="f", files=("/x.json",), bytes=1)},
            held=(held,) if draw.random() < 0.5 else (),
        )
    return PlanningSnapshot.taken(NOW_MS, facts)


def made_plan(seed: int) -> tuple[Project, PlanningSnapshot, PlanRequest, Plan]:
    draw = random.Random(seed)
    made = made_project(draw)
    facts = made_facts(draw, made)
    names = [str(key) for key, asset in made.assets.items() if not asset.is_source] or [str(next(iter(made.assets)))]
    words = draw.choice(
        [(), (f"+{draw.choice(names)}",), (f"{draw.choice(names)}+",), ("tag:even",), (draw.choice(names),)]
    )
    request = PlanRequest(words=words, mode=draw.choice(list(Mode)))
    ids = {key: encode_ulid(number) for number, key in enumerate(made.assets, 1)}
    return made, facts, request, plan(made.graph, facts, Deployed("d", made.code_version, ids), request)


def hashes() -> list[str]:
    return [content_hash(made_plan(seed)[3].encode()) for seed in SEEDS]


def test_plans_are_the_same_bytes_in_every_process_and_under_every_hash_seed() -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import {Path(__file__).stem} as t; print(t.hashes())"
    expected = f"{hashes()}\n"
    for seed in ("0", "1", "4242"):
        where = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=where)
        assert done.stdout == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_every_partition_is_made_once_with_one_reason_after_what_it_reads(seed: int) -> None:
    made, facts, request, found = made_plan(seed)
    world = World(made.graph, facts)
    by_id = {task.id: task for task in found.spec.tasks}
    assert len(by_id) == len(found.spec.tasks)
    whole: dict[str, PartitionSet] = {}
    placed: set[str] = set()
    for task in found.spec.tasks:
        key = next(key for key in made.assets if str(key) == task.asset)
        shape = world.partitioning(key)
        mine = shape.read(task.partitions)
        assert mine.count() == task.partition_count > 0
        seen = whole.get(task.asset, PartitionSet.nothing(len(shape.axes)))
        assert not seen & mine, "two tasks make one partition"
        whole[task.asset] = seen | mine
        reasons = [shape.read(one.partitions) for one in task.because]
        assert sum(one.count() for one in reasons) == mine.count()
        assert PartitionSet.union(len(shape.axes), reasons) == mine
        assert set(task.depends_on) <= placed
        placed.add(task.id)
        for one in task.inputs:
            if one.asset is None:
                continue
            upstream = next(key for key in made.assets if str(key) == one.asset)
            needed = world.partitioning(upstream).read(one.partitions)
            makers = {
                other.id
                for other in found.spec.tasks
                if other.asset == one.asset and world.partitioning(upstream).read(other.partitions) & needed
            }
            assert set(one.made_by) == makers, "every maker of what it reads, and no other"
    if request.mode is Mode.FORCE:
        for name in found.spec.selection:
            key = next(key for key in made.assets if str(key) == name)
            assert whole.get(name, PartitionSet.nothing(len(made.assets[key].partitions.axes))) == world.everything(key)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_just_made_is_fresh(seed: int) -> None:
    """A plan that ran to its end leaves nothing stale but what is held to be too old by its own clock."""
    made, facts, _, _ = made_plan(seed)
    ids = {key: encode_ulid(number) for number, key in enumerate(made.assets, 1)}
    deployed = Deployed("d", made.code_version, ids)
    first = plan(made.graph, facts, deployed, PlanRequest())
    after = PlanningSnapshot.taken(NOW_MS, ran(made, facts, first))
    assert [task.because for task in plan(made.graph, after, deployed, PlanRequest()).spec.tasks] == []


def ran(made: Project, facts: PlanningSnapshot, one: Plan) -> dict[str, AssetFacts]:
    names = {task.id: encode_ulid(10**6 + place) for place, task in enumerate(one.spec.tasks)}
    makers = {task.id: task for task in one.spec.tasks}
    found = dict(facts.assets)
    for task in one.spec.tasks:
        inputs = {
            given.parameter: [
                *given.versions,
                *({"partitions": makers[maker].partitions, "version": names[maker]} for maker in given.made_by),
            ]
            for given in task.inputs
        }
        fresh = Materialization(
            id=names[task.id], run_id="r", task_id=task.id, partitions=task.partitions, inputs=inputs, snapshot_id=9,
            code=next(asset.fingerprint for key, asset in made.assets.items() if str(key) == task.asset),
            published_ms=NOW_MS, position=names[task.id],
        )  # fmt: skip
        before = found.get(task.asset, AssetFacts())
        found[task.asset] = AssetFacts(
            materializations=(*before.materializations, fresh), table=before.table, files=before.files, held=before.held
        )
    return found


# Versions and places against the plainest way to do the same

spans = st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda one: (one[0], one[0] + one[1]))
boxes = st.lists(st.tuples(spans, spans), max_size=3).map(lambda found: PartitionSet.of(2, found))
lines = st.lists(spans.map(lambda one: (one,)), max_size=4).map(lambda found: PartitionSet.of(1, found))
pieces = st.one_of(
    st.tuples(st.just(1), st.lists(st.tuples(lines, st.sampled_from("abcd")), max_size=8), lines),
    st.tuples(st.just(2), st.lists(st.tuples(boxes, st.sampled_from("abcd")), max_size=6), boxes),
)


def plainly(found: Any) -> dict[tuple[int, ...], str]:
    return {point: version for partitions, version in found for point in partitions.points()}


@given(pieces)
def test_later_pieces_lie_over_earlier_ones_point_by_point(drawn: Any) -> None:
    axes, found, part = drawn
    laid = Versions.of(axes, found)
    assert plainly(laid.pieces) == plainly(found)
    assert len({version for _, version in laid.pieces}) == len(laid.pieces)
    inside = set(part.points())
    assert plainly(laid.within(part).pieces) == {point: one for point, one in plainly(found).items() if point in inside}
    assert set(laid.covered().points()) == set(plainly(found))


@given(pieces, pieces)
def test_versions_differ_where_their_points_do(one: Any, other: Any) -> None:
    if one[0] != other[0]:
        return
    here, there = plainly(one[1]), plainly(other[1])
    found = Versions.of(one[0], one[1]).differing(Versions.of(one[0], other[1]))
    assert set(found.points()) == {point for point in {*here, *there} if here.get(point) != there.get(point)}


@given(pieces)
def test_what_shares_a_point_is_near(drawn: Any) -> None:
    _, found, part = drawn
    sets = [partitions for partitions, _ in found]
    near = Places.of(sets).near(part)
    assert near == sorted(near)
    assert {number for number, one in enumerate(sets) if one & part} <= set(near)


def test_shares_of_boxes_that_lie_beside_each_other_all_find_their_makers() -> None:
    """Regions de and it of ten days, five days a task: tasks of both regions begin at the same days."""
    shape = partitioned([DAYS, static("region", ["de", "fr", "it"])])
    both = [
        Written(
            name=name, kind=AssetKind.SQL, where=CallSite("t", 1), sql="select 1", inputs=inputs, parameters={},
            partitions=shape, partitions_per_task=5,
        )
        for name, inputs in (("up", {}), ("down", {"up": same("up")}))
    ]  # fmt: skip
    made = assembled(both, folder=Path(), name="p", namespace="p")
    ids = {key: encode_ulid(number) for number, key in enumerate(made.assets, 1)}
    days = f"{START}..{START + timedelta(days=9)}"
    request = PlanRequest(partitions={"date": days, "region": "de,it"})
    found = plan(made.graph, PlanningSnapshot.taken(NOW_MS, {}), Deployed("d", made.code_version, ids), request)
    ups = {str(task.partitions): task.id for task in found.spec.tasks if task.asset == "p.up"}
    downs = [task for task in found.spec.tasks if task.asset == "p.down"]
    assert len(ups) == len(downs) == 4
    assert [task.depends_on for task in downs] == [(ups[str(task.partitions)],) for task in downs]
