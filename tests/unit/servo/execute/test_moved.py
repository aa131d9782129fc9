"""A plan that was made on what is no longer there is made anew when it is started, or refused with the way out."""

from pathlib import Path

import pytest

from arco.fold.spark_session import SparkSettings
from arco.kernel.errors import Conflict
from arco.servo.execute.moved import moved_since
from arco.servo.execute.pipeline import HowToRun
from arco.servo.execute.pipeline import Pipeline as AtWork
from arco.servo.plan.planner import PlanRequest
from arco.servo.sdk.authoring import asset, source
from arco.servo.sdk.inputs import files
from fixtures.servo.lake import Lake, data_file
from fixtures.servo.pipeline import Pipeline

raw = source("raw")


@asset(inputs={"landed": files("landing/*.json")})
def a(landed: object, raw: object) -> object: ...


@asset
def aside() -> object: ...


@pytest.fixture
def lake():
    with Lake() as found:
        yield found


@pytest.fixture
def shop(lake, tmp_path: Path) -> Pipeline:
    made = Pipeline(lake, a, aside, raw, folder=tmp_path)
    made.table("raw")
    append(lake, "raw")
    return made


@pytest.fixture
def pipeline(lake, shop) -> AtWork:
    return AtWork(catalog=lake.catalog, project=shop.project, root=lake.root, options={}, spark=SparkSettings(), by="ann")


def append(lake: Lake, name: str) -> None:
    base = lake.load(name)
    lake.publish(name, base, (data_file(base, str(lake.materialization())),))


def publish(shop: Pipeline, name: str, **more) -> None:
    one = str(shop.lake.materialization())
    shop.append(shop.made(name, one, shop.publish(name, one), **more))


def prepared(pipeline: AtWork, lake: Lake, *words: str):
    return lake.run(pipeline.prepare(PlanRequest(words=words)))


def moved(pipeline: AtWork, lake: Lake, made) -> list[str]:
    return lake.run(moved_since(lake.another(), pipeline.project, made.plan, made.snapshot, {}))


def test_a_plan_stands_while_nothing_that_it_touches_moves(lake, shop, pipeline):
    made = prepared(pipeline, lake, "a")
    assert moved(pipeline, lake, made) == []
    shop.table("aside")
    append(lake, "aside")
    assert moved(pipeline, lake, made) == [], "nothing of it is planned"
    started = lake.run(pipeline.start(made, HowToRun(), here=False))
    assert started.plan.fingerprint == made.plan.fingerprint


def test_what_it_reads_what_it_makes_and_files_that_it_takes_move_a_plan(lake, shop, pipeline, tmp_path: Path):
    made = prepared(pipeline, lake, "a")
    append(lake, "raw")
    assert moved(pipeline, lake, made) == ["db.raw"]
    shop.table("a")
    assert moved(pipeline, lake, made) == ["db.a", "db.raw"]
    made = prepared(pipeline, lake, "a")
    assert moved(pipeline, lake, made) == []
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "x.json").write_text("{}")
    assert moved(pipeline, lake, made) == ["db.a"]


def test_a_plan_whose_inputs_moved_is_made_anew_when_it_is_started(lake, shop, pipeline):
    made = prepared(pipeline, lake, "a")
    append(lake, "raw")
    started = lake.run(pipeline.start(made, HowToRun(), here=False))
    assert started.is_new
    assert started.plan.fingerprint != made.plan.fingerprint
    (task,) = started.plan.spec.tasks
    read = next(one for one in task.inputs if one.parameter == "raw")
    assert read.snapshot_id == lake.load("raw").current_snapshot_id


def test_a_plan_that_others_carried_out_meanwhile_is_refused(lake, shop, pipeline):
    made = prepared(pipeline, lake, "aside")
    shop.table("aside")
    publish(shop, "aside", code=shop.project.assets[next(k for k in shop.project.assets if k.name == "aside")].fingerprint)
    with pytest.raises(Conflict, match="made by somebody else meanwhile") as refused:
        lake.run(pipeline.start(made, HowToRun(), here=False))
    assert "arco plan" in refused.value.hint


def test_who_starts_late_with_a_key_finds_the_run_of_that_key_though_it_has_made_everything(lake, shop, pipeline):
    made = prepared(pipeline, lake, "aside")
    first = lake.run(pipeline.start(made, HowToRun(key="k"), here=False))
    shop.table("aside")
    publish(shop, "aside", code=shop.project.assets[next(k for k in shop.project.assets if k.name == "aside")].fingerprint)
    again = lake.run(pipeline.start(made, HowToRun(key="k"), here=False))
    assert (again.log.run, again.is_new) == (first.log.run, False)


def test_a_plan_that_never_comes_to_rest_is_refused(lake, shop, pipeline, monkeypatch):
    made = prepared(pipeline, lake, "a")

    async def always(*_) -> list[str]:
        return ["db.raw"]

    monkeypatch.setattr("arco.servo.execute.pipeline.moved_since", always)
    with pytest.raises(Conflict, match=r"db\.raw changed again each time") as refused:
        lake.run(pipeline.start(made, HowToRun(), here=False))
    assert refused.value.hint
