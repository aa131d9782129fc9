"""The example shop, smaller: its tables hold row for row what the same PySpark code by hand computes from the same raw tables."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession

from arco.fold.spark_session import Session, SparkSettings
from arco.ledger.run_state import RunState
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.execute.spark_read import read_table
from arco.servo.plan.document import Plan
from arco.servo.plan.planner import PlanRequest
from arco.surface.cli.projects import read_project
from fixtures.servo.frames import MARKS, rows
from fixtures.servo.lake import Lake
from fixtures.servo.runs import ended, exits, why

from .arco_server import arco_server

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

SHOP = Path(__file__).resolve().parents[2] / "examples" / "shop"
SIZES = {"CUSTOMERS": 500, "ORDERS": 6_000, "CLICKS": 8_000}

LATE, CHANGED = ("2025-01-03", "2025-01-04"), ("2025-01-25", "2025-01-26")
HELD_BACK = ("2025-01-11", "2025-01-21")

# The same results by hand, over the raw tables; views are made in this order.
BY_HAND = {
    "customers": """
        SELECT customer_id, name, email, country, updated_at FROM (
            SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY updated_at DESC) AS place FROM raw_customers)
        WHERE place = 1""",
    "orders": """
        SELECT DISTINCT order_id, date, customer_id, CAST(amount AS DECIMAL(12, 2)) AS amount, channel FROM raw_orders
        WHERE customer_id IS NOT NULL AND amount BETWEEN 0 AND 100000""",
    "sessions": """
        SELECT date, visitor_id, visit, min(at) AS began_at, count(*) AS clicks,
            max(CASE WHEN page = 'checkout' THEN 1 ELSE 0 END) AS reached_checkout
        FROM (SELECT *, sum(begins) OVER (PARTITION BY date, visitor_id ORDER BY at) AS visit FROM (
            SELECT *, CASE WHEN before IS NULL OR unix_timestamp(at) - unix_timestamp(before) > 1800 THEN 1 ELSE 0 END AS begins
            FROM (SELECT *, lag(at) OVER (PARTITION BY date, visitor_id ORDER BY at) AS before FROM raw_clicks)))
        GROUP BY date, visitor_id, visit""",
    "payments": """
        SELECT DISTINCT payment_id, order_id, date, CAST(amount AS DECIMAL(12, 2)) AS amount, upper(currency) AS currency
        FROM raw_payments WHERE status = 'settled'""",
    "revenue": """
        SELECT o.date, o.channel, count(*) AS orders, sum(o.amount) AS ordered, coalesce(sum(p.amount), 0) AS paid
        FROM orders o LEFT JOIN payments p ON p.order_id = o.order_id AND p.date = o.date GROUP BY o.date, o.channel""",
    "funnel": """
        SELECT v.date, v.visits, v.checkouts, coalesce(b.orders, 0) AS orders
        FROM (SELECT date, count(*) AS visits, sum(reached_checkout) AS checkouts FROM sessions GROUP BY date) v
        LEFT JOIN (SELECT date, count(*) AS orders FROM orders WHERE channel IN ('web', 'app') GROUP BY date) b USING (date)""",
    "revenue_7d": """
        SELECT d.date, sum(w.paid) AS paid_7d, count(DISTINCT w.date) AS days
        FROM (SELECT DISTINCT date FROM revenue) d JOIN revenue w ON w.date BETWEEN date_sub(d.date, 6) AND d.date
        GROUP BY d.date""",
    "best_customers": """
        SELECT customer_id, lifetime_value, orders, name, country FROM (
            SELECT customer_id, sum(amount) AS lifetime_value, count(*) AS orders FROM orders GROUP BY customer_id)
        JOIN customers USING (customer_id) ORDER BY lifetime_value DESC, customer_id LIMIT 1000""",
    "orders_by_country": """
        SELECT date, country, count(*) AS orders, sum(amount) AS ordered FROM orders JOIN customers USING (customer_id)
        GROUP BY date, country""",
}


@pytest.fixture
def landing() -> Iterator[ModuleType]:
    """What plays the part of the other systems, with fewer rows."""
    sys.path.insert(0, str(SHOP))
    try:
        module = importlib.import_module("landing")
        kept = {name: getattr(module, name) for name in SIZES}
        for name, value in SIZES.items():
            setattr(module, name, value)
        yield module
        for name, value in kept.items():
            setattr(module, name, value)
    finally:
        sys.path.remove(str(SHOP))


def test_the_shop_publishes_what_the_same_code_by_hand_computes(session: Session, home: Lake, landing: ModuleType) -> None:
    pipeline = _pipeline(home)
    with arco_server(home.root.removeprefix("file://"), "--log-level", "error") as uri:
        catalog = load_catalog("arco", type="rest", uri=uri)
        landing.write(catalog)
        first, _ = home.run(_run(pipeline))
        assert exits(first) == 3, why(first)
        assert ended(first)["blocked"] == 1
        landing.correct(catalog)
    second, planned = home.run(_run(pipeline))
    assert set(ended(second)) == {"succeeded"}, why(second)
    assert _made(planned) == {
        "shop.orders": [LATE],
        "shop.payments": [HELD_BACK, CHANGED],
        "shop.revenue": [LATE, HELD_BACK, CHANGED],
        # A week after the late day; and everything that was skipped for what was held back, the days after it among them.
        "shop.revenue_7d": [("2025-01-03", "2025-01-10"), HELD_BACK, ("2025-01-21", "2025-01-31")],
        "shop.funnel": [LATE],
        "shop.orders_by_country": [LATE],
        "shop.best_customers": [()],
    }
    assert _why(planned, LATE) | _why(planned, CHANGED) == {"input", "upstream"}, "these were published"
    assert home.run(pipeline.prepare(PlanRequest())).plan.spec.tasks == ()

    spark = session.spark
    for name in ("customers", "orders", "payments", "clicks"):
        _read(spark, home, "raw", name).createOrReplaceTempView(f"raw_{name}")
    for name, query in BY_HAND.items():
        spark.sql(query).cache().createOrReplaceTempView(name)
        found = _read(spark, home, "shop", name)
        expected = spark.table(name).select(*(f"`{column}`" for column in found.columns))
        assert rows(found) == rows(expected), name
    aside = _read(spark, home, "shop", "orders__quarantine")
    bad = spark.sql("SELECT DISTINCT * FROM raw_orders WHERE customer_id IS NULL OR NOT amount BETWEEN 0 AND 100000")
    # Those of the late day twice: it was made twice, and every run says what it set aside.
    assert aside.select("order_id").distinct().count() == bad.count() > 0
    assert aside.count() == bad.count() + bad.where(f"date = '{LATE[0]}'").count()


def _pipeline(home: Lake) -> Pipeline:
    project = read_project(str(SHOP)).load()
    return Pipeline(catalog=home.another(), project=project, root=home.root, options={}, spark=SparkSettings(), by="ann")


async def _run(pipeline: Pipeline) -> tuple[RunState, Plan]:
    prepared = await pipeline.prepare(PlanRequest())
    return await pipeline.drive(await pipeline.start(prepared, HowToRun())), prepared.plan


def _made(planned: Plan) -> dict[str, list[Any]]:
    """The days that a plan makes of each asset."""
    found: dict[str, list[Any]] = {}
    for task in planned.spec.tasks:
        found.setdefault(task.asset, []).extend(tuple(box.get("date", ())) for box in task.partitions)
    return {asset: sorted(days) for asset, days in found.items()}


def _why(planned: Plan, days: tuple[str, str]) -> set[str]:
    """The reasons for which exactly these days are made, of whichever asset."""
    return {
        because.reason
        for task in planned.spec.tasks
        for because in task.because
        if [tuple(box.get("date", ())) for box in because.partitions] == [days]
    }


def _read(spark: SparkSession, home: Lake, namespace: str, name: str) -> DataFrame:
    return read_table(spark, home.load(name, namespace), home.io)
