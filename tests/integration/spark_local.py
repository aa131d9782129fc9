"""Spark without any Iceberg jar, on a lake in a folder: what Servo's tests run on.

A module has a JVM of its own, which ends with it: a session of another module needs other jars on its class path.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame

from arco.servo.execute.spark_session import Session, SparkSettings, open_session
from fixtures.servo.lake import Lake

# Spark starts in ten seconds on an idle machine, and in many times that on a busy one; PySpark leaves sockets to the
# garbage collector.
MARKS = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::ResourceWarning")]

CONF = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    scratch = {"spark.local.dir": str(tmp_path_factory.mktemp("scratch"))}
    with running(SparkSettings(master="local[2]", name="servo-tests", conf=CONF | scratch)) as found:
        yield found


class running:  # noqa: N801 - it reads as a word: `with running(settings) as session`
    """A session and its JVM for the length of a block."""

    def __init__(self, settings: SparkSettings, root: str = "", options: dict[str, str] | None = None) -> None:
        self._arguments = settings, root, options

    def __enter__(self) -> Session:
        self._session = open_session(*self._arguments)
        return self._session

    def __exit__(self, *_: object) -> None:
        self._session.stop()
        gateway = SparkContext._gateway
        if self._session.ours and gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(60)
            SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(tmp_path / "lake") as found:
        yield found


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows of a frame, sorted by their text, as tuples all the way down."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        return sorted((_plain(tuple(row)) for row in frame.collect()), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_plain(one) for one in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _plain(one)) for key, one in value.items()))
    return bytes(value) if isinstance(value, bytearray) else value
