"""The key of a run: the same request with the same key is the same run, and anything else with it is refused."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from arco import asset
from arco.catalog.catalog import Catalog
from arco.fold.spark_session import SparkSettings
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Conflict, KeyReused
from arco.kernel.scope import Scope
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.plan.planner import Mode, PlanRequest
from arco.servo.sdk.project import assembled
from arco.storage.memory import MemoryStore

KEYED = HowToRun(key="nightly 2025-01-01")
ORDERS = PlanRequest(words=("orders",))


@asset
def orders(run):
    return run.spark.range(3)


@asset
def revenue(run):
    return run.spark.range(4)


def pipeline(tmp_path: Path) -> Pipeline:
    clock = SystemClock()
    catalog = Catalog.open(MemoryStore(clock), "memory://", Scope.of(), clock, SeededEntropy(1))
    project = assembled([orders.written, revenue.written], folder=tmp_path, name="shop", namespace="shop")
    return Pipeline(catalog=catalog, project=project, root="memory://", options={}, spark=SparkSettings(), by="ann")


def test_a_key_that_nobody_used_stands_for_no_run(tmp_path: Path) -> None:
    assert asyncio.run(pipeline(tmp_path).started_before(ORDERS, KEYED)) is None
    assert asyncio.run(pipeline(tmp_path).started_before(ORDERS, HowToRun())) is None


def test_the_same_request_with_the_same_key_is_the_same_run(tmp_path: Path) -> None:
    async def story() -> None:
        made = pipeline(tmp_path)
        first = await made.start(await made.prepare(ORDERS), KEYED)
        again = await made.started_before(ORDERS, replace(KEYED, parallelism=1))
        assert again is not None
        assert (again.log.run, again.is_new, again.plan) == (first.log.run, False, first.plan)

    asyncio.run(story())


@pytest.mark.parametrize(
    "other",
    [
        PlanRequest(words=("revenue",)),
        PlanRequest(),
        replace(ORDERS, mode=Mode.FORCE),
        replace(ORDERS, partitions={"date": "2025-01-01"}),
        replace(ORDERS, parameters={"limit": "1"}),
    ],
    ids=["other assets", "all assets", "another mode", "other partitions", "another setting"],
)
def test_the_key_of_another_request_is_refused(tmp_path: Path, other: PlanRequest) -> None:
    async def story() -> None:
        made = pipeline(tmp_path)
        await made.start(await made.prepare(ORDERS), KEYED)
        with pytest.raises(KeyReused):
            await made.started_before(other, KEYED)

    asyncio.run(story())


def test_a_run_of_other_code_is_not_gone_on_with_under_its_key(tmp_path: Path) -> None:
    async def story() -> None:
        made = pipeline(tmp_path)
        prepared = await made.prepare(ORDERS)
        await made.start(prepared, KEYED)
        mended = replace(made, project=replace(made.project, code_version="code_0123456789abcdef"))
        with pytest.raises(Conflict, match="was planned for code"):
            await mended.started_before(ORDERS, KEYED)
        with pytest.raises(Conflict, match="was planned for code"):
            await mended.start(prepared, KEYED)

    asyncio.run(story())
