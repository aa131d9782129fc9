"""Where Spark runs, on which Java and with which jars: what is wrong is one line, before anything is started."""

import socket
import sys
import zipfile
from pathlib import Path

import pytest

from arco.fold.spark_fixed import own_settings
from arco.fold.spark_jars import hadoop_version, iceberg_runtime, jars_of, lines, refuse_other_lines
from arco.fold.spark_java import need_java
from arco.fold.spark_masters import Kind, need_reachable, parse_master
from arco.fold.spark_modules import packed
from arco.fold.spark_trouble import explained
from arco.kernel.errors import InvalidInput, Unavailable

# Masters

MASTERS = {
    "local": (Kind.LOCAL, ()),
    "local[*]": (Kind.LOCAL, ()),
    "local[2,3]": (Kind.LOCAL, ()),
    "yarn": (Kind.YARN, ()),
    "spark://one:7077,two:7078": (Kind.STANDALONE, (("one", 7077), ("two", 7078))),
    "spark://one": (Kind.STANDALONE, (("one", 7077),)),
    "k8s://https://api.example:6443": (Kind.KUBERNETES, (("api.example", 6443),)),
    "k8s://api.example": (Kind.KUBERNETES, (("api.example", 443),)),
    "sc://host": (Kind.CONNECT, (("host", 15002),)),
    "sc://host:443/;token=abc;use_ssl=true": (Kind.CONNECT, (("host", 443),)),
    "sc://[::1]:15002": (Kind.CONNECT, (("::1", 15002),)),
}


@pytest.mark.parametrize("text", MASTERS)
def test_a_master_is_understood(text: str) -> None:
    found = parse_master(text)
    assert (found.kind, found.doors) == MASTERS[text]


