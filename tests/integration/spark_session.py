"""Spark with Iceberg's runtime, small and on loopback, for tests that are its users.

One session serves all tests: starting one takes ten seconds. Catalogs are added to it as they are needed.
"""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.quick_java import QUICK

REPOSITORY = Path(__file__).resolve().parents[2]
RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


def jars(*artifacts: str) -> str:
    """Jars by their Maven names, as Spark takes them; each is fetched once."""
    subprocess.run([str(REPOSITORY / "tools" / "jars.sh"), *artifacts], check=True)
    names = ("-".join(artifact.split(":")[1:]) for artifact in artifacts)
    return ",".join(str(REPOSITORY / ".tools" / "jars" / f"{name}.jar") for name in names)


@contextmanager
def spark_session(work: Path, *more_artifacts: str) -> Iterator[SparkSession]:
    # Spark binds the outer address unless told, and its workers take any python3 of the path.
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings = {
        "spark.jars": jars(RUNTIME, *more_artifacts),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        # Code that runs once is not worth the better compiler: half the time of a run.
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={work} {QUICK}",
        "spark.local.dir": str(work / "scratch"),
    }
    # A task that fails is tried once more, as on a cluster; all tests of one process share this engine.
    builder = SparkSession.builder.master("local[2,2]").appName("arco-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


class Spark:
    """What a user types: statements in, rows out."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def attach(self, name: str, uri: str, **options: str) -> str:
        """A catalog as the documents describe it; options are further words of `spark.sql.catalog.NAME`."""
        prefix = f"spark.sql.catalog.{name}"
        self.session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        words = {"type": "rest", "uri": uri} | {word.replace("_", "-"): value for word, value in options.items()}
        for word, value in words.items():
            self.session.conf.set(f"{prefix}.{word}", value)
        return name

    def __call__(self, statement: str) -> list[tuple[Any, ...]]:
        with warnings.catch_warnings():
            # PySpark fetches rows through sockets that it leaves to the garbage collector.
            warnings.simplefilter("ignore", ResourceWarning)
            return [tuple(row) for row in self.session.sql(statement).collect()]

    def one(self, statement: str) -> Any:
        """The only value of the only row."""
        ((value,),) = self(statement)
        return value

    def column(self, statement: str) -> list[Any]:
        """The first value of every row, sorted."""
        return sorted(row[0] for row in self(statement))
