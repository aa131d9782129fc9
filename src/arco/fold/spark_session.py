"""The one Spark session of a process: made with the settings that reading and writing rely on, or attached to and given them.

Two kinds of settings. Some decide what bytes mean (time zone, timestamp type, reading by field id): they are fixed, and a
project that sets one otherwise is told so. The rest are defaults that a project may change. Works with a local master, a
cluster and Spark Connect; only here is known which of them it is.
"""

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from arco.fold.spark_birth import deaf_to_interruptions
from arco.fold.spark_fixed import FIXED, not_for_one_asset, refuse_contradictions
from arco.fold.spark_jars import jars_of, refuse_other_lines
from arco.fold.spark_java import need_java
from arco.fold.spark_masters import Kind, Master, need_reachable, parse_master
from arco.fold.spark_modules import packed
from arco.fold.spark_s3 import s3_settings
from arco.fold.spark_trouble import explained
from arco.kernel.errors import InvalidInput, Unavailable
from arco.kernel.ids import clip
from arco.kernel.limits import SPARK_HELLO_S

# Only these can be given to a session that runs already; the others are for the start of a driver.
DEFAULTS: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.shuffle.partitions": "64",
    # Files are listed by us and given by name: the driver looks at each once, instead of one Spark task per file.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.files.openCostInBytes": "65536",
}
START: Mapping[str, str] = {
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

# As Spark redacts settings in its own pages, and what else is a key by its name.
_SECRET = re.compile(r"secret|password|passphrase|token|credential|(access|account)[.-]?key|[.-]sas\b", re.IGNORECASE)
_CATALOGS = "spark.sql.catalog."  # Spark looks for a catalog's settings when it is first named
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
_CONNECT_HINT = "pip install 'arco[connect]' brings what it needs"
_CONNECT_LIMITS = (
    "Spark Connect: how far a task is, is not told; code has no sparkContext and no RDD; a read behind a frame that was cached is"
    " not seen; tasks that run at the same time share temporary views; settings, jars and connectors of the server are its own"
)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What a project says about Spark. `master` is a Spark master, or the `sc://` address of a Spark Connect server.

    `python_path`: folders that workers import from too, so that functions of a project's modules can be called in rows.
    `log_file`: where Spark's own words go, of a driver that is started here; by default they go where ours go.
    """

    master: str = "local[*]"
    name: str = "arco"
    conf: Mapping[str, str] = field(default_factory=dict)
    jars_folder: Path | None = None
    python_path: tuple[Path, ...] = ()
    log_file: Path | None = None

    @property
    def place(self) -> Master:
        return parse_master(self.master)

    @property
    def is_connect(self) -> bool:
        return self.place.kind is Kind.CONNECT

    @property
    def is_local(self) -> bool:
        return self.place.kind is Kind.LOCAL


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the jobs of a group are. Stages that Spark has not planned yet are not counted."""

    jobs: int
    stages_done: int
    stages: int
    tasks_done: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Session:
    """A session, and whether this process made it. `notes` are what is to be said before anything runs in it."""

    spark: SparkSession
    ours: bool
    is_connect: bool
    settings: SparkSettings = field(default_factory=SparkSettings)
    notes: tuple[str, ...] = ()
    modules: Path | None = None
    """The project's modules as they were sent along, if they were."""
    _own: dict[tuple[tuple[str, str], ...], SparkSession] = field(default_factory=dict)

    def stop(self) -> None:
        """Stop what we started. A session that was there before stays, and one whose Java is gone has nothing to stop."""
        if self.ours:
            for one in self._own.values() if self.is_connect else ():
                one.stop()
            with suppress(ConnectionError):
                self.spark.stop()
        if self.modules is not None:
            shutil.rmtree(self.modules.parent, ignore_errors=True)

    def with_settings(self, conf: Mapping[str, str]) -> SparkSession:
        """A session beside this one, on the same executors, for whoever has settings of its own; this one for all others."""
        if not conf:
            return self.spark
        words = tuple(sorted(conf.items()))
        if words not in self._own:
            self._own[words] = self._beside(conf)
        return self._own[words]

    def apart(self, conf: Mapping[str, str]) -> SparkSession:
        """A session for one attempt, on the same executors: the views, functions and settings of its code are its own.

        With Spark Connect a session is another client, so tasks share one: people are told.
        """
        return self.with_settings(conf) if self.is_connect else self._beside(conf)

    def _beside(self, conf: Mapping[str, str]) -> SparkSession:
        refuse_contradictions(conf)
        for word in conf:
            if not self.spark.conf.isModifiable(word):
                raise not_for_one_asset(word)
        beside = SparkSession.builder.remote(self.settings.master).create() if self.is_connect else self.spark.newSession()
        _set_at_run_time(beside, {**self.settings.conf, **conf})
        if self.is_connect and self.modules is not None:
            beside.addArtifacts(str(self.modules), pyfile=True)
        return beside

    def is_alive(self) -> bool:
        """Whether there is still a Spark to ask."""
        if self.is_connect:
            return True
        try:
            return self.spark.sparkContext._jsc is not None and not self.spark.sparkContext._jsc.sc().isStopped()
        except Exception:  # noqa: BLE001 - however it does not answer, it is gone
            return False

    @contextmanager
    def job(self, group: str, description: str = "") -> Iterator[None]:
        """Everything this thread asks of Spark in the block belongs to a group, in a pool of its own."""
        if self.is_connect:
            self.spark.addTag(group)
            try:
                yield
            finally:
                self.spark.removeTag(group)
            return
        context = self.spark.sparkContext
        context.setJobGroup(group, description, interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", group)
        try:
            yield
        finally:
            for word in (
                "spark.jobGroup.id",
                "spark.job.description",
                "spark.job.interruptOnCancel",
                "spark.scheduler.pool",
            ):
                context.setLocalProperty(word, None)  # type: ignore[arg-type]

    def cancel(self, group: str) -> None:
        """Stop the jobs of a group that run now, whichever thread runs them. A job that begins later is not stopped."""
        if self.is_connect:
            self.spark.interruptTag(group)
        else:
            # Tags do not reach jobs of a classic session: interrupting by one stops nothing there.
            self.spark.sparkContext.cancelJobGroup(group)

    def progress(self, group: str) -> Progress | None:
        """How far a group is, or None where Spark does not tell (Connect)."""
        if self.is_connect:
            return None
        tracker = self.spark.sparkContext.statusTracker()
        jobs = [info for one in tracker.getJobIdsForGroup(group) if (info := tracker.getJobInfo(one)) is not None]
        known = [tracker.getStageInfo(one) for job in jobs for one in job.stageIds]
        stages = [stage for stage in known if stage is not None]
        done = sum(stage.numCompletedTasks == stage.numTasks for stage in stages)
        tasks_done, tasks = sum(one.numCompletedTasks for one in stages), sum(one.numTasks for one in stages)
        return Progress(len(jobs), done, len(stages), tasks_done, tasks)


def open_session(settings: SparkSettings, root: str = "", options: Mapping[str, str] | None = None) -> Session:
    """The session of this process. `root` and its `options` are those of the lake, so that Spark can reach a bucket."""
    refuse_contradictions(settings.conf)
    # PySpark prints every error that it raises, with a page of Java; whoever catches it says what is wrong.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    if settings.is_connect:
        return _connected(settings, root)
    if SparkContext._active_spark_context is not None:
        # Not `getActiveSession`: that is the session of this thread, and another one may have started it.
        running = SparkSession.builder.getOrCreate()
        _set_at_run_time(running, settings.conf)
        return Session(running, ours=False, is_connect=False, settings=settings)
    return _started(settings, start_settings(settings, root, options or {}), root)


def check_start(settings: SparkSettings) -> None:
    """What would keep Spark from starting, as far as it can be seen from here. It takes no time where all is well."""
    refuse_contradictions(settings.conf)
    if not settings.is_connect:
        refuse_other_lines(jars_of(_jars(settings)))
        need_java(os.environ)
    need_reachable(settings.place, os.environ)


def start_settings(settings: SparkSettings, root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Everything that a driver is started with here, if what it needs is there. Says so in this process's environment, too."""
    check_start(settings)
    storage = s3_settings(root, options, settings.jars_folder)
    brought = _jars(settings)
    brought["spark.jars.packages"] = _joined(storage.get("spark.jars.packages", ""), brought["spark.jars.packages"])
    # Workers must be this Python, or the one that is named: the system's own has none of our packages.
    named = settings.conf.get("spark.pyspark.python")
    os.environ["PYSPARK_PYTHON"] = named or os.environ.get("PYSPARK_PYTHON") or sys.executable
    own = {**START, **DEFAULTS, **storage}
    if settings.python_path:
        folders = [*map(str, settings.python_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = own["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(folders)
    if settings.place.is_near:
        # Nothing listens beyond loopback.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        own |= _LOOPBACK
    found = {"spark.master": settings.master, "spark.app.name": settings.name, **own, **settings.conf, **brought, **FIXED}
    return {word: value for word, value in found.items() if value}


def _jars(settings: SparkSettings) -> dict[str, str]:
    """The jars of the project's folder, and those that its settings name."""
    folder = settings.jars_folder
    jars = sorted(str(jar.resolve()) for jar in folder.glob("*.jar")) if folder is not None else []
    return {
        "spark.jars": _joined(*jars, settings.conf.get("spark.jars", "")),
        "spark.jars.packages": settings.conf.get("spark.jars.packages", ""),
    }


def _joined(*lists: str) -> str:
    return ",".join(filter(None, lists))


def expect_connect(settings: SparkSettings) -> None:
    """Tell PySpark, before a project's modules are imported, which kind of functions and columns they make."""
    if settings.is_connect:
        os.environ[_CONNECT_MODE] = "1"


def _started(settings: SparkSettings, words: Mapping[str, str], root: str) -> Session:
    builder = SparkSession.builder
    for word, value in words.items():
        builder = builder.config(word, value)
    try:
        with deaf_to_interruptions():
            _launch(words, settings.log_file)
            spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise explained(str(error), settings.log_file) from error
    modules = None if settings.is_local else packed(settings.python_path, root)
    if modules is not None:
        spark.sparkContext.addPyFile(str(modules))
    return Session(spark, ours=True, is_connect=False, settings=settings, modules=modules)


def _launch(words: Mapping[str, str], log_file: Path | None) -> None:
    """Start Spark's process, if there is none yet, where there is a file for its own words with that: ours stay where they are.

    What it is started with shows in the list of processes: it hears of keys afterwards, with all other settings.
    """
    if SparkContext._gateway is not None:
        return
    shown = [(word, value) for word, value in words.items() if not _SECRET.search(word)]
    conf = SparkConf(loadDefaults=False).setAll(shown)
    if log_file is None:
        gateway = launch_gateway(conf)  # type: ignore[no-untyped-call]
    else:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("wb") as log:
            gateway = launch_gateway(conf, {"stderr": log})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


def _connected(settings: SparkSettings, root: str) -> Session:
    check_start(settings)
    expect_connect(settings)
    try:
        _need_server(settings)
        spark = SparkSession.builder.remote(settings.master).getOrCreate()
        left = _set_at_run_time(spark, settings.conf)
        version = spark.version
        modules = packed(settings.python_path, root)
        if modules is not None:
            spark.addArtifacts(str(modules), pyfile=True)
    except ImportError as error:
        raise InvalidInput(f"Spark Connect is not there: {clip(str(error), 300)}", hint=_CONNECT_HINT) from error
    except PySparkException as error:
        raise Unavailable(
            f"the Spark Connect server at {settings.place.shown} refused: {clip(str(error), 300)}",
            hint="see its log, and whether it is of this version of Spark",
        ) from error
    notes = [_CONNECT_LIMITS]
    if left:
        notes.append(f"{', '.join(left)}: only the Spark Connect server itself can set it; it is not set")
    if version.split(".")[:2] != pyspark.__version__.split(".")[:2]:
        notes.append(f"the Spark Connect server is of Spark {version}, and this is PySpark {pyspark.__version__}")
    return Session(spark, ours=True, is_connect=True, settings=settings, notes=tuple(notes), modules=modules)


def _need_server(settings: SparkSettings) -> None:
    """That whoever answers there speaks Spark Connect's protocol: PySpark would try for ten minutes."""
    core, grpc = import_module("pyspark.sql.connect.client.core"), import_module("grpc")
    speaks: Future[bool] = Future()
    final = {grpc.ChannelConnectivity.READY: True, grpc.ChannelConnectivity.TRANSIENT_FAILURE: False}

    def heard(state: Any) -> None:
        if state in final and not speaks.done():
            speaks.set_result(final[state])

    channel = core.DefaultChannelBuilder(settings.master).toChannel()
    channel.subscribe(heard, try_to_connect=True)
    try:
        found = speaks.result(SPARK_HELLO_S)
    except TimeoutError:
        found = False
    finally:
        channel.close()
    if not found:
        raise Unavailable(
            f"what answers at {settings.place.shown} is no Spark Connect server",
            hint="check the port, and whether it wants TLS: sc://HOST:PORT/;use_ssl=true",
        )


def _set_at_run_time(spark: SparkSession, conf: Mapping[str, str]) -> list[str]:
    """Set what can be set in a session that runs; those of `conf` that cannot."""
    left = []
    for word, value in {**DEFAULTS, **conf, **FIXED}.items():
        if spark.conf.isModifiable(word) or word.startswith(_CATALOGS):
            spark.conf.set(word, value)
        elif word in conf:
            left.append(word)
    return left


def check_session(spark: SparkSession) -> None:
    """That nobody changed what the bytes depend on since the session began: an asset's code has it in hand."""
    for word, value in FIXED.items():
        found = spark.conf.get(word, value) or value
        if found.lower() != value.lower():
            raise InvalidInput(f"{word} was changed to {clip(found)!r}", hint="do not set it in an asset's code")
