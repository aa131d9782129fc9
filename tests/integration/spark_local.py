"""Spark without any Iceberg jar, on a lake in a folder: what Servo's tests run on.

A module has a JVM of its own, which ends with it: a session of another module needs other jars on its class path.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import Session, SparkSettings, open_session
from fixtures.servo.lake import Lake

CONF = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    scratch = {"spark.local.dir": str(tmp_path_factory.mktemp("scratch"))}
    project = tmp_path_factory.mktemp("project")
    (project / "a_project_of_tests.py").write_text("ANSWER = 42\n")
    settings = SparkSettings("local[2,2]", "servo-tests", CONF | scratch, python_path=(project,))
    with running(settings) as found:
        yield found


class running:  # noqa: N801 - it reads as a word: `with running(settings) as session`
    """A session and its own JVM for the length of a block. A session of other tests, with other jars, waits meanwhile."""

    def __init__(self, settings: SparkSettings, root: str = "", options: dict[str, str] | None = None) -> None:
        self._arguments = settings, root, options

    def __enter__(self) -> Session:
        self._environment = dict(os.environ)
        self._parked = [(owner, name, getattr(owner, name)) for owner, name in _SINGLETONS]
        for owner, name in _SINGLETONS:
            setattr(owner, name, None)
        self._session = open_session(*self._arguments)
        return self._session

    def __exit__(self, *_: object) -> None:
        self._session.stop()
        gateway = SparkContext._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        os.environ.clear()
        os.environ.update(self._environment)
        for owner, name, value in self._parked:
            setattr(owner, name, value)


# What PySpark has one of in a process.
_SINGLETONS = (
    (SparkContext, "_gateway"),
    (SparkContext, "_jvm"),
    (SparkContext, "_active_spark_context"),
    (SparkSession, "_instantiatedSession"),
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Lake]:
    """A lake in a folder of its own."""
    with Lake(tmp_path / "lake") as found:
        yield found


class _Open(SparkHome):
    """The session of the tests, which they stop themselves."""

    async def stop(self) -> None:
        return


def opened(session: Session) -> SparkHome:
    home = _Open(SparkSettings("local[2]", "tests"))
    home._session = session
    return home
