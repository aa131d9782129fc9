"""What people look at."""

from assets.sources import JANUARY
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from arco import RunContext, asset, every, in_range, window


@asset(
    inputs={"week": window("revenue", -6, 0)},
    partitions=JANUARY,
    partitions_per_task=10,
    tags="report",
    checks=[in_range("paid_7d", min=0)],
)
def revenue_7d(week: DataFrame, run: RunContext) -> DataFrame:
    """What was paid in the seven days up to each day."""
    days = run.spark.createDataFrame([(day,) for day in run.values("date")], "date date")
    before = f.datediff(days["date"], week["date"])
    joined = days.join(week, before.between(0, 6))
    return joined.groupBy(days["date"]).agg(f.sum("paid").alias("paid_7d"), f.count_distinct(week["date"]).alias("days"))


@asset(inputs={"orders": every("orders")}, mode="full", tags="report", sort_by="lifetime_value desc")
def best_customers(orders: DataFrame, customers: DataFrame, top: int = 1000) -> DataFrame:
    """The customers who ordered most, over all time."""
    spent = orders.groupBy("customer_id").agg(f.sum("amount").alias("lifetime_value"), f.count("*").alias("orders"))
    return (
        spent.join(customers.select("customer_id", "name", "country"), "customer_id")
        .orderBy(f.col("lifetime_value").desc(), "customer_id")
        .limit(top)
    )


@asset(partitions=JANUARY, partitions_per_task=10, mode="merge", key=("date", "country"), tags="report")
def orders_by_country(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Orders and their value by the customer's country; a day's countries are merged by key."""
    joined = orders.join(customers.select("customer_id", "country"), "customer_id")
    return joined.groupBy("date", "country").agg(f.count("*").alias("orders"), f.sum("amount").alias("ordered"))
