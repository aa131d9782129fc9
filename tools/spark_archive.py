"""Makes .tools/spark.jsa: Spark's classes as Java maps them into a process, so that it need not load and check each anew.

A session of the tests then takes half the time and half the processor to start (tests/conftest.py says how it is used). Java
itself passes over an archive that does not fit its version or its class path. A second run finds nothing to do.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

TOOLS = Path(__file__).resolve().parents[1] / ".tools"
ARCHIVE = TOOLS / "spark.jsa"
QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


def main() -> None:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    wanted = f"{java}\npyspark {pyspark.__version__} in {sys.prefix}\n"
    stamp = ARCHIVE.with_suffix(".made-for")
    if ARCHIVE.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    TOOLS.mkdir(exist_ok=True)
    stamp.unlink(missing_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    options = {"SPARK_SUBMIT_OPTS": f"{QUICK} -XX:ArchiveClassesAtExit={ARCHIVE}"}
    here = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, __file__, "--load-classes"]
    done = subprocess.run(command, env={**os.environ, **options, **here}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the classes of Spark could not be kept:\n{done.stderr[-2000:]}")
    stamp.write_text(wanted)


def load_classes() -> None:
    """What every test does: start, write, read, join, aggregate, ask in SQL, call Python for rows, and let Java end."""
    from pyspark import SparkContext  # noqa: PLC0415 - only the process whose classes are kept needs Spark
    from pyspark.sql import SparkSession  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.local.dir", folder).config("spark.sql.shuffle.partitions", "2").getOrCreate()
        rows = spark.range(1000).selectExpr(
            "id", "id % 7 AS k", "cast(id AS string) AS s", "cast('2025-01-01' AS date) AS d"
        )
        rows.write.partitionBy("d").parquet(f"{folder}/rows")
        back = spark.read.parquet(f"{folder}/rows")
        back.createOrReplaceTempView("rows")
        counts = spark.sql("SELECT k, count(*) AS n, max(s) AS most FROM rows WHERE id > 10 GROUP BY k ORDER BY n")
        counts.join(back, "k").mapInArrow(
            lambda batches: batches, "k long, n long, most string, id long, s string, d date"
        ).collect()
        spark.stop()
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(120)


if __name__ == "__main__":
    load_classes() if "--load-classes" in sys.argv else main()
