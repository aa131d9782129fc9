"""What a task costs against the same PySpark code by hand: `df.write.parquet`, and Iceberg's own Spark writer, in one run.

The asset reads Parquet files and returns them; by hand the same frame is written with `df.write.parquet`. Arco plans, writes
with field ids, reads footers, and commits a snapshot; Iceberg's writer appends through Arco's REST catalog. By day, there are two
ways by hand: plain `partitionBy`, which leaves as many files a day as there are tasks, and with a shuffle before it, which leaves
few, as Arco and Iceberg do. A pinned input is a table of Arco's that an asset gets as a DataFrame, beside `spark.read.parquet` of
the very files of that table. Rounds are interleaved; the first warms up and is not counted. Medians with their spread, and the
median of the ratios round by round, for wall time and for processor time of this process and the JVM together. The fixed cost is
that of a task of one row, less the same row by hand.
Usage: python bench/publishing.py [--rows 20000000] [--rounds 5] [--jars FOLDER]
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from arco import asset
from arco.catalog.catalog import Catalog
from arco.fold.spark_session import SparkSettings, open_session
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.plan.planner import Mode, PlanRequest
from arco.servo.sdk.project import assembled
from arco.storage.roots import open_root

GOAL, FIXED_GOAL_MS = 1.10, 300
PINNED = "pinned_source"
RUNTIME = "iceberg-spark-runtime-4.1_*.jar"  # that of our Spark: those of others may lie beside it
COLUMNS = (
    "id",
    "id % 100000 AS customer_id",
    "cast(abs(hash(id, 1)) % 10000000 / 100.0 AS decimal(12, 2)) AS price",
    "concat('ORD-', id) AS code",
    "element_at(array('new', 'paid', 'sent'), cast(id % 3 + 1 AS int)) AS status",
    "timestamp'2025-01-01 00:00:00' + make_dt_interval(0, 0, 0, id % 2600000) AS at",
    "date_add(date'2025-01-01', cast(id % 30 AS int)) AS day",
)


def processor_s() -> float:
    """Of this process and of the JVM."""
    own = os.times()
    words = Path(f"/proc/{SparkContext._gateway.proc.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return own.user + own.system + (int(words[11]) + int(words[12])) / 100


@contextmanager
def served(root: Path) -> Iterator[str]:
    command = [
        str(Path(sys.executable).with_name("arco")),
        "serve",
        "--root",
        str(root),
        "--port",
        "0",
        "--log-level",
        "error",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().rpartition(" at ")[2].strip()
        finally:
            server.terminate()


class Bench:
    """One source, written again and again in every way."""

    def __init__(self, folder: Path, rows: int, jars: Path | None, uri: str) -> None:
        self.folder = folder
        conf = {"spark.driver.memory": "6g", "spark.local.dir": str(folder / "scratch")}
        if jars is not None:
            runtime = next(jars.glob(RUNTIME))
            conf |= {
                "spark.jars": str(runtime),
                "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.lake.type": "rest",
                "spark.sql.catalog.lake.uri": uri,
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            }
        self.has_iceberg = jars is not None
        self.session = open_session(SparkSettings("local[2]", "bench-publishing", conf))
        spark = self.session.spark
        spark.range(rows).selectExpr(*COLUMNS).write.parquet(f"{folder}/source")
        spark.range(1).selectExpr(*COLUMNS).write.parquet(f"{folder}/one")
        if self.has_iceberg:
            spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.theirs")
        self.number = 0

    def source(self, name: str = "source") -> Any:
        return self.session.spark.read.parquet(f"{self.folder}/{name}")

    # By hand

    def by_hand(self, name: str = "source", by: tuple[str, ...] = (), shuffled_by: tuple[str, ...] = ()) -> None:
        rows = self.source(name)
        self._written(rows.repartition(*shuffled_by) if shuffled_by else rows, by)

    def by_hand_of_a_table(self) -> None:
        files = self.session.spark.read.option("recursiveFileLookup", "true")
        (place,) = self.folder.glob(f"lake/default/default/data/{PINNED}-*/data")
        self._written(files.parquet(str(place)))

    def _written(self, rows: Any, by: tuple[str, ...] = ()) -> None:
        self.number += 1
        writer = rows.write.option("compression", "zstd")
        (writer.partitionBy(*by) if by else writer).parquet(f"{self.folder}/hand/{self.number}")

    # Iceberg's own

    def iceberg(self, by: tuple[str, ...] = ()) -> None:
        self.number += 1
        writer = self.source().writeTo(f"lake.theirs.t{self.number}").using("iceberg")
        writer = writer.tableProperty("write.parquet.compression-codec", "zstd")
        (writer.partitionedBy(*by) if by else writer).create()  # type: ignore[arg-type]

    # Arco

    def arco(self, name: str = "source", by: tuple[str, ...] = ()) -> float:
        """Plan and run one asset; how long its task took, in seconds."""
        path = f"{self.folder}/{name}"

        @asset(name=f"{name}_{len(by)}", partition_by=by or None, mode="full")
        def made(run: Any) -> Any:
            return run.spark.read.parquet(path)

        return asyncio.run(self._arco(f"bench_{name}_{len(by)}", made))

    def arco_of_a_table(self) -> float:
        """The same from a table that Arco reads, pinned; the table is made by the first call, which warms up."""
        path = f"{self.folder}/source"

        @asset(name=PINNED, mode="full")
        def table(run: Any) -> Any:
            return run.spark.read.parquet(path)

        @asset(name="copy", inputs={"rows": PINNED}, mode="full")
        def copy(rows: Any) -> Any:
            return rows

        if not list(self.folder.glob(f"lake/default/default/data/{PINNED}-*/data")):
            asyncio.run(self._arco("bench_pinned", table))
        return asyncio.run(self._arco("bench_pinned", table, copy, words=("copy",)))

    async def _arco(self, project_name: str, *assets: Any, words: tuple[str, ...] = ()) -> float:
        clock, entropy = SystemClock(), SystemEntropy()
        store = open_root(f"file://{self.folder}/lake", {}, clock, entropy)
        try:
            catalog = Catalog.open(store, f"file://{self.folder}/lake", Scope.of("default", "default"), clock, entropy)
            written = [one.written for one in assets]
            project = assembled(written, folder=self.folder, name=project_name, namespace="ours")
            pipeline = Pipeline(
                catalog=catalog,
                project=project,
                root=f"file://{self.folder}/lake",
                options={},
                spark=SparkSettings(),
                by="bench",
            )
            prepared = await pipeline.prepare(PlanRequest(words=words, mode=Mode.FORCE))
            state = await pipeline.drive(await pipeline.start(prepared, HowToRun()))
            (its,) = state.tasks.values()
            assert its.status.value == "succeeded", its.failure
            return ((its.ended_ms or 0) - (its.started_ms or 0)) / 1000
        finally:
            await store.close()

    def forget(self) -> None:
        """Make room on the disk: rows that no round reads again. What the tables say of themselves stays."""
        made = self.folder.glob("lake/default/default/data/*/data")
        for place in (self.folder / "hand", *(one for one in made if not one.parent.name.startswith(f"{PINNED}-"))):
            shutil.rmtree(place, ignore_errors=True)

    @property
    def ways(self) -> dict[str, Callable[[], object]]:
        found: dict[str, Callable[[], object]] = {
            "by hand": self.by_hand,
            "arco": self.arco,
            "by hand, by day": lambda: self.by_hand(by=("day",)),
            "by hand, shuffled, by day": lambda: self.by_hand(by=("day",), shuffled_by=("day",)),
            "arco, by day": lambda: self.arco(by=("day",)),
            "arco, a pinned input": self.arco_of_a_table,
            "by hand, the same files": self.by_hand_of_a_table,
        }
        if self.has_iceberg:
            found |= {"iceberg's writer": self.iceberg, "iceberg's writer, by day": lambda: self.iceberg(by=("day",))}
        return found


def measured(work: Callable[[], object]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), processor_s()
    work()
    return time.perf_counter() - wall, processor_s() - processor


def compared(bench: Bench, rows: int, rounds: int, only: str) -> None:
    ways = {name: work for name, work in bench.ways.items() if only in name}
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, work in ways.items():
            found = measured(work)
            if number:
                spent[name].append(found)
        bench.forget()
    print(f"{rows:,} rows, {rounds} rounds")
    print(f"{'':28} {'wall s (spread)':>24} {'ratio':>6} {'cpu s':>8} {'ratio':>6}   goal")
    rows_of_table = [(name, base) for name in spent for base in _bases(name) if base in spent]
    for name, base_name in rows_of_table:
        found, base = spent[name], spent[base_name]
        ratios = [statistics.median(a[at] / b[at] for a, b in zip(found, base, strict=True)) for at in (0, 1)]
        walls = [wall for wall, _ in found]
        said = f"{statistics.median(walls):.2f} ({min(walls):.2f}-{max(walls):.2f})"
        goal = f"<= {GOAL}" if name.startswith("arco") else ""
        cpu_s = statistics.median(cpu for _, cpu in found)
        beside = "" if name == base_name else f"beside {base_name}"
        print(f"{name:28} {said:>24} {ratios[0]:>6.2f} {cpu_s:>8.2f} {ratios[1]:>6.2f}   {goal:8} {beside}")


def _bases(name: str) -> tuple[str, ...]:
    """What a way is held against. What shuffles is held against both ways by hand."""
    if name in {"arco, a pinned input", "by hand, the same files"}:
        return ("by hand, the same files",)
    if not name.endswith("by day"):
        return ("by hand",)
    return ("by hand, by day",) if name.startswith("by hand") else ("by hand, by day", "by hand, shuffled, by day")


def fixed(bench: Bench, rounds: int) -> None:
    """What a task of one row costs beyond the row."""
    tasks, hands = [], []
    for number in range(2 * rounds + 1):
        task, hand = bench.arco("one"), measured(lambda: bench.by_hand("one"))[0]
        if number:
            tasks.append(task)
            hands.append(hand)
    over = [1000 * (task - hand) for task, hand in zip(tasks, hands, strict=True)]
    print(
        f"one row: a task takes {1000 * statistics.median(tasks):.0f} ms, by hand {1000 * statistics.median(hands):.0f} ms;"
        f" fixed cost {statistics.median(over):.0f} ms ({min(over):.0f}-{max(over):.0f}), goal <= {FIXED_GOAL_MS}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT", help="only the ways whose names have this, such as 'by day'")
    parser.add_argument(
        "--jars", type=Path, default=Path(".tools/jars"), help="where Iceberg's Spark runtime lies, if it does"
    )
    given = parser.parse_args()
    jars = given.jars if list(given.jars.glob(RUNTIME)) else None
    if jars is None:
        print("Iceberg's Spark runtime is not there, and its writer is not measured: tools/jars.sh fetches it")
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as name:
        folder = Path(name)
        with served(folder / "lake") as uri:
            bench = Bench(folder, given.rows, jars, uri)
            compared(bench, given.rows, given.rounds, given.only)
            fixed(bench, given.rounds)
            bench.session.stop()


if __name__ == "__main__":
    main()
