"""What checks cost, against the write they guard: 20 row rules and 5 aggregates, and keys apart.

The same rows are written bare, written and checked as an attempt does it with many rows (footers, and the rest counted on what
was written), as it does it with few (the rest counted in the pass that writes), with everything counted in that pass, and with
everything counted afterwards. Rounds are interleaved; the first warms up and is not counted. Medians with their spread, wall time
and processor time of the JVM, each as a part of the bare write of its round. Iceberg's own writer, which checks nothing, stands
beside them where its jar is there.
Usage: python bench/checks.py [--rows 20000000] [--rounds 5] [--jars FOLDER]
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame

from arco.kernel.clock import SystemClock
from arco.quality.builtin import accepted_values, foreign_key, fresh, in_range, matches, not_null, row_count, unique
from arco.quality.checks import Check
from arco.servo.execute.data_files import Written
from arco.servo.execute.file_access import file_io
from arco.servo.execute.output_schema import with_new_ids
from arco.servo.execute.proved import proved
from arco.servo.execute.spark_checks import measure
from arco.servo.execute.spark_guard import Guard
from arco.servo.execute.spark_observe import observed
from arco.servo.execute.spark_read import open_files
from arco.servo.execute.spark_session import SparkSettings, open_session
from arco.servo.execute.spark_types import iceberg_schema, spark_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target

GOAL = 0.25
NOW_MS = int(datetime(2025, 2, 1, tzinfo=UTC).timestamp() * 1000)

ORDERS = (
    "id",
    "id % 100000 AS customer_id",
    "cast(hash(id) % 100000 / 100.0 + 1000 AS double) AS weight",
    "cast(abs(hash(id, 1)) % 10000000 / 100.0 AS decimal(12, 2)) AS price",
    "concat('ORD-', id) AS code",
    "element_at(array('new', 'paid', 'sent'), cast(id % 3 + 1 AS int)) AS status",
    "element_at(array('DE', 'FR', 'IT', 'US'), cast(id % 4 + 1 AS int)) AS country",
    "timestamp'2025-01-01 00:00:00' + make_dt_interval(0, 0, 0, id % 2600000) AS at",
    "date_add(date'2025-01-01', cast(id % 30 AS int)) AS day",
    "cast(id % 7 + 1 AS int) AS quantity",
)
NOT_NULL = ("id", "customer_id", "price", "code", "status", "at", "day", "quantity")
ROW_RULES: list[Check] = [
    *(not_null(column) for column in NOT_NULL),
    in_range("id", min=0),
    in_range("customer_id", min=0, max=99_999),
    in_range("price", min=0, max=100_000),
    in_range("quantity", min=1, max=10),
    in_range("day", min=date(2025, 1, 1), max=date(2025, 12, 31)),
    in_range("at", min=datetime(2025, 1, 1, tzinfo=UTC)),
    in_range("weight", min=0, max=10_000),
    in_range("weight", min=0, name="weight is a number"),
    accepted_values("status", ["new", "paid", "sent"]),
    accepted_values("country", ["DE", "FR", "IT", "US"]),
    accepted_values("quantity", range(1, 11)),
    matches("code", "ORD-[0-9]+"),
]
AGGREGATES: list[Check] = [
    row_count(min=1),
    row_count(max=10**12, name="not too many"),
    fresh("at", within="60d"),
    fresh("day", within="60d"),
    fresh("at", within="61d", name="again"),
]
FUSED = [*ROW_RULES, *AGGREGATES]


@dataclass
class Spent:
    """Seconds of one way, round by round."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def jvm_seconds() -> float:
    pid = SparkContext._gateway.proc.pid
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / 100


