"""A Spark with a lake attached, for people who go on in plain Spark: where it runs, its catalog `arco`, and `lake`.

The catalog needs Iceberg's runtime (`arco spark jars`) and a server: one that is given, or one that is started for the length of
the command, on loopback, with a token that nobody else knows. It ends when this process does, however that ends.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from arco.fold.spark_jars import lines, refuse_other_lines
from arco.fold.spark_session import SparkSettings
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import InvalidInput, Unavailable
from arco.kernel.scope import Scope
from arco.storage.roots import parse_root
from arco.surface.cli.flags import DEFAULT_WAREHOUSE, Where
from arco.surface.cli.jars import refuse_damaged
from arco.surface.cli.projects import SparkWords, read_project, spark_words
from arco.surface.cli.settings import PROJECT_FILE, Settings, environment, jars_cache, load_settings, load_token

CATALOG = "arco"
_PREFIX = f"spark.sql.catalog.{CATALOG}"
_RUNTIME = "iceberg-spark-runtime-*.jar"
_TOKEN_BYTES = 24


@dataclass(frozen=True, slots=True)
class Asked:
    """What the flags say: a project or a root, where Spark runs, and a server if one is there."""

    project: str
    root: str | None
    options: list[str]
    warehouse: str | None
    master: str | None
    catalog_uri: str | None


@dataclass(frozen=True, slots=True)
class Attached:
    """A Spark as it is to be started. `notes` are what people should know before it is."""

    spark: SparkSettings
    settings: Settings
    warehouse: str
    notes: tuple[str, ...]

    @property
    def has_catalog(self) -> bool:
        return _PREFIX in self.spark.conf

    @property
    def place(self) -> str:
        return parse_root(self.settings.root).place


@contextmanager
def attached(asked: Asked) -> Iterator[Attached]:
    """Settings for a Spark with the lake attached, and its server for the length of the block."""
    where, words = _where(asked)
    settings = load_settings(where.root, list(where.options), where.folder)
    log = where.folder / ".arco" / "spark.log"
    folder = words.jars or jars_cache(lines()[0])
    spark = SparkSettings(
        asked.master or words.master, "arco spark", words.conf, folder if folder.is_dir() else None, log_file=log
    )
    found = Attached(spark, settings, Scope.parse_warehouse(where.warehouse).warehouse, ())
    refusal = _no_catalog(spark, asked)
    if refusal is not None:
        yield replace(found, notes=(refusal,))
        return
    if asked.catalog_uri is not None:
        token = load_token()
        yield _with_catalog(found, asked.catalog_uri, None if token is None else token.reveal())
        return
    token_of_ours = SystemEntropy().token_bytes(_TOKEN_BYTES).hex()
    with _served(asked, where.folder, token_of_ours) as uri:
        yield _with_catalog(found, uri, token_of_ours)


def _where(asked: Asked) -> tuple[Where, SparkWords]:
    """The lake of the project, or of the flags where there is none."""
    folder = Path(asked.project)
    if (folder / PROJECT_FILE).is_file():
        file = read_project(asked.project)
        where = file.where(asked.root, asked.options)
        return replace(where, warehouse=asked.warehouse or where.warehouse), file.spark
    where = Where.of(asked.root, asked.options, asked.warehouse or DEFAULT_WAREHOUSE, folder=folder)
    return where, spark_words(folder)


def _no_catalog(spark: SparkSettings, asked: Asked) -> str | None:
    """Why there is no catalog, if there is none. A jar that would break Spark is refused instead."""
    if spark.is_connect:
        # A server elsewhere has its own jars, and does not reach what listens on this machine's loopback.
        return None if asked.catalog_uri else "behind Spark Connect the lake has no catalog without --catalog-uri"
    jars = sorted(spark.jars_folder.glob(_RUNTIME)) if spark.jars_folder is not None else []
    if not jars and "iceberg-spark-runtime" not in f"{spark.conf.get('spark.jars')}{spark.conf.get('spark.jars.packages')}":
        return "the lake has no catalog without Iceberg's runtime: arco spark jars fetches it"
    refuse_other_lines(map(str, jars))
    for jar in jars:
        refuse_damaged(jar)
    return None


def _with_catalog(found: Attached, uri: str, token: str | None) -> Attached:
    conf = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        _PREFIX: "org.apache.iceberg.spark.SparkCatalog",
        f"{_PREFIX}.type": "rest",
        f"{_PREFIX}.uri": uri,
        f"{_PREFIX}.warehouse": found.warehouse,
        f"{_PREFIX}.cache-enabled": "false",
        f"{_PREFIX}.rest-catalog-purge": "true",
        "spark.sql.defaultCatalog": CATALOG,
    }
    if token is not None:
        conf[f"{_PREFIX}.token"] = token
    if found.settings.root.startswith("s3://"):
        # By the connector that Spark reads the bucket with anyway: Iceberg's own needs another 600 MB.
        conf[f"{_PREFIX}.io-impl"] = "org.apache.iceberg.hadoop.HadoopFileIO"
    return replace(found, spark=replace(found.spark, conf={**conf, **found.spark.conf}))


@contextmanager
def _served(asked: Asked, folder: Path, token: str) -> Iterator[str]:
    """A server of the lake, for us alone. It reads the project's file itself: no secret of it is on a command line."""
    arco = Path(sys.executable).with_name("arco")
    given = ["--root", str(Path(asked.root).resolve()) if "://" not in asked.root else asked.root] if asked.root else []
    given += [part for option in asked.options for part in ("-o", option)]
    command = [str(arco), "serve", "--port", "0", "--log-level", "off", "--until-stdin-ends", *given]
    server = subprocess.Popen(  # noqa: S603 - ourselves
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(ARCO_TOKEN=token, COLUMNS="400"),
        start_new_session=True,  # Ctrl-C is for the prompt
    )
    try:
        line = server.stdout.readline() if server.stdout else ""
        if " at http://" not in line:
            said = server.stderr.read() if server.stderr else ""
            reason = said.strip().splitlines()[-1].removeprefix("arco: ") if said.strip() else "it says nothing"
            raise Unavailable(f"the lake's server did not start: {reason}", hint="arco serve says more")
        yield line.rpartition(" at ")[2].strip()
    finally:
        server.terminate()
        server.communicate()


def need_catalog(found: Attached) -> None:
    """For whoever can do nothing without one."""
    if not found.has_catalog:
        raise InvalidInput(found.notes[0], hint="or read tables with lake.table(NAME).to_spark(spark) in arco spark shell")
