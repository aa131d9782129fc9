"""Why Spark did not start, in one line: from its exception, or from what its process wrote before it ended.

The first row that fits decides. What must never enter: anything that needs PySpark.
"""

import re
from pathlib import Path

from arco.fold.spark_java import JAVA_HINT
from arco.kernel.errors import Unavailable
from arco.kernel.ids import clip

_READ_BYTES_MAX = 200_000
_ROWS: tuple[tuple[str, str, str], ...] = (
    (r"UnsupportedClassVersionError|class file version", "this Java is too old for Spark", JAVA_HINT),
    (
        r"jdk\.incubator\.vector",
        "this Java lacks a module that Spark asks for (jdk.incubator.vector)",
        "install a whole JRE, for example openjdk-17-jre-headless, or set JAVA_HOME",
    ),
    (
        r"All masters are unresponsive|Failed to connect to master|MASTER_URL|Could not parse Master URL",
        "the cluster did not take this application",
        "see whether its master is of this version of Spark, and reaches this machine (spark.driver.host)",
    ),
    (
        r"not found: (?P<what>[\w.\-]+#[\w.\-;]+)|UNRESOLVED_DEPENDENCY",
        "a jar that Spark was told to fetch could not be fetched",
        "check spark.jars.packages; arco spark jars fetches what Arco needs once, for all starts",
    ),
    (
        r"NoClassDefFoundError: scala/|NoSuchMethodError: .*scala[./]",
        "a jar is for another Scala than this Spark",
        "take builds of jars that are called _2.13",
    ),
    (
        r"IncompatibleClassChangeError|NoSuchMethodError|AbstractMethodError",
        "a jar is for another version of Spark",
        "take builds of jars for this Spark; arco spark jars fetches Iceberg's",
    ),
    (
        r"Cannot assign requested address|BindException",
        "Spark could not listen at its address",
        "set spark.driver.bindAddress to an address of this machine",
    ),
    (
        r"UnknownHostException",
        "a host is not known on this machine",
        "set spark.driver.host to a name or address that executors reach",
    ),
)


def explained(text: str, log_file: Path | None) -> Unavailable:
    """The error for a Spark that did not start."""
    said = f"; its own words are in {log_file}" if log_file else ""
    known = f"{text}\n{_tail(log_file)}"
    for pattern, what, hint in _ROWS:
        if re.search(pattern, known):
            return Unavailable(f"Spark did not start: {what}{said}", hint=hint)
    return Unavailable(f"Spark did not start: {clip(text, 300)}{said}", hint=JAVA_HINT)


def _tail(log_file: Path | None) -> str:
    """The end of what Spark's process wrote."""
    try:
        if log_file is None:
            return ""
        with log_file.open("rb") as log:
            log.seek(max(0, log_file.stat().st_size - _READ_BYTES_MAX))
            return log.read().decode(errors="replace")
    except OSError:
        return ""