@pytest.mark.parametrize(
    "text",
    ["", "lokal[*]", "local[x]", "spark:/one:7077", "spark://", "spark://one:99999", "http://one", "mesos://one:5050"],
)
def test_a_word_that_is_no_master_is_answered_with_those_that_are(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no place where Spark runs") as refused:
        parse_master(text)
    assert "spark://HOST:7077" in refused.value.one_line()


def test_only_what_is_on_this_machine_listens_on_this_machine_alone() -> None:
    near = ["local[*]", "spark://127.0.0.1:7077", "sc://localhost"]
    far = ["spark://127.0.0.1:1,two:1", "yarn", "k8s://https://127.0.0.1:6443"]
    assert [parse_master(one).is_near for one in (*near, *far)] == [True] * 3 + [False] * 3


def test_nobody_there_is_said_at_once_and_one_of_several_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        need_reachable(parse_master(f"spark://127.0.0.1:1,127.0.0.1:{port}"), {})
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1: connection refused"):
        need_reachable(parse_master("spark://127.0.0.1:1"), {})
    with pytest.raises(Unavailable, match=r"there is no host nowhere\.invalid"):
        need_reachable(parse_master("sc://nowhere.invalid"), {})


def test_what_follows_an_address_is_never_printed() -> None:
    with pytest.raises(Unavailable) as refused:
        need_reachable(parse_master("sc://127.0.0.1:1/;token=secret;use_ssl=true"), {})
    assert "sc://127.0.0.1:1" in refused.value.one_line()
    assert "secret" not in refused.value.one_line()


def test_yarn_needs_to_be_told_where_it_is() -> None:
    need_reachable(parse_master("yarn"), {"HADOOP_CONF_DIR": "/etc/hadoop"})
    with pytest.raises(InvalidInput) as refused:
        need_reachable(parse_master("yarn"), {})
    assert refused.value.one_line().startswith("no variable says where YARN is: set HADOOP_CONF_DIR to the folder")


# Java


def java(home: Path, release: str | None, says: str = "") -> dict[str, str]:
    """An installation that says which one it is, in its file or when it is asked."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return {"JAVA_HOME": str(home), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("release", "says", "version"),
    [
        ('IMPLEMENTOR="X"\nJAVA_VERSION="11.0.2"\n', "", "11"),
        ('JAVA_VERSION="1.8.0_402"\n', "", "8"),
        (None, 'openjdk version "11.0.2" 2019-01-15', "11"),
    ],
)
def test_a_java_that_is_too_old_is_named(tmp_path: Path, release: str | None, says: str, version: str) -> None:
    with pytest.raises(Unavailable, match=f"Java {version} at .* is too old for Spark") as refused:
        need_java(java(tmp_path / "old", release, says))
    assert "17 or newer" in refused.value.one_line()


def test_a_java_that_is_new_enough_or_says_nothing_is_taken(tmp_path: Path) -> None:
    need_java(java(tmp_path / "a", 'JAVA_VERSION="21"\n'))
    need_java(java(tmp_path / "b", None, 'openjdk version "17.0.1"'))
    need_java(java(tmp_path / "c", None, "who knows"))


def test_a_home_without_java_counts_though_another_one_is_there(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"there is no bin/java in it"):
        need_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    with pytest.raises(Unavailable, match="Java is missing"):
        need_java({"PATH": str(tmp_path)})


# Jars


def test_this_spark_knows_its_lines_without_being_started() -> None:
    assert lines() == ("4.1", "2.13")
    assert hadoop_version().startswith("3.")
    assert iceberg_runtime() == "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


@pytest.mark.parametrize(
    ("jar", "says"),
    [
        ("/jars/delta-spark_2.12-3.2.0.jar", "is for Scala 2.12, and this Spark is of Scala 2.13"),
        ("org.apache.spark:spark-avro_2.12:3.5.1", "is for Scala 2.12"),
        ("iceberg-spark-runtime-3.5_2.13-1.9.0.jar", "is for Spark 3.5, and this is Spark 4.1"),
        ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0", "is for Spark 4.0, and this is Spark 4.1"),
    ],
)
def test_a_jar_of_another_line_is_refused_by_its_name(jar: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        refuse_other_lines(["good_2.13-1.0.jar", jar])


def test_jars_that_fit_or_do_not_say_are_taken() -> None:
    given = {
        "spark.jars": "/a/iceberg-spark-runtime-4.1_2.13-1.12.0.jar, /a/hadoop-aws-3.4.2.jar,",
        "other": "x_2.12-1.jar",
    }
    assert len(jars_of(given)) == 2
    refuse_other_lines([*jars_of(given), "org.example:thing_2.13:1.0", "not_2.12", "snake_2_case.jar"])


# Why it did not start


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main", "this Java is too old"),
        ("java.lang.module.FindException: Module jdk.incubator.vector not found", "lacks a module"),
        ("java.lang.NoClassDefFoundError: scala/Serializable", "another Scala"),
        ("java.lang.IncompatibleClassChangeError: class SparkView can not implement View", "another version of Spark"),
        ("All masters are unresponsive! Giving up.", "did not take this application"),
    ],
)
def test_why_spark_did_not_start_is_found_in_its_own_words(tmp_path: Path, text: str, says: str) -> None:
    log = tmp_path / "spark.log"
    log.write_text(f"some words before\n{text}\n\tat java.base/nowhere\n")
    found = explained("[JAVA_GATEWAY_EXITED] Java gateway process exited", log)
    assert says in found.message
    assert str(log) in found.message
    assert "\n" not in found.one_line()
    assert "GATEWAY" in explained("[JAVA_GATEWAY_EXITED]", None).message


# Settings of one asset


def test_what_spark_takes_at_run_time_an_asset_may_set() -> None:
    assert own_settings({"spark.sql.shuffle.partitions": 8, "spark.sql.adaptive.enabled": False}) == {
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.enabled": "false",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"spark.executor.memory": "4g"}, "Spark does not take spark.executor.memory for one asset alone"),
        ({"spark.sql.session.timeZone": "Europe/Berlin"}, "leave it out: it is always UTC"),
        ({"shuffle": 8}, "spark has 'shuffle'"),
        ({"spark.sql.shuffle.partitions": [8]}, "a text, a number"),
    ],
)
def test_everything_else_is_refused_with_where_it_goes(given: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        own_settings(given)
    assert says in refused.value.one_line()


# Modules


def test_the_modules_of_a_project_travel_without_its_lake_and_its_pythons(tmp_path: Path) -> None:
    files = ["words.py", "assets/orders.py", "assets/deep/more.py"]
    left = [".venv/lib/x.py", "env/lib/y.py", "lake/data/z.py", "lake2/w.py", "assets/__pycache__/orders.py", "notes.txt"]
    for name in [*files, *left]:
        file = tmp_path / "project" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("ANSWER = 42\n")
    (tmp_path / "project" / "env" / "pyvenv.cfg").touch()
    (tmp_path / "project" / "lake2" / "_catalog").mkdir()
    found = packed([tmp_path / "project"], str(tmp_path / "project" / "lake"))
    assert found is not None
    with zipfile.ZipFile(found) as archive:
        assert {name for name in archive.namelist() if not name.endswith("/")} == set(files)
    sys.path.insert(0, str(found))
    try:
        deep = __import__("assets.deep.more", fromlist=["ANSWER"])
        assert deep.ANSWER == 42
    finally:
        sys.path.remove(str(found))
        for name in [one for one in sys.modules if one.split(".")[0] == "assets"]:
            del sys.modules[name]
    assert packed([tmp_path / "project" / "lake2"]) is not None
    assert packed([tmp_path / "nothing"]) is None
