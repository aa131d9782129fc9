"""The one Spark session of a process: made with the settings that reading and writing rely on, or attached to and given them.

Two kinds of settings. Some decide what bytes mean (time zone, timestamp type, reading by field id): they are fixed, and a
project that sets one otherwise is told so. The rest are defaults that a project may change. Works with a local master, a
cluster and Spark Connect; only here is known which of them it is.
"""

import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from arco.fold.spark_s3 import s3_settings
from arco.kernel.errors import InvalidInput, Unavailable
from arco.kernel.ids import clip

FIXED: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # A file without ids must be an error: with this on, every one of its columns would be null.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.writeLegacyFormat": "false",
}

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

_JAVA_HINT = "install a JRE of version 17 or newer, for example openjdk-17-jre-headless, or set JAVA_HOME"
_CONNECT_HINT = "install what it needs: pip install 'pyspark[connect]'"


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
    def is_connect(self) -> bool:
        return self.master.startswith("sc://")

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")


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
    """A session, and whether this process made it."""

    spark: SparkSession
    ours: bool
    is_connect: bool

    def stop(self) -> None:
        """Stop what we started. A session that was there before stays."""
        if self.ours:
            self.spark.stop()

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
    _refuse_contradictions(settings.conf)
    # PySpark prints every error that it raises, with a page of Java; whoever catches it says what is wrong.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    if settings.is_connect:
        return _connected(settings)
    if SparkContext._active_spark_context is not None:
        # Not `getActiveSession`: that is the session of this thread, and another one may have started it.
        running = SparkSession.builder.getOrCreate()
        _set_at_run_time(running, settings.conf)
        return Session(running, ours=False, is_connect=False)
    return _started(settings, s3_settings(root, options or {}, settings.jars_folder))


def _started(settings: SparkSettings, storage: Mapping[str, str]) -> Session:
    _need_java()
    # Workers must be this Python: the system's own has none of our packages. And nothing listens beyond loopback.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    own = {**START, **DEFAULTS, **storage}
    if settings.python_path:
        folders = [*map(str, settings.python_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = own["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(folders)
    if settings.is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        own |= _LOOPBACK
    builder = SparkSession.builder.master(settings.master).appName(settings.name)
    for word, value in {**own, **settings.conf, **FIXED}.items():
        builder = builder.config(word, value)
    try:
        with _errors_to(settings.log_file):
            return Session(builder.getOrCreate(), ours=True, is_connect=False)
    except PySparkException as error:
        said = f"; its own words are in {settings.log_file}" if settings.log_file else ""
        raise Unavailable(f"Spark did not start: {clip(str(error), 300)}{said}", hint=_JAVA_HINT) from error


@contextmanager
def _errors_to(file: Path | None) -> Iterator[None]:
    """What is started meanwhile writes its errors to a file, for as long as it lives: a JVM keeps the stderr it is born with."""
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    log, own = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644), os.dup(2)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)
        os.close(log)


def _connected(settings: SparkSettings) -> Session:
    try:
        spark = SparkSession.builder.remote(settings.master).getOrCreate()
    except ImportError as error:
        raise InvalidInput(f"Spark Connect is not there: {clip(str(error), 300)}", hint=_CONNECT_HINT) from error
    _set_at_run_time(spark, settings.conf)
    return Session(spark, ours=True, is_connect=True)


def _set_at_run_time(spark: SparkSession, conf: Mapping[str, str]) -> None:
    for word, value in {**DEFAULTS, **conf, **FIXED}.items():
        if spark.conf.isModifiable(word):
            spark.conf.set(word, value)


def check_session(spark: SparkSession) -> None:
    """That nobody changed what the bytes depend on since the session began: code of one asset runs in the session of all."""
    for word, value in FIXED.items():
        found = spark.conf.get(word, value) or value
        if found.lower() != value.lower():
            raise InvalidInput(f"{word} was changed to {clip(found)!r}", hint="do not set it in an asset's code")


def _refuse_contradictions(conf: Mapping[str, str]) -> None:
    for word, value in FIXED.items():
        if conf.get(word, value).lower() != value.lower():
            raise InvalidInput(f"{word} is {clip(conf[word])!r}", hint=f"leave it out: it is always {value}")


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").is_file()) and shutil.which("java") is None:
        raise Unavailable("Java is missing, and Spark runs on it", hint=_JAVA_HINT)
