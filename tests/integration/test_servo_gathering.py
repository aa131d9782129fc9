"""Facts of tables that others write: PyIceberg writes them through a running server, planning reads their manifests."""

import asyncio
import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, MonthTransform, Transform
from pyiceberg.types import DateType, LongType, NestedField, TimestampType

from arco.catalog.catalog import Catalog
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.servo.deploy.deploying import Deployments, deployed
from arco.servo.execute.file_access import _system
from arco.servo.execute.gathering import gather
from arco.servo.execute.input_files import list_files
from arco.servo.execute.source_files import partition_versions
from arco.servo.partitions.axes import Axis
from arco.servo.plan.facts import FilesFact, PlanningSnapshot, TableFact
from arco.servo.plan.planner import PlanRequest, plan
from arco.servo.sdk.authoring import asset, source
from arco.servo.sdk.dimensions import daily, hourly, monthly, weekly
from arco.servo.sdk.project import Project, assembled
from arco.storage.roots import open_root
from fixtures.servo.lake import Lake, data_file
from fixtures.servo.pipeline import ID_AND_DAY, Pipeline
from tests.servers.launch import seaweedfs

from .arco_server import arco_server

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "date", DateType(), required=False),
    NestedField(3, "ts", TimestampType(), required=False),
)
NOW_MS = int(dt.datetime(2025, 1, 31, tzinfo=dt.UTC).timestamp() * 1000)


class World:
    """A root that a server serves and planning reads."""

    def __init__(self, root: Path, address: str) -> None:
        self.root = root
        self.client = RestCatalog("arco", uri=address)
        self.client.create_namespace("shop")

    def table(self, column: str, transform: Transform) -> Table:
        field_id = SCHEMA.find_field(column).field_id
        spec = PartitionSpec(PartitionField(field_id, 1000, transform, f"{column}_part"))
        return self.client.create_table("shop.raw", schema=SCHEMA, partition_spec=spec)

    def facts(self, *axes: Axis) -> PlanningSnapshot:
        return asyncio.run(self._gathered(project(*axes)))[0]

    def raw(self, *axes: Axis) -> TableFact:
        found = self.facts(*axes).of("shop.raw").table
        assert found is not None
        return found

    async def _gathered(self, made: Project):
        clock, entropy, scope = SystemClock(), SystemEntropy(), Scope.of()
        store = open_root(str(self.root), {}, clock, entropy)
        catalog = Catalog.open(store, self.root.as_uri(), scope, clock, entropy)
        deployment, _ = await Deployments(store, scope, clock, entropy).deploy(made, by="ann")
        found = await gather(catalog, made, deployment, now_ms=NOW_MS)
        await store.close()
        return found, plan(made.graph, found, deployed(deployment), PlanRequest())


def project(*axes: Axis) -> Project:
    raw = source("raw", partitions=axes)

    @asset(partitions=axes)
    def clean(raw: object) -> object: ...

    return assembled([raw.written, clean.written], folder=Path(), name="shop", namespace="shop")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    root = tmp_path / "lake"
    with arco_server(root) as address:
        yield World(root, address)


def rows(*moments: str) -> pa.Table:
    times = [dt.datetime.fromisoformat(one) for one in moments]
    return pa.table(
        {
            "id": pa.array(range(len(times)), pa.int64()),
            "date": pa.array([one.date() for one in times], pa.date32()),
            "ts": pa.array(times, pa.timestamp("us")),
        }
    )


def add(table: Table, moment: str) -> None:
    """A file of one moment; PyIceberg reads its partition from the file's statistics."""
    file = f"{table.location()}/data/one.parquet"
    Path(file.removeprefix("file://")).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(moment), file.removeprefix("file://"))
    table.add_files([file])


def told(fact: TableFact, name: str) -> dict[str, str]:
    """The version of each partition by its first moment."""
    assert fact.versions is not None
    return {box[name][0]: piece["version"] for piece in fact.versions for box in piece["partitions"]}


DATE_DAYS = daily("date", start="2025-01-01")


def test_each_partition_of_a_source_has_its_version_and_only_a_changed_one_gets_another(world: World) -> None:
    table = world.table("date", IdentityTransform())
    table.append(rows("2025-01-02", "2025-01-03"))
    before = told(world.raw(DATE_DAYS), "date")
    assert list(before) == ["2025-01-02", "2025-01-03"]
    table.append(rows("2025-01-03"))
    after = told(world.raw(DATE_DAYS), "date")
    assert after["2025-01-02"] == before["2025-01-02"]
    assert after["2025-01-03"] != before["2025-01-03"]
    table.delete("date = '2025-01-02'")
    assert list(told(world.raw(DATE_DAYS), "date")) == ["2025-01-03"]


