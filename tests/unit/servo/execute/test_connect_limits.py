"""What Spark Connect has not is found in an asset's code before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from arco import asset, check
from arco.kernel.errors import InvalidInput
from arco.servo.execute.connect_limits import refuse_what_connect_lacks
from arco.servo.sdk.authoring import Asset
from arco.servo.sdk.project import assembled


def examined(*assets: Asset[Any, Any]) -> None:
    project = assembled([one.written for one in assets], folder=Path(), name="tests", namespace="db")
    refuse_what_connect_lacks(project.assets.values())


def test_code_that_reaches_into_spark_is_refused_with_its_line() -> None:
    @asset
    def counted(run):
        rows = run.spark.range(3)
        return rows.rdd.map(tuple).toDF(["id"])

    with pytest.raises(InvalidInput, match=r"test_connect_limits\.py:\d+: db\.counted uses rdd") as refused:
        examined(counted)
    assert "--spark local[*]" in refused.value.one_line()


def test_so_is_a_check_that_does() -> None:
    @asset
    def orders(run):
        return run.spark.range(3)

    @check(orders)
    def spread(rows):
        return rows.sparkSession.sparkContext.defaultParallelism > 1

    with pytest.raises(InvalidInput, match=r"db\.orders uses sparkContext"):
        examined(orders)


def test_code_of_frames_and_queries_is_not() -> None:
    @asset
    def orders(run):
        """No rdd, and no sparkContext, in what it does."""
        return run.spark.sql("SELECT 1 AS rdd")

    examined(orders)
