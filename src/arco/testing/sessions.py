"""A small Spark for tests: on this machine alone, with few tasks, and the settings that Arco's own sessions have."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_SMALL = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}


@contextmanager
def local_spark(master: str = "local[2]", conf: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A session for the length of a block. One that runs already in this process is used, and left running."""
    sessions = import_module("arco.fold.spark_session")  # PySpark takes a while, and comparing needs none
    session = sessions.open_session(sessions.SparkSettings(master, "arco-tests", {**_SMALL, **(conf or {})}))
    try:
        yield session.spark
    finally:
        session.stop()