@pytest.mark.parametrize(
    ("transform", "axis", "first"),
    [
        (DayTransform(), daily("ts", start="2025-01-01"), "2025-01-08"),
        (HourTransform(), daily("ts", start="2025-01-01"), "2025-01-08"),
        (HourTransform(), hourly("ts", start="2025-01-01T00"), "2025-01-08T13:00:00+00:00"),
        (DayTransform(), weekly("ts", start="2024-12-30"), "2025-01-06"),
        (MonthTransform(), monthly("ts", start="2024-12", end="2025-01"), None),
        (MonthTransform(), monthly("ts", start="2024-12"), "2024-12-01"),
    ],
    ids=str,
)
def test_transforms_of_time_are_found_in_the_periods_of_a_source(
    world: World, transform: Transform, axis: Axis, first: str | None
) -> None:
    moment = "2024-12-05T10:00" if axis.kind == "monthly" and first else "2025-01-08T13:30"
    add(world.table("ts", transform), moment)
    fact = world.raw(axis)
    assert (list(told(fact, "ts")), fact.note) == ([] if first is None else [first], "")


def test_a_table_that_is_partitioned_otherwise_is_one_version_and_says_so(world: World) -> None:
    table = world.table("ts", MonthTransform())
    add(table, "2025-01-08T13:30")
    fact = world.raw(daily("ts", start="2025-01-01"))
    assert fact.versions == [
        {
            "partitions": [{"ts": ["2025-01-01", "2025-01-31"]}],
            "version": f"snapshot {table.current_snapshot().snapshot_id}",  # type: ignore[union-attr]
        }
    ]
    assert "dimension ts is daily, and the table is partitioned by month(ts)" in fact.note


def test_a_plan_on_gathered_facts_pins_what_it_reads(world: World) -> None:
    table = world.table("date", IdentityTransform())
    table.append(rows("2025-01-02", "2025-01-03"))
    snapshot, made = asyncio.run(world._gathered(project(DATE_DAYS)))
    (task,) = made.spec.tasks
    assert made.spec.snapshot == snapshot.id
    assert task.inputs[0].snapshot_id == table.current_snapshot().snapshot_id  # type: ignore[union-attr]
    assert [piece["partitions"] for piece in task.inputs[0].versions] == [
        [{"date": ["2025-01-02", "2025-01-03"]}],
        [{"date": ["2025-01-03", "2025-01-04"]}],
    ]


def test_gathering_starts_no_jvm() -> None:
    code = "import sys; import arco.servo.execute.gathering; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# On a bucket


@pytest.fixture(scope="module")
def shore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server, Lake(f"{server.url}/lake", server.options) as lake:
        yield lake


def test_a_source_on_a_bucket_is_read_through_the_store_and_through_its_files_alike(shore: Lake) -> None:
    made = shore.create(
        "raw", ID_AND_DAY, partition_spec={"fields": [{"name": "d", "transform": "identity", "source-id": 2}]}
    )
    days = [(dt.date(2025, 1, day) - dt.date(1970, 1, 1)).days for day in (2, 3)]
    shore.publish("raw", made, tuple(data_file(made, f"f{day}", day) for day in days))
    raw = source("raw", partitions=DATE_DAYS)
    found = Pipeline(shore, raw).facts(now_ms=NOW_MS, file_options=shore.options).of("db.raw").table
    assert found is not None
    assert found.versions is not None
    by_files = partition_versions(shore.load("raw"), shore.io)
    assert [piece["version"] for piece in found.versions] == [one.version for one in by_files]
    assert list(told(found, "date")) == ["2025-01-02", "2025-01-03"]


def test_files_of_a_bucket_are_listed_with_what_changes_them(shore: Lake) -> None:
    bucket = shore.root.removeprefix("s3://").partition("/")[0]
    system, _ = _system(shore.io, shore.root)
    for name in ("a.json", "deep/b.json", "deep/c.csv", "_SUCCESS"):
        with system.open_output_stream(f"{bucket}/landing/{name}") as stream:
            stream.write(name.encode())

    def listed(pattern: str) -> FilesFact:
        return list_files(f"s3://{bucket}/{pattern}", Path(), shore.options)

    assert listed("landing/*.json").files == (f"s3://{bucket}/landing/a.json",)
    every = listed("landing/**/*.json")
    assert every.files == (f"s3://{bucket}/landing/a.json", f"s3://{bucket}/landing/deep/b.json")
    assert every.bytes == len("a.json") + len("deep/b.json")
    assert len(listed("landing").files) == 3
    assert listed("nowhere/*.json").files == ()
    with system.open_output_stream(f"{bucket}/landing/a.json") as stream:
        stream.write(b"other")
    assert listed("landing/**/*.json").fingerprint != every.fingerprint
