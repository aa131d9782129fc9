"""Tasks on the executors of Spark: one a row, one a partition, and what each said at its end.

The plan is the same whatever is folded, so it is compiled once in a session, and no row of state passes through the JVM. Only
what tasks that Spark counts as done have said is taken. Needs this package on the executors.
"""

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from arco.fold.tasks import Said, Task


def done(spark: SparkSession, tasks: Sequence[Task]) -> list[Said]:
    """Run tasks; what they said, in their order."""
    if not tasks:
        return []
    given = tuple(tasks)

    def run(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for numbers in batches:
            yield pa.array([msgspec.json.encode(given[one].run()).decode() for one in numbers.to_pylist()], pa.string())

    run.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    # Not deterministic: Spark may neither drop it nor run it twice for one row.
    run_udf = f.arrow_udf(run, "string").asNondeterministic()  # type: ignore[attr-defined]
    rows = spark.range(0, len(given), 1, len(given)).select("id", run_udf("id").alias("said")).collect()
    return [msgspec.json.decode(row["said"], type=Said) for row in sorted(rows, key=lambda row: row["id"])]
