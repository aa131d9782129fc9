"""Spark without any Iceberg jar, on a lake in a folder: what Servo's tests run on.

The modules of one run share a JVM: it starts once, and is warm for the next. It waits while another session, which needs other
jars on its class path, has one of its own.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import Session, SparkSettings, open_session
from fixtures.servo.lake import Lake

CONF = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}


@pytest.fixture(scope="session")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator["running"]:
    scratch = {"spark.local.dir": str(tmp_path_factory.mktemp("scratch"))}
    project = tmp_path_factory.mktemp("project")
    (project / "a_project_of_tests.py").write_text("ANSWER = 42\n")
    shared = running(SparkSettings("local[2,2]", "servo-tests", CONF | scratch, python_path=(project,)))
    with shared:
        shared.pause()
        yield shared
        shared.go_on()


@pytest.fixture(scope="module")
def session(_shared: "running") -> Iterator[Session]:
    yield _shared.go_on()
    _shared.pause()


class running:  # noqa: N801 - it reads as a word: `with running(settings) as session`
    """A session and its own JVM for the length of a block. A session of other tests, with other jars, waits meanwhile."""

    def __init__(self, settings: SparkSettings, root: str = "", options: dict[str, str] | None = None) -> None:
        self._arguments = settings, root, options
        self._inside = _Surroundings(dict(os.environ), [None] * len(_SINGLETONS))

    def __enter__(self) -> Session:
        self._outside = _Surroundings.now()
        self._inside.enter()
        self._session = open_session(*self._arguments)
        return self._session

    def __exit__(self, *_: object) -> None:
        self._session.stop()
        gateway = SparkContext._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        self._outside.enter()

    def pause(self) -> None:
        """Let others have their turn."""
        self._inside = _Surroundings.now()
        self._outside.enter()

    def go_on(self) -> Session:
        self._outside = _Surroundings.now()
        self._inside.enter()
        return self._session


# What PySpark has one of in a process.
_SINGLETONS = (
    (SparkContext, "_gateway"),
    (SparkContext, "_jvm"),
    (SparkContext, "_active_spark_context"),
    (SparkSession, "_instantiatedSession"),
)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What a session leaves in the process that it is in."""

    environment: dict[str, str]
    singletons: list[Any]

    @classmethod
    def now(cls) -> "_Surroundings":
        return cls(dict(os.environ), [getattr(owner, name) for owner, name in _SINGLETONS])

    def enter(self) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        for (owner, name), value in zip(_SINGLETONS, self.singletons, strict=True):
            setattr(owner, name, value)


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
