"""What can be worked with: one row a thing, right types, bad rows set aside."""

from assets.sources import JANUARY
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from arco import accepted_values, asset, check, foreign_key, in_range, matches, not_null, row_count, unique


@asset(
    inputs={"raw": "raw.customers"},
    checks=[
        unique("customer_id"),
        matches("email", r"[^@\s]+@[^@\s]+\.[a-z]+", severity="warning"),
    ],
    tags="cleaned",
    owners="team-shop",
)
def customers(raw: DataFrame) -> DataFrame:
    """Customers, each with the address that was given last."""
    newest = Window.partitionBy("customer_id").orderBy(f.col("updated_at").desc())
    return raw.withColumn("place", f.row_number().over(newest)).where("place = 1").drop("place")


@asset(
    inputs={"raw": "raw.orders"},
    partitions=JANUARY,
    partitions_per_task=10,
    checks=[
        not_null("customer_id", quarantine_rows=True),
        in_range("amount", min=0, max=100_000, quarantine_rows=True),
        accepted_values("channel", ["web", "app", "shop"], severity="warning"),
        row_count(min=1),
        unique("order_id"),
        foreign_key("customer_id", to="customers", to_columns="customer_id", allow_null=True),
    ],
    tags="cleaned",
    fresh_within="36h",
)
def orders(raw: DataFrame) -> DataFrame:
    """Orders, each once: the shop's browsers send some of them twice."""
    return raw.dropDuplicates(["order_id"]).withColumn("amount", f.col("amount").cast("decimal(12, 2)"))


@asset(inputs={"raw": "raw.clicks"}, partitions=JANUARY, partitions_per_task=10, tags="cleaned")
def sessions(raw: DataFrame) -> DataFrame:
    """Visits: clicks of one visitor with less than half an hour between them."""
    by_time = Window.partitionBy("date", "visitor_id").orderBy("at")
    gap_s = f.unix_timestamp("at") - f.lag(f.unix_timestamp("at")).over(by_time)
    begins = f.when(gap_s.isNull() | (gap_s > 1800), 1).otherwise(0)
    numbered = raw.withColumn("visit", f.sum(begins).over(by_time))
    return numbered.groupBy("date", "visitor_id", "visit").agg(
        f.min("at").alias("began_at"),
        f.count("*").alias("clicks"),
        f.max(f.when(f.col("page") == "checkout", 1).otherwise(0)).alias("reached_checkout"),
    )


@check(sessions, severity="warning")
def few_bots(rows: DataFrame) -> bool:
    """Hardly anybody clicks a hundred times in one visit."""
    share = rows.agg(f.avg((f.col("clicks") > 100).cast("double"))).first()
    return share is not None and (share[0] or 0.0) < 0.01
