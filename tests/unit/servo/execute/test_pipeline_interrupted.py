"""An interruption and Spark's own process: whoever hears it first, the run is cancelled and did not fail."""

import asyncio
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
from arco.servo.execute.pipeline import Pipeline
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
