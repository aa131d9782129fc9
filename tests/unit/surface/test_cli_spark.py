"""`arco spark` from the shell, as far as it needs no Spark and no network."""

import hashlib
import stat
import sys
from pathlib import Path

import pytest
from pyspark import SparkContext
from typer.testing import CliRunner

from arco.kernel.errors import ArcoError
from arco.surface.cli import sparking
from arco.surface.cli.jars import Artifact, fetch
from arco.surface.cli.main import app
from arco.surface.cli.projects import spark_words
from arco.surface.cli.settings import jars_cache
from arco.surface.cli.spark_lake import Asked

MAVEN = """#!/bin/sh
for word in "$@"; do
    case "$word" in
        -DoutputDirectory=*) folder="${word#*=}" ;;
        */pom.xml) cd "${word%/*}"; name=hadoop-aws-3 ;; # Maven goes by the folder of the file that it is given
        -Dartifact=*) name=$(echo "${word#*=}" | cut -d: -f2,3 | tr : -) ;;
    esac
done
echo "[ERROR] Failure to find $name" >&2
[ "$name" = thing-1.0 ] || [ "$name" = hadoop-aws-3 ] || exit 1
mkdir -p "$folder" && printf 'the jar' >"$folder/$name.jar"
"""


def refused(*words: str) -> str:
    """What a command says that does not do it."""
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, ArcoError), result.output
    return result.exception.one_line()


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a project, and a cache without jars."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARCO_JARS", str(tmp_path / "jars"))
    return tmp_path


def test_without_the_runtime_it_says_what_fetches_it(alone: Path) -> None:
    assert "arco spark jars fetches it" in refused("spark", "sql", "SELECT 1", "--root", str(alone / "lake"))


def test_behind_connect_there_must_be_a_server(alone: Path) -> None:
    said = refused("spark", "sql", "SELECT 1", "--root", str(alone / "lake"), "--spark", "sc://127.0.0.1:1")
    assert "no catalog without --catalog-uri" in said


@pytest.mark.parametrize(
    ("jar", "says"),
    [
        ("iceberg-spark-runtime-3.5_2.13-1.9.0.jar", "is for Spark 3.5, and this is Spark 4.1"),
        ("iceberg-spark-runtime-4.1_2.12-1.12.0.jar", "is for Scala 2.12, and this Spark is of Scala 2.13"),
        ("iceberg-spark-runtime-4.1_2.13-1.12.0.jar", "is damaged: its checksum is another"),
    ],
)
def test_a_runtime_that_would_break_spark_is_refused_before_it_starts(alone: Path, jar: str, says: str) -> None:
    (alone / "jars").mkdir()
    (alone / "jars" / jar).write_bytes(b"half a jar")
    assert says in refused("spark", "sql", "SELECT 1", "--root", str(alone / "lake"))


def test_a_master_that_is_none_is_one_line(alone: Path) -> None:
    said = refused("spark", "shell", "--root", str(alone / "lake"), "--spark", "lokal")
    assert said.startswith("'lokal' is no place where Spark runs: one of local[*]")


def test_a_program_that_is_not_there_is_said_to_be(alone: Path) -> None:
    assert "there is no file job.py" in refused("spark", "submit", "--root", str(alone / "lake"), "job.py")


# What the list of processes shows

KEYS = """
[spark]
master = "local[1]"
[spark.conf]
"spark.jars.packages" = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"spark.hadoop.fs.azure.account.key.one.dfs.core.windows.net" = "canary-azure"
"spark.sql.catalog.other.credential" = "me:canary-credential"
"spark.sql.catalog.other.s3.secret-access-key" = "canary-other"
"spark.ssl.keyStorePassword" = "canary-store"
"spark.hadoop.fs.azure.sas.box.one.blob.core.windows.net" = "canary-sas"
"""
CANARIES = {f"canary-{one}" for one in ["azure", "credential", "other", "store", "sas", "id", "key", "session", "token"]}


class Seen(Exception):
    """A process would have been started."""


def with_keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    (folder / "arco.toml").write_text(KEYS)
    monkeypatch.setenv("ARCO_TOKEN", "canary-token")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # what starting Spark says here is taken back
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    given = [
        "region=eu-central-1",
        "access_key_id=canary-id",
        "secret_access_key=canary-key",
        "session_token=canary-session",
    ]
    return Asked(str(folder), "s3://bucket/lake", given, None, None, "http://127.0.0.1:1")


