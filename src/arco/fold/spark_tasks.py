"""Tasks on the executors of Spark: each in a partition of its own, and what each said at its end.

No row of state passes through the JVM, and no plan is made or compiled for a table. Only what tasks that Spark counts as done
have said is taken. Needs this package on the executors.
"""

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from arco.fold.spark_session import Session
from arco.fold.tasks import Said, Task


def done(session: Session, tasks: Sequence[Task]) -> list[Said]:
    """Run tasks; what they said, in their order."""
    if not tasks:
        return []
    spark = session.spark
    said = by_query(spark, tasks) if session.is_connect else by_partition(spark.sparkContext, tasks)
    return [msgspec.json.decode(one, type=Said) for one in said]


def by_partition(context: SparkContext, tasks: Sequence[Task]) -> list[bytes]:
    """Without a query: the first one of a session takes seconds to plan."""
    given = tuple(tasks)
    return context.parallelize(range(len(given)), len(given)).map(lambda number: _said(given[number])).collect()


def by_query(spark: SparkSession, tasks: Sequence[Task]) -> list[bytes]:
    """As a query: Spark Connect knows nothing else."""
    given = tuple(tasks)

    def run(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for numbers in batches:
            yield pa.array([_said(given[number]) for number in numbers.to_pylist()], pa.binary())

    run.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    # Not deterministic: Spark may neither drop it nor run it twice for one row.
    run_udf = f.arrow_udf(run, "binary").asNondeterministic()  # type: ignore[attr-defined]
    rows = spark.range(0, len(given), 1, len(given)).select("id", run_udf("id").alias("said")).collect()
    return [bytes(row["said"]) for row in sorted(rows, key=lambda row: row["id"])]


def _said(task: Task) -> bytes:
    return msgspec.json.encode(task.run())
