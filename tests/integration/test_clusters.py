"""One project here, on a cluster with two workers, and behind Spark Connect: the same rows, and what differs is said first.

Everything is started by the command that people type. The project has what tells the three apart: functions of its own modules in
rows, lists, buckets of texts, rows that are set aside, queries, and settings of one asset.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import arco
from arco.fold.spark_executors import notes_about
from arco.fold.spark_session import SparkSettings
from arco.kernel.errors import InvalidInput
from fixtures.servo.frames import MARKS
from tests.quick_java import QUICK

from .spark_cluster import HOSTS, spark_cluster, spark_connect
from .spark_local import running

pytestmark = MARKS

FILES = {
    "arco.toml": f"""
        [project]
        name = "shop"

        [spark]
        master = "local[2]"

        [spark.conf]
        "spark.sql.shuffle.partitions" = 2
        "spark.executor.memory" = "512m"
        "spark.driver.extraJavaOptions" = "{QUICK}"
        "spark.executor.extraJavaOptions" = "{QUICK}"
        """,
    "spelling.py": """
        def loud(text):
            return text.upper() + "!"
        """,
    "assets/things.py": """
        from arco import accepted_values, asset, row_count
        from pyspark.sql import functions as f
        from pyspark.sql.types import StringType
        from spelling import loud

        louder = f.udf(loud, StringType())


        @asset(partition_by=["bucket(3, name)"], checks=[row_count(min=300, max=300)])
        def names(run):
            print("about to make names")
            return run.spark.range(300).select("id", louder(f.concat(f.lit("größe "), "id")).alias("name"))


        @asset(checks=[accepted_values("kind", ["a", "b"], quarantine_rows=True)])
        def kinds(names):
            return names.selectExpr("id", "if(id % 50 = 0, 'c', if(id % 2 = 0, 'a', 'b')) kind", "'{name}' braces")


        @asset(spark={"spark.sql.shuffle.partitions": 3})
        def members(run, names):
            own = f.lit(run.spark.conf.get("spark.sql.shuffle.partitions")).alias("own")
            return names.groupBy((f.col("id") % 7).alias("id")).agg(f.sort_array(f.collect_list("name")).alias("names"), own)
        """,
    "assets/totals.sql": """
        SELECT k.kind, count(*) AS things, max(n.name) AS last, '{braces}' AS braces, sum(cast(k.id AS DECIMAL(12, 2))) AS total
        FROM kinds k JOIN names n USING (id) GROUP BY k.kind
        """,
}
TABLES = {"names": 300, "kinds": 294, "kinds__quarantine": 6, "members": 7, "totals": 2}
# What tells one run from another: which it was, and when.
OF_THE_RUN = {"arco_run_id", "arco_task_id", "arco_at"}


@dataclass(frozen=True)
class Project:
    folder: Path

    def arco(self, *words: str, code: int = 0, **environment: str) -> str:
        """What a command says, on both channels."""
        command = [str(Path(sys.executable).with_name("arco")), *words]
        found = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
        assert found.returncode == code, found.stdout + found.stderr
        return found.stdout + found.stderr

    def run(self, root: Path, *words: str, code: int = 0) -> str:
        return self.arco("run", "--project", str(self.folder), "--root", str(root), *words, code=code)


def notes(said: str) -> list[str]:
    """What was said beside the run itself. On a busy machine also that executors are late."""
    return [line for line in said.splitlines() if line.startswith("arco: ") and "has taken a task for" not in line]


def rows(root: Path) -> dict[str, list[dict[str, Any]]]:
    lake = arco.connect(str(root))
    return {name: _sorted(lake.table(f"shop.{name}").to_arrow().to_pylist()) for name in TABLES}


def _sorted(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    plain = [{word: value for word, value in row.items() if word not in OF_THE_RUN} for row in found]
    return sorted(plain, key=repr)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        indent = len(text) - len(text.lstrip()) - 1
        file.write_text("".join(line[indent:] or "\n" for line in text.splitlines(keepends=True)[1:]))
    return Project(folder)


@pytest.fixture(scope="module")
def local(project: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    root = tmp_path_factory.mktemp("local") / "lake"
    assert notes(project.run(root, "--no-fold")) == []
    found = rows(root)
    assert {name: len(one) for name, one in found.items()} == TABLES
    assert {row["own"] for row in found["members"]} == {"3"}
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("cluster")
    with spark_cluster(folder) as master:
        yield master, folder


def test_a_cluster_makes_the_rows_that_this_machine_makes(
    project: Project, local: dict[str, Any], cluster: tuple[str, Path], tmp_path: Path
) -> None:
    master, folder = cluster
    said = project.run(tmp_path / "lake", "--spark", master)
    assert rows(tmp_path / "lake") == local
    assert len(list(folder.glob("app-*/[01]/stderr"))) == len(HOSTS), "an executor on every worker"
    assert notes(said) == []  # nothing is missing there, and the fold went well too
    logs = project.arco("logs", "names", "--project", str(project.folder), "--root", str(tmp_path / "lake"))
    assert "about to make names" in logs


def test_spark_connect_makes_the_same_rows_and_says_first_what_it_cannot_do(
    project: Project, local: dict[str, Any], tmp_path: Path
) -> None:
    with spark_connect(tmp_path) as address:
        said = project.run(tmp_path / "lake", "--spark", address)
    assert rows(tmp_path / "lake") == local
    limits, settings = notes(said)
    assert "code has no sparkContext" in limits
    assert "spark.executor.memory" in settings


def test_what_executors_lack_is_said_before_anything_runs(cluster: tuple[str, Path], tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    master, folder = cluster
    conf = {
        "spark.pyspark.python": str(bare / "bin" / "python"),
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.executor.memory": "512m",
        "spark.local.dir": str(folder),
    }
    with running(SparkSettings(master, "bare", conf)) as session:
        (note,) = notes_about(session, str(tmp_path))
        assert note.startswith("arco, msgspec, obstore, pyarrow, pyiceberg cannot be imported by ")
        assert str(bare) in note
        assert '"spark.pyspark.python" in arco.toml' in note
        with pytest.raises(InvalidInput, match="have no folder /nowhere/lake") as refused:
            notes_about(session, "/nowhere/lake")
        assert "a bucket, or a folder that they share" in refused.value.one_line()
        (gone,) = notes_about_gone_python(session)
        assert gone.startswith("no Python runs on the executors: ")


def notes_about_gone_python(session: Any) -> tuple[str, ...]:
    session.spark.sparkContext.pythonExec = "/nowhere/python"
    return notes_about(session, "")


def test_a_cluster_that_is_not_there_is_one_line_and_nothing_is_begun(project: Project, tmp_path: Path) -> None:
    for address in ("spark://127.0.0.1:1", "sc://127.0.0.1:1", "k8s://https://127.0.0.1:1"):
        (line,) = project.run(tmp_path / "lake", "--spark", address, code=2).splitlines()
        assert line.startswith(f"arco: nobody answers at {address}: 127.0.0.1:1: connection refused: start the cluster")
    assert "nothing has run yet" in project.arco("runs", "--root", str(tmp_path / "lake"))
