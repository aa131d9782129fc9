"""What of Java fits to this Spark: which lines of Spark, Scala and Hadoop it is, and which jars would break it.

A jar of another line is loaded without a word and fails somewhere in the middle, with the name of a class that nobody knows. Its
file name says what it is for, so it is refused before Spark starts. What must never enter: anything that needs PySpark.
"""

import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

ICEBERG_VERSION = "1.12.0"
_ICEBERG = re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_(\d+\.\d+)")
_SCALA = re.compile(r"_(2\.1\d|3)[-:]\d")
_CORE = re.compile(r"spark-core_(\d+\.\d+)-(\d+\.\d+)\.")
_HADOOP_API = "hadoop-client-api-"


def spark_home() -> Path:
    """The folder of the PySpark that is installed here."""
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise InvalidInput("PySpark is not installed", hint="pip install arco brings it")
    return Path(next(iter(found.submodule_search_locations)))


def lines() -> tuple[str, str]:
    """The lines of Spark and of Scala, such as 4.1 and 2.13."""
    for jar in spark_home().glob("jars/spark-core_*.jar"):
        if (found := _CORE.match(jar.name)) is not None:
            return found[2], found[1]
    raise InvalidInput("this PySpark carries no Spark", hint="install pyspark, not pyspark-client")


def hadoop_version() -> str:
    """The version of Hadoop that this PySpark carries: a connector must be the same."""
    jars = sorted(spark_home().glob(f"jars/{_HADOOP_API}*.jar"))
    if not jars:
        raise InvalidInput("this PySpark carries no Hadoop", hint="give the connector in the project's Spark settings")
    return jars[-1].name.removeprefix(_HADOOP_API).removesuffix(".jar")


def iceberg_runtime() -> str:
    """Iceberg's runtime for this Spark, by its Maven name."""
    spark, scala = lines()
    return f"org.apache.iceberg:iceberg-spark-runtime-{spark}_{scala}:{ICEBERG_VERSION}"


def jars_of(conf: Mapping[str, str]) -> list[str]:
    """The jars that settings name, by file or by Maven name."""
    words = (conf.get(word, "") for word in ("spark.jars", "spark.jars.packages"))
    return [one.strip() for text in words for one in text.split(",") if one.strip()]


def refuse_other_lines(jars: Iterable[str]) -> None:
    """That no jar is for another Spark or another Scala than this one."""
    given = list(jars)
    if not given:
        return
    spark, scala = lines()
    for jar in given:
        name = jar.rpartition("/")[2]
        iceberg = _ICEBERG.search(name)
        if iceberg is not None and iceberg[1] != spark:
            raise InvalidInput(
                f"{clip(name)} is for Spark {iceberg[1]}, and this is Spark {spark}",
                hint="arco spark jars fetches the one that fits; take the other away",
            )
        found = _SCALA.search(name)
        if found is not None and found[1] != scala:
            raise InvalidInput(
                f"{clip(name)} is for Scala {found[1]}, and this Spark is of Scala {scala}",
                hint=f"take the build of it that is called _{scala}",
            )
