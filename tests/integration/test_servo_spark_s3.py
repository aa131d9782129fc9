"""The same on a bucket: Spark writes and reads s3:// through the connector's jars, PyArrow its manifests and footers."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import DataFileContent
from pyspark.sql import functions as f

from arco import asset, daily, not_null, row_count
from arco.fold.spark_s3 import s3_settings
from arco.fold.spark_session import Session, SparkSettings
from arco.ledger.run_state import RunState
from arco.servo.execute.maintaining import Maintenance
from arco.servo.execute.snapshots import Replace
from arco.servo.execute.source_files import partition_versions
from arco.servo.execute.spark_read import read_table
from arco.servo.execute.spark_types import iceberg_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from fixtures.servo.deletes import commit_deletes
from fixtures.servo.frames import MARKS, rows
from fixtures.servo.lake import Lake, data_file
from fixtures.servo.runs import Runs, ended
from tests.servers.launch import seaweedfs

from .spark_local import CONF, opened, running

pytestmark = MARKS

REPOSITORY = Path(__file__).resolve().parents[2]
JARS = REPOSITORY / ".tools" / "jars-s3"


@pytest.fixture(scope="module")
def shore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Lake]]:
    # Without Maven the jars are not copied, and Spark fetches them itself when it starts.
    subprocess.run([str(REPOSITORY / "tools" / "s3_jars.sh")], check=False)
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        root = f"{server.url}/lake"
        settings = SparkSettings("local[2]", "servo-on-s3", CONF, jars_folder=JARS)
        with running(settings, root, server.options) as session, Lake(root, server.options) as lake:
            yield session, lake


@pytest.mark.parametrize("nested", [False, True], ids=["native", "arrow"])
def test_outputs_are_written_published_and_read_on_a_bucket(shore: Any, nested: bool) -> None:
    session, lake = shore
    frame = session.spark.range(90).selectExpr(
        "id", "date_add(date'2025-01-01', cast(id % 3 as int)) day", "concat('größe ', id % 2) name"
    )
    if nested:
        frame = frame.withColumn("list", f.array("id"))
    name = "nested" if nested else "flat"
    fields = [
        {"name": "day", "transform": "identity", "source-id": 2},
        {"name": "n", "transform": "identity", "source-id": 3},
    ]
    staged = lake.stage(name, iceberg_schema(frame.schema), partition_spec={"fields": fields})
    assert staged.location.startswith("s3://")
    written = write(frame, Target.of(staged, lake.materialization(), 1), lake.io)
    assert len(written.partitions) == 6
    lake.publish(name, staged, written, creates=True)
    assert rows(read_table(session.spark, lake.load(name), lake.io)) == rows(frame)

    base = lake.load(name)
    fresh = frame.where("id = 1")
    again = write(fresh, Target.of(base, lake.materialization(), 1), lake.io)
    lake.publish(name, base, again, Replace(EqualTo("day", "2025-01-02")))
    found = read_table(session.spark, lake.load(name), lake.io, where=EqualTo("day", "2025-01-02"))
    assert rows(found) == rows(fresh)
    assert sum(one.rows for one in partition_versions(lake.load(name), lake.io)) == 61


def test_deleted_rows_are_gone_on_a_bucket_too(shore: Any) -> None:
    session, lake = shore
    frame = session.spark.range(5).coalesce(1)
    staged = lake.stage("deleted", iceberg_schema(frame.schema))
    written = write(frame, Target.of(staged, lake.materialization(), 1), lake.io)
    lake.publish("deleted", staged, written, creates=True)
    table = lake.load("deleted")
    (file,) = written.files
    spelled = file.file_path.replace("s3://", "s3a://")
    gone = session.spark.createDataFrame([(file.file_path, 1), (spelled, 3)], "file_path string, pos bigint")
    gone.coalesce(1).write.parquet(f"{table.location}/data/gone")
    (part,) = list(session.spark.read.parquet(f"{table.location}/data/gone").inputFiles())
    name = f"gone/{part.rpartition('/')[2]}"
    commit_deletes(lake, "deleted", [data_file(table, name, rows=2, content=DataFileContent.POSITION_DELETES)])
    assert rows(read_table(session.spark, lake.load("deleted"), lake.io)) == [(0,), (2,), (4,)]


def test_a_project_runs_on_a_bucket_as_on_a_folder(shore: Any, tmp_path: Path) -> None:
    session, lake = shore
    runs = Runs(lake, session, tmp_path)
    days = daily("date", start="2025-01-01", end="2025-01-04")

    @asset(partitions=days, checks=[not_null("even", quarantine_rows=True), row_count(min=1)])
    def numbers(run: Any) -> Any:
        made = run.spark.range(30).selectExpr(
            "date_add(date'2025-01-01', cast(id % 3 as int)) date", "id", "if(id % 2 = 0, id, null) even"
        )
        return made.where(f.col("date").isin(run.values("date")))

    @asset(partitions=days)
    def counted(numbers: Any) -> Any:
        return numbers.groupBy("date").count()

    assert ended(runs.run(numbers, counted)) == {"succeeded": 2}
    assert [row[1] for row in runs.rows("counted")] == [5, 5, 5]
    assert len(runs.rows("numbers__quarantine")) == 15
    assert runs.plan(numbers, counted).plan.spec.tasks == ()
    assert ended(runs.force(numbers, words=("numbers",), partitions={"date": "2025-01-02"})) == {"succeeded": 1}
    assert [task.partitions for task in runs.plan(numbers, counted).plan.spec.tasks] == [
        [{"date": ["2025-01-02", "2025-01-03"]}]
    ]


def test_keys_of_one_bucket_are_not_given_to_another() -> None:
    options = {"endpoint": "http://127.0.0.1:1", "access_key_id": "id", "secret_access_key": "secret", "path_style": "true"}
    settings = s3_settings("s3://lake/root", options, JARS)
    assert {word for word, value in settings.items() if value == "secret"} == {"spark.hadoop.fs.s3a.bucket.lake.secret.key"}
    assert settings["spark.hadoop.fs.s3a.bucket.lake.connection.ssl.enabled"] == "false"
    assert s3_settings("file:///lake", {}, None) == {}


def test_without_the_folder_spark_is_told_what_to_fetch() -> None:
    settings = s3_settings("s3://lake", {}, None)
    assert settings["spark.jars.packages"].startswith("org.apache.hadoop:hadoop-aws:3.")
    assert "software.amazon.awssdk:bundle" in settings["spark.jars.excludes"]


def test_small_files_are_rewritten_on_a_bucket(shore: Any) -> None:
    session, lake = shore
    frame = session.spark.range(10).coalesce(1)
    lake.create("small", iceberg_schema(frame.schema))
    for number in range(5):
        base = lake.load("small")
        target = Target.of(base, lake.materialization(), 1)
        lake.publish("small", base, write(frame, target, lake.io), task_id=f"append {number}")
    before = lake.load("small")
    work = Maintenance(catalog=lake.another(), options=lake.options, by="tests")

    async def maintained() -> RunState:
        entry, _ = await lake.another().tables.load(("db",), "small")
        found = await work.survey([entry])
        started = await work.start(found)
        assert started is not None
        return await work.drive(started, found, opened(session))

    state = lake.run(maintained())
    assert ended(state) == {"succeeded": len(state.tasks)}
    after = lake.load("small")
    assert (len(lake.paths(before)), len(lake.paths(after))) == (5, 1)
    assert rows(read_table(session.spark, after, lake.io)) == rows(read_table(session.spark, before, lake.io))