class Bench:
    """One source, and outputs that are written of it again and again."""

    def __init__(self, folder: Path, rows: int, runtime: Path | None = None) -> None:
        self._folder = folder
        self._io = file_io()
        conf = {"spark.driver.memory": "4g", "spark.local.dir": str(folder)}
        if runtime is not None:
            conf |= {
                "spark.jars": str(runtime),
                "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.peer.type": "hadoop",
                "spark.sql.catalog.peer.warehouse": f"{folder}/peer",
            }
        self._has_peer = runtime is not None
        self.session = open_session(SparkSettings("local[2]", "bench-checks", conf))
        made = self.session.spark.range(rows).selectExpr(*ORDERS)
        made.write.parquet(f"{folder}/source")
        self._source = self.session.spark.read.parquet(f"{folder}/source")
        self._customers = self.session.spark.range(100_000).selectExpr("id AS customer_id")
        self._schema = with_new_ids(iceberg_schema(self._source.schema))
        self._number = 0
        self._last: tuple[Target, Written] | None = None

    def _write(self, rows: DataFrame) -> Written:
        self._number += 1
        target = Target(self._schema, f"file://{self._folder}/{self._number}")
        written = write(rows, target, self._io)
        self._last = target, written
        return written

    def _back(self) -> DataFrame:
        assert self._last is not None
        files = (one.file_path for one in self._last[1].files)
        return open_files(self.session.spark, spark_schema(self._schema), files)

    def forget(self) -> None:
        for folder in self._folder.glob("[0-9]*"):
            if folder.name != str(self._number):
                shutil.rmtree(folder)

    def bare(self) -> None:
        self._write(self._source)

    def peer(self) -> None:
        """Iceberg's own writer, which checks nothing."""
        writer = self._source.writeTo("peer.bench.orders").using("iceberg")
        writer.tableProperty("write.parquet.compression-codec", "zstd").create()
        self.session.spark.sql("DROP TABLE peer.bench.orders PURGE")

    def guarded(self) -> None:
        guard = Guard(FUSED, self._schema, logical_time_ms=NOW_MS)
        written = self._write(self._source)
        assert all(one.passed for one in guard.results(written, self._back))

    def watched(self) -> None:
        guard = Guard(FUSED, self._schema, logical_time_ms=NOW_MS)
        written = self._write(guard.watch(self._source))
        assert all(one.passed for one in guard.results(written, self._back))

    def all_watched(self) -> None:
        watched, take = observed(FUSED, self._source, logical_time_ms=NOW_MS)
        results = take(self._write(watched).rows)
        assert results is not None
        assert all(one.passed for one in results)

    def footers(self) -> None:
        assert self._last is not None
        proved(FUSED, self._last[1], self._schema, logical_time_ms=NOW_MS)

    def footers_then_count(self) -> None:
        assert self._last is not None
        known = proved(FUSED, self._last[1], self._schema, logical_time_ms=NOW_MS)
        self._measured(FUSED, known=known)

    def count(self) -> None:
        self._measured(FUSED)

    def unique(self) -> None:
        self._measured([unique("id")])

    def foreign_key(self) -> None:
        self._measured([foreign_key("customer_id", to="shop.customers")])

    def _measured(self, checks: list[Check], **more: object) -> None:
        tables = {"shop.customers": self._customers}
        results = measure(checks, self._back(), tables=tables, logical_time_ms=NOW_MS, **more)  # type: ignore[arg-type]
        assert all(one.passed for one in results), results

    @property
    def ways(self) -> dict[str, tuple[Callable[[], None], bool]]:
        """Each with whether it writes: then the bare write is to be taken off."""
        peers = {"Iceberg's own writer, without checks": (self.peer, True)} if self._has_peer else {}
        return {
            "the bare write": (self.bare, False),
            "as an attempt does it: footers, and the rest counted afterwards": (self.guarded, True),
            "as it does it with few rows: the rest in the pass that writes": (self.watched, True),
            "everything in the pass that writes": (self.all_watched, True),
            "the checks alone, as an attempt does them": (self.footers_then_count, False),
            "everything counted afterwards": (self.count, False),
            "footers alone": (self.footers, False),
            "unique, apart": (self.unique, False),
            "foreign_key, apart": (self.foreign_key, False),
            **peers,
        }


def rounds_of(bench: Bench, rounds: int) -> dict[str, Spent]:
    spent = {name: Spent() for name in bench.ways}
    for number in range(rounds + 1):
        for name, (work, _) in bench.ways.items():
            wall, processor = time.perf_counter(), jvm_seconds()
            work()
            if number:
                spent[name].wall.append(time.perf_counter() - wall)
                spent[name].processor.append(jvm_seconds() - processor)
            bench.forget()
    return spent


def report(bench: Bench, spent: dict[str, Spent], rows: int) -> None:
    bare = spent["the bare write"]
    print(f"{rows} rows, {len(bare.wall)} rounds; {len(ROW_RULES)} row rules and {len(AGGREGATES)} aggregates")
    print(f"{'':70} {'wall s (spread)':>22} {'part':>6} {'cpu s':>7} {'part':>6}")
    for name, (_, writes) in bench.ways.items():
        one = spent[name]
        parts = []
        for mine, base in ((one.wall, bare.wall), (one.processor, bare.processor)):
            # Round by round: what slowed one round down slowed its bare write down too.
            each = [(a - b if writes else a) / b for a, b in zip(mine, base, strict=True)]
            parts.append(statistics.median(each))
        wall, processor = statistics.median(one.wall), statistics.median(one.processor)
        spread = f"{wall:.2f} ({min(one.wall):.2f}-{max(one.wall):.2f})"
        print(f"{name:70} {spread:>22} {parts[0]:>6.0%} {processor:>7.2f} {parts[1]:>6.0%}")
    print(
        f"the goal is {GOAL:.0%} for row rules and aggregates; at {datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--jars", type=Path, default=Path(".tools/jars"), help="where Iceberg's Spark runtime lies, if it does"
    )
    given = parser.parse_args()
    runtime = next(given.jars.glob("iceberg-spark-runtime-4.1_*.jar"), None)
    if runtime is None:
        print("Iceberg's Spark runtime is not there, and its writer is not measured: tools/jars.sh fetches it")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.rows, runtime)
        report(bench, rounds_of(bench, given.rounds), given.rows)
        bench.session.stop()


if __name__ == "__main__":
    main()
