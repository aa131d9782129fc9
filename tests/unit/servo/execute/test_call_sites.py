"""The line of an asset's code that a read stands on."""

from pathlib import Path
from typing import Any

import pytest

from arco import asset
from arco.servo.execute.call_sites import line_naming_path, line_naming_table
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.project import assembled


@asset
def reader(run):
    """Reads shop.secret and shop.orders from /lake/data/orders-1 ."""
    one = run.spark.table("shop.secret")
    two = run.spark.sql("SELECT * FROM `shop`.orders WHERE id > 1")
    three = run.spark.read.parquet("/lake/data/orders-1/data")
    return one.join(two).join(three)


@asset
def indirect(run, name="x"):
    return run.spark.table(f"shop.{name}")


def defined(tmp_path: Path, one: Any) -> AssetDefinition:
    project = assembled([one.written], folder=tmp_path, name="tests", namespace="db")
    return next(iter(project.assets.values()))


@pytest.mark.parametrize(
    ("find", "what", "after"),
    [
        (line_naming_table, "spark_catalog.shop.secret", 3),
        (line_naming_table, "shop.secret", 3),
        (line_naming_table, "spark_catalog.shop.orders", 4),
        (line_naming_path, "/lake/data/orders-1/data/part-0.parquet", 5),
        (line_naming_table, "spark_catalog.shop.other", 0),
        (line_naming_path, "/lake/data/others/part-0.parquet", 0),
    ],
)
def test_the_line_that_names_it_or_else_the_asset(tmp_path: Path, find: Any, what: str, after: int) -> None:
    found = defined(tmp_path, reader)
    assert (find(found, what).file, find(found, what).line) == (found.where.file, found.where.line + after)


def test_a_name_that_is_put_together_is_not_found(tmp_path: Path) -> None:
    found = defined(tmp_path, indirect)
    assert line_naming_table(found, "spark_catalog.shop.secret") == found.where