@pytest.mark.parametrize("words", [("shell",), ("sql", "SELECT 1")])
def test_spark_is_started_without_a_key_or_token_on_its_command_line(
    alone: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    asked, started = with_keys(alone, monkeypatch), []

    def popen(command: list[str], **more: object) -> None:
        started.extend(command)
        raise Seen

    monkeypatch.setattr("pyspark.java_gateway.Popen", popen)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(Seen):
        sparking.shell(asked) if words == ("shell",) else sparking.sql(asked, words[1], rows_max=1, json=False)
    line = " ".join(started)
    assert "spark.sql.catalog.arco.uri=http://127.0.0.1:1" in line
    assert "spark.hadoop.fs.s3a.bucket.bucket.endpoint.region=eu-central-1" in line
    assert "canary" not in line


def test_a_program_is_submitted_without_a_key_or_token_on_its_command_line(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, found = with_keys(alone, monkeypatch), []

    def run(command: list[str], **more: object) -> None:
        settings = Path(command[command.index("--properties-file") + 1])
        found.extend([" ".join(command), settings.read_text(), stat.filemode(settings.stat().st_mode)])
        raise Seen

    monkeypatch.setattr("arco.surface.cli.sparking.subprocess.run", run)
    (alone / "job.py").write_text("")
    with pytest.raises(Seen):
        sparking.submit(asked, "job.py", ["2025-01-31"])
    command, settings, mode = found
    assert "canary" not in command
    assert {word for word in CANARIES if word not in settings} == set()
    assert mode == "-rw-------", "for nobody else's eyes"


# Jars


def with_maven(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "mvn").write_text(MAVEN)
    (folder / "bin" / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")


def test_a_jar_is_fetched_once_and_again_if_it_is_damaged(
    alone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_maven(alone, monkeypatch)
    jar = alone / "jars" / "thing-1.0.jar"
    for _ in range(2):
        fetch(["org.example:thing:1.0"], alone / "jars", json=False)
    assert capsys.readouterr().out.splitlines() == [
        f"{count} fetched; 1 jar in {alone / 'jars'} (7 bytes)" for count in ("1 jar", "0 jars")
    ]
    assert (alone / "jars" / "SHA256SUMS").read_text() == f"{hashlib.sha256(b'the jar').hexdigest()}  thing-1.0.jar\n"
    jar.write_bytes(b"the j")
    fetch(["org.example:thing:1.0"], alone / "jars", json=False)
    assert jar.read_bytes() == b"the jar"
    assert sorted(one.name for one in (alone / "jars").iterdir()) == ["SHA256SUMS", "thing-1.0.jar"]
    assert "could not be fetched: Failure to find other-1.0" in refused("spark", "jars", "org.example:other:1.0")


def test_the_connector_is_fetched_into_a_folder_that_is_named_from_here_and_again_if_it_is_gone(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_maven(alone, monkeypatch)
    for _ in range(2):
        fetch(["s3"], Path("here"), json=False)
        jar = alone / "here" / "hadoop-aws-3.jar"
        assert jar.read_bytes() == b"the jar"
        jar.unlink()


def test_without_maven_it_says_so(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(alone))
    assert "Maven is missing" in refused("spark", "jars")


@pytest.mark.parametrize("text", ["thing", "a:b", "a:b:c:d", "a:../b:1", "::"])
def test_what_is_no_name_of_a_jar_is_refused(text: str) -> None:
    with pytest.raises(ArcoError, match="is no jar's name"):
        Artifact.parse(text)


def test_jars_lie_in_the_users_cache_unless_somebody_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCO_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert jars_cache("4.1") == Path("/cache/arco/jars/spark-4.1")
    monkeypatch.setenv("ARCO_JARS", "/jars")
    assert jars_cache("4.1") == Path("/jars")


def test_what_a_file_says_about_spark_is_read_without_a_project(tmp_path: Path) -> None:
    assert spark_words(tmp_path).master == "local[*]"
    (tmp_path / "arco.toml").write_text(
        '[spark]\nmaster = "yarn"\nconf = { "spark.a" = 2, "spark.b" = true }\njars = "j"\n'
    )
    found = spark_words(tmp_path)
    assert (found.master, dict(found.conf), found.jars) == ("yarn", {"spark.a": "2", "spark.b": "true"}, tmp_path / "j")
