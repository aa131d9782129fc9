"""An interruption and Spark's own process: whoever hears it first, the run is cancelled and did not fail."""

import asyncio
import threading
from pathlib import Path

import pytest

from arco import asset
from arco.catalog.catalog import Catalog
from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import Session, SparkSettings
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Unavailable
from arco.kernel.scope import Scope
from arco.ledger.run_entries import RunStatus
from arco.ledger.run_state import RunState
from arco.servo.execute import pipeline as module
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.plan.planner import PlanRequest
from arco.servo.sdk.project import assembled
from arco.storage.memory import MemoryStore


class NoSpark(SparkHome):
    """A Spark that is gone before it was there."""

    async def session(self) -> Session:
        raise Unavailable("Spark did not start")


def pipeline() -> Pipeline:
    clock = SystemClock()
    catalog = Catalog.open(MemoryStore(clock), "memory://", Scope.of(), clock, SeededEntropy(1))

    @asset
    def nothing() -> None:
        return None

    project = assembled([nothing.written], folder=Path(), name="none", namespace="none")
    return Pipeline(catalog=catalog, project=project, root="memory://", options={}, spark=SparkSettings(), by="ann")


def test_an_interruption_that_spark_heard_first_is_no_failure_of_spark() -> None:
    async def story() -> None:
        opening = asyncio.create_task(pipeline()._session(NoSpark(SparkSettings())))
        await asyncio.sleep(0)  # Spark has failed by now
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(story())


def test_without_an_interruption_the_failure_is_said() -> None:
    with pytest.raises(Unavailable, match="Spark did not start"):
        asyncio.run(pipeline()._session(NoSpark(SparkSettings())))


def test_an_interruption_while_it_is_seen_whether_spark_can_start_ends_the_run_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, go_on = threading.Event(), threading.Event()

    def look(_settings: SparkSettings) -> None:
        looks.set()
        go_on.wait()

    async def story() -> RunState:
        made = pipeline()
        started = await made.start(await made.prepare(PlanRequest()), HowToRun(), here=False)
        monkeypatch.setattr(module, "check_start", look)
        driving = asyncio.create_task(made.drive(started))
        await asyncio.to_thread(looks.wait)
        driving.cancel()
        go_on.set()
        return await driving

    assert asyncio.run(story()).run.status is RunStatus.CANCELLED
